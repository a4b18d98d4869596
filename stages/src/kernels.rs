//! Row kernels: what edge functions do with rows, compiled for each vector level (see [`simd`](crate::simd)).
//!
//! Rows are padded with zeros to a multiple of [`ROW_ALIGN`] items. A remainder beyond that, and what one of two rows is longer by, is
//! ignored, so slices that are no rows must be padded too; debug builds check it. Sums run in an order that depends on the level only.

pub mod draw;

use crate::simd::{RowKernel, Vector, row_kernel};
use crate::store::ROW_ALIGN;

/// Checks, in debug builds, that two slices are whole rows.
#[inline(always)]
fn check_rows(a: &[f32], b: &[f32]) {
    debug_assert!(a.len() == b.len() && a.len().is_multiple_of(ROW_ALIGN), "rows of {} and {} items", a.len(), b.len());
}

/// Returns the dot product of two rows, whole with their padding.
///
/// # Examples
/// ```
/// let (a, b) = ([2.0; 16], [0.5; 16]);
/// assert_eq!(megagrid_stages::kernels::dot(&a, &b), 16.0);
/// ```
#[inline(always)]
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    check_rows(a, b);
    row_kernel(Dot { a, b })
}

struct Dot<'r> {
    a: &'r [f32],
    b: &'r [f32],
}

impl RowKernel for Dot<'_> {
    type Output = f32;

    /// Two sums, so that an addition need not wait for the one before it.
    #[inline(always)]
    fn run<V: Vector>(self) -> f32 {
        let (a, b) = (self.a.as_chunks::<ROW_ALIGN>().0, self.b.as_chunks::<ROW_ALIGN>().0);
        let (mut even, mut odd) = (V::splat(0.0), V::splat(0.0));
        let (a_pairs, a_rest) = a.as_chunks::<2>();
        let (b_pairs, b_rest) = b.as_chunks::<2>();
        for (a, b) in a_pairs.iter().zip(b_pairs) {
            even = V::load(&a[0]).times_plus(V::load(&b[0]), even);
            odd = V::load(&a[1]).times_plus(V::load(&b[1]), odd);
        }
        for (a, b) in a_rest.iter().zip(b_rest) {
            even = V::load(a).times_plus(V::load(b), even);
        }
        even.plus(odd).sum()
    }
}

/// Adds a scaled row: `into += factor * from`, both whole with their padding.
#[inline(always)]
pub fn axpy(into: &mut [f32], factor: f32, from: &[f32]) {
    check_rows(into, from);
    row_kernel(Axpy { into, factor, from });
}

struct Axpy<'r> {
    into: &'r mut [f32],
    factor: f32,
    from: &'r [f32],
}

impl RowKernel for Axpy<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let factor = V::splat(self.factor);
        for (x, y) in self.into.as_chunks_mut().0.iter_mut().zip(self.from.as_chunks().0) {
            factor.times_plus(V::load(y), V::load(x)).store(x);
        }
    }
}

/// Steps two rows along each other: `p += p_step (error q − lambda p)` and `q += q_step (error p − lambda q)`, both from the
/// old values, and both whole with their padding. Returns the squared lengths of the two bracketed gradients.
#[inline(always)]
pub fn descend(p: &mut [f32], q: &mut [f32], error: f32, lambda: f32, p_step: f32, q_step: f32) -> (f32, f32) {
    check_rows(p, q);
    row_kernel(Descend { p, q, error, lambda, p_step, q_step })
}

struct Descend<'r> {
    p: &'r mut [f32],
    q: &'r mut [f32],
    error: f32,
    lambda: f32,
    p_step: f32,
    q_step: f32,
}

impl RowKernel for Descend<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run<V: Vector>(self) -> (f32, f32) {
        let (error, lambda) = (V::splat(self.error), V::splat(self.lambda));
        let (p_step, q_step) = (V::splat(self.p_step), V::splat(self.q_step));
        let (mut p_squares, mut q_squares) = (V::splat(0.0), V::splat(0.0));
        for (x, y) in self.p.as_chunks_mut().0.iter_mut().zip(self.q.as_chunks_mut().0) {
            let (p, q) = (V::load(x), V::load(y));
            let dp = lambda.subtract_from(p, error.times(q));
            let dq = lambda.subtract_from(q, error.times(p));
            p_squares = dp.times_plus(dp, p_squares);
            q_squares = dq.times_plus(dq, q_squares);
            p_step.times_plus(dp, p).store(x);
            q_step.times_plus(dq, q).store(y);
        }
        p_squares.sums(q_squares)
    }
}

/// Adds the gradients of two rows along each other: `dp += error q − lambda p` and `dq += error p − lambda q`, all whole with their padding,
/// to the bits of an [`axpy`] for each term. A row is read once for both of its terms.
#[inline(always)]
pub fn add_gradients(dp: &mut [f32], dq: &mut [f32], p: &[f32], q: &[f32], error: f32, lambda: f32) {
    check_rows(dp, p);
    check_rows(dq, q);
    check_rows(p, q);
    row_kernel(AddGradients { dp, dq, p, q, error, lambda });
}

struct AddGradients<'r> {
    dp: &'r mut [f32],
    dq: &'r mut [f32],
    p: &'r [f32],
    q: &'r [f32],
    error: f32,
    lambda: f32,
}

impl RowKernel for AddGradients<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let (error, lambda) = (V::splat(self.error), V::splat(-self.lambda));
        let rows = self.p.as_chunks().0.iter().zip(self.q.as_chunks().0);
        let sums = self.dp.as_chunks_mut().0.iter_mut().zip(self.dq.as_chunks_mut().0);
        for ((p, q), (dp, dq)) in rows.zip(sums) {
            let (p, q) = (V::load(p), V::load(q));
            lambda.times_plus(p, error.times_plus(q, V::load(dp))).store(dp);
            lambda.times_plus(q, error.times_plus(p, V::load(dq))).store(dq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    fn row(seed: u32, width: usize) -> Vec<f32> {
        (0..width as u32).map(|i| ((i * 7919 + seed * 104_729) % 1000) as f32 / 500.0 - 1.0).collect()
    }

    #[test]
    fn every_level_computes_what_the_formulas_say() {
        for level in Level::available() {
            for width in [0, 16, 32, 48, 112] {
                let (mut p, mut q) = (row(1, width), row(2, width));
                let plain: f64 = p.iter().zip(&q).map(|(a, b)| f64::from(a * b)).sum();
                assert!((f64::from(level.run(|| dot(&p, &q))) - plain).abs() < 1e-4, "{level} {width}");
                let (old_p, old_q) = (p.clone(), q.clone());
                let squares = level.run(|| descend(&mut p, &mut q, 0.5, 0.1, 0.01, 0.02));
                let mut expected = 0.0;
                for i in 0..width {
                    let dp = 0.5 * old_q[i] - 0.1 * old_p[i];
                    let dq = 0.5 * old_p[i] - 0.1 * old_q[i];
                    expected += dp * dp;
                    assert!((p[i] - (old_p[i] + 0.01 * dp)).abs() < 1e-6, "{level} {width}");
                    assert!((q[i] - (old_q[i] + 0.02 * dq)).abs() < 1e-6, "{level} {width}");
                }
                assert!((squares.0 - expected).abs() < 1e-4 * (1.0 + expected), "{level} {width}");
                let [mut each, mut both] = [(row(3, width), row(4, width)), (row(3, width), row(4, width))];
                level.run(|| {
                    for (sum, first, second) in [(&mut each.0, &old_q, &old_p), (&mut each.1, &old_p, &old_q)] {
                        axpy(sum, 0.5, first);
                        axpy(sum, -0.1, second);
                    }
                    add_gradients(&mut both.0, &mut both.1, &old_p, &old_q, 0.5, 0.1);
                });
                assert_eq!(each, both, "{level} {width}");
                let mut sum = old_p.clone();
                level.run(|| axpy(&mut sum, 2.0, &old_q));
                assert!((0..width).all(|i| (sum[i] - (old_p[i] + 2.0 * old_q[i])).abs() < 1e-6), "{level} {width}");
            }
        }
    }
}

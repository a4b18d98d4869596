//! Row kernels: what edge functions do with rows, written so that every vector level compiles them well.
//!
//! Rows are padded to a multiple of [`ROW_ALIGN`] items; a remainder beyond that is ignored, so slices that are no rows must
//! be padded too. All sums run in a fixed order, the same for every vector level. There is no fused multiply-add: on
//! the plain path it would be a library call, and results would differ between levels.

use crate::store::ROW_ALIGN;

type Lanes = [f32; ROW_ALIGN];

#[inline(always)]
fn fold(mut lanes: Lanes) -> f32 {
    let mut width = ROW_ALIGN / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Returns the dot product of two rows.
///
/// # Examples
/// ```
/// let (a, b) = ([2.0; 16], [0.5; 16]);
/// assert_eq!(megagrid_stages::kernels::dot(&a, &b), 16.0);
/// ```
#[inline(always)]
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; ROW_ALIGN];
    for (x, y) in a.as_chunks::<ROW_ALIGN>().0.iter().zip(b.as_chunks::<ROW_ALIGN>().0) {
        for i in 0..ROW_ALIGN {
            sums[i] += x[i] * y[i];
        }
    }
    fold(sums)
}

/// Adds a scaled row: `into += factor * from`.
#[inline(always)]
pub fn axpy(into: &mut [f32], factor: f32, from: &[f32]) {
    for (x, y) in into.as_chunks_mut::<ROW_ALIGN>().0.iter_mut().zip(from.as_chunks::<ROW_ALIGN>().0) {
        for i in 0..ROW_ALIGN {
            x[i] += factor * y[i];
        }
    }
}

/// Steps two rows along each other: `p += p_step * (error * q - lambda * p)` and `q += q_step * (error * p - lambda * q)`,
/// both from the old values. Returns the squared lengths of the two bracketed gradients.
#[inline(always)]
pub fn descend(p: &mut [f32], q: &mut [f32], error: f32, lambda: f32, p_step: f32, q_step: f32) -> (f32, f32) {
    let (mut p_squares, mut q_squares) = ([0.0; ROW_ALIGN], [0.0; ROW_ALIGN]);
    for (x, y) in p.as_chunks_mut::<ROW_ALIGN>().0.iter_mut().zip(q.as_chunks_mut::<ROW_ALIGN>().0) {
        for i in 0..ROW_ALIGN {
            let dp = error * y[i] - lambda * x[i];
            let dq = error * x[i] - lambda * y[i];
            p_squares[i] += dp * dp;
            q_squares[i] += dq * dq;
            x[i] += p_step * dp;
            y[i] += q_step * dq;
        }
    }
    (fold(p_squares), fold(q_squares))
}

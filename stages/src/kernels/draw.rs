//! Drawing an index with a chance proportional to its weight, where weights are products of rows.
//!
//! Weights are taken sixteen at a time, and running sums kept for each of the sixteen lanes. The prefix sums of the lanes'
//! totals then say in which lane a draw falls, and a search down the lane's running sums where. So a draw of K weights costs
//! K/16 steps and K/128 + 8 shorter ones, and has no branch that depends on what is drawn.

use crate::simd::Vector;
use crate::store::ROW_ALIGN;

/// Sixteen running sums.
pub type Sums = [f32; ROW_ALIGN];

/// Weights of the indices `0..16 * chunks`.
pub trait Weights: Copy {
    /// Returns how many times sixteen weights there are; checks that every row has them.
    fn chunks(&self) -> usize;
    /// Returns sixteen weights.
    fn load<V: Vector>(&self, chunk: usize) -> V;
}

/// `a[i] * b[i]`.
#[derive(Clone, Copy, Debug)]
pub struct Product<'r> {
    a: &'r [Sums],
    b: &'r [Sums],
}

impl<'r> Product<'r> {
    /// Takes two rows of equal length.
    #[inline(always)]
    #[must_use]
    pub fn new(a: &'r [f32], b: &'r [f32]) -> Self {
        Self { a: a.as_chunks().0, b: b.as_chunks().0 }
    }
}

impl Weights for Product<'_> {
    #[inline(always)]
    fn chunks(&self) -> usize {
        assert!(self.a.len() == self.b.len(), "rows have one length");
        self.a.len()
    }

    #[inline(always)]
    fn load<V: Vector>(&self, chunk: usize) -> V {
        V::load(&self.a[chunk]).times(V::load(&self.b[chunk]))
    }
}

/// `(a[i] + a_prior[i]) * (b[i] + b_prior) * scale[i]`.
#[derive(Clone, Copy, Debug)]
pub struct SmoothedProduct<'r> {
    a: &'r [Sums],
    a_prior: &'r [Sums],
    b: &'r [Sums],
    b_prior: f32,
    scale: &'r [Sums],
}

impl<'r> SmoothedProduct<'r> {
    /// Takes rows of equal length, each of `a` and `b` with what is added to it.
    #[inline(always)]
    #[must_use]
    pub fn new(a: (&'r [f32], &'r [f32]), b: (&'r [f32], f32), scale: &'r [f32]) -> Self {
        let chunks = |row: &'r [f32]| row.as_chunks().0;
        Self { a: chunks(a.0), a_prior: chunks(a.1), b: chunks(b.0), b_prior: b.1, scale: chunks(scale) }
    }
}

impl Weights for SmoothedProduct<'_> {
    #[inline(always)]
    fn chunks(&self) -> usize {
        let chunks = self.a.len();
        let all = self.a_prior.len() == chunks && self.b.len() == chunks && self.scale.len() == chunks;
        assert!(all, "rows have one length");
        chunks
    }

    #[inline(always)]
    fn load<V: Vector>(&self, chunk: usize) -> V {
        let a = V::load(&self.a[chunk]).plus(V::load(&self.a_prior[chunk]));
        let b = V::load(&self.b[chunk]).plus(V::splat(self.b_prior));
        a.times(b).times(V::load(&self.scale[chunk]))
    }
}

/// `count * table[key]` of packed counts, `count << key_bits | key`.
#[derive(Clone, Copy, Debug)]
pub struct PackedProduct<'r> {
    packed: &'r [[u32; ROW_ALIGN]],
    key_bits: u32,
    table: &'r [f32],
}

impl<'r> PackedProduct<'r> {
    /// Takes packed counts and a table with an item for each key of `key_bits` bits.
    #[inline(always)]
    #[must_use]
    pub fn new(packed: &'r [u32], key_bits: u32, table: &'r [f32]) -> Self {
        Self { packed: packed.as_chunks().0, key_bits, table }
    }
}

impl Weights for PackedProduct<'_> {
    #[inline(always)]
    fn chunks(&self) -> usize {
        self.packed.len()
    }

    #[inline(always)]
    fn load<V: Vector>(&self, chunk: usize) -> V {
        V::weigh(&self.packed[chunk], self.key_bits, self.table)
    }
}

/// A weight that is to be other than the rows say, without a write to the rows that the draw would have to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// Index of the weight.
    pub at: usize,
    /// What is added to it.
    pub by: f32,
}

/// Draws an index with a chance proportional to its weight; `rest` is the weight of everything else. `uniform` is in `0..1`
/// and says what is drawn; `sums` is scratch for as many chunks as there are. Returns the index, or how far into `rest` the
/// draw falls, and the sum of all weights and the rest.
///
/// # Panics
/// When rows differ in length, or `sums` or the change's index is beyond them.
///
/// # Complexity
/// K/16 + K/128 for K weights. Rounding may yield an index of weight zero about once in 10 million draws.
///
/// # Examples
/// ```
/// use megagrid_stages::kernels::draw::{Change, Product, draw};
/// use megagrid_stages::simd::{RowKernel, Vector, row_kernel};
///
/// struct Roulette(f32);
/// impl RowKernel for Roulette {
///     type Output = (Result<usize, f32>, f32);
///     #[inline(always)]
///     fn run<V: Vector>(self) -> Self::Output {
///         let (mut a, b) = ([0.0; 32], [2.0; 32]);
///         (a[3], a[20]) = (1.0, 3.0);
///         draw::<V, _>(Product::new(&a, &b), Change { at: 20, by: -5.0 }, 1.0, self.0, &mut [[0.0; 16]; 2])
///     }
/// }
/// assert_eq!(row_kernel(Roulette(0.4)), (Ok(3), 4.0));
/// assert_eq!(row_kernel(Roulette(0.7)), (Ok(20), 4.0));
/// assert_eq!(row_kernel(Roulette(0.75)), (Err(0.0), 4.0));
/// ```
#[inline(always)]
pub fn draw<V: Vector, W: Weights>(
    weights: W,
    change: Change,
    rest: f32,
    uniform: f32,
    sums: &mut [Sums],
) -> (Result<usize, f32>, f32) {
    let chunks = weights.chunks();
    let sums = &mut sums[..chunks];
    let mut lanes = V::splat(0.0);
    for (chunk, sum) in sums.iter_mut().enumerate() {
        lanes = lanes.plus(weights.load(chunk));
        lanes.store(sum);
    }
    let change_lane = change.at % ROW_ALIGN;
    let by = V::splat(change.by).times(V::load(one_hot(change_lane)));
    let prefix = lanes.plus(by).prefix_sums();
    let total = prefix.last();
    let mass = total + rest;
    let target = uniform * mass;
    if target >= total && rest > 0.0 {
        return (Err(target - total), mass);
    }
    let targets = V::splat(target);
    let lane = (prefix.at_most(targets).count_ones() as usize).min(ROW_ALIGN - 1);
    if chunks == 0 {
        return (Ok(lane), mass);
    }
    // How far the target is into each lane: which one it falls into is not waited for.
    let changed = sums[change.at / ROW_ALIGN][change_lane] + change.by;
    let within = targets.minus(prefix.shifted()).minus_from(V::splat(changed), by);
    (Ok(search(sums, lane, within) * ROW_ALIGN + lane), mass)
}

/// Returns sixteen numbers, all 0 but a 1.
#[inline(always)]
fn one_hot(lane: usize) -> &'static Sums {
    const ONE: [f32; 2 * ROW_ALIGN] = {
        let mut one = [0.0; 2 * ROW_ALIGN];
        one[ROW_ALIGN] = 1.0;
        one
    };
    static ONE_HOT: [f32; 2 * ROW_ALIGN] = ONE;
    let Some(numbers) = ONE_HOT[ROW_ALIGN - lane..].first_chunk() else { unreachable!("a lane is below sixteen") };
    numbers
}

/// Chunks that are looked at together.
const GROUP: usize = 8;

/// Returns the first chunk whose running sum of a lane is above its bound, or the last chunk.
///
/// Counts the sums at most `bound`, of every eighth chunk and then of eight: which they are cannot be predicted, and each
/// branch of a binary search would cost as much as all of this.
#[inline(always)]
fn search<V: Vector>(sums: &[Sums], lane: usize, bounds: V) -> usize {
    let at_most = |sums: &Sums| (V::load(sums).at_most(bounds) >> lane & 1) as usize;
    if sums.len() <= GROUP {
        return sums.iter().map(at_most).sum::<usize>().min(sums.len() - 1);
    }
    let groups: usize = sums.chunks_exact(GROUP).map(|group| at_most(&group[GROUP - 1])).sum();
    let first = (groups * GROUP).min(sums.len() - GROUP);
    let within: usize = sums[first..first + GROUP].iter().map(at_most).sum();
    (first + within).min(sums.len() - 1)
}

/// Returns where a key stands among packed counts, `count << key_bits | key`, of which those in use come first and free ones are
/// 0, and how many are in use. A key that is not there stands at `usize::MAX`. The length is a multiple of sixteen.
#[inline(always)]
#[must_use]
pub fn find_packed<V: Vector>(packed: &[u32], key_bits: u32, key: u32) -> (usize, usize) {
    let mut at = usize::MAX;
    for (chunk, packed) in packed.as_chunks::<ROW_ALIGN>().0.iter().enumerate() {
        let first = chunk * ROW_ALIGN;
        let free = V::equal(packed, u32::MAX, 0);
        let equal = V::equal(packed, (1 << key_bits) - 1, key) & !free;
        if equal != 0 {
            at = at.min(first + equal.trailing_zeros() as usize);
        }
        if free != 0 {
            return (at, first + free.trailing_zeros() as usize);
        }
    }
    (at, packed.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Level, RowKernel, row_kernel};

    struct Drawing<'s, W>(W, Change, f32, f32, &'s mut [Sums]);
    impl<W: Weights> RowKernel for Drawing<'_, W> {
        type Output = Result<usize, f32>;
        fn run<V: Vector>(self) -> Self::Output {
            draw::<V, W>(self.0, self.1, self.2, self.3, self.4).0
        }
    }

    struct Finding<'r>(&'r [u32], u32);
    impl RowKernel for Finding<'_> {
        type Output = (usize, usize);
        fn run<V: Vector>(self) -> Self::Output {
            find_packed::<V>(self.0, 6, self.1)
        }
    }

    /// How often each index is drawn at evenly spaced numbers, over the number of draws.
    fn shares<W: Weights>(weights: W, change: Change, rest: f32, len: usize) -> Vec<f64> {
        const DRAWS: usize = 100_000;
        let mut sums = vec![[0.0; ROW_ALIGN]; len / ROW_ALIGN];
        let mut shares = vec![0.0; len + 1];
        for n in 0..DRAWS {
            let uniform = (n as f32 + 0.5) / DRAWS as f32;
            shares[row_kernel(Drawing(weights, change, rest, uniform, &mut sums)).unwrap_or(len)] += 1.0 / DRAWS as f64;
        }
        shares
    }

    fn assert_proportional(shares: &[f64], weights: &[f64], what: &str) {
        let total: f64 = weights.iter().sum();
        for (i, (share, weight)) in shares.iter().zip(weights).enumerate() {
            assert!((share - weight / total).abs() < 5e-5, "{what}: {i}: {share}, expected {}", weight / total);
        }
    }

    #[test]
    fn draws_are_proportional_to_changed_weights_and_the_rest_at_every_level() {
        for level in Level::available() {
            for len in [16, 32, 48, 112, 160] {
                let a: Vec<f32> = (0..len).map(|i| (i * 7 % 5) as f32).collect();
                let b: Vec<f32> = (0..len).map(|i| (i * 3 % 4) as f32).collect();
                let prior: Vec<f32> = (0..len).map(|i| 0.1 + i as f32 / 100.0).collect();
                let smoothed = SmoothedProduct::new((&a, &prior), (&b, 0.5), &prior);
                let weight = |i: usize| f64::from((a[i] + prior[i]) * (b[i] + 0.5) * prior[i]);
                for (at, rest) in [(0, 0.0), (len - 1, 3.0), (len / 2, 1.0)] {
                    let mut expected: Vec<f64> = (0..len).map(weight).collect();
                    let change = Change { at, by: -0.7 * expected[at] as f32 };
                    expected[at] *= 0.3;
                    expected.push(f64::from(rest));
                    let shares = level.run(|| shares(smoothed, change, rest, len));
                    assert_proportional(&shares, &expected, &format!("{level} {len} {at}"));
                }
                let product = Product::new(&a, &b);
                let expected: Vec<f64> = (0..len).map(|i| f64::from(a[i] * b[i])).chain([0.0]).collect();
                let shares = level.run(|| shares(product, Change::default(), 0.0, len));
                assert_proportional(&shares, &expected, &format!("{level} {len}"));
            }
        }
    }

    #[test]
    fn packed_counts_are_weighed_and_found_at_every_level() {
        let table: Vec<f32> = (0..64).map(|i| 1.0 + i as f32 / 8.0).collect();
        for level in Level::available() {
            for used in [0, 1, 15, 16, 17, 40] {
                let mut packed = [0_u32; 48];
                (0..used).for_each(|i| packed[i] = (1 + i as u32 % 9) << 6 | (63 - i as u32));
                let mut expected: Vec<f64> =
                    packed.iter().map(|p| f64::from((p >> 6) as f32 * table[(p & 63) as usize])).collect();
                expected.push(2.0);
                let shares = level.run(|| shares(PackedProduct::new(&packed, 6, &table), Change::default(), 2.0, 48));
                assert_proportional(&shares, &expected, &format!("{level} {used}"));
                for key in [0, 23, 47, 48, 62, 63] {
                    let at = packed[..used].iter().position(|p| p & 63 == key).unwrap_or(usize::MAX);
                    assert_eq!(level.run(|| row_kernel(Finding(&packed, key))), (at, used), "{level} {key}");
                }
            }
        }
    }
}

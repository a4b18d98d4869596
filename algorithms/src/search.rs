//! Exact maximum inner product search: of many rows those with the highest products with each of some others.
//!
//! Rows are packed 32 together, dimension after dimension, so that a dimension of them is two vectors. Some queries are searched for
//! together: 32 rows lie in the nearest cache while all of these queries pass, a few at a time whose sums stay in registers, and no
//! product goes to memory. A query keeps its best `n` in a heap; where no new product is above the least of them, which is nearly always,
//! sixteen products cost one comparison.
//!
//! Longer rows come first. No product is above that of both lengths (Cauchy and Schwarz), so a query ends where what is left is too
//! short for it (Teflioudi, Gemulla and Mykytiuk 2015, "LEMP"). In models of what people use, items few of them use are short.
//!
//! One query by itself waits for memory. It reads rows of a byte a number first, and 32 rows themselves only where one of them may be among
//! the best, by how much the product of its bytes may be wrong.
//!
//! A product is a sum in the order of the dimensions, whatever it is computed with, and of equal products the first row wins. So the result
//! depends on the vector level only, and is that of all products.
//!
//! Work: at most `queries · rows · dims` multiplications. Memory: the packed rows, a fourth of that for their bytes, and for each query
//! searched for together its row and its best.

mod rough;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use megagrid_stages::ROW_ALIGN;
use megagrid_stages::simd::{Level, RowKernel, Vector, row_kernel};
use rough::{Lanes, Packed, ROUNDED_UP, Rough, RoughQuery, TOGETHER};

/// Bytes of queries that are searched for together: they share a second-level cache with the rows that stream past.
const QUERY_BYTES: usize = 128 << 10;
/// The most and the fewest of them: more gain nothing, and fewer read rows too often.
const QUERIES: Range<usize> = 16..256;

/// Rows to be found.
#[derive(Clone, Debug)]
pub struct Index {
    /// `[rows / 32, dims]`.
    packed: Vec<Packed>,
    rough: Rough,
    /// Which rows they are.
    order: Vec<u32>,
    /// No row of the 32 is longer, nor is one after them.
    longest: Vec<f32>,
    dims: usize,
}

/// Returns a length that no product of the row with a row of length 1 is above.
fn length(row: &[f32]) -> f32 {
    (ROUNDED_UP * row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt()) as f32
}

/// A row that was found, and its product.
pub type Found = (u32, f32);

impl Index {
    /// Packs `len` rows, of whom `fill` writes each into `dims` items.
    #[must_use]
    pub fn new(dims: usize, len: usize, mut fill: impl FnMut(usize, &mut [f32])) -> Self {
        let mut row = vec![0.0; dims];
        let mut lengths = Vec::with_capacity(len);
        for at in 0..len {
            fill(at, &mut row);
            lengths.push(length(&row));
        }
        let mut order: Vec<u32> = (0..len as u32).collect();
        order.sort_by(|&a, &b| lengths[b as usize].total_cmp(&lengths[a as usize]));
        let mut packed = vec![[[0.0; ROW_ALIGN]; 2]; len.div_ceil(TOGETHER) * dims];
        for (place, &at) in order.iter().enumerate() {
            fill(at as usize, &mut row);
            let (half, lane) = (place % TOGETHER / ROW_ALIGN, place % ROW_ALIGN);
            let here = &mut packed[place / TOGETHER * dims..][..dims];
            here.iter_mut().zip(&row).for_each(|(to, &value)| to[half][lane] = value);
        }
        let longest = order.iter().step_by(TOGETHER).map(|&at| lengths[at as usize]).collect();
        Self { rough: Rough::new(&packed, dims), packed, order, longest, dims }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Tells whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns how many queries are best searched for together.
    #[must_use]
    pub fn queries_together(&self) -> usize {
        (QUERY_BYTES / (size_of::<f32>() * self.dims.max(1))).clamp(QUERIES.start, QUERIES.end)
    }

    /// Finds the `n` rows with the highest products with each of the queries `numbers`, best first, ties by row. `fill` writes a query into
    /// as many items as rows have; `left_out` are the rows that it is not to find, ascending. Products that are no finite numbers are
    /// left out.
    pub fn best<'l>(
        &self,
        level: Level,
        numbers: Range<usize>,
        fill: impl Fn(usize, &mut [f32]),
        n: usize,
        left_out: impl Fn(usize) -> &'l [u32],
    ) -> Vec<Vec<Found>> {
        let mut rows = vec![0.0; numbers.len() * self.dims];
        if self.dims > 0 {
            rows.chunks_exact_mut(self.dims).zip(numbers.clone()).for_each(|(row, number)| fill(number, row));
        }
        let best = |number| Best { heap: BinaryHeap::new(), n: n.min(self.len()), left_out: left_out(number) };
        let mut found: Vec<Best<'_>> = numbers.map(best).collect();
        if n > 0 {
            level.run(|| row_kernel(Search { index: self, rows: &rows, found: &mut found }));
        }
        let sorted =
            |best: Best<'_>| best.heap.into_sorted_vec().into_iter().map(|one| (one.row, one.product)).collect();
        found.into_iter().map(sorted).collect()
    }
}

/// A candidate; the greatest is the worst.
#[derive(Clone, Copy, PartialEq)]
struct Candidate {
    row: u32,
    product: f32,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        other.product.total_cmp(&self.product).then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best rows of a query so far.
struct Best<'l> {
    heap: BinaryHeap<Candidate>,
    n: usize,
    left_out: &'l [u32],
}

impl Best<'_> {
    /// Takes in those of sixteen products that have a bit in `chosen`. Returns the least that a product has to be to be one of the best.
    #[inline(never)]
    fn take(&mut self, products: &Lanes, mut chosen: u32, rows: &[u32]) -> f32 {
        while chosen != 0 {
            let lane = chosen.trailing_zeros() as usize;
            chosen &= chosen - 1;
            // Behind the last row there is room. Zeros are equal, whatever their sign.
            let (Some(&row), product) = (rows.get(lane), products[lane] + 0.0) else { break };
            if !product.is_finite() || self.left_out.binary_search(&row).is_ok() {
                continue;
            }
            let candidate = Candidate { row, product };
            if self.heap.len() < self.n {
                self.heap.push(candidate);
            } else if let Some(mut worst) = self.heap.peek_mut()
                && candidate < *worst
            {
                *worst = candidate;
            }
        }
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.n => worst.product,
            _ => f32::NEG_INFINITY,
        }
    }
}

struct Search<'s, 'l> {
    index: &'s Index,
    /// Of each query: `[queries, dims]`.
    rows: &'s [f32],
    found: &'s mut [Best<'l>],
}

impl RowKernel for Search<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        // Two sums for each query. One by itself does not compute those of others that are not there.
        match (self.found.len(), V::SUMS) {
            (0 | 1, _) => self.run_with::<V, 1>(),
            (_, 16) => self.run_with::<V, 8>(),
            (_, 4) => self.run_with::<V, 2>(),
            _ => self.run_with::<V, 1>(),
        }
    }
}

impl Search<'_, '_> {
    /// Searches for `N` queries at a time.
    #[inline(always)]
    fn run_with<V: Vector, const N: usize>(self) {
        let Self { index: Index { packed, rough, order, longest, dims }, rows, found } = self;
        let queries = packed_queries::<N>(rows, *dims, found.len());
        let lengths: Vec<f32> = rows.chunks_exact((*dims).max(1)).map(length).collect();
        let mut least = vec![f32::NEG_INFINITY; found.len()];
        // Of several queries the products cost more than the memory.
        let rough_query = (found.len() == 1).then(|| RoughQuery::new(rows));
        let together = packed.chunks_exact((*dims).max(1)).zip(order.chunks(TOGETHER)).zip(longest);
        for (at, ((together, ids), longest)) in together.enumerate() {
            let mut is_over = true;
            let groups = found.chunks_mut(N).zip(least.chunks_mut(N)).zip(lengths.chunks(N));
            for (query, ((found, least), lengths)) in queries.chunks_exact(*dims).zip(groups) {
                // Not a number is not less.
                if least.iter().zip(lengths).all(|(least, length)| length * longest < *least) {
                    continue;
                }
                is_over = false;
                if let Some(query) = &rough_query
                    && rough.is_below::<V>(at, query, least[0])
                {
                    continue;
                }
                let sums = products::<V, N>(query, together);
                for (sums, (found, least)) in sums.iter().zip(found.iter_mut().zip(least)) {
                    for (sum, ids) in sums.iter().zip(ids.chunks(ROW_ALIGN)) {
                        let chosen = V::splat(*least).at_most(*sum);
                        if chosen != 0 {
                            let mut products = [0.0; ROW_ALIGN];
                            sum.store(&mut products);
                            *least = found.take(&products, chosen, ids);
                        }
                    }
                }
            }
            if is_over {
                break;
            }
        }
    }
}

/// Puts queries `N` together, dimension after dimension: `[queries / N, dims]`.
fn packed_queries<const N: usize>(rows: &[f32], dims: usize, len: usize) -> Vec<[f32; N]> {
    let mut packed = vec![[0.0; N]; len.div_ceil(N) * dims];
    for (at, row) in rows.chunks_exact(dims.max(1)).enumerate() {
        let here = &mut packed[at / N * dims..][..dims];
        here.iter_mut().zip(row).for_each(|(to, &value)| to[at % N] = value);
    }
    packed
}

/// Returns the products of `N` queries with 32 rows.
#[inline(always)]
fn products<V: Vector, const N: usize>(queries: &[[f32; N]], rows: &[Packed]) -> [[V; 2]; N] {
    let mut sums = [[V::splat(0.0); 2]; N];
    for (query, [one, two]) in queries.iter().zip(rows) {
        let (one, two) = (V::load(one), V::load(two));
        for n in 0..N {
            let query = V::splat(query[n]);
            sums[n] = [query.times_plus(one, sums[n][0]), query.times_plus(two, sums[n][1])];
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use megagrid_partition::SplitMix;

    use super::*;

    /// All products, sorted.
    fn naive(rows: &[Vec<f32>], query: &[f32], n: usize, left_out: &[u32]) -> Vec<Found> {
        let product = |row: &Vec<f32>| row.iter().zip(query).fold(0.0, |sum, (a, b)| a * b + sum);
        let mut all: Vec<Found> = (0..).zip(rows).map(|(at, row)| (at, product(row))).collect();
        all.retain(|(at, product)| product.is_finite() && !left_out.contains(at));
        all.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
        all.truncate(n);
        all
    }

    /// Rows of small whole numbers, whose products are exact and often equal; some are much longer.
    fn made(random: &mut SplitMix, len: usize, dims: usize) -> Vec<Vec<f32>> {
        let row = |random: &mut SplitMix| {
            let scale = [1.0, 1.0, 1.0, 8.0][random.below(4) as usize];
            (0..dims).map(|_| scale * (random.below(5) as f32 - 2.0)).collect()
        };
        (0..len).map(|_| row(random)).collect()
    }

    fn best(
        rows: &[Vec<f32>],
        queries: &[Vec<f32>],
        level: Level,
        part: Range<usize>,
        n: usize,
        left_out: &[Vec<u32>],
    ) -> Vec<Vec<Found>> {
        let dims = queries[0].len();
        let index = Index::new(dims, rows.len(), |at, to| to.copy_from_slice(&rows[at]));
        index.best(level, part, |at, to| to.copy_from_slice(&queries[at]), n, |at| &left_out[at])
    }

    #[test]
    fn what_is_found_is_what_a_full_sort_finds() {
        let mut random = SplitMix::new(11, 0);
        for dims in [1, 3, 16, 33] {
            for len in [0, 1, 15, 32, 33, 200] {
                let (rows, queries) = (made(&mut random, len, dims), made(&mut random, 21, dims));
                let left_out: Vec<Vec<u32>> = (0..21)
                    .map(|query| (0..len as u32).filter(|row| query % 3 > 0 && (row + query) % 4 == 0).collect())
                    .collect();
                for n in [0, 1, 7, 32, 1000] {
                    let expected: Vec<_> =
                        queries.iter().zip(&left_out).map(|(query, out)| naive(&rows, query, n, out)).collect();
                    for level in Level::available() {
                        for cut in [0, 1, 9] {
                            let parts = [0..cut, cut..21].map(|part| best(&rows, &queries, level, part, n, &left_out));
                            assert_eq!(parts.concat(), expected, "{level}: {len} rows of {dims}, {n}, cut at {cut}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn products_depend_on_the_level_only() {
        let mut random = SplitMix::new(5, 0);
        let mut rows = |len: usize| -> Vec<Vec<f32>> {
            (0..len).map(|_| (0..50).map(|_| random.unit() as f32 - 0.5).collect()).collect()
        };
        let (rows, queries, none) = (rows(300), rows(40), vec![Vec::new(); 40]);
        for level in Level::available() {
            let whole = best(&rows, &queries, level, 0..40, 20, &none);
            for step in [1, 3, 16] {
                let parts = (0..40).step_by(step).map(|at| at..40.min(at + step));
                let parts: Vec<_> = parts.flat_map(|part| best(&rows, &queries, level, part, 20, &none)).collect();
                assert_eq!(parts, whole, "{level}, {step} at a time");
            }
        }
    }

    /// Several queries are not searched for by bytes.
    #[test]
    fn a_query_by_itself_finds_what_it_finds_beside_others() {
        let mut random = SplitMix::new(7, 0);
        for (dims, scales) in
            [(1, [1.0, 1.0]), (9, [1e-44, 1e-38]), (40, [0.9, 1.0]), (64, [1e-3, 1.0]), (5, [1e30, 1e38])]
        {
            let mut made = |len: usize| -> Vec<Vec<f32>> {
                let number = |random: &mut SplitMix| {
                    // Some are equal, some no numbers.
                    let value = (random.below(64) as f32 - 32.0) / 32.0 * scales[random.below(2) as usize];
                    if random.below(2000) == 0 { f32::INFINITY } else { value }
                };
                (0..len).map(|_| (0..dims).map(|_| number(&mut random)).collect()).collect()
            };
            let (rows, none) = (made(2000), vec![Vec::new(); 12]);
            let mut queries = made(11);
            queries.push(vec![3e38; dims]);
            for level in Level::available() {
                let together = best(&rows, &queries, level, 0..12, 10, &none);
                let alone: Vec<_> =
                    (0..12).flat_map(|at| best(&rows, &queries, level, at..at + 1, 10, &none)).collect();
                assert_eq!(alone, together, "{level}, {dims}");
            }
        }
    }

    #[test]
    fn products_that_are_no_numbers_are_left_out() {
        let rows = [vec![f32::NAN], vec![1.0], vec![f32::INFINITY], vec![-0.0], vec![f32::NEG_INFINITY], vec![0.0]];
        for level in Level::available() {
            let found = best(&rows, &[vec![2.0]], level, 0..1, 9, &[Vec::new()]);
            assert_eq!(found, [vec![(1, 2.0), (3, 0.0), (5, 0.0)]], "{level}");
        }
    }
}

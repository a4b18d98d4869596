//! Exact maximum inner product search: of many rows those with the highest products with each of some others.
//!
//! Rows are also kept in a byte a number, 32 of them together. Their products with a query say which of the 32 may be among the best, by how
//! much they may be wrong, and only these rows are read themselves. One query by itself waits for memory: it reads the upper halves of the bytes
//! first, which mostly tell, an eighth of the memory of the rows. Some queries are searched for together: 32 rows lie in the nearest cache while
//! all of these queries pass, by the upper six bits.
//!
//! Longer rows come first. No product is above that of both lengths (Cauchy and Schwarz), so a query ends where what is left is too
//! short for it (Teflioudi, Gemulla and Mykytiuk 2015, "LEMP"). In models of what people use, items few of them use are short.
//!
//! A product is a sum in the order of the dimensions, whatever else is computed before, and of equal products the first row wins. So the result
//! depends on the vector level only, and is that of all products.
//!
//! Work: `queries · rows · dims` products of bytes at most, and those of the rows that may be among the best. Memory: the rows, a fourth of that
//! for their bytes, and for each query searched for together its row and twice as many rows as it is to find.

mod best;
mod rough;

use std::ops::Range;

use best::Best;
pub use best::Found;
use megagrid_stages::simd::{Level, RowKernel, Vector, row_kernel};
use rough::{ROUNDED_UP, Rough, RoughQuery, TOGETHER};

/// Bytes of queries that are searched for together: they share a second-level cache with the rows that stream past.
const QUERY_BYTES: usize = 128 << 10;
/// The most and the fewest of them: more gain nothing, and fewer read rows too often.
const QUERIES: Range<usize> = 16..256;

/// Rows whose products are computed at a time, as one waits for the sum before.
const FEW: usize = 4;
/// How often a query by itself asks for lower halves of bytes before it uses those that it asked for first.
const WAITING: usize = 8;

/// Rows to be found.
#[derive(Clone, Debug)]
pub struct Index {
    /// `[rows, dims]`, long ones first.
    rows: Vec<f32>,
    rough: Rough,
    /// Which rows they are.
    order: Vec<u32>,
    /// No row of the 32 is longer, nor is one after them.
    longest: Vec<f32>,
    dims: usize,
}

/// Returns a length that no product of the row with a row of length 1 is above.
fn length(row: &[f32]) -> f32 {
    // The nearest number of single precision may be a shorter one.
    ((ROUNDED_UP * row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt()) as f32).next_up()
}

impl Index {
    /// Takes `len` rows, of which `fill` writes each into `dims` items, twice.
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
        let mut rows = vec![0.0; len * dims];
        rows.chunks_exact_mut(dims.max(1)).zip(&order).for_each(|(row, &at)| fill(at as usize, row));
        let longest = order.iter().step_by(TOGETHER).map(|&at| lengths[at as usize]).collect();
        Self { rough: Rough::new(&rows, dims), rows, order, longest, dims }
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
        let mut queries = vec![0.0; numbers.len() * self.dims];
        queries.chunks_exact_mut(self.dims.max(1)).zip(numbers.clone()).for_each(|(query, number)| fill(number, query));
        let best = |number| Best::new(n.min(self.len()), left_out(number));
        let mut found: Vec<Best<'_>> = numbers.map(best).collect();
        if n > 0 {
            level.run(|| row_kernel(Search { index: self, queries: &queries, found: &mut found }));
        }
        found.into_iter().map(Best::sorted).collect()
    }
}

struct Search<'s, 'l> {
    index: &'s Index,
    /// `[queries, dims]`.
    queries: &'s [f32],
    found: &'s mut [Best<'l>],
}

impl RowKernel for Search<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { index, queries, found } = self;
        let queries = queries.chunks_exact(index.dims.max(1)).zip(found);
        let mut queries: Vec<Query<'_, '_>> = queries.map(|(row, found)| Query::new(row, found)).collect();
        match &mut queries[..] {
            [query] => query.search::<V>(index),
            queries => search_together::<V>(index, queries),
        }
    }
}

/// Searches for many queries, which pass over 32 rows while these are near.
#[inline(always)]
fn search_together<V: Vector>(index: &Index, queries: &mut [Query<'_, '_>]) {
    let mut spread = Vec::new();
    for (at, &longest) in index.longest.iter().enumerate() {
        let mut is_over = true;
        index.rough.spread(at, &mut spread);
        for query in &mut *queries {
            if query.is_beyond(longest) {
                continue;
            }
            is_over = false;
            let chosen = index.rough.of_six::<V>(at, &spread, &query.rough, query.least);
            query.take::<V>(index, at, chosen);
        }
        if is_over {
            break;
        }
    }
}

/// A query while it is searched for.
struct Query<'s, 'l> {
    row: &'s [f32],
    length: f32,
    rough: RoughQuery,
    found: &'s mut Best<'l>,
    /// The least that a product has to be to be one of the best.
    least: f32,
}

impl<'s, 'l> Query<'s, 'l> {
    fn new(row: &'s [f32], found: &'s mut Best<'l>) -> Self {
        let length = length(row);
        Self { row, length, rough: RoughQuery::new(row, length), found, least: f32::NEG_INFINITY }
    }

    /// Tells whether no row of a length is among the best.
    #[inline(always)]
    fn is_beyond(&self, longest: f32) -> bool {
        // Not a number is not less.
        self.length * longest < self.least
    }

    /// Searches for this query only, which waits for memory: lower halves of bytes are asked for some time before they are used.
    #[inline(always)]
    fn search<V: Vector>(&mut self, index: &Index) {
        // Of which 32 rows some may be among the best, by the upper halves of their bytes.
        let mut waiting = Vec::with_capacity(WAITING);
        for (at, &longest) in index.longest.iter().enumerate() {
            if self.is_beyond(longest) {
                break;
            }
            index.rough.fetch_upper(at);
            if let Some(upper) = index.rough.of_upper::<V>(at, &self.rough, self.least) {
                index.rough.fetch_lower(at);
                waiting.push((at, upper));
                if waiting.len() == WAITING {
                    self.settle::<V>(index, &mut waiting);
                }
            }
        }
        self.settle::<V>(index, &mut waiting);
    }

    /// Takes in what has waited.
    #[inline(always)]
    fn settle<V: Vector>(&mut self, index: &Index, waiting: &mut Vec<(usize, [V::Integers; 2])>) {
        for &(at, upper) in &*waiting {
            let chosen = index.rough.of_both::<V>(at, &self.rough, upper, self.least);
            self.take::<V>(index, at, chosen);
        }
        waiting.clear();
    }

    /// Takes in those of 32 rows that have a bit in `chosen`.
    #[inline(always)]
    fn take<V: Vector>(&mut self, index: &Index, at: usize, mut chosen: u32) {
        let ids = &index.order[at * TOGETHER..];
        // Of the last 32 there may be fewer.
        chosen &= u32::MAX >> TOGETHER.saturating_sub(ids.len());
        while chosen != 0 {
            let (mut lanes, mut len) = ([0; FEW], 0);
            while len < FEW && chosen != 0 {
                lanes[len] = chosen.trailing_zeros() as usize;
                chosen &= chosen - 1;
                len += 1;
            }
            let mut rows = [self.row; FEW];
            for (row, lane) in rows.iter_mut().zip(&lanes[..len]) {
                *row = &index.rows[(at * TOGETHER + lane) * index.dims..][..index.dims];
            }
            for (product, &lane) in products::<V>(self.row, rows).into_iter().zip(&lanes[..len]) {
                self.found.take(ids[lane], product);
            }
            self.least = self.found.least();
        }
    }
}

/// Returns the products of a query with a few rows. There is a variable for each, not an array: these are in registers whatever the compiler
/// unrolls.
#[inline(always)]
fn products<V: Vector>(query: &[f32], [a, b, c, d]: [&[f32]; FEW]) -> [f32; FEW] {
    let zero = V::splat(0.0);
    let (mut of_a, mut of_b, mut of_c, mut of_d) = (zero, zero, zero, zero);
    for ((((&number, &a), &b), &c), &d) in query.iter().zip(a).zip(b).zip(c).zip(d) {
        let number = V::splat(number);
        of_a = number.times_plus(V::splat(a), of_a);
        of_b = number.times_plus(V::splat(b), of_b);
        of_c = number.times_plus(V::splat(c), of_c);
        of_d = number.times_plus(V::splat(d), of_d);
    }
    [of_a.last(), of_b.last(), of_c.last(), of_d.last()]
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

    /// All rows are read where all are to be found.
    #[test]
    fn what_bytes_tell_changes_nothing() {
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
                let mut all = best(&rows, &queries, level, 0..12, rows.len(), &none);
                all.iter_mut().for_each(|found| found.truncate(10));
                let together = best(&rows, &queries, level, 0..12, 10, &none);
                let alone: Vec<_> =
                    (0..12).flat_map(|at| best(&rows, &queries, level, at..at + 1, 10, &none)).collect();
                assert!(together == all, "{level}, {dims}: beside others");
                assert!(alone == all, "{level}, {dims}: by themselves");
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

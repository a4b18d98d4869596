//! Products of a query with rows of half a byte a number and then, where these do not tell, of a byte, or of six bits, and by how much they may
//! be wrong: they tell most rows from those that may be among the best, by an eighth of the memory of the rows and half of the instructions.

use std::ops::Range;

use megagrid_stages::ROW_ALIGN;
use megagrid_stages::simd::{Bytes, Integers, Numbers, Vector, prefetch, six_bits};

/// Rows whose bytes lie together.
pub(super) const TOGETHER: usize = 2 * ROW_ALIGN;

/// By how much a length is rounded up: the error of a sum of [`MOST_DIMS`] products is below it.
pub(super) const ROUNDED_UP: f64 = 1.001;
/// More than what a sum of as many products loses where these are too small for single precision.
const LOST: f64 = 1e-41;
/// Longer rows are not told apart by bytes.
const MOST_DIMS: usize = 4096;
/// Dimensions of halves of bytes that lie together.
const EIGHT: usize = 8;

/// The byte of 0.
const ZERO: u8 = 128;
/// The largest distance from it, and the largest number of a query.
const MOST: f32 = 127.0;
/// What an upper half of a byte stands for beside 16 times itself: the middle of what the lower half may be.
const MIDDLE: f64 = 7.5;
/// Likewise what the upper six bits stand for beside 4 times themselves.
const MIDDLE_OF_TWO_BITS: f64 = 1.5;

/// How many upper halves ahead are asked for: 16 KiB, which come from memory while those before them are used.
const AHEAD: usize = 128;

/// A query that is longer might have products with bytes that are no numbers.
const LONGEST: f32 = 1e30;

/// Rows in a byte a number: a number is about its byte's distance from [`ZERO`], in units of the 32 rows that it is one of.
#[derive(Clone, Debug)]
pub(super) struct Rough {
    /// `[rows / 32, dims / 8]` of the upper halves of bytes, and of the lower ones.
    upper: Vec<[Bytes; 2]>,
    lower: Vec<[Bytes; 2]>,
    scales: Vec<Scale>,
    /// Eights of dimensions, the last of which may have fewer.
    eights: usize,
}

/// What bytes of 32 rows stand for.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// How many units 1 is, a unit being the distance of two bytes. 0: bytes say nothing of these rows, as all numbers are 0 or one is not finite.
    units: f64,
    of_upper: Distance,
    of_six: Distance,
    of_both: Distance,
}

/// How far rows are from what stands for them, in units.
#[derive(Clone, Copy, Debug)]
struct Distance {
    /// None of the rows is further, with what is rounded in sums.
    error: f32,
    /// No row of those that stand for them is longer.
    longest: f32,
}

/// A query, in a signed byte a number.
pub(super) struct RoughQuery {
    /// `[dims / 8]`.
    numbers: Vec<[Numbers; 2]>,
    /// How many units 1 is. 0: bytes say nothing of this query.
    units: f64,
    /// The sum of all numbers.
    sum: f64,
    /// In units.
    length: f64,
    /// The distance from its bytes, in units.
    error: f64,
}

impl Rough {
    /// Rounds rows, `[rows, dims]`.
    pub fn new(rows: &[f32], dims: usize) -> Self {
        let eights = dims.div_ceil(EIGHT);
        let len = rows.len().div_ceil(TOGETHER * dims.max(1)) * eights;
        let [mut upper, mut lower] = [Vec::with_capacity(len), Vec::with_capacity(len)];
        let padded = eights * EIGHT;
        // `[TOGETHER, padded]`.
        let mut bytes = vec![ZERO; TOGETHER * padded];
        let scales = rows.chunks(TOGETHER * dims.max(1)).map(|rows| {
            let unit = unit(rows);
            for (bytes, row) in bytes.chunks_exact_mut(padded).zip(rows.chunks_exact(dims)) {
                for (byte, number) in bytes.iter_mut().zip(row) {
                    *byte = ZERO.wrapping_add_signed(rounded(number / unit));
                }
            }
            for first in (0..padded).step_by(EIGHT) {
                let both = [0, ROW_ALIGN].map(|lane| &bytes[lane * padded + first..]);
                upper.push(both.map(|bytes| halves(bytes, padded, |byte| byte >> 4)));
                lower.push(both.map(|bytes| halves(bytes, padded, |byte| byte & 15)));
            }
            let rows = rows.chunks_exact(dims).zip(bytes.chunks_exact(padded).map(|bytes| &bytes[..dims]));
            Scale::of(rows, f64::from(unit), dims)
        });
        let scales = scales.collect();
        Self { upper, lower, scales, eights }
    }

    /// Returns where bytes of 32 rows are.
    #[inline(always)]
    fn at(&self, at: usize) -> Range<usize> {
        at * self.eights..(at + 1) * self.eights
    }

    /// Asks for upper halves of bytes that are used soon.
    #[inline(always)]
    pub fn fetch_upper(&self, at: usize) {
        let soon = self.upper.as_ptr().wrapping_add(self.at(at).start + AHEAD);
        prefetch(soon, size_of::<[Bytes; 2]>() * self.eights);
    }

    /// Spreads the upper six bits of bytes of 32 rows to a byte each, which many queries read faster.
    pub fn spread(&self, at: usize, to: &mut Vec<[Bytes; 2]>) {
        to.clear();
        let both = self.upper[self.at(at)].iter().zip(&self.lower[self.at(at)]);
        to.extend(both.flat_map(|(upper, lower)| six_bits(upper, lower)));
    }

    /// Returns a bit for each of 32 rows whose product with the query may be `least` or more, by the upper six bits.
    #[inline(always)]
    pub fn of_six<V: Vector>(&self, at: usize, spread: &[[Bytes; 2]], query: &RoughQuery, least: f32) -> u32 {
        let Scale { units, of_six, .. } = self.scales[at];
        // First, as this takes a while, beside the products.
        let sum = query.sum_of(least, units, of_six) + (f64::from(ZERO) - MIDDLE_OF_TWO_BITS) * query.sum;
        let bound = bound(sum * (1.0 / 4.0));
        above::<V>(V::Integers::of_bytes(spread, query.numbers.as_flattened()), bound)
    }

    /// Returns the sums of products of the upper halves of bytes of 32 rows with the query, if a product may be `least` or more by these.
    #[inline(always)]
    pub fn of_upper<V: Vector>(&self, at: usize, query: &RoughQuery, least: f32) -> Option<[V::Integers; 2]> {
        let Scale { units, of_upper, .. } = self.scales[at];
        let sum = query.sum_of(least, units, of_upper) + (f64::from(ZERO) - MIDDLE) * query.sum;
        let bound = bound(sum * (1.0 / 16.0));
        let sums = V::Integers::of_halves(&self.upper[self.at(at)], &query.numbers);
        (above::<V>(sums, bound) != 0).then_some(sums)
    }

    /// Asks for the lower halves of bytes of 32 rows.
    #[inline(always)]
    pub fn fetch_lower(&self, at: usize) {
        let bytes = &self.lower[self.at(at)];
        prefetch(bytes.as_ptr(), size_of_val(bytes));
    }

    /// Returns a bit for each of 32 rows whose product with the query may be `least` or more, by [`of_upper`](Self::of_upper) and the lower
    /// halves.
    #[inline(always)]
    pub fn of_both<V: Vector>(&self, at: usize, query: &RoughQuery, upper: [V::Integers; 2], least: f32) -> u32 {
        let Scale { units, of_both, .. } = self.scales[at];
        let bound = bound(query.sum_of(least, units, of_both) + f64::from(ZERO) * query.sum);
        let lower = V::Integers::of_halves(&self.lower[self.at(at)], &query.numbers);
        above::<V>([upper[0].times_16_plus(lower[0]), upper[1].times_16_plus(lower[1])], bound)
    }
}

/// Returns a bit for each of 32 sums: whether it is above the bound.
#[inline(always)]
fn above<V: Vector>([one, two]: [V::Integers; 2], bound: i32) -> u32 {
    one.above(bound) | two.above(bound) << ROW_ALIGN
}

/// Returns what whole sums that reach a number are above. Beyond 32 bits all sums are above it, or none.
#[inline(always)]
fn bound(sum: f64) -> i32 {
    (sum.ceil() - 1.0) as i32
}

/// Returns what one step of bytes is, of which numbers are 127 at most.
fn unit(numbers: &[f32]) -> f32 {
    numbers.iter().fold(0.0_f32, |most, number| most.max(number.abs())) / MOST
}

/// Rounds a number that is 127 at most; what is no number, as where all are 0, to 0. Without a call, unlike `round`, so that it is done for many at a
/// time.
#[inline(always)]
fn rounded(number: f32) -> i8 {
    // From here on numbers are whole.
    const WHOLE: f32 = 12_582_912.0;
    ((number + WHOLE) - WHOLE).clamp(-MOST, MOST) as i8
}

/// Puts halves of bytes of eight dimensions of sixteen rows together, which lie `padded` bytes apart.
fn halves(bytes: &[u8], padded: usize, of: impl Fn(u8) -> u8) -> Bytes {
    std::array::from_fn(|lane| {
        let row = &bytes[lane * padded..][..EIGHT];
        std::array::from_fn(|dim| of(row[dim]) | of(row[dim + 4]) << 4)
    })
}

impl Scale {
    /// Measures rows against their bytes (Cauchy and Schwarz).
    fn of<'r>(rows: impl Iterator<Item = (&'r [f32], &'r [u8])>, unit: f64, dims: usize) -> Self {
        let units = 1.0 / unit;
        let mut kinds = [Distance { error: 0.0, longest: 0.0 }; 3];
        for (row, bytes) in rows {
            let (mut length, mut distances, mut lengths) = (0.0_f64, [0.0_f64; 3], [0.0_f64; 3]);
            for (&number, &byte) in row.iter().zip(bytes) {
                let number = units * f64::from(number);
                length += number.powi(2);
                let [upper, six] = [0xf0, 0xfc].map(|mask| f64::from(byte & mask));
                let stand_for = [upper + MIDDLE, six + MIDDLE_OF_TWO_BITS, f64::from(byte)];
                for (at, byte) in stand_for.into_iter().enumerate() {
                    let byte = byte - f64::from(ZERO);
                    distances[at] += (number - byte).powi(2);
                    lengths[at] += byte.powi(2);
                }
            }
            for (at, kind) in kinds.iter_mut().enumerate() {
                kind.take(length, distances[at], lengths[at]);
            }
        }
        let [of_upper, of_six, of_both] = kinds;
        // A row with a number that is none is never found, and its error does not matter.
        let is_known = unit > 0.0
            && unit.is_finite()
            && dims <= MOST_DIMS
            && kinds.iter().all(|kind| kind.error.is_finite() && kind.longest.is_finite());
        Self { units: if is_known { units } else { 0.0 }, of_upper, of_six, of_both }
    }
}

impl Distance {
    /// Takes in squares: of the length of a row, of its distance from what stands for it, and of the length of that.
    fn take(&mut self, length: f64, distance: f64, of_bytes: f64) {
        let error = ROUNDED_UP * distance.sqrt() + (ROUNDED_UP - 1.0) * length.sqrt();
        self.error = self.error.max(error as f32);
        self.longest = self.longest.max((ROUNDED_UP * of_bytes.sqrt()) as f32);
    }
}

impl RoughQuery {
    /// Rounds a query, of which no product with a row of length 1 is above `length`.
    pub fn new(query: &[f32], length: f32) -> Self {
        let unit = unit(query);
        let units = 1.0 / f64::from(unit);
        let mut numbers = vec![[[0; 4]; 2]; query.len().div_ceil(EIGHT)];
        let (mut sum, mut distance) = (0.0, 0.0);
        for (byte, &number) in numbers.as_flattened_mut().as_flattened_mut().iter_mut().zip(query) {
            *byte = rounded(number / unit);
            sum += f64::from(*byte);
            distance += (units * f64::from(number) - f64::from(*byte)).powi(2);
        }
        let is_known = unit > 0.0 && length < LONGEST;
        let (units, error) = (if is_known { units } else { 0.0 }, ROUNDED_UP * distance.sqrt());
        Self { numbers, units, sum, length: units * f64::from(length), error }
    }

    /// Returns the least sum of products of bytes, each less that of 0, whose product may be `least`, of rows with that many units.
    #[inline(always)]
    fn sum_of(&self, least: f32, units: f64, Distance { error, longest }: Distance) -> f64 {
        // A product is that of both bytes, and what the query times the row's error and the query's error times the row's bytes are at most.
        let errors = self.length * f64::from(error) + self.error * f64::from(longest);
        let units = self.units * units;
        // Bytes that do not tell are above anything.
        if units == 0.0 { f64::NEG_INFINITY } else { (f64::from(least) - LOST) * units - errors }
    }
}

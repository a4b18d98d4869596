//! Products of a query with rows of a byte a number, and by how much they may be wrong: they tell most rows from those that may be among
//! the best, by a fourth of the bytes of the rows and of the instructions.

use megagrid_stages::ROW_ALIGN;
use megagrid_stages::simd::{Integers, MOST_OF_BYTE, Vector};

pub(super) type Lanes = [f32; ROW_ALIGN];
/// One dimension of rows that are packed together.
pub(super) type Packed = [Lanes; 2];
/// Four dimensions of rows that are packed together.
type Quad = [[[u8; 4]; ROW_ALIGN]; 2];

/// Rows that are packed together.
pub(super) const TOGETHER: usize = 2 * ROW_ALIGN;

/// By how much a length is rounded up: the error of a sum of [`MOST_DIMS`] products is below it.
pub(super) const ROUNDED_UP: f64 = 1.001;
/// Longer rows are not told apart by bytes.
const MOST_DIMS: usize = 4096;

/// The byte of 0.
const ZERO: u8 = 64;
/// The largest distance from it.
const MOST: f32 = (MOST_OF_BYTE - ZERO) as f32;

/// A query that is longer might have products with bytes that are no numbers.
const LONGEST: f64 = 1e30;

/// Rows that are packed together, in a byte a number: a number is about its byte's distance from [`ZERO`] times the scale of the 32.
#[derive(Clone, Debug)]
pub(super) struct Rough {
    /// `[rows / 32, dims / 4]`.
    bytes: Vec<Quad>,
    scales: Vec<Scale>,
}

#[derive(Clone, Copy, Debug)]
struct Scale {
    /// 0: bytes say nothing of these rows, as all numbers are 0 or one is not finite.
    scale: f32,
    /// None of these rows is further from its bytes, with what is rounded in sums.
    error: f32,
    /// No row of these bytes is longer.
    longest: f32,
}

/// A query, in a signed byte a number.
pub(super) struct RoughQuery {
    /// `[dims / 4]`.
    numbers: Vec<[i8; 4]>,
    /// What 1 stands for. 0: bytes say nothing of this query.
    step: f64,
    /// The sum of all numbers, each times [`ZERO`].
    of_zeros: f64,
    length: f64,
    /// The distance from its bytes.
    error: f64,
}

impl Rough {
    /// Rounds rows that are packed together.
    pub fn new(packed: &[Packed], dims: usize) -> Self {
        let mut bytes = Vec::with_capacity(packed.len().div_ceil(4));
        let scales = packed.chunks_exact(dims.max(1)).map(|together| {
            let numbers = together.as_flattened().as_flattened();
            let scale = numbers.iter().fold(0.0_f32, |most, number| most.max(number.abs())) / MOST;
            // Where all are 0 a quotient is no number, whose byte is that of 0.
            let rounded =
                |number: f32| ((number / scale).round().clamp(-MOST, MOST) as i8).wrapping_add_unsigned(ZERO) as u8;
            bytes.extend(together.chunks(4).map(|four| {
                let byte =
                    |lane: usize, dim: usize| four.get(dim).map_or(ZERO, |both| rounded(both.as_flattened()[lane]));
                std::array::from_fn(|half| {
                    std::array::from_fn(|lane| std::array::from_fn(|dim| byte(half * ROW_ALIGN + lane, dim)))
                })
            }));
            let quads = &bytes[bytes.len() - dims.div_ceil(4)..];
            Scale::of(together, quads, scale)
        });
        let scales = scales.collect();
        Self { bytes, scales }
    }

    /// Tells whether no product of the query with one of 32 rows can be `least` or more.
    #[inline(always)]
    pub fn is_below<V: Vector>(&self, at: usize, query: &RoughQuery, least: f32) -> bool {
        let Scale { scale, error, longest } = self.scales[at];
        let unit = query.step * f64::from(scale);
        if unit == 0.0 {
            return false;
        }
        let mut sums = [V::Integers::zero(); 2];
        for (&numbers, quad) in query.numbers.iter().zip(&self.bytes[at * query.numbers.len()..]) {
            for (sum, bytes) in sums.iter_mut().zip(quad) {
                *sum = sum.plus_products(bytes, numbers);
            }
        }
        // A product is that of both bytes, and what the query times the row's error and the query's error times the row's bytes are at most.
        let errors = query.length * f64::from(error) + query.error * f64::from(longest);
        // Sums are whole: one that reaches a bound is above the whole number before it. Beyond 32 bits all sums are above it, or none.
        let bound = ((f64::from(least) - errors) / unit + query.of_zeros).ceil() - 1.0;
        let [one, two] = sums;
        one.above(bound as i32) | two.above(bound as i32) == 0
    }
}

impl Scale {
    /// Measures rows against their bytes (Cauchy and Schwarz).
    fn of(together: &[Packed], quads: &[Quad], scale: f32) -> Self {
        let [mut distance, mut length, mut of_bytes] = [[0.0_f64; TOGETHER]; 3];
        for (dim, both) in together.iter().enumerate() {
            let bytes = quads[dim / 4].as_flattened();
            for (lane, &number) in both.as_flattened().iter().enumerate() {
                let byte = f64::from(scale) * (f64::from(bytes[lane][dim % 4]) - f64::from(ZERO));
                distance[lane] += (f64::from(number) - byte).powi(2);
                length[lane] += f64::from(number).powi(2);
                of_bytes[lane] += byte.powi(2);
            }
        }
        let largest = |squares: [f64; TOGETHER]| squares.into_iter().fold(0.0, f64::max).sqrt();
        let error = (ROUNDED_UP * largest(distance) + (ROUNDED_UP - 1.0) * largest(length)) as f32;
        let longest = (ROUNDED_UP * largest(of_bytes)) as f32;
        // A row with a number that is none is never found, and its error does not matter.
        let is_known = together.len() <= MOST_DIMS && [scale, error, longest].iter().all(|value| value.is_finite());
        Self { scale: if is_known { scale } else { 0.0 }, error, longest }
    }
}

impl RoughQuery {
    /// Rounds a query.
    pub fn new(query: &[f32]) -> Self {
        let length = ROUNDED_UP * query.iter().map(|&number| f64::from(number).powi(2)).sum::<f64>().sqrt();
        let step = query.iter().fold(0.0_f32, |most, number| most.max(number.abs())) / f32::from(MOST_OF_BYTE);
        let most = MOST_OF_BYTE as i8;
        let rounded = |&number: &f32| ((number / step).round() as i8).clamp(-most, most);
        let mut numbers = Vec::with_capacity(query.len().div_ceil(4));
        let (mut sum, mut distance) = (0, 0.0);
        for four in query.chunks(4) {
            let bytes: [i8; 4] = std::array::from_fn(|dim| four.get(dim).map_or(0, rounded));
            numbers.push(bytes);
            for (&number, byte) in four.iter().zip(bytes) {
                sum += i32::from(byte);
                distance += (f64::from(number) - f64::from(step) * f64::from(byte)).powi(2);
            }
        }
        // Not a number is not shorter.
        let step = if length < LONGEST { f64::from(step) } else { 0.0 };
        let of_zeros = f64::from(ZERO) * f64::from(sum);
        Self { numbers, step, of_zeros, length, error: ROUNDED_UP * distance.sqrt() }
    }
}

//! Products of a query with rows of a byte a number, and by how much they may be wrong: they tell most rows from those that may be among
//! the best, and a fourth of the bytes come from memory, which is what one query waits for.

use megagrid_stages::ROW_ALIGN;
use megagrid_stages::simd::Vector;

pub(super) type Lanes = [f32; ROW_ALIGN];
/// One dimension of rows that are packed together.
pub(super) type Packed = [Lanes; 2];

/// Rows that are packed together.
pub(super) const TOGETHER: usize = 2 * ROW_ALIGN;

/// By how much a length is rounded up: the error of a sum of 4096 products is below it.
pub(super) const ROUNDED_UP: f64 = 1.001;

/// The largest byte.
const MOST: f32 = 127.0;

/// A query that is longer might have products with bytes that are no numbers.
const LONGEST: f32 = 1e30;

/// Rows that are packed together, in a byte a number: a number is about its byte times the scale of the 32.
#[derive(Clone, Debug)]
pub(super) struct Rough {
    /// `[rows / 32, dims]`.
    bytes: Vec<[i8; TOGETHER]>,
    scales: Vec<Scale>,
}

#[derive(Clone, Copy, Debug)]
struct Scale {
    /// 0: bytes say nothing of these rows, as all numbers are 0 or one is not finite.
    scale: f32,
    /// No product of these rows with one of length 1 is further from that of their bytes.
    error: f32,
}

impl Rough {
    /// Rounds rows that are packed together.
    pub fn new(packed: &[Packed], dims: usize) -> Self {
        let mut bytes = Vec::with_capacity(packed.len());
        let scales = packed.chunks_exact(dims.max(1)).map(|together| {
            let numbers = together.as_flattened().as_flattened();
            let most = numbers.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
            let scale = most / MOST;
            let first = bytes.len();
            // Where all are 0 a quotient is no number, whose byte is 0.
            bytes.extend(together.iter().map(|pair| byte_each(pair, |number| (number / scale).round() as i8)));
            let error = error(together, &bytes[first..], scale);
            // A row with a number that is none is never found, and its error does not matter.
            Scale { scale: if scale.is_finite() && error.is_finite() { scale } else { 0.0 }, error }
        });
        let scales = scales.collect();
        Self { bytes, scales }
    }

    /// Tells whether no product of the query with one of 32 rows can be `least` or more; `length` is that of the query.
    #[inline(always)]
    pub fn is_below<V: Vector, const N: usize>(&self, at: usize, query: &[[f32; N]], length: f32, least: f32) -> bool {
        let Scale { scale, error } = self.scales[at];
        // Not a number is not shorter.
        if !(length < LONGEST && scale > 0.0) {
            return false;
        }
        let mut sums = [V::splat(0.0); 2];
        for (number, bytes) in query.iter().zip(&self.bytes[at * query.len()..]) {
            let number = V::splat(number[0]);
            for (half, sum) in sums.iter_mut().enumerate() {
                let bytes: Lanes = std::array::from_fn(|lane| f32::from(bytes[half * ROW_ALIGN + lane]));
                *sum = number.times_plus(V::load(&bytes), *sum);
            }
        }
        // What a sum has to be at least, which stands for itself times the scale.
        let bound = V::splat((least - length * error) / scale);
        sums.iter().all(|sum| bound.at_most(*sum) == 0)
    }
}

/// Makes a byte of each number of one dimension.
fn byte_each([one, two]: &Packed, byte: impl Fn(f32) -> i8) -> [i8; TOGETHER] {
    std::array::from_fn(|lane| byte(if lane < ROW_ALIGN { one[lane] } else { two[lane - ROW_ALIGN] }))
}

/// Returns the largest error of a product with a row of length 1: the distance of a row from its bytes (Cauchy and Schwarz), and what is
/// rounded in both sums.
fn error(together: &[Packed], bytes: &[[i8; TOGETHER]], scale: f32) -> f32 {
    let mut squares = [[0.0_f64; 2]; TOGETHER];
    for (pair, bytes) in together.iter().zip(bytes) {
        for ((number, byte), [distance, length]) in pair.as_flattened().iter().zip(bytes).zip(&mut squares) {
            let number = f64::from(*number);
            *distance += (number - f64::from(scale) * f64::from(*byte)).powi(2);
            *length += number.powi(2);
        }
    }
    let largest = |which: usize| squares.iter().map(|both| both[which]).fold(0.0, f64::max).sqrt();
    (ROUNDED_UP * largest(0) + (ROUNDED_UP - 1.0) * largest(1)) as f32
}

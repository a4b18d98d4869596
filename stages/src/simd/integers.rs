//! Sixteen integer sums at a time, of products of small numbers.

use crate::store::ROW_ALIGN;

mod sealed {
    pub trait Sealed {}
}

/// Four bytes of each of sixteen rows, of a dimension each; or, in halves, of eight dimensions: the lower halves are of the first four and the
/// upper ones of the next four.
pub type Bytes = [[u8; 4]; ROW_ALIGN];

/// Numbers of four dimensions, none of which is -128.
pub type Numbers = [i8; 4];

/// How many halves of bytes lie so that their products have a sum that fits in 16 bits: 4 · 4 · 15 · 127.
const HALVES: usize = 4;
/// Likewise bytes: 2 · 2 · 63 · 127.
const BYTES: usize = 2;

/// Sixteen sums.
pub trait Integers: sealed::Sealed + Copy {
    /// Returns of each of twice sixteen rows the sum of the products of its halves of bytes with the numbers.
    fn of_halves(halves: &[[Bytes; 2]], numbers: &[[Numbers; 2]]) -> [Self; 2];
    /// Returns of each of twice sixteen rows the sum of the products of its bytes, of which none is above 63, with the numbers.
    fn of_bytes(bytes: &[[Bytes; 2]], numbers: &[Numbers]) -> [Self; 2];
    /// Returns 16 times these sums, and others added: those of the upper halves of bytes and of the lower ones are those of bytes.
    fn times_16_plus(self, others: Self) -> Self;
    /// Returns a bit for each sum: whether it is above the bound.
    fn above(self, bound: i32) -> u32;
}

/// Sixteen sums on any processor of the target.
#[derive(Clone, Copy)]
pub struct PlainIntegers([i32; ROW_ALIGN]);

impl sealed::Sealed for PlainIntegers {}

impl Integers for PlainIntegers {
    #[inline(always)]
    fn of_halves(halves: &[[Bytes; 2]], numbers: &[[Numbers; 2]]) -> [Self; 2] {
        let mut sums = [[0; ROW_ALIGN]; 2];
        for (halves, [lower, upper]) in halves.iter().zip(numbers) {
            for (sums, halves) in sums.iter_mut().zip(halves) {
                add(sums, halves, (0, 15), *lower);
                add(sums, halves, (4, 15), *upper);
            }
        }
        sums.map(Self)
    }
    #[inline(always)]
    fn of_bytes(bytes: &[[Bytes; 2]], numbers: &[Numbers]) -> [Self; 2] {
        let mut sums = [[0; ROW_ALIGN]; 2];
        for (bytes, numbers) in bytes.iter().zip(numbers) {
            for (sums, bytes) in sums.iter_mut().zip(bytes) {
                add(sums, bytes, (0, 255), *numbers);
            }
        }
        sums.map(Self)
    }
    #[inline(always)]
    fn times_16_plus(self, others: Self) -> Self {
        Self(std::array::from_fn(|i| 16 * self.0[i] + others.0[i]))
    }
    #[inline(always)]
    fn above(self, bound: i32) -> u32 {
        self.0.iter().enumerate().map(|(i, &sum)| u32::from(sum > bound) << i).sum()
    }
}

/// Adds the products of bytes, or of bits of them, in vectors of 32 bits.
#[inline(always)]
fn add(sums: &mut [i32; ROW_ALIGN], bytes: &Bytes, (shift, mask): (u32, u32), numbers: Numbers) {
    for (dim, number) in (0..).zip(numbers) {
        let byte = |i: usize| (u32::from_le_bytes(bytes[i]) >> (8 * dim + shift) & mask) as i32;
        *sums = std::array::from_fn(|i| sums[i] + byte(i) * i32::from(number));
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

/// Returns the upper six bits of bytes that are in halves, a byte for each: of the first four dimensions, and of the next four.
#[inline(always)]
#[must_use]
pub fn six_bits(upper: &[Bytes; 2], lower: &[Bytes; 2]) -> [[Bytes; 2]; 2] {
    let mut six = [[[[0; 4]; ROW_ALIGN]; 2]; 2];
    for (shift, six) in [0, 4].into_iter().zip(&mut six) {
        let halves = upper.as_flattened().iter().zip(lower.as_flattened());
        for (to, (upper, lower)) in six.as_flattened_mut().iter_mut().zip(halves) {
            let (upper, lower) = (u32::from_le_bytes(*upper) >> shift, u32::from_le_bytes(*lower) >> (shift + 2));
            *to = ((upper & 0x0f0f_0f0f) << 2 | lower & 0x0303_0303).to_le_bytes();
        }
    }
    six
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Level, RowKernel, Vector, row_kernel};

    struct Sums<'s> {
        upper: &'s [[Bytes; 2]],
        lower: &'s [[Bytes; 2]],
        numbers: &'s [[Numbers; 2]],
    }

    /// Bounds that sums may be at.
    fn bounds() -> impl Iterator<Item = i32> {
        (-300_000..300_000).step_by(127).flat_map(|at| [at - 1, at])
    }

    impl RowKernel for Sums<'_> {
        /// For each bound, which sums are above it: those of both halves, and those of their upper six bits.
        type Output = Vec<[u32; 2]>;

        #[inline(always)]
        fn run<V: Vector>(self) -> Self::Output {
            let Self { upper, lower, numbers } = self;
            let six: Vec<[Bytes; 2]> =
                upper.iter().zip(lower).flat_map(|(upper, lower)| six_bits(upper, lower)).collect();
            let six = V::Integers::of_bytes(&six, numbers.as_flattened());
            let (upper, lower) = (V::Integers::of_halves(upper, numbers), V::Integers::of_halves(lower, numbers));
            let sums = [upper[0].times_16_plus(lower[0]), upper[1].times_16_plus(lower[1])];
            let above = |sums: [V::Integers; 2], bound| sums[0].above(bound) | sums[1].above(bound) << ROW_ALIGN;
            bounds().map(|bound| [above(sums, bound), above(six, bound)]).collect()
        }
    }

    /// Returns halves and numbers of `len` times eight dimensions, the largest that there may be or various ones.
    fn made(len: usize, largest: Option<i8>) -> ([Vec<[Bytes; 2]>; 2], Vec<[Numbers; 2]>) {
        let byte = |at: usize| if largest.is_some() { 255 } else { (at * at + 7 * at) as u8 };
        let halves =
            |from: usize| -> Bytes { std::array::from_fn(|i| std::array::from_fn(|dim| byte(from + 4 * i + dim))) };
        let number = |at: usize| largest.unwrap_or(((41 * at % 255) as i16 - 127) as i8);
        let numbers = |at: usize| [0, 4].map(|from| std::array::from_fn(|dim| number(8 * at + from + dim)));
        let of = |from: usize| (from..from + len).map(|at| [halves(129 * at), halves(129 * at + 64)]).collect();
        ([of(0), of(len)], (0..len).map(numbers).collect())
    }

    /// The sum of the products of row `i` of 32, whose bytes are in halves, without their lowest bits.
    fn naive([upper, lower]: &[Vec<[Bytes; 2]>; 2], numbers: &[[Numbers; 2]], i: usize, without: u32) -> i32 {
        let half = |halves: &[[Bytes; 2]], dim: usize| {
            i32::from(halves[dim / 8][i / ROW_ALIGN][i % ROW_ALIGN][dim % 4] >> (dim % 8 / 4 * 4) & 15)
        };
        let byte = |dim: usize| (16 * half(upper, dim) + half(lower, dim)) >> without;
        let numbers = numbers.as_flattened().as_flattened();
        numbers.iter().enumerate().map(|(dim, &number)| byte(dim) * i32::from(number)).sum()
    }

    #[test]
    fn sums_are_exact_at_each_level() {
        for len in [0, 1, 3, 4, 5, 9] {
            for largest in [None, Some(127), Some(-127)] {
                let (halves, numbers) = made(len, largest);
                let [both, six] = [0, 2].map(|without| -> Vec<i32> {
                    (0..2 * ROW_ALIGN).map(|i| naive(&halves, &numbers, i, without)).collect()
                });
                let [upper, lower] = &halves;
                let above = |sums: &[i32], bound| (0..).zip(sums).map(|(i, &sum)| u32::from(sum > bound) << i).sum();
                let expected: Vec<[u32; 2]> = bounds().map(|bound| [above(&both, bound), above(&six, bound)]).collect();
                for level in Level::available() {
                    let found = level.run(|| row_kernel(Sums { upper, lower, numbers: &numbers }));
                    assert!(found == expected, "{level}: {len} times eight dimensions, {largest:?}");
                }
            }
        }
    }
}

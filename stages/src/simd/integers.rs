//! Sixteen integer sums at a time, of products of small numbers.

use crate::store::ROW_ALIGN;

mod sealed {
    pub trait Sealed {}
}

/// The largest of the numbers whose products [`Integers`] adds, of either sign, and of the bytes: two such products fit in 16 bits.
pub const MOST_OF_BYTE: u8 = 127;

/// Sixteen sums.
pub trait Integers: sealed::Sealed + Copy {
    /// Sixteen zeros.
    fn zero() -> Self;
    /// Adds to each sum the products of its four bytes with the four numbers, which are [`MOST_OF_BYTE`] at most.
    fn plus_products(self, bytes: &[[u8; 4]; ROW_ALIGN], numbers: [i8; 4]) -> Self;
    /// Returns a bit for each sum: whether it is above the bound.
    fn above(self, bound: i32) -> u32;
}

/// Sixteen sums on any processor of the target.
#[derive(Clone, Copy)]
pub struct PlainIntegers([i32; ROW_ALIGN]);

impl sealed::Sealed for PlainIntegers {}

impl Integers for PlainIntegers {
    #[inline(always)]
    fn zero() -> Self {
        Self([0; ROW_ALIGN])
    }
    #[inline(always)]
    fn plus_products(self, bytes: &[[u8; 4]; ROW_ALIGN], numbers: [i8; 4]) -> Self {
        let mut sums = self.0;
        // In vectors of 32 bits, of which each byte is shifted out.
        for (dim, number) in numbers.into_iter().enumerate() {
            let byte = |i: usize| u32::from_le_bytes(bytes[i]) >> (8 * dim) & 0xff;
            sums = std::array::from_fn(|i| sums[i] + byte(i) as i32 * i32::from(number));
        }
        Self(sums)
    }
    #[inline(always)]
    fn above(self, bound: i32) -> u32 {
        self.0.iter().enumerate().map(|(i, &sum)| u32::from(sum > bound) << i).sum()
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Level, RowKernel, Vector, row_kernel};

    struct Sums<'s>(&'s [([[u8; 4]; ROW_ALIGN], [i8; 4])]);

    impl RowKernel for Sums<'_> {
        /// For each bound that a sum may be at, which are above it.
        type Output = Vec<u32>;

        #[inline(always)]
        fn run<V: Vector>(self) -> Self::Output {
            let add =
                |sums: V::Integers, (bytes, numbers): &([[u8; 4]; 16], [i8; 4])| sums.plus_products(bytes, *numbers);
            let sums = self.0.iter().fold(V::Integers::zero(), add);
            (-70_000..70_000).step_by(127).flat_map(|at| [at - 1, at]).map(|bound| sums.above(bound)).collect()
        }
    }

    #[test]
    fn sums_are_exact_at_each_level() {
        let most = MOST_OF_BYTE as i8;
        let bytes = std::array::from_fn(|i| [[MOST_OF_BYTE; 4], [0, 1, MOST_OF_BYTE, 64], [i as u8; 4]][i % 3]);
        let added = [(bytes, [most; 4]), (bytes, [-most, 1, most, -7])];
        for added in [&added[..1], &added[1..], &added] {
            let sum = |i: usize| -> i32 {
                let one = |(bytes, numbers): &([[u8; 4]; ROW_ALIGN], [i8; 4])| -> i32 {
                    bytes[i].iter().zip(numbers).map(|(&byte, &number)| i32::from(byte) * i32::from(number)).sum()
                };
                added.iter().map(one).sum()
            };
            let above = |bound| (0..ROW_ALIGN).map(|i| u32::from(sum(i) > bound) << i).sum();
            let expected: Vec<u32> = (-70_000..70_000).step_by(127).flat_map(|at| [at - 1, at]).map(above).collect();
            for level in Level::available() {
                assert_eq!(level.run(|| row_kernel(Sums(added))), expected, "{level}");
            }
        }
    }
}

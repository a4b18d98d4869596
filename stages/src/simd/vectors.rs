//! Sixteen numbers at a time, for each level.

use super::integers::{Integers, PlainIntegers};
use crate::store::ROW_ALIGN;

type Lanes = [f32; ROW_ALIGN];

mod sealed {
    pub trait Sealed {}
}

/// Sixteen numbers. The types that implement it are private to this module, and are used where their instruction set was
/// detected only. Operations may round once instead of twice where the level can; results differ between levels,
/// never between runs on one level.
pub trait Vector: sealed::Sealed + Copy {
    /// How many sums a loop can keep at hand beside what it adds to them.
    const SUMS: usize;
    /// Eight numbers.
    type Half: Half;
    /// Sixteen integer sums.
    type Integers: Integers;
    /// Loads sixteen numbers.
    fn load(from: &Lanes) -> Self;
    /// Stores sixteen numbers.
    fn store(self, to: &mut Lanes);
    /// Sixteen times one number.
    fn splat(value: f32) -> Self;
    /// Returns `self + b`.
    fn plus(self, b: Self) -> Self;
    /// Returns `self * b`.
    fn times(self, b: Self) -> Self;
    /// Returns `self * b + c`.
    fn times_plus(self, b: Self, c: Self) -> Self;
    /// Returns `c - self * b`.
    fn subtract_from(self, b: Self, c: Self) -> Self;
    /// Returns `self - b`.
    fn minus(self, b: Self) -> Self;
    /// Returns `self / b`.
    fn divided_by(self, b: Self) -> Self;
    /// Returns the square roots.
    fn square_root(self) -> Self;
    /// Returns `self - b` where `self` is at least `from`, and `self` elsewhere.
    fn minus_from(self, from: Self, b: Self) -> Self;
    /// Returns the vector with another number in one place, 0 to 15.
    fn with(self, place: usize, number: f32) -> Self;
    /// Returns the sum of the sixteen.
    fn sum(self) -> f32;
    /// Returns the inclusive prefix sums: number `i` is the sum of numbers `0..=i`.
    fn prefix_sums(self) -> Self;
    /// Returns the last number.
    fn last(self) -> f32;
    /// Returns the numbers one place up: 0, then numbers `0..15`.
    fn shifted(self) -> Self;
    /// Returns a bit for each of the sixteen: whether it is at most the bound in its place.
    fn at_most(self, bounds: Self) -> u32;
    /// Takes sixteen packed counts, `count << key_bits | key`, and returns `count * table[key]` for each.
    ///
    /// # Panics
    /// When the table is shorter than `1 << key_bits`, or `key_bits` is not 1 to 31.
    fn weigh(packed: &[u32; ROW_ALIGN], key_bits: u32, table: &[f32]) -> Self;
    /// Returns a bit for each of sixteen integers: whether `integer & mask == value`.
    fn equal(integers: &[u32; ROW_ALIGN], mask: u32, value: u32) -> u32;
    /// Returns the sums of two vectors, together, which is cheaper than one after the other.
    #[inline(always)]
    fn sums(self, b: Self) -> (f32, f32) {
        (self.sum(), b.sum())
    }
    /// Returns the sum of each of sixteen vectors.
    fn sums_of(vectors: [Self; ROW_ALIGN]) -> Self;
}

/// Eight numbers: half of a [`Vector`].
pub trait Half: sealed::Sealed + Copy {
    /// Loads eight numbers.
    fn load(from: &[f32; ROW_ALIGN / 2]) -> Self;
    /// Stores eight numbers.
    fn store(self, to: &mut [f32; ROW_ALIGN / 2]);
    /// Eight times one number.
    fn splat(value: f32) -> Self;
    /// Returns `self * b + c`.
    fn times_plus(self, b: Self, c: Self) -> Self;
}

/// Eight numbers on any processor of the target.
#[derive(Clone, Copy)]
pub struct PlainHalf([f32; ROW_ALIGN / 2]);

impl sealed::Sealed for PlainHalf {}

impl Half for PlainHalf {
    #[inline(always)]
    fn load(from: &[f32; ROW_ALIGN / 2]) -> Self {
        Self(*from)
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; ROW_ALIGN / 2]) {
        *to = self.0;
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; ROW_ALIGN / 2])
    }
    #[inline(always)]
    fn times_plus(self, b: Self, c: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] * b.0[i] + c.0[i]))
    }
}

/// Any processor of the target.
#[derive(Clone, Copy)]
pub struct Plain(Lanes);

impl sealed::Sealed for Plain {}

impl Plain {
    #[inline(always)]
    fn each(f: impl FnMut(usize) -> f32) -> Self {
        Self(std::array::from_fn(f))
    }
}

impl Vector for Plain {
    const SUMS: usize = 2;
    type Half = PlainHalf;
    type Integers = PlainIntegers;

    #[inline(always)]
    fn load(from: &Lanes) -> Self {
        Self(*from)
    }
    #[inline(always)]
    fn store(self, to: &mut Lanes) {
        *to = self.0;
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; ROW_ALIGN])
    }
    #[inline(always)]
    fn plus(self, b: Self) -> Self {
        Self::each(|i| self.0[i] + b.0[i])
    }
    #[inline(always)]
    fn times(self, b: Self) -> Self {
        Self::each(|i| self.0[i] * b.0[i])
    }
    // No `mul_add` on the plain path: where the processor has none it is a library call.
    #[inline(always)]
    fn times_plus(self, b: Self, c: Self) -> Self {
        Self::each(|i| self.0[i] * b.0[i] + c.0[i])
    }
    #[inline(always)]
    fn subtract_from(self, b: Self, c: Self) -> Self {
        Self::each(|i| c.0[i] - self.0[i] * b.0[i])
    }
    #[inline(always)]
    fn minus(self, b: Self) -> Self {
        Self::each(|i| self.0[i] - b.0[i])
    }
    #[inline(always)]
    fn divided_by(self, b: Self) -> Self {
        Self::each(|i| self.0[i] / b.0[i])
    }
    #[inline(always)]
    fn square_root(self) -> Self {
        Self::each(|i| self.0[i].sqrt())
    }
    #[inline(always)]
    fn minus_from(self, from: Self, b: Self) -> Self {
        Self::each(|i| if self.0[i] >= from.0[i] { self.0[i] - b.0[i] } else { self.0[i] })
    }
    #[inline(always)]
    fn with(mut self, place: usize, number: f32) -> Self {
        self.0[place] = number;
        self
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        let eight: [f32; 8] = std::array::from_fn(|i| self.0[i] + self.0[i + 8]);
        let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }
    #[inline(always)]
    fn sums_of(vectors: [Self; ROW_ALIGN]) -> Self {
        Self::each(|i| vectors[i].sum())
    }
    #[inline(always)]
    fn prefix_sums(self) -> Self {
        let mut sum = 0.0;
        Self::each(|i| {
            sum += self.0[i];
            sum
        })
    }
    #[inline(always)]
    fn last(self) -> f32 {
        self.0[ROW_ALIGN - 1]
    }
    #[inline(always)]
    fn shifted(self) -> Self {
        Self::each(|i| if i == 0 { 0.0 } else { self.0[i - 1] })
    }
    #[inline(always)]
    fn at_most(self, bounds: Self) -> u32 {
        self.0.iter().zip(bounds.0).enumerate().map(|(i, (&number, bound))| u32::from(number <= bound) << i).sum()
    }
    #[inline(always)]
    fn weigh(packed: &[u32; ROW_ALIGN], key_bits: u32, table: &[f32]) -> Self {
        let mask = table_mask(key_bits, table);
        Self::each(|i| (packed[i] >> key_bits) as f32 * table[(packed[i] & mask) as usize])
    }
    #[inline(always)]
    fn equal(integers: &[u32; ROW_ALIGN], mask: u32, value: u32) -> u32 {
        integers.iter().enumerate().map(|(i, integer)| u32::from(integer & mask == value) << i).sum()
    }
}

/// Returns the mask of keys of `key_bits` bits, each of which is in the table.
#[inline(always)]
fn table_mask(key_bits: u32, table: &[f32]) -> u32 {
    assert!((1..32).contains(&key_bits) && table.len() >> key_bits > 0, "the table has an item for each key");
    (1 << key_bits) - 1
}

#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86;

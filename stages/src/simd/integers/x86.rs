//! Integer sums by AVX2 and AVX-512.
//!
//! SAFETY of every block below: these types are reached only through the vectors that they belong to, which exist only where their
//! features were detected; loads are unaligned and of 64 bytes, as the array types say.

use std::arch::x86_64::*;

use super::{Integers, sealed};
use crate::store::ROW_ALIGN;

/// One 512-bit register.
#[derive(Clone, Copy)]
pub struct Avx512Integers(__m512i);

impl sealed::Sealed for Avx512Integers {}

impl Integers for Avx512Integers {
    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_setzero_si512() })
    }
    #[inline(always)]
    fn plus_products(self, bytes: &[[u8; 4]; ROW_ALIGN], numbers: [i8; 4]) -> Self {
        // SAFETY: see above.
        unsafe {
            let (bytes, numbers) = (
                _mm512_loadu_si512(bytes.as_ptr().cast()),
                _mm512_set1_epi32(i32::from_le_bytes(numbers.map(|n| n as u8))),
            );
            let pairs = _mm512_maddubs_epi16(bytes, numbers);
            Self(_mm512_add_epi32(self.0, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1))))
        }
    }
    #[inline(always)]
    fn above(self, bound: i32) -> u32 {
        // SAFETY: see above.
        unsafe { u32::from(_mm512_cmpgt_epi32_mask(self.0, _mm512_set1_epi32(bound))) }
    }
}

/// Two 256-bit registers.
#[derive(Clone, Copy)]
pub struct Avx2Integers(__m256i, __m256i);

impl sealed::Sealed for Avx2Integers {}

impl Integers for Avx2Integers {
    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_setzero_si256(), _mm256_setzero_si256()) }
    }
    #[inline(always)]
    fn plus_products(self, bytes: &[[u8; 4]; ROW_ALIGN], numbers: [i8; 4]) -> Self {
        // SAFETY: see above.
        unsafe {
            let numbers = _mm256_set1_epi32(i32::from_le_bytes(numbers.map(|n| n as u8)));
            let eight = |sums, bytes: &[[u8; 4]]| {
                let pairs = _mm256_maddubs_epi16(_mm256_loadu_si256(bytes.as_ptr().cast()), numbers);
                _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
            };
            Self(eight(self.0, &bytes[..8]), eight(self.1, &bytes[8..]))
        }
    }
    #[inline(always)]
    fn above(self, bound: i32) -> u32 {
        // SAFETY: see above.
        unsafe {
            let bound = _mm256_set1_epi32(bound);
            let eight = |sums| _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(sums, bound))) as u32;
            eight(self.0) | eight(self.1) << 8
        }
    }
}

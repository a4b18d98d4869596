//! Vectors of AVX2 and AVX-512.
//!
//! SAFETY of every block below: these types are reached only through `row_avx2` and `row_avx512`, which run where
//! their features were detected; loads and stores are unaligned and of sixteen numbers, as the array types say; gathers read
//! at keys of a masked number of bits, for each of which `table_mask` asserts that the table has an item.

use std::arch::x86_64::*;

use super::{Half, Lanes, Vector, sealed, table_mask};
use crate::simd::integers::x86::{Avx2Integers, Avx512Integers};
use crate::store::ROW_ALIGN;

/// One 512-bit register.
#[derive(Clone, Copy)]
pub struct Avx512(__m512);

impl sealed::Sealed for Avx512 {}

impl Vector for Avx512 {
    const SUMS: usize = 16;
    type Half = HalfAvx2;
    type Integers = Avx512Integers;

    #[inline(always)]
    fn load(from: &Lanes) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, to: &mut Lanes) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_set1_ps(value) })
    }
    #[inline(always)]
    fn plus(self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_add_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn times(self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_mul_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn times_plus(self, b: Self, c: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_fmadd_ps(self.0, b.0, c.0) })
    }
    #[inline(always)]
    fn subtract_from(self, b: Self, c: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_fnmadd_ps(self.0, b.0, c.0) })
    }
    #[inline(always)]
    fn minus(self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_sub_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn divided_by(self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_div_ps(self.0, b.0) })
    }
    #[inline(always)]
    fn square_root(self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_sqrt_ps(self.0) })
    }
    #[inline(always)]
    fn minus_from(self, from: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            let mask = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(self.0, from.0);
            Self(_mm512_mask_sub_ps(self.0, mask, self.0, b.0))
        }
    }
    #[inline(always)]
    fn with(self, place: usize, number: f32) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm512_mask_mov_ps(self.0, 1 << place, _mm512_set1_ps(number))) }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: see above.
        unsafe { _mm512_reduce_add_ps(self.0) }
    }
    #[inline(always)]
    fn prefix_sums(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let zero = _mm512_setzero_si512();
            let mut sums = self.0;
            sums = _mm512_add_ps(sums, _mm512_castsi512_ps(_mm512_alignr_epi32::<15>(_mm512_castps_si512(sums), zero)));
            sums = _mm512_add_ps(sums, _mm512_castsi512_ps(_mm512_alignr_epi32::<14>(_mm512_castps_si512(sums), zero)));
            sums = _mm512_add_ps(sums, _mm512_castsi512_ps(_mm512_alignr_epi32::<12>(_mm512_castps_si512(sums), zero)));
            sums = _mm512_add_ps(sums, _mm512_castsi512_ps(_mm512_alignr_epi32::<8>(_mm512_castps_si512(sums), zero)));
            Self(sums)
        }
    }
    #[inline(always)]
    fn last(self) -> f32 {
        // SAFETY: see above.
        unsafe {
            let four = _mm512_extractf32x4_ps::<3>(self.0);
            _mm_cvtss_f32(_mm_shuffle_ps::<0xff>(four, four))
        }
    }
    #[inline(always)]
    fn shifted(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let shifted = _mm512_alignr_epi32::<15>(_mm512_castps_si512(self.0), _mm512_setzero_si512());
            Self(_mm512_castsi512_ps(shifted))
        }
    }
    #[inline(always)]
    fn at_most(self, bounds: Self) -> u32 {
        // SAFETY: see above.
        unsafe { u32::from(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, bounds.0)) }
    }
    #[inline(always)]
    fn weigh(packed: &[u32; ROW_ALIGN], key_bits: u32, table: &[f32]) -> Self {
        let mask = table_mask(key_bits, table);
        // SAFETY: see above.
        unsafe {
            let packed = _mm512_loadu_si512(packed.as_ptr().cast());
            let keys = _mm512_and_si512(packed, _mm512_set1_epi32(mask as i32));
            let counts = _mm512_cvtepi32_ps(_mm512_srl_epi32(packed, _mm_cvtsi32_si128(key_bits as i32)));
            Self(_mm512_mul_ps(counts, _mm512_i32gather_ps::<4>(keys, table.as_ptr())))
        }
    }
    #[inline(always)]
    fn equal(integers: &[u32; ROW_ALIGN], mask: u32, value: u32) -> u32 {
        // SAFETY: see above.
        unsafe {
            let integers = _mm512_loadu_si512(integers.as_ptr().cast());
            let masked = _mm512_and_si512(integers, _mm512_set1_epi32(mask as i32));
            u32::from(_mm512_cmpeq_epi32_mask(masked, _mm512_set1_epi32(value as i32)))
        }
    }
    #[inline(always)]
    fn sums(self, b: Self) -> (f32, f32) {
        // SAFETY: see above.
        unsafe {
            // Numbers of both vectors side by side, folded to half the length three times.
            let sixteen = _mm512_add_ps(_mm512_unpacklo_ps(self.0, b.0), _mm512_unpackhi_ps(self.0, b.0));
            let eight = _mm256_add_ps(_mm512_castps512_ps256(sixteen), _mm512_extractf32x8_ps::<1>(sixteen));
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            (_mm_cvtss_f32(two), _mm_cvtss_f32(_mm_movehdup_ps(two)))
        }
    }
    #[inline(always)]
    fn sums_of(vectors: [Self; ROW_ALIGN]) -> Self {
        // SAFETY: see above.
        unsafe {
            // Each step halves the vectors, and adds what they keep apart: within quarters, then quarters.
            let (mut eight, mut four, zero) = ([_mm512_setzero_pd(); 8], [_mm512_setzero_ps(); 4], _mm512_setzero_ps());
            for (to, [a, b]) in eight.iter_mut().zip(vectors.as_chunks().0) {
                *to = _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(a.0, b.0), _mm512_unpackhi_ps(a.0, b.0)));
            }
            for (to, &[a, b]) in four.iter_mut().zip(eight.as_chunks().0) {
                let (low, high) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
                *to = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
            }
            let mut two = [zero; 2];
            for (to, &[a, b]) in two.iter_mut().zip(four.as_chunks().0) {
                *to = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
            }
            let [a, b] = two;
            Self(_mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b)))
        }
    }
}

/// One 256-bit register.
#[derive(Clone, Copy)]
pub struct HalfAvx2(__m256);

impl sealed::Sealed for HalfAvx2 {}

impl Half for HalfAvx2 {
    #[inline(always)]
    fn load(from: &[f32; ROW_ALIGN / 2]) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; ROW_ALIGN / 2]) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_set1_ps(value) })
    }
    #[inline(always)]
    fn times_plus(self, b: Self, c: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_fmadd_ps(self.0, b.0, c.0) })
    }
}

/// Two 256-bit registers.
#[derive(Clone, Copy)]
pub struct Avx2(__m256, __m256);

impl sealed::Sealed for Avx2 {}

impl Vector for Avx2 {
    const SUMS: usize = 4;
    type Half = HalfAvx2;
    type Integers = Avx2Integers;

    #[inline(always)]
    fn load(from: &Lanes) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from[8..].as_ptr())) }
    }
    #[inline(always)]
    fn store(self, to: &mut Lanes) {
        // SAFETY: see above.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), self.0);
            _mm256_storeu_ps(to[8..].as_mut_ptr(), self.1);
        }
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_set1_ps(value), _mm256_set1_ps(value)) }
    }
    #[inline(always)]
    fn plus(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_add_ps(self.0, b.0), _mm256_add_ps(self.1, b.1)) }
    }
    #[inline(always)]
    fn times(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_mul_ps(self.0, b.0), _mm256_mul_ps(self.1, b.1)) }
    }
    #[inline(always)]
    fn times_plus(self, b: Self, c: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_fmadd_ps(self.0, b.0, c.0), _mm256_fmadd_ps(self.1, b.1, c.1)) }
    }
    #[inline(always)]
    fn subtract_from(self, b: Self, c: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_fnmadd_ps(self.0, b.0, c.0), _mm256_fnmadd_ps(self.1, b.1, c.1)) }
    }
    #[inline(always)]
    fn minus(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_sub_ps(self.0, b.0), _mm256_sub_ps(self.1, b.1)) }
    }
    #[inline(always)]
    fn divided_by(self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_div_ps(self.0, b.0), _mm256_div_ps(self.1, b.1)) }
    }
    #[inline(always)]
    fn square_root(self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm256_sqrt_ps(self.0), _mm256_sqrt_ps(self.1)) }
    }
    #[inline(always)]
    fn minus_from(self, from: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            let eight = |x, from, b| _mm256_sub_ps(x, _mm256_and_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(x, from), b));
            Self(eight(self.0, from.0, b.0), eight(self.1, from.1, b.1))
        }
    }
    #[inline(always)]
    fn with(self, place: usize, number: f32) -> Self {
        // SAFETY: see above.
        unsafe {
            let (place, number) = (_mm256_set1_epi32(place as i32), _mm256_set1_ps(number));
            let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let eight = |x, places| _mm256_blendv_ps(x, number, _mm256_castsi256_ps(_mm256_cmpeq_epi32(places, place)));
            Self(eight(self.0, places), eight(self.1, _mm256_add_epi32(places, _mm256_set1_epi32(8))))
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: see above.
        unsafe {
            let eight = _mm256_add_ps(self.0, self.1);
            let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
    #[inline(always)]
    fn sums_of(vectors: [Self; ROW_ALIGN]) -> Self {
        // SAFETY: see above.
        unsafe {
            let [a, b, c, d] = [
                sums_of_four([vectors[0], vectors[1], vectors[2], vectors[3]]),
                sums_of_four([vectors[4], vectors[5], vectors[6], vectors[7]]),
                sums_of_four([vectors[8], vectors[9], vectors[10], vectors[11]]),
                sums_of_four([vectors[12], vectors[13], vectors[14], vectors[15]]),
            ];
            Self(
                _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b)),
                _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(c, d), _mm256_permute2f128_ps::<0x31>(c, d)),
            )
        }
    }
    #[inline(always)]
    fn prefix_sums(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let low = prefix_sums_of_eight(self.0);
            let last = _mm256_permutevar8x32_ps(low, _mm256_set1_epi32(7));
            Self(low, _mm256_add_ps(prefix_sums_of_eight(self.1), last))
        }
    }
    #[inline(always)]
    fn last(self) -> f32 {
        // SAFETY: see above.
        unsafe {
            let four = _mm256_extractf128_ps::<1>(self.1);
            _mm_cvtss_f32(_mm_shuffle_ps::<0xff>(four, four))
        }
    }
    #[inline(always)]
    fn shifted(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let up = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
            let (low, high) = (_mm256_permutevar8x32_ps(self.0, up), _mm256_permutevar8x32_ps(self.1, up));
            Self(_mm256_blend_ps::<1>(low, _mm256_setzero_ps()), _mm256_blend_ps::<1>(high, low))
        }
    }
    #[inline(always)]
    fn at_most(self, bounds: Self) -> u32 {
        // SAFETY: see above.
        unsafe {
            let eight = |x, bounds| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(x, bounds)) as u32;
            eight(self.0, bounds.0) | eight(self.1, bounds.1) << 8
        }
    }
    #[inline(always)]
    fn weigh(packed: &[u32; ROW_ALIGN], key_bits: u32, table: &[f32]) -> Self {
        let mask = table_mask(key_bits, table);
        // SAFETY: see above.
        unsafe {
            let (mask, shift) = (_mm256_set1_epi32(mask as i32), _mm_cvtsi32_si128(key_bits as i32));
            let eight = |packed: &[u32]| {
                let packed = _mm256_loadu_si256(packed.as_ptr().cast());
                let counts = _mm256_cvtepi32_ps(_mm256_srl_epi32(packed, shift));
                _mm256_mul_ps(counts, _mm256_i32gather_ps::<4>(table.as_ptr(), _mm256_and_si256(packed, mask)))
            };
            Self(eight(&packed[..8]), eight(&packed[8..]))
        }
    }
    #[inline(always)]
    fn equal(integers: &[u32; ROW_ALIGN], mask: u32, value: u32) -> u32 {
        // SAFETY: see above.
        unsafe {
            let (mask, value) = (_mm256_set1_epi32(mask as i32), _mm256_set1_epi32(value as i32));
            let eight = |integers: &[u32]| {
                let masked = _mm256_and_si256(_mm256_loadu_si256(integers.as_ptr().cast()), mask);
                _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(masked, value))) as u32
            };
            eight(&integers[..8]) | eight(&integers[8..]) << 8
        }
    }
}

/// Returns two sums of each of four vectors, one in each half: each step halves the vectors, and adds what they keep apart. A function, as a
/// closure that is used often becomes one without these instructions.
#[inline(always)]
fn sums_of_four([a, b, c, d]: [Avx2; 4]) -> __m256 {
    // SAFETY: see above.
    unsafe {
        let (a, b) = (_mm256_add_ps(a.0, a.1), _mm256_add_ps(b.0, b.1));
        let (c, d) = (_mm256_add_ps(c.0, c.1), _mm256_add_ps(d.0, d.1));
        let ab = _mm256_castps_pd(_mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)));
        let cd = _mm256_castps_pd(_mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d)));
        let (low, high) = (_mm256_unpacklo_pd(ab, cd), _mm256_unpackhi_pd(ab, cd));
        _mm256_add_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high))
    }
}

/// Prefix sums within a register: within its halves, then the first half's total added to the second.
///
/// # Safety
/// AVX2 is there.
#[inline(always)]
unsafe fn prefix_sums_of_eight(x: __m256) -> __m256 {
    // SAFETY: the caller vouches for AVX2.
    unsafe {
        let shifted_by_1 = _mm256_slli_si256::<4>(_mm256_castps_si256(x));
        let x = _mm256_add_ps(x, _mm256_castsi256_ps(shifted_by_1));
        let shifted_by_2 = _mm256_slli_si256::<8>(_mm256_castps_si256(x));
        let x = _mm256_add_ps(x, _mm256_castsi256_ps(shifted_by_2));
        let low = _mm256_permute2f128_ps::<0x08>(x, x);
        _mm256_add_ps(x, _mm256_shuffle_ps::<0xff>(low, low))
    }
}

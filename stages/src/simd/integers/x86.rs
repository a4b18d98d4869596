//! Integer sums by AVX2 and AVX-512.
//!
//! SAFETY of every block below: these types are reached only through the vectors that they belong to, which exist only where their
//! features were detected; the functions are private to this file; loads are unaligned, and of rows whose number is asserted before.

use std::arch::x86_64::*;

use super::{BYTES, Bytes, HALVES, Integers, Numbers, sealed};

/// Returns four numbers side by side.
#[inline(always)]
fn four([a, b, c, d]: [i8; 4]) -> i32 {
    i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8])
}

/// Adds to sums in 16 bits, two for each of 16 rows, the products with four numbers, or with eight by halves of bytes.
#[inline(always)]
fn plus_512<const PER_BYTE: usize>(pairs: __m512i, rows: &[[u8; 4]], numbers: &[Numbers; PER_BYTE]) -> __m512i {
    assert!(rows.len() == 16);
    // SAFETY: see above.
    unsafe {
        let bytes = _mm512_loadu_si512(rows.as_ptr().cast());
        if PER_BYTE == 1 {
            return _mm512_add_epi16(pairs, _mm512_maddubs_epi16(bytes, _mm512_set1_epi32(four(numbers[0]))));
        }
        let half = _mm512_set1_epi8(15);
        let (lower, upper) = (_mm512_and_si512(bytes, half), _mm512_and_si512(_mm512_srli_epi16(bytes, 4), half));
        let lower = _mm512_maddubs_epi16(lower, _mm512_set1_epi32(four(numbers[0])));
        let upper = _mm512_maddubs_epi16(upper, _mm512_set1_epi32(four(numbers[PER_BYTE - 1])));
        _mm512_add_epi16(pairs, _mm512_add_epi16(lower, upper))
    }
}

/// Adds to sums of 16 rows each the products of so few bytes that their sums fit in 16 bits.
///
/// There is a variable for each sum, not an array: these are in registers whatever the compiler unrolls.
#[inline(always)]
fn add_512<const PER_BYTE: usize>(
    sums: [__m512i; 2],
    bytes: &[[Bytes; 2]],
    numbers: &[[Numbers; PER_BYTE]],
) -> [__m512i; 2] {
    // SAFETY: see above.
    unsafe {
        let zero = _mm512_setzero_si512();
        let (mut a, mut b) = (zero, zero);
        for ([one, two], numbers) in bytes.iter().zip(numbers) {
            a = plus_512::<PER_BYTE>(a, one, numbers);
            b = plus_512::<PER_BYTE>(b, two, numbers);
        }
        let ones = _mm512_set1_epi16(1);
        [_mm512_add_epi32(sums[0], _mm512_madd_epi16(a, ones)), _mm512_add_epi32(sums[1], _mm512_madd_epi16(b, ones))]
    }
}

/// Returns the sums of 16 rows each, `TOGETHER` times four bytes of which have sums in 16 bits.
#[inline(always)]
fn sums_512<const PER_BYTE: usize, const TOGETHER: usize>(
    bytes: &[[Bytes; 2]],
    numbers: &[[Numbers; PER_BYTE]],
) -> [__m512i; 2] {
    // SAFETY: see above.
    let mut sums = [unsafe { _mm512_setzero_si512() }; 2];
    let (bytes, last) = bytes.as_chunks::<TOGETHER>();
    let (numbers, last_numbers) = numbers.as_chunks::<TOGETHER>();
    for (bytes, numbers) in bytes.iter().zip(numbers) {
        sums = add_512(sums, bytes, numbers);
    }
    if last.is_empty() { sums } else { add_512(sums, last, last_numbers) }
}

/// One 512-bit register.
#[derive(Clone, Copy)]
pub struct Avx512Integers(__m512i);

impl sealed::Sealed for Avx512Integers {}

impl Integers for Avx512Integers {
    #[inline(always)]
    fn of_halves(halves: &[[Bytes; 2]], numbers: &[[Numbers; 2]]) -> [Self; 2] {
        let sums = sums_512::<2, HALVES>(halves, numbers);
        [Self(sums[0]), Self(sums[1])]
    }
    #[inline(always)]
    fn of_bytes(bytes: &[[Bytes; 2]], numbers: &[Numbers]) -> [Self; 2] {
        let sums = sums_512::<1, BYTES>(bytes, numbers.as_chunks().0);
        [Self(sums[0]), Self(sums[1])]
    }
    #[inline(always)]
    fn times_16_plus(self, others: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_add_epi32(_mm512_slli_epi32(self.0, 4), others.0) })
    }
    #[inline(always)]
    fn above(self, bound: i32) -> u32 {
        // SAFETY: see above.
        unsafe { u32::from(_mm512_cmpgt_epi32_mask(self.0, _mm512_set1_epi32(bound))) }
    }
}

/// Adds to sums in 16 bits, two for each of 8 rows, the products with four numbers, or with eight by halves of bytes.
#[inline(always)]
fn plus_256<const PER_BYTE: usize>(pairs: __m256i, rows: &[[u8; 4]], numbers: &[Numbers; PER_BYTE]) -> __m256i {
    assert!(rows.len() == 8);
    // SAFETY: see above.
    unsafe {
        let bytes = _mm256_loadu_si256(rows.as_ptr().cast());
        if PER_BYTE == 1 {
            return _mm256_add_epi16(pairs, _mm256_maddubs_epi16(bytes, _mm256_set1_epi32(four(numbers[0]))));
        }
        let half = _mm256_set1_epi8(15);
        let (lower, upper) = (_mm256_and_si256(bytes, half), _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half));
        let lower = _mm256_maddubs_epi16(lower, _mm256_set1_epi32(four(numbers[0])));
        let upper = _mm256_maddubs_epi16(upper, _mm256_set1_epi32(four(numbers[PER_BYTE - 1])));
        _mm256_add_epi16(pairs, _mm256_add_epi16(lower, upper))
    }
}

/// Adds to sums of 8 rows each the products of so few bytes that their sums fit in 16 bits.
///
/// There is a variable for each sum, not an array: these are in registers whatever the compiler unrolls.
#[inline(always)]
fn add_256<const PER_BYTE: usize>(
    sums: [__m256i; 4],
    bytes: &[[Bytes; 2]],
    numbers: &[[Numbers; PER_BYTE]],
) -> [__m256i; 4] {
    // SAFETY: see above.
    unsafe {
        let zero = _mm256_setzero_si256();
        let (mut a, mut b, mut c, mut d) = (zero, zero, zero, zero);
        for ([one, two], numbers) in bytes.iter().zip(numbers) {
            a = plus_256::<PER_BYTE>(a, &one[..8], numbers);
            b = plus_256::<PER_BYTE>(b, &one[8..], numbers);
            c = plus_256::<PER_BYTE>(c, &two[..8], numbers);
            d = plus_256::<PER_BYTE>(d, &two[8..], numbers);
        }
        let ones = _mm256_set1_epi16(1);
        [
            _mm256_add_epi32(sums[0], _mm256_madd_epi16(a, ones)),
            _mm256_add_epi32(sums[1], _mm256_madd_epi16(b, ones)),
            _mm256_add_epi32(sums[2], _mm256_madd_epi16(c, ones)),
            _mm256_add_epi32(sums[3], _mm256_madd_epi16(d, ones)),
        ]
    }
}

/// Returns the sums of 8 rows each, `TOGETHER` times four bytes of which have sums in 16 bits.
#[inline(always)]
fn sums_256<const PER_BYTE: usize, const TOGETHER: usize>(
    bytes: &[[Bytes; 2]],
    numbers: &[[Numbers; PER_BYTE]],
) -> [__m256i; 4] {
    // SAFETY: see above.
    let mut sums = [unsafe { _mm256_setzero_si256() }; 4];
    let (bytes, last) = bytes.as_chunks::<TOGETHER>();
    let (numbers, last_numbers) = numbers.as_chunks::<TOGETHER>();
    for (bytes, numbers) in bytes.iter().zip(numbers) {
        sums = add_256(sums, bytes, numbers);
    }
    if last.is_empty() { sums } else { add_256(sums, last, last_numbers) }
}

/// Two 256-bit registers.
#[derive(Clone, Copy)]
pub struct Avx2Integers(__m256i, __m256i);

impl sealed::Sealed for Avx2Integers {}

impl Integers for Avx2Integers {
    #[inline(always)]
    fn of_halves(halves: &[[Bytes; 2]], numbers: &[[Numbers; 2]]) -> [Self; 2] {
        let sums = sums_256::<2, HALVES>(halves, numbers);
        [Self(sums[0], sums[1]), Self(sums[2], sums[3])]
    }
    #[inline(always)]
    fn of_bytes(bytes: &[[Bytes; 2]], numbers: &[Numbers]) -> [Self; 2] {
        let sums = sums_256::<1, BYTES>(bytes, numbers.as_chunks().0);
        [Self(sums[0], sums[1]), Self(sums[2], sums[3])]
    }
    #[inline(always)]
    fn times_16_plus(self, others: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            Self(
                _mm256_add_epi32(_mm256_slli_epi32(self.0, 4), others.0),
                _mm256_add_epi32(_mm256_slli_epi32(self.1, 4), others.1),
            )
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

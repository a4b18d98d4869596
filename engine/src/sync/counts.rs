//! Counts as bytes: whole numbers, of which many are zero and most are small.
//!
//! They go in groups of eight, of which the last may be smaller: a byte with a bit for each number that is not zero, the first
//! number's the lowest, and then a code for each of these.
//!
//! | number | code |
//! |---|---|
//! | whole, of 32 bits | 2n, or for those below zero -2n - 1, in seven bits a byte, the lowest first; the eighth bit is set where more follow |
//! | any other | a zero byte, and the number's own bytes |

use std::any::TypeId;

use bytemuck::{bytes_of, cast, pod_read_unaligned};
use megagrid_stages::Item;

use super::message::Malformed;

/// Numbers of a group.
const GROUP: usize = 8;
/// Codes below this take one byte.
const ONE_BYTE: u32 = 0x80;
/// The lowest bit of each byte of a group of codes of one byte, and the highest.
const LOW: u64 = u64::MAX / 0xff;
const HIGH: u64 = LOW << 7;

/// By the bits of a group: for steps of 1, 2 and 4 places, which bytes move down by a step when those that are used close up.
static MOVES: [[u64; 3]; 256] = moves_and_ranks().0;
/// By the bits of a group: how many are set before each that is; the number of a group for the others.
static RANKS: [[u8; GROUP]; 256] = moves_and_ranks().1;

const fn moves_and_ranks() -> ([[u64; 3]; 256], [[u8; GROUP]; 256]) {
    let (mut moves, mut ranks, mut bits) = ([[0; 3]; 256], [[GROUP as u8; GROUP]; 256], 0);
    while bits < 256 {
        let (mut at, mut rank) = (0, 0);
        while at < GROUP {
            if bits >> at & 1 == 1 {
                let (distance, mut place, mut step) = (at - rank, at, 0);
                while step < 3 {
                    if distance >> step & 1 == 1 {
                        moves[bits][step] |= 0xff << (8 * place);
                        place -= 1 << step;
                    }
                    step += 1;
                }
                ranks[bits][at] = rank as u8;
                rank += 1;
            }
            at += 1;
        }
        bits += 1;
    }
    (moves, ranks)
}

/// Numbers that are looked at together: loops of this many without a branch are done in vectors.
const BLOCK: usize = 64;

/// Appends counts.
pub fn put<I: Item>(items: &[I], out: &mut Vec<u8>) {
    for items in items.chunks(BLOCK) {
        let (mut codes, mut are_large) = ([0_u8; BLOCK], [0_u8; BLOCK]);
        for ((code, is_large), &item) in codes.iter_mut().zip(&mut are_large).zip(items) {
            let (whole, is_same) = whole(item);
            *code = fold(whole) as u8;
            *is_large = u8::from(!is_same | (fold(whole) >= ONE_BYTE));
        }
        let groups = codes.as_chunks().0.iter().zip(are_large.as_chunks().0);
        for ((&codes, &are_large), group) in groups.zip(items.chunks(GROUP)) {
            match (u64::from_le_bytes(are_large), u64::from_le_bytes(codes)) {
                (0, 0) => out.push(0),
                (0, codes) => put_small(codes, out),
                _ => put_any(group, out),
            }
        }
    }
}

/// Appends a group of which each code takes one byte, without branches.
#[inline(always)]
fn put_small(mut codes: u64, out: &mut Vec<u8>) {
    let used = (codes + (HIGH - LOW)) & HIGH;
    // Gathers the highest bits of eight bytes in one byte.
    let bits = ((used >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
    for (step, moving) in MOVES[usize::from(bits)].into_iter().enumerate() {
        codes = codes & !moving | (codes & moving) >> (8 << step);
    }
    let end = out.len() + 1 + bits.count_ones() as usize;
    // A copy of a fixed length takes less than one of just what is used.
    out.extend_from_slice(&(u128::from(codes) << 8 | u128::from(bits)).to_le_bytes());
    out.truncate(end);
}

/// Tells whether a number is not zero.
#[inline]
pub fn is_used<I: Item>(item: &I) -> bool {
    bytes_of(item).iter().any(|&byte| byte != 0)
}

#[cold]
fn put_any<I: Item>(group: &[I], out: &mut Vec<u8>) {
    out.push(group.iter().enumerate().fold(0, |bits, (at, item)| bits | u8::from(is_used(item)) << at));
    for item in group.iter().filter(|item| is_used(*item)) {
        let (whole, is_same) = whole(*item);
        if is_same {
            put_number(fold(whole), out);
        } else {
            out.push(0);
            out.extend_from_slice(bytes_of(item));
        }
    }
}

/// Reads as many counts as there is room for.
pub fn take<I: Item>(items: &mut [I], from: &mut &[u8]) -> Result<(), Malformed> {
    let (groups, rest) = items.as_chunks_mut();
    for group in groups {
        *group = take_group(from)?;
    }
    if !rest.is_empty() {
        let beyond = from.first().is_some_and(|&bits| bits >> rest.len() > 0);
        let group = take_group(from)?;
        rest.copy_from_slice(&group[..rest.len()]);
        return if beyond { Err(Malformed) } else { Ok(()) };
    }
    Ok(())
}

#[inline(always)]
fn take_group<I: Item>(from: &mut &[u8]) -> Result<[I; GROUP], Malformed> {
    let bits = *from.split_off_first().ok_or(Malformed)?;
    if bits == 0 {
        return Ok([I::zeroed(); GROUP]);
    }
    if let Some(&next) = from.first_chunk::<GROUP>().filter(|_| is_number::<I>()) {
        let (word, used) = (u64::from_le_bytes(next), bits.count_ones());
        // The highest bit of each byte that is no code of one byte.
        let others = (word.wrapping_sub(LOW) & !word | word) & HIGH;
        if others << (u64::BITS - 8 * used) == 0 {
            *from = &from[used as usize..];
            let mut codes = [0; 2 * GROUP];
            codes[..GROUP].copy_from_slice(&next);
            let code = |rank: u8| u32::from(codes[usize::from(rank) % (2 * GROUP)]);
            return Ok(RANKS[usize::from(bits)].map(|rank| number(unfold(code(rank)))));
        }
    }
    take_any(bits, from)
}

fn take_any<I: Item>(bits: u8, from: &mut &[u8]) -> Result<[I; GROUP], Malformed> {
    let mut group = [I::zeroed(); GROUP];
    for (_, item) in group.iter_mut().enumerate().filter(|(at, _)| bits >> at & 1 == 1) {
        *item = match take_number(from)? {
            0 => from.split_off(..size_of::<I>()).map(pod_read_unaligned).ok_or(Malformed)?,
            code if is_number::<I>() => number(unfold(code)),
            _ => return Err(Malformed),
        };
    }
    Ok(group)
}

/// Appends a number in seven bits a byte.
pub fn put_number(mut number: u32, out: &mut Vec<u8>) {
    while number >= ONE_BYTE {
        out.push(number as u8 | ONE_BYTE as u8);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what [`put_number`] wrote.
pub fn take_number(from: &mut &[u8]) -> Result<u32, Malformed> {
    let mut number = 0;
    for shift in (0..u32::BITS).step_by(7) {
        let byte = u32::from(*from.split_off_first().ok_or(Malformed)?);
        number |= (byte % ONE_BYTE) << shift;
        if byte < ONE_BYTE {
            return Ok(number);
        }
    }
    Err(Malformed)
}

/// Maps 0, -1, 1, -2, … to 0, 1, 2, 3, …
#[inline(always)]
fn fold(number: i32) -> u32 {
    (number << 1 ^ number >> 31) as u32
}

#[inline(always)]
fn unfold(code: u32) -> i32 {
    (code >> 1) as i32 ^ -((code & 1) as i32)
}

macro_rules! numbers {
    ($($number:ty: $whole:expr, $back:expr;)*) => {
        /// Returns a number as a whole one, and whether [`number`] makes the same of it.
        #[inline(always)]
        fn whole<I: Item>(item: I) -> (i32, bool) {
            $(if TypeId::of::<I>() == TypeId::of::<$number>() {
                let (whole, back): (fn($number) -> i32, fn(i32) -> $number) = ($whole, $back);
                let number = cast(item);
                let whole = whole(number);
                return (whole, back(whole).to_ne_bytes() == number.to_ne_bytes());
            })*
            (0, false)
        }

        /// Returns a whole number as one of a type; zero for types that are no numbers.
        #[inline(always)]
        fn number<I: Item>(whole: i32) -> I {
            $(if TypeId::of::<I>() == TypeId::of::<$number>() {
                let back: fn(i32) -> $number = $back;
                return cast(back(whole));
            })*
            I::zeroed()
        }

        #[inline(always)]
        fn is_number<I: Item>() -> bool {
            $(TypeId::of::<I>() == TypeId::of::<$number>())||*
        }
    };
}

/// Added to a small whole number it leaves that number in the lowest bits: a conversion that takes one addition.
const LOW_BITS: f32 = 1.5 * (1 << 23) as f32;

// Unsigned numbers are taken for signed ones of as many bits: changes of counts may be below zero.
numbers! {
    f32: |number| ((number + LOW_BITS).to_bits() as i32).wrapping_sub(LOW_BITS.to_bits() as i32), |whole| whole as f32;
    f64: |number| number as i32, f64::from;
    i32: |number| number, |whole| whole;
    u32: |number| number as i32, |whole| whole as u32;
    i64: |number| number as i32, i64::from;
    u64: |number| number as i32, |whole| i64::from(whole) as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written<I: Item>(items: &[I]) -> Vec<u8> {
        let mut out = Vec::new();
        put(items, &mut out);
        out
    }

    /// Reads items back, bit for bit, and finds that any part of their bytes is too short.
    fn arrive<I: Item + PartialEq + std::fmt::Debug>(items: &[I]) {
        let written = written(items);
        let read = |mut from: &[u8]| {
            let mut read = vec![I::zeroed(); items.len()];
            take(&mut read, &mut from).map(|()| (read, from.len()))
        };
        let (found, rest) = read(&written).unwrap();
        let same = found.iter().zip(items).all(|(found, item)| bytes_of(found) == bytes_of(item));
        assert!(same && rest == 0, "{items:?} were read as {found:?}, {rest} bytes left");
        (0..written.len()).for_each(|len| assert_eq!(read(&written[..len]), Err(Malformed), "{len} bytes"));
    }

    proptest! {
        #[test]
        fn numbers_arrive_as_they_were(
            counts in proptest::collection::vec(prop_oneof![Just(0), 0_u32..100, any::<u32>()], 0..50),
            floats in proptest::collection::vec(prop_oneof![Just(0.0), any::<f32>(), (-300_i32..300).prop_map(|n| n as f32)], 0..50),
            long in proptest::collection::vec(any::<i64>(), 0..20),
        ) {
            arrive(&counts);
            arrive(&floats);
            arrive(&long);
            arrive(&counts.iter().map(|&n| f64::from(n)).collect::<Vec<_>>());
            arrive(&counts.iter().map(|&n| n as i32).collect::<Vec<_>>());
            arrive(&long.iter().map(|&n| n as u64).collect::<Vec<_>>());
            arrive(&counts.iter().map(|&n| [n, 1]).collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60), len in 0_usize..20) {
            let _ = take(&mut vec![0.0_f32; len], &mut &bytes[..]);
            let _ = take(&mut vec![0_u64; len], &mut &bytes[..]);
        }
    }

    #[test]
    fn small_numbers_take_a_byte_and_zeros_a_bit() {
        let mut counts = [0.0_f32; 20];
        assert_eq!(written(&counts), [0; 3]);
        (counts[1], counts[9], counts[19]) = (1.0, 63.0, 64.0);
        assert_eq!(written(&counts), [2, 2, 2, 126, 8, 128, 1]);
        assert_eq!(written(&[0.5_f32]), [&[1, 0][..], &0.5_f32.to_le_bytes()].concat());
        assert_eq!(written(&[u32::MAX, 3]), [3, 1, 6]);
    }

    #[test]
    fn bits_of_no_number_are_refused() {
        assert_eq!(take(&mut [0_u32; 3], &mut &[8, 2][..]), Err(Malformed));
        assert_eq!(take(&mut [0_u32; 1], &mut &[1, 128, 128, 128, 128, 128, 1][..]), Err(Malformed));
        assert_eq!(take(&mut [[0_u8; 2]; 1], &mut &[1, 2][..]), Err(Malformed));
    }
}

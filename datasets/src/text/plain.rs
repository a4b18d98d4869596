//! Lines that begin with two integers, read without looking for their ends first.
//!
//! Digits are read eight at a time (Lemire, "Number parsing at a gigabyte per second", 2021, section 6 has the
//! multiplications).

use memchr::memchr;

use super::Separator;
use crate::ids::Ids;

/// Digits that fit 32 bits, or nearly so.
const MAX_DIGITS: usize = 10;
/// Bytes of a typical line, to make room for ids.
const BYTES_OF_LINE: usize = 16;

/// Reads lines from the beginning of `text` as long as both ids are integers of 32 bits with nothing between them but the
/// separator. `rest` reads what follows the second id: it returns the edge's data, and where the next line begins.
///
/// Returns how many lines that were, and their bytes. The line that ends this may well be right in its format.
pub(crate) fn plain_lines<T>(
    separator: Separator,
    text: &[u8],
    ids: &mut [Ids; 2],
    data: &mut Vec<T>,
    rest: impl Fn(&[u8]) -> Option<(T, usize)>,
) -> (u64, usize) {
    match separator {
        Separator::Byte(byte) => lines([byte], text, ids, data, rest),
        Separator::Colons => lines(*b"::", text, ids, data, rest),
        Separator::Space => lines([b' '], text, ids, data, rest),
    }
}

fn lines<const N: usize, T>(
    separator: [u8; N],
    text: &[u8],
    ids: &mut [Ids; 2],
    data: &mut Vec<T>,
    rest: impl Fn(&[u8]) -> Option<(T, usize)>,
) -> (u64, usize) {
    let [Ids::Narrow(lefts), Ids::Narrow(rights)] = ids else { return (0, 0) };
    [&mut *lefts, &mut *rights].into_iter().for_each(|ids| ids.reserve(text.len() / BYTES_OF_LINE));
    let (before, mut at) = (data.len(), 0);
    while let Some((left, right, after)) = short_pair(text, at, separator).or_else(|| pair(text, at, separator))
        && let Some((datum, len)) = rest(&text[after..])
    {
        lefts.push(left);
        rights.push(right);
        data.push(datum);
        at = after + len;
    }
    ((data.len() - before) as u64, at)
}

/// Returns where the next line begins if this one ends here, or after further fields.
#[inline]
pub(crate) fn next_line(separator: Separator, text: &[u8]) -> Option<usize> {
    match (text.first()?, separator) {
        (b'\n', _) => Some(1),
        (b'\r', _) => (text.get(1) == Some(&b'\n')).then_some(2),
        (&byte, Separator::Byte(separator)) if byte == separator => memchr(b'\n', text).map(|end| end + 1),
        (b' ', Separator::Space) => memchr(b'\n', text).map(|end| end + 1),
        (b':', Separator::Colons) if text.get(1) == Some(&b':') => memchr(b'\n', text).map(|end| end + 1),
        _ => None,
    }
}

/// Reads two canonical integers of 32 bits with a separator between them; returns them and where the second one ends.
fn pair<const N: usize>(text: &[u8], at: usize, separator: [u8; N]) -> Option<(u32, u32, usize)> {
    let (left, after) = integer(text, at)?;
    if text.get(after..after + N) != Some(&separator[..]) {
        return None;
    }
    let (right, after) = integer(text, after + N)?;
    Some((left, right, after))
}

/// Reads what [`pair`] reads, if it takes fewer than 16 bytes and each integer eight digits at most. Both ends are found at once,
/// so that the next line waits for one search only.
#[inline]
fn short_pair<const N: usize>(text: &[u8], at: usize, separator: [u8; N]) -> Option<(u32, u32, usize)> {
    let bytes: &[u8; 16] = text.get(at..)?.first_chunk()?;
    let (low, high) = (u128::from_le_bytes(*bytes) as u64, (u128::from_le_bytes(*bytes) >> 64) as u64);
    let mut others = u128::from(non_digits(low ^ ZEROS)) | u128::from(non_digits(high ^ ZEROS)) << 64;
    let len = others.trailing_zeros() as usize / 8;
    // The separator's bytes.
    (0..N).for_each(|_| others &= others.wrapping_sub(1));
    let (start, end) = (len + N, others.trailing_zeros() as usize / 8);
    let is_short = (1..=8).contains(&len) && end < 16 && (1..=8).contains(&end.wrapping_sub(start));
    if !is_short || bytes[len..start] != separator || has_leading_zero(text, at, len) {
        return None;
    }
    let right = text.get(at + start..)?.first_chunk().map(|word| u64::from_le_bytes(*word))?;
    if has_leading_zero(text, at + start, end - start) {
        return None;
    }
    Some((value(low ^ ZEROS, len) as u32, value(right ^ ZEROS, end - start) as u32, at + end))
}

#[inline]
fn has_leading_zero(text: &[u8], at: usize, len: usize) -> bool {
    len > 1 && text[at] == b'0'
}

/// Reads a canonical integer of 32 bits that begins at `at`; returns it and where it ends. `None` as well where it ends
/// within the last bytes of the text.
#[inline]
fn integer(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let (value, len) = digits(text, at)?;
    if len == 0 || has_leading_zero(text, at, len) {
        return None;
    }
    if len < 8 {
        return Some((value as u32, at + len));
    }
    let (low, more) = digits(text, at + 8)?;
    if len + more > MAX_DIGITS {
        return None;
    }
    u32::try_from(value * [1, 10, 100][more] + low).ok().map(|value| (value, at + 8 + more))
}

/// Returns the integer that up to eight digits from `at` on make, and how many these are.
#[inline]
fn digits(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let digits = u64::from_le_bytes(*text.get(at..)?.first_chunk()?) ^ ZEROS;
    let len = non_digits(digits).trailing_zeros() as usize / 8;
    Some((if len == 0 { 0 } else { value(digits, len) }, len))
}

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Sets the highest bit of each byte that is no digit; those of digits are 0 to 9.
#[inline]
fn non_digits(digits: u64) -> u64 {
    (((digits & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080
}

/// Returns the integer of the first `len` digits, 1 to 8.
#[inline]
fn value(digits: u64, len: usize) -> u64 {
    // The last digit to the highest byte; zeros lead.
    let digits = digits << (64 - 8 * len);
    let pairs = digits.wrapping_mul(10) + (digits >> 8);
    let low = (pairs & 0xff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let high = (pairs >> 16 & 0xff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    low.wrapping_add(high) >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn integers_are_those_of_the_standard_library(number in 0..=u64::MAX, bits in 1..64_u32, after in "[ ,:.a\n]") {
            let number = number >> bits;
            let text = format!("{number}{after}         ");
            let expected = u32::try_from(number).ok().map(|expected| (expected, text.trim_end_matches([' ', ',', ':', '.', 'a', '\n']).len()));
            prop_assert_eq!(integer(text.as_bytes(), 0), expected);
        }
    }

    proptest! {
        /// A short pair is one that is read in any case, where the text goes on far enough.
        #[test]
        fn pairs_are_read_alike_in_both_ways(text in "[0-9]{0,10}[,:a]{0,2}[0-9]{0,10}[\n,.\u{e9}]", after in "[0-9\n]{0,16}") {
            let text = format!("{text}{after}");
            let longer = format!("{text}                ");
            for at in [0, 1] {
                let short = short_pair(text.as_bytes(), at, [b',']);
                prop_assert!(short.is_none() || short == pair(longer.as_bytes(), at, [b',']));
                let short = short_pair(text.as_bytes(), at, *b"::");
                prop_assert!(short.is_none() || short == pair(longer.as_bytes(), at, *b"::"));
            }
            let typical = short_pair(b"1048575,1048574\n", 0, [b',']);
            prop_assert_eq!(typical, Some((1_048_575, 1_048_574, 15)));
        }
    }

    #[test]
    fn what_is_no_plain_integer_is_left() {
        for text in ["", " 1", "-1", "01", "007", "x1", "4294967296", "99999999999", "\u{b9}"] {
            assert_eq!(integer(format!("{text},              ").as_bytes(), 0), None, "{text:?}");
        }
        assert_eq!(integer(b"0,1234567890123", 0), Some((0, 1)));
        assert_eq!(integer(b"4294967295,1234567890123", 0), Some((u32::MAX, 10)));
        assert_eq!(integer(b"12", 0), None, "too near the end");
    }
}

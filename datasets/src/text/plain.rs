//! Lines that begin with two integers, read without looking for their ends first.
//!
//! Digits are read eight at a time (Lemire, "Number parsing at a gigabyte per second", 2021, section 6 has the
//! multiplications).

use memchr::memchr;

use super::Separator;
use crate::ids::Ids;

/// Digits that fit 32 bits, or nearly so.
const MAX_DIGITS: usize = 10;

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
    let (before, mut at) = (data.len(), 0);
    while let Some((left, after)) = integer(text, at)
        && text.get(after..after + N) == Some(&separator[..])
        && let Some((right, after)) = integer(text, after + N)
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

/// Reads a canonical integer of 32 bits that begins at `at`; returns it and where it ends. `None` as well where it ends
/// within the last bytes of the text.
#[inline]
fn integer(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let (value, len) = digits(text, at)?;
    if len == 0 || (len > 1 && text[at] == b'0') {
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
    let word = text.get(at..at + 8)?.first_chunk()?;
    let digits = u64::from_le_bytes(*word) ^ 0x3030_3030_3030_3030;
    // The highest bit of each byte that is no digit.
    let others = (((digits & 0x7f7f_7f7f_7f7f_7f7f) + 0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    let len = others.trailing_zeros() as usize / 8;
    if len == 0 {
        return Some((0, 0));
    }
    // The last digit to the highest byte; zeros lead.
    let digits = digits << (64 - 8 * len);
    let pairs = digits.wrapping_mul(10) + (digits >> 8);
    let low = (pairs & 0xff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let high = (pairs >> 16 & 0xff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    Some((low.wrapping_add(high) >> 32, len))
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

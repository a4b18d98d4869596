//! The fields of a line, as bytes.

use memchr::{memchr, memmem};

/// A line that does not follow its format.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) field: &'static str,
    pub(crate) found: String,
    pub(crate) expected: String,
}

/// Characters of an offending field that a message shows.
const SHOWN_CHARS: usize = 40;

impl Malformed {
    /// Reports a field: what it stands for, its text, and what would have been accepted.
    #[cold]
    pub(crate) fn new(field: &'static str, found: &[u8], expected: impl Into<String>) -> Self {
        let text = String::from_utf8_lossy(&found[..found.len().min(4 * SHOWN_CHARS)]);
        let mut shown: String = text.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
        if text.chars().count() > SHOWN_CHARS {
            shown.push_str("...");
        }
        Self { field, found: shown, expected: expected.into() }
    }
}

/// What separates the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// One byte: tab or comma. Blanks around a field do not belong to it.
    Byte(u8),
    /// `::`, as in the MovieLens files.
    Colons,
    /// Any run of white space.
    Space,
}

impl Separator {
    /// Returns the separator that a line uses: a tab, `::`, a comma, or else white space.
    pub(crate) fn of(line: &[u8]) -> Self {
        if memchr(b'\t', line).is_some() {
            Self::Byte(b'\t')
        } else if memmem::find(line, b"::").is_some() {
            Self::Colons
        } else if memchr(b',', line).is_some() {
            Self::Byte(b',')
        } else {
            Self::Space
        }
    }

    pub(crate) fn fields(self, line: &[u8]) -> Fields<'_> {
        Fields { separator: self, rest: Some(line) }
    }

    /// The separator's name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Byte(b'\t') => "tabs",
            Self::Byte(_) => "commas",
            Self::Colons => "\"::\"",
            Self::Space => "white space",
        }
    }
}

/// The fields of a line, left to right.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    separator: Separator,
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        match self.separator {
            Separator::Space => {
                let (word, rest) = next_word(rest)?;
                self.rest = Some(rest);
                Some(word)
            }
            Separator::Byte(separator) => {
                // Fields are a few bytes long: a plain loop beats a vector search.
                let end = rest.iter().position(|&byte| byte == separator);
                self.rest = end.map(|end| &rest[end + 1..]);
                Some(trim(&rest[..end.unwrap_or(rest.len())]))
            }
            Separator::Colons => {
                let end = rest.windows(2).position(|pair| pair == b"::");
                self.rest = end.map(|end| &rest[end + 2..]);
                Some(trim(&rest[..end.unwrap_or(rest.len())]))
            }
        }
    }
}

pub(crate) fn words(line: &[u8]) -> Fields<'_> {
    Separator::Space.fields(line)
}

#[inline]
fn next_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = line.iter().position(|byte| !is_space(*byte))?;
    let line = &line[start..];
    let end = line.iter().position(|byte| is_space(*byte)).unwrap_or(line.len());
    Some(line.split_at(end))
}

#[inline]
fn is_space(byte: u8) -> bool {
    // All control characters count: no id contains one, and a single comparison is quick.
    byte <= b' '
}

#[inline]
fn trim(mut field: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] = field {
        field = rest;
    }
    while let [rest @ .., b' '] = field {
        field = rest;
    }
    field
}

/// Parses a canonical integer: digits only, no leading zero, at most `u64::MAX`.
#[inline]
pub(crate) fn integer(field: &[u8]) -> Option<u64> {
    // 19 digits cannot overflow.
    if field.is_empty() || field.len() > 20 || (field[0] == b'0' && field.len() > 1) {
        return None;
    }
    let mut value = 0u64;
    for &byte in field {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = if field.len() < 20 {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
    }
    Some(value)
}

/// Parses a finite number. A plus sign is allowed.
#[inline]
pub(crate) fn number(field: &[u8]) -> Option<f32> {
    short_decimal(field).or_else(|| fast_float2::parse::<f32, _>(field).ok().filter(|value| value.is_finite()))
}

/// Parses what most ratings, labels and counts are: up to seven digits, a point perhaps between them. The quotient of two numbers
/// that have no error is the nearest number.
#[inline]
fn short_decimal(field: &[u8]) -> Option<f32> {
    const POWERS: [f32; 8] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];
    if field.len() > 8 {
        return None;
    }
    let (mut digits, mut point) = (0, None);
    for (at, &byte) in field.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digits = 10 * digits + u32::from(byte - b'0'),
            b'.' if point.is_none() && at > 0 => point = Some(at),
            _ => return None,
        }
    }
    let decimals = point.map_or(0, |point| field.len() - 1 - point);
    let is_short = (1..=7).contains(&(field.len() - usize::from(point.is_some()))) && point != Some(field.len() - 1);
    is_short.then(|| digits as f32 / POWERS[decimals])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(separator: Separator, line: &str) -> Vec<String> {
        separator.fields(line.as_bytes()).map(|field| String::from_utf8_lossy(field).into_owned()).collect()
    }

    #[test]
    fn separators_are_told_apart() {
        assert_eq!(Separator::of(b"1\t2,5 3"), Separator::Byte(b'\t'));
        assert_eq!(Separator::of(b"1::2::3,5"), Separator::Colons);
        assert_eq!(Separator::of(b"a b,c,1"), Separator::Byte(b','));
        assert_eq!(Separator::of(b"1  2 3"), Separator::Space);
    }

    #[test]
    fn fields_are_split() {
        assert_eq!(fields(Separator::Space, "  1 \t 22  3"), ["1", "22", "3"]);
        assert_eq!(fields(Separator::Byte(b','), "a b , ,c"), ["a b", "", "c"]);
        assert_eq!(fields(Separator::Byte(b'\t'), "\t1\t"), ["", "1", ""]);
        assert_eq!(fields(Separator::Colons, "1::2:3::4"), ["1", "2:3", "4"]);
        assert!(fields(Separator::Space, "").is_empty());
    }

    #[test]
    fn integers_are_canonical() {
        assert_eq!(integer(b"0"), Some(0));
        assert_eq!(integer(b"18446744073709551615"), Some(u64::MAX));
        for other in ["", "18446744073709551616", "99999999999999999999", "01", "+1", "-1", "1.0", "1a"] {
            assert_eq!(integer(other.as_bytes()), None, "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn short_numbers_are_the_nearest_ones(field in "[0-9]{0,8}[.]?[0-9]{0,8}") {
            let found = short_decimal(field.as_bytes());
            proptest::prop_assert!(found.is_none() || found == field.parse().ok(), "{field}: {found:?}");
        }
    }

    #[test]
    fn numbers_are_finite() {
        assert_eq!(number(b"+4.5e0"), Some(4.5));
        assert_eq!(number(b"-1"), Some(-1.0));
        for other in ["", "nan", "inf", "-inf", "1e60", "4,5", "4.5x"] {
            assert_eq!(number(other.as_bytes()), None, "{other}");
        }
    }
}

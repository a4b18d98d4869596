//! The fields of a line, as bytes.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memmem};

use super::malformed::trim;
use super::quotes::{QuotedFields, records};

/// What separates the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// One byte: tab, comma, semicolon or bar. Blanks around a field do not belong to it; a field may be quoted.
    Byte(u8),
    /// `::`, as in the MovieLens files.
    Colons,
    /// Any run of white space.
    Space,
}

impl Separator {
    /// Returns the separator that the first of some lines uses: a tab, `::`, that of comma, semicolon and bar which occurs most, or
    /// else white space. What lies between quotes does not count. Semicolons and bars may be parts of names that white space
    /// separates, of which a line has as many as fields are `needed`.
    pub(crate) fn of<'l>(mut lines: impl Iterator<Item = &'l [u8]>, needed: usize) -> Self {
        let line = lines.next().unwrap_or_default();
        let plain: Cow<'_, [u8]> = match memchr(b'"', line) {
            None => line.into(),
            // Every other piece is within quotes; two quotes in a row leave an empty one between them.
            Some(_) => line.split(|&byte| byte == b'"').step_by(2).collect::<Vec<_>>().concat().into(),
        };
        if memchr(b'\t', &plain).is_some() {
            return Self::Byte(b'\t');
        }
        if memmem::find(&plain, b"::").is_some() {
            return Self::Colons;
        }
        let count = |byte: u8| memchr_iter(byte, &plain).count();
        // The last one that occurs most.
        let most = *b"|;,".iter().max_by_key(|&&byte| count(byte)).unwrap_or(&b',');
        let is_part = |line: &[u8]| is_part_of_words(most, line, needed);
        let mut are_words = || is_part(&plain) && lines.all(is_part);
        if count(most) == 0 || (most != b',' && are_words()) { Self::Space } else { Self::Byte(most) }
    }

    pub(crate) fn fields(self, line: &[u8]) -> Fields<'_> {
        Fields { separator: self, rest: Some(line) }
    }

    /// Returns the byte that separates fields which may be quoted.
    pub(crate) fn quotable(self) -> Option<u8> {
        match self {
            Self::Byte(byte) => Some(byte),
            Self::Colons | Self::Space => None,
        }
    }

    /// Returns the fields of a record that has quotes; `None` where they stand for themselves.
    pub(crate) fn quoted_fields(self, record: &[u8]) -> Option<QuotedFields<'_>> {
        self.quotable().map(|separator| QuotedFields { separator, rest: Some(record) })
    }

    /// Returns the records of a text that are not blank.
    pub(crate) fn records(self, text: &[u8]) -> impl Iterator<Item = &[u8]> {
        records(self.quotable(), text).map(<[u8]>::trim_ascii_end).filter(|record| !record.is_empty())
    }

    /// Returns the fields of a line, with quotes taken off if they are right.
    pub(crate) fn all_fields(self, line: &[u8]) -> Vec<Cow<'_, [u8]>> {
        let quoted = memchr(b'"', line).and_then(|_| self.quoted_fields(line)?.collect::<Result<_, _>>().ok());
        quoted.unwrap_or_else(|| self.fields(line).map(Cow::Borrowed).collect())
    }

    /// The separator's name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Byte(b'\t') => "tabs",
            Self::Byte(b';') => "semicolons",
            Self::Byte(b'|') => "bars",
            Self::Byte(_) => "commas",
            Self::Colons => "\"::\"",
            Self::Space => "white space",
        }
    }
}

/// Whether there are as many words as needed, each with the same number of a byte: names like `sp|P1 sp|Q2`.
fn is_part_of_words(byte: u8, line: &[u8], needed: usize) -> bool {
    let counts: Vec<usize> = words(line).map(|word| memchr_iter(byte, word).count()).collect();
    counts.len() >= needed && counts.windows(2).all(|pair| pair[0] == pair[1])
}

/// The fields of a line, left to right.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    separator: Separator,
    rest: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Returns what is left of the line; nothing where the last field was taken.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.unwrap_or_default()
    }
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
        let of = |text: &'static str| Separator::of(text.lines().map(str::as_bytes), 2);
        assert_eq!(of("1\t2,5 3"), Separator::Byte(b'\t'));
        assert_eq!(of("1::2::3,5"), Separator::Colons);
        assert_eq!(of("a b,c,1"), Separator::Byte(b','));
        assert_eq!(of("1  2 3"), Separator::Space);
        assert_eq!(of("a;b;3,5"), Separator::Byte(b';'));
        assert_eq!(of("Toy Story|ann|5"), Separator::Byte(b'|'));
        assert_eq!(of("sp|P1|X sp|Q2|Y"), Separator::Space);
        assert_eq!(of("1|a b|5\n1|c|4"), Separator::Byte(b'|'));
        assert_eq!(of("\"a;b;\t\"\";c\",2,3"), Separator::Byte(b','));
        assert_eq!(of("a;b,c"), Separator::Byte(b','));
        assert_eq!(Separator::of(std::iter::once(&b"1|a b|5"[..]), 3), Separator::Byte(b'|'));
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

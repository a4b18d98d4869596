//! Texts that are not lines of UTF-8, read as such: UTF-16, as Windows and Excel save it, and arrays of JSON objects, as pandas and web
//! services write them.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use super::BYTE_ORDER_MARK;

/// Bytes that are translated at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// What a text is that has to be translated.
#[derive(Clone, Copy, Debug)]
pub(super) enum Translation {
    /// UTF-16, and how two bytes are one unit of it.
    Utf16(fn([u8; 2]) -> u16),
    /// An array of JSON objects: each becomes a line.
    Array,
}

impl Translation {
    /// Tells it by the first bytes of a text.
    pub(super) fn of(first: &[u8]) -> Option<Self> {
        match first {
            [0xff, 0xfe, ..] => Some(Self::Utf16(u16::from_le_bytes)),
            [0xfe, 0xff, ..] => Some(Self::Utf16(u16::from_be_bytes)),
            _ => {
                let text = first.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first);
                let inside = text.trim_ascii_start().strip_prefix(b"[")?;
                inside.trim_ascii_start().starts_with(b"{").then_some(Self::Array)
            }
        }
    }
}

/// A text as lines of UTF-8. What it is, is found out when it is read first.
pub(super) enum Utf8<'a> {
    /// Not looked at; nothing where that failed.
    Unread(Option<Box<dyn Read + Send + 'a>>),
    /// As it is to be read.
    Read(Box<dyn Read + Send + 'a>),
}

impl<'a> Utf8<'a> {
    pub(super) fn new(text: impl Read + Send + 'a) -> Self {
        Self::Unread(Some(Box::new(text)))
    }
}

impl Read for Utf8<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Self::Unread(text) = self {
            *self = Self::Read(match text.take() {
                Some(text) => translated(text)?,
                // Nothing must be taken for all there is.
                None => return Err(io::Error::other("its beginning could not be read")),
            });
        }
        match self {
            Self::Unread(_) => Ok(0),
            Self::Read(text) => text.read(into),
        }
    }
}

fn translated<'a>(text: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut text = BufReader::with_capacity(BUFFER_BYTES, text);
    Ok(match Translation::of(text.fill_buf()?) {
        None => Box::new(text),
        Some(Translation::Utf16(unit)) => {
            // What is in UTF-16 may be an array.
            let by = Utf16 { unit, rest: Vec::new() };
            let text: Box<dyn Read + Send + 'a> = Box::new(Translated { text, by, found: Vec::new(), at: 0 });
            translated(text)?
        }
        Some(Translation::Array) => Box::new(Translated { text, by: Array::default(), found: Vec::new(), at: 0 }),
    })
}

/// How some bytes become others.
trait Translate {
    /// Adds what comes of some bytes of the text.
    fn next(&mut self, bytes: &[u8], to: &mut Vec<u8>) -> io::Result<()>;
    /// Tells whether the text may end here.
    fn end(&self) -> io::Result<()>;
}

struct Translated<R, T> {
    text: R,
    by: T,
    /// What was translated, of which the bytes before `at` are read.
    found: Vec<u8>,
    at: usize,
}

impl<R: BufRead, T: Translate> Read for Translated<R, T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.found.len() && !into.is_empty() {
            self.at = 0;
            self.found.clear();
            let bytes = self.text.fill_buf()?;
            if bytes.is_empty() {
                return self.by.end().map(|()| 0);
            }
            let len = bytes.len();
            self.by.next(bytes, &mut self.found)?;
            self.text.consume(len);
        }
        let read = (&self.found[self.at..]).read(into)?;
        self.at += read;
        Ok(read)
    }
}

struct Utf16 {
    unit: fn([u8; 2]) -> u16,
    /// Bytes and half a pair of units whose others follow.
    rest: Vec<u8>,
}

impl Translate for Utf16 {
    fn next(&mut self, bytes: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
        self.rest.extend_from_slice(bytes);
        let (pairs, _) = self.rest.as_chunks::<2>();
        let mut units: Vec<u16> = pairs.iter().map(|pair| (self.unit)(*pair)).collect();
        // The second half of a pair may follow.
        if units.last().is_some_and(|unit| matches!(unit, 0xd800..=0xdbff)) {
            units.pop();
        }
        self.rest.drain(..2 * units.len());
        for character in char::decode_utf16(units) {
            let character = character.map_err(|_| io::Error::new(ErrorKind::InvalidData, NOT_UTF16))?;
            to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(())
    }

    fn end(&self) -> io::Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(io::Error::new(ErrorKind::UnexpectedEof, NOT_UTF16)) }
    }
}

const NOT_UTF16: &str = "it begins as UTF-16 does, and is none; save it as UTF-8";

/// Where in an array a text is.
#[derive(Default)]
struct Array {
    is_begun: bool,
    is_ended: bool,
    /// Brackets that are open in an element.
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl Translate for Array {
    fn next(&mut self, bytes: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
        bytes.iter().for_each(|&byte| self.byte(byte, to));
        Ok(())
    }

    fn end(&self) -> io::Result<()> {
        if self.is_ended {
            return Ok(());
        }
        let problem = "its array of JSON does not end; it is damaged, copy or download it again";
        Err(io::Error::new(ErrorKind::UnexpectedEof, problem))
    }
}

impl Array {
    fn byte(&mut self, byte: u8, to: &mut Vec<u8>) {
        if self.is_in_text {
            self.is_in_text = self.is_escaped || byte != b'"';
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            return to.push(byte);
        }
        match byte {
            // What follows the array is a line that is wrong.
            _ if self.is_ended => to.push(byte),
            b'[' if !self.is_begun => self.is_begun = true,
            b',' if self.depth == 0 => to.push(b'\n'),
            b']' if self.depth == 0 => {
                self.is_ended = true;
                to.push(b'\n');
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                self.is_in_text = byte == b'"';
                match byte {
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                to.push(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives a byte or a few at a time.
    struct Slow<'b>(&'b [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(into.len());
            self.0.read(&mut into[..most])
        }
    }

    fn read(text: &[u8], step: usize) -> io::Result<String> {
        let mut found = String::new();
        // The first bytes are enough to tell what it is.
        let first = text.len().min(8);
        let text = Slow(&text[..first], first).chain(Slow(&text[first..], step));
        translated(text)?.read_to_string(&mut found).map(|_| found)
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        ("\u{feff}".to_owned() + text).encode_utf16().flat_map(bytes).collect()
    }

    proptest! {
        #[test]
        fn utf16_is_the_same_text(text in "\\PC{0,60}", step in 1..9_usize) {
            for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
                let all = utf16(&format!("u,{text}"), bytes);
                prop_assert_eq!(read(&all, step).unwrap(), format!("\u{feff}u,{text}"));
            }
        }

        #[test]
        fn an_array_is_its_objects_line_by_line(texts in prop::collection::vec("\\PC{0,9}", 1..6), pretty in any::<bool>(), step in 1..9_usize) {
            let objects: Vec<_> = texts.iter().map(|text| serde_json::json!({ "user": text, "of": [{ "a": "},{" }, 1] })).collect();
            let lines: String = objects.iter().map(|object| object.to_string() + "\n").collect();
            let array = serde_json::Value::from(objects);
            let array = if pretty { serde_json::to_string_pretty(&array).unwrap() } else { array.to_string() };
            prop_assert_eq!(read(array.as_bytes(), step).unwrap(), lines);
        }
    }

    #[test]
    fn what_ends_early_is_an_error() {
        for text in [&b"[{\"a\":1},"[..], b"[{\"a\":1}", b"\xff\xfea\0b", b"\xff\xfe\0\xd8", b"\xff\xfe\0\xd8a\0b\0"] {
            assert!(read(text, 9).is_err(), "{text:?}");
        }
    }

    #[test]
    fn other_texts_stay() {
        for text in ["", "1 2\n", "[1, 2]", "{\"a\":1}\n", "[", "\u{feff}1 2"] {
            assert_eq!(read(text.as_bytes(), 9).unwrap(), text);
        }
        assert_eq!(read(b" [ {\"a\":1} ] x", 9).unwrap(), "{\"a\":1}\n x");
    }
}

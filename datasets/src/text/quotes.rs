//! Quotes as RFC 4180 has them: a field that begins with `"` goes on to the next `"` that is not doubled, whatever separators
//! and line ends lie between them.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memrchr};

use super::CHUNK_BYTES;
use super::malformed::{Malformed, trim};

/// Returns where the next quoted field begins, at its quote, from `at` on, which lies outside of quotes.
fn next_open(separator: u8, text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let quote = at + memchr(b'"', &text[at..])?;
        if quote == 0 || text[quote - 1] == separator || text[quote - 1] == b'\n' {
            return Some(quote);
        }
        at = quote + 1;
    }
}

/// Returns what follows the quote that closes a field, whose quote is at `open`; `None` where it is not closed.
fn close(text: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        at += memchr(b'"', &text[at..])? + 1;
        if text.get(at) != Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
}

/// Returns where the record ends that `text` begins with, at its line end, or the text does.
pub(super) fn record_end(separator: u8, text: &[u8]) -> usize {
    let line_end = |at: usize| memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end);
    let (mut at, mut end) = (0, line_end(0));
    loop {
        if at > end {
            end = line_end(at);
        }
        let Some(open) = next_open(separator, &text[..end], at) else { return end };
        match close(text, open) {
            Some(closed) => at = closed,
            None => return text.len(),
        }
    }
}

/// Returns the records of a text, without line ends: lines, where there is no separator between fields that may be quoted.
pub(super) fn records(separator: Option<u8>, text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = match separator {
            _ if rest.is_empty() => return None,
            Some(separator) => record_end(separator, rest),
            None => memchr(b'\n', rest).unwrap_or(rest.len()),
        };
        let record = &rest[..end];
        rest = &rest[rest.len().min(end + 1)..];
        Some(record)
    })
}

/// Returns the records of a text as far as they can be told before the separator is known: lines up to one with which all quotes
/// are in pairs, or single lines if there is none.
pub(crate) fn paired(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = memchr(b'\n', rest).unwrap_or(rest.len());
        let quotes = |text: &[u8]| memchr_iter(b'"', text).count();
        let (mut end, mut open) = (first, quotes(&rest[..first]) % 2 == 1);
        while open && end < rest.len() {
            let line = end + 1;
            end = memchr(b'\n', &rest[line..]).map_or(rest.len(), |end| line + end);
            open ^= quotes(&rest[line..end]) % 2 == 1;
        }
        let record = &rest[..if open { first } else { end }];
        let is_over = rest.is_empty();
        rest = &rest[rest.len().min(record.len() + 1)..];
        (!is_over).then(|| record.trim_ascii_end())
    })
}

/// Cuts a text into chunks of whole records; returns them, and where the last whole record ends. If the text is `ended`, what is
/// left of it is a record too.
pub(super) fn cut(separator: u8, text: &[u8], ended: bool) -> (Vec<&[u8]>, usize) {
    let (mut chunks, mut start) = (Vec::with_capacity(text.len() / CHUNK_BYTES + 1), 0);
    // Records end at the line ends from `at` to `until`, which lie between two quoted fields.
    let (mut at, mut last_end) = (0, 0);
    loop {
        let open = next_open(separator, text, at);
        let until = open.unwrap_or(text.len());
        if let Some(end) = memrchr(b'\n', &text[at..until]) {
            last_end = at + end + 1;
            let next = |start: usize| {
                let from = at.max(start + CHUNK_BYTES).min(last_end);
                memchr(b'\n', &text[from..last_end]).map(|cut| from + cut + 1)
            };
            while let Some(cut) = next(start) {
                chunks.push(&text[start..cut]);
                start = cut;
            }
        }
        match open.map(|open| close(text, open)) {
            Some(Some(closed)) => at = closed,
            _ => break,
        }
    }
    let whole = if ended { text.len() } else { last_end };
    if start < whole {
        chunks.push(&text[start..whole]);
    }
    (chunks, whole)
}

/// The fields of a record, some of which are quoted, left to right.
pub(crate) struct QuotedFields<'r> {
    pub(super) separator: u8,
    pub(super) rest: Option<&'r [u8]>,
}

impl<'r> Iterator for QuotedFields<'r> {
    type Item = Result<Cow<'r, [u8]>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        if rest.first() != Some(&b'"') {
            let end = memchr(self.separator, rest);
            self.rest = end.map(|end| &rest[end + 1..]);
            return Some(Ok(Cow::Borrowed(trim(&rest[..end.unwrap_or(rest.len())]))));
        }
        let Some(closed) = close(rest, 0) else {
            return Some(Err(Malformed::new("quoted field", rest, "a quote that closes it")));
        };
        match rest.get(closed) {
            None => {}
            Some(&byte) if byte == self.separator => self.rest = Some(&rest[closed + 1..]),
            Some(_) => {
                let expected = "the end of the field after the quote that closes it; a quote inside is doubled";
                return Some(Err(Malformed::new("quoted field", rest, expected)));
            }
        }
        let inside = &rest[1..closed - 1];
        Some(Ok(if memchr(b'"', inside).is_none() { Cow::Borrowed(inside) } else { Cow::Owned(single(inside)) }))
    }
}

/// Makes one quote of two.
fn single(inside: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(quote) = memchr(b'"', rest) {
        made.extend_from_slice(&rest[..=quote]);
        rest = rest.get(quote + 2..).unwrap_or_default();
    }
    made.extend_from_slice(rest);
    made
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records and fields as `csv-core` finds them.
    fn by_peer(separator: u8, text: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut reader = csv_core::ReaderBuilder::new().delimiter(separator).build();
        let (mut records, mut input) = (Vec::new(), text);
        loop {
            let (mut fields, mut ends) = (vec![0; text.len() + 1], vec![0; text.len() + 1]);
            let (mut written, mut num_ends) = (0, 0);
            loop {
                let (result, read, wrote, ended) =
                    reader.read_record(input, &mut fields[written..], &mut ends[num_ends..]);
                (input, written, num_ends) = (&input[read..], written + wrote, num_ends + ended);
                match result {
                    csv_core::ReadRecordResult::Record => break,
                    csv_core::ReadRecordResult::End => return records,
                    _ => {}
                }
            }
            let starts = std::iter::once(&0).chain(&ends);
            let record = starts.zip(&ends[..num_ends]).map(|(&start, &end)| fields[start..end].to_vec());
            records.push(record.collect());
        }
    }

    fn field() -> impl Strategy<Value = String> {
        prop_oneof![
            3 => "[a-z0-9]{1,4}",
            3 => "[a-z0-9\",;\n\r ]{0,6}".prop_map(|text| format!("\"{}\"", text.replace('"', "\"\""))),
            // A quote inside a field that is not quoted stands for itself.
            1 => "[a-z]{1,3}\"[a-z\"]{0,3}",
        ]
    }

    proptest! {
        #[test]
        fn records_and_fields_are_those_of_csv_core(
            records in prop::collection::vec(prop::collection::vec(field(), 1..5), 1..12),
            separator in prop_oneof![Just(","), Just(";"), Just("\t"), Just("|")],
            is_closed in any::<bool>(),
        ) {
            let lines: Vec<String> = records.iter().map(|fields| fields.join(separator)).collect();
            let text = lines.join("\n") + if is_closed { "\n" } else { "" };
            let separator = separator.as_bytes()[0];
            let (mut rest, mut found) = (text.as_bytes(), Vec::new());
            while !rest.is_empty() {
                let end = record_end(separator, rest);
                let fields = QuotedFields { separator, rest: Some(&rest[..end]) };
                found.push(fields.map(|field| field.unwrap().into_owned()).collect::<Vec<_>>());
                rest = &rest[rest.len().min(end + 1)..];
            }
            prop_assert_eq!(found, by_peer(separator, text.as_bytes()));
        }

        #[test]
        fn chunks_end_with_records(
            records in prop::collection::vec(prop::collection::vec(field(), 1..5), 1..12),
            ended in any::<bool>(),
        ) {
            let lines: String = records.iter().map(|fields| fields.join(",") + "\n").collect();
            let unfinished = format!("{lines}\"a\n");
            let (chunks, whole) = cut(b',', unfinished.as_bytes(), ended);
            prop_assert_eq!(chunks.concat(), &unfinished.as_bytes()[..whole]);
            prop_assert_eq!(whole, if ended { unfinished.len() } else { lines.len() });
        }
    }

    #[test]
    fn long_texts_are_cut_outside_of_quotes() {
        let record = format!("1,\"{}\",2\n", "a\n".repeat(CHUNK_BYTES / 5));
        let text = record.repeat(9);
        let (chunks, whole) = cut(b',', text.as_bytes(), false);
        assert_eq!((whole, chunks.concat()), (text.len(), text.clone().into_bytes()));
        assert!(chunks.len() > 2 && chunks.iter().all(|chunk| chunk.starts_with(b"1,") && chunk.ends_with(b",2\n")));
    }

    #[test]
    fn a_record_of_many_quoted_fields_is_passed_over_once() {
        let record = "\"\",".repeat(400_000) + "1";
        let text = format!("{record}\n2,3\n");
        assert_eq!(record_end(b',', text.as_bytes()), record.len());
    }

    #[test]
    fn what_is_quoted_by_half_is_told() {
        let fields = |text: &'static str| QuotedFields { separator: b',', rest: Some(text.as_bytes()) };
        for text in ["\"a", "\"a\"\"", "\"", "\"a\"b,c", "\"a\" ,c"] {
            assert!(fields(text).any(|field| field.is_err()), "{text}");
        }
    }
}

//! Tables as delimited text: two ids and perhaps a number, in columns.
//!
//! Fields are separated by tabs, commas, semicolons, bars, `::` or white space, as the first line has it; between single bytes
//! they may be quoted. Which columns are read is told by the roles that a user names, else by a header with names that are known
//! ([`ENDS`](crate::columns::ENDS)), else they are the first ones. All others are ignored.

use crate::columns::Columns;
use crate::header::{self, Shape, is_comment};
use crate::loaded::Loaded;
use crate::records::Record;
use crate::table::{self, Syntax};
use crate::text::{Input, Malformed, Separator, Text, next_line, plain_lines};
use crate::{Error, Roles};

/// Reads a delimited text. Edges that take more than `room` bytes are set aside in a file.
pub(crate) fn read<R: Record>(input: &Input<'_>, room: usize) -> Result<Loaded<R::Data>, Error> {
    table::read::<R>(input, room, &Delimited(input.roles()))
}

/// Records as delimited text, whose columns have these roles.
struct Delimited<'r>(&'r Roles);

impl<R: Record> Syntax<R> for Delimited<'_> {
    type Shape = Shape;

    fn begin(&self, text: &mut Text<'_>) -> Result<Shape, Error> {
        header::begin::<R>(text, self.0)
    }

    fn line(&self, shape: &Shape, columns: &mut Columns<R::Data>, line: &[u8]) -> Result<(), Malformed> {
        if is_comment::<R>(line) {
            return Ok(());
        }
        let mut fields = shape.separator.fields(line);
        let picked = shape.pick(&mut fields);
        if shape.is_exceeded(fields.rest()) {
            return Err(shape.wider::<R>(line));
        }
        push::<R>(shape, columns, line, picked)
    }

    fn quoted(&self, shape: &Shape, columns: &mut Columns<R::Data>, record: &[u8]) -> Result<(), Malformed> {
        if is_comment::<R>(record) {
            // What a quote opens that nothing closes are lines which are no comments.
            let problem = || Malformed::new("comment", record, "a quote after a separator to be closed in its line");
            return if record.contains(&b'\n') { Err(problem()) } else { Ok(()) };
        }
        let Some(fields) = shape.separator.quoted_fields(record) else {
            return Syntax::<R>::line(self, shape, columns, record);
        };
        // All of them are looked at, so that what is wrong with quotes is told wherever it is.
        let mut wrong = None;
        let fields = fields.map_while(|field| field.map_err(|malformed| wrong = Some(malformed)).ok());
        let mut fields = fields.fuse();
        let picked = shape.pick(&mut fields);
        let further = shape.further.unwrap_or(usize::MAX);
        let is_wider = fields.enumerate().filter(|(at, field)| *at >= further && !field.is_empty()).count() > 0;
        match wrong {
            Some(malformed) => Err(malformed),
            None if is_wider => Err(shape.wider::<R>(record)),
            None => push::<R>(shape, columns, record, picked.each_ref().map(|field| field.as_deref())),
        }
    }

    fn plain(&self, shape: &Shape, columns: &mut Columns<R::Data>, text: &[u8]) -> (u64, usize) {
        if !shape.is_usual {
            return (0, 0);
        }
        plain_lines(shape.separator, text, &mut columns.ids, &mut columns.data, |text| rest::<R>(shape, text))
    }
}

/// Adds the edge of a record, whose fields were picked.
#[inline]
fn push<R: Record>(
    shape: &Shape,
    columns: &mut Columns<R::Data>,
    record: &[u8],
    fields: [Option<&[u8]>; 3],
) -> Result<(), Malformed> {
    let ([Some(left), Some(right), number], true) = (fields, !R::has_number() || fields[2].is_some()) else {
        return Err(Malformed::new(R::NAME, record, shape.expected::<R>()));
    };
    let number = number.unwrap_or_default();
    let data = R::of_text(number).ok_or_else(|| wrong_number::<R>(number))?;
    columns.push(R::FIELDS, [left, right], data)
}

#[cold]
fn wrong_number<R: Record>(found: &[u8]) -> Malformed {
    let hint = if found.contains(&b',') { "; use a decimal point" } else { "" };
    Malformed::new(R::number_name(), found, format!("{}{hint}", R::NUMBER))
}

/// Reads what follows the two ids of a line, if it has the plainest form: the edge's data, and where the next line begins.
#[inline]
fn rest<R: Record>(shape: &Shape, text: &[u8]) -> Option<(R::Data, usize)> {
    if !R::has_number() {
        return next(shape, text).and_then(|next| Some((R::of_text(&[])?, next)));
    }
    let start = match (shape.separator, text) {
        (Separator::Byte(separator), [first, ..]) if *first == separator => 1,
        (Separator::Space, [b' ', ..]) => 1,
        (Separator::Colons, [b':', b':', ..]) => 2,
        _ => return None,
    };
    let is_value = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
    let len = text[start..].iter().position(|byte| !is_value(byte))?;
    let number = R::of_text(&text[start..start + len])?;
    next(shape, &text[start + len..]).map(|next| (number, start + len + next))
}

/// Returns where the next line begins, behind the fields that are read, if the header has a column for each of the others.
#[inline]
fn next(shape: &Shape, text: &[u8]) -> Option<usize> {
    let (Some(further), Separator::Byte(separator)) = (shape.further, shape.separator) else {
        return next_line(shape.separator, text);
    };
    if text.first() != Some(&separator) {
        return next_line(shape.separator, text);
    }
    let (mut at, mut fields) = (0, 0);
    loop {
        let word = u128::from_le_bytes(*text.get(at..)?.first_chunk()?);
        let (ends, separators) = (places(word, b'\n'), places(word, separator));
        if ends == 0 {
            (at, fields) = (at + 16, fields + separators.count_ones() as usize);
            continue;
        }
        fields += (separators & (ends - 1) & !ends).count_ones() as usize;
        let next = at + ends.trailing_zeros() as usize / 8 + 1;
        // Those that are empty need no column.
        return (fields <= further || !shape.is_exceeded(&text[1..next])).then_some(next);
    }
}

/// Marks the bytes of a word that are a given one, each at its highest bit.
#[inline]
fn places(word: u128, byte: u8) -> u128 {
    const ONES: u128 = u128::MAX / 255;
    const LOW: u128 = ONES * 0x7f;
    let others = word ^ (ONES * u128::from(byte));
    !(((others & LOW) + LOW) | others | LOW)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::next;
    use crate::header::Shape;
    use crate::text::Separator;
    use crate::{Format, parse_graph, parse_ratings};

    fn id() -> impl Strategy<Value = String> {
        prop_oneof![
            8 => (0..3000_u64).prop_map(|id| id.to_string()),
            4 => (0..u64::from(u32::MAX)).prop_map(|id| id.to_string()),
            1 => any::<u64>().prop_map(|id| id.to_string()),
            1 => "0[0-9]{1,3}|[a-z]{1,9}|[0-9]{1,9}x",
        ]
    }

    fn value() -> impl Strategy<Value = String> {
        prop_oneof![Just("5".to_owned()), Just("+3.25".to_owned()), Just("-1e-2".to_owned()), Just(".5".to_owned())]
    }

    #[test]
    fn a_line_ends_behind_as_many_fields_as_the_header_has() {
        let shape =
            |further| Shape { separator: Separator::Byte(b','), columns: ([0, 1], Some(2)), is_usual: true, further };
        for len in 0..40 {
            for (fields, end) in [(1, "\n"), (2, "\n"), (3, "\r\n"), (40, "\n")] {
                // Fields of lengths from 0 on, those that are not there left out.
                let behind: String = (0..fields).map(|at| format!(",{}", "x".repeat((len + at) % 9))).collect();
                let text = format!("{behind}{end}1,2,3,{}", "y".repeat(16));
                let wide = behind[1..].split(',').enumerate().filter(|(_, field)| !field.is_empty());
                let used = wide.map(|(at, _)| at + 1).max().unwrap_or(0);
                for further in 1..4 {
                    let expected = (used <= further).then_some(behind.len() + end.len());
                    assert_eq!(next(&shape(Some(further)), text.as_bytes()), expected, "{text:?}, {further}");
                }
                assert_eq!(next(&shape(None), text.as_bytes()), Some(behind.len() + end.len()));
            }
        }
    }

    proptest! {
        /// Blanks before a line keep it from being read in the quick way.
        #[test]
        fn lines_are_read_alike_in_both_ways(
            lines in prop::collection::vec((id(), id(), value(), prop_oneof![Just(""), Just("7"), Just("a b")]), 1..80),
            separator in prop_oneof![Just(","), Just("\t"), Just("::"), Just(" ")],
            end in prop_oneof![Just("\n"), Just("\r\n"), Just(" \n")],
        ) {
            let write = |before: &str, is_rating: bool| -> String {
                let line = |(left, right, value, more): &(String, String, String, &str)| {
                    let mut fields = vec![&left[..], right];
                    fields.extend(is_rating.then_some(&value[..]));
                    fields.extend((!more.is_empty()).then_some(*more));
                    format!("{before}{}{end}", fields.join(separator))
                };
                lines.iter().map(line).collect()
            };
            let graph = |before: &str| parse_graph(write(before, false).as_bytes(), Format::Edges).unwrap();
            prop_assert_eq!(graph(""), graph(" "));
            let ratings = |before: &str| parse_ratings(write(before, true).as_bytes(), Format::Ratings).unwrap();
            prop_assert_eq!(ratings(""), ratings(" "));
        }
    }
}

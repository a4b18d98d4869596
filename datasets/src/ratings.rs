//! Ratings: `user item value` a line, separated by tabs, commas, `::` or white space, as the first line has it.
//!
//! Further fields are ignored, a header line is skipped, and a pair that is rated again counts again.

use crate::columns::Columns;
use crate::delimited::{self, Delimited};
use crate::loaded::Loaded;
use crate::text::{Input, Malformed, Separator, Text, integer, next_line, number};
use crate::{Dataset, Dictionary, Error, OtherRating, TestRatings};

const FIELDS: [&str; 2] = ["user", "item"];

/// Reads ratings. Those that take more than `room` bytes are set aside in a file.
pub(crate) fn read(input: &Input<'_>, room: usize) -> Result<Loaded<f32>, Error> {
    delimited::read::<RatingLines>(input, room)
}

struct RatingLines;

impl Delimited for RatingLines {
    type Data = f32;
    const SQUARE: bool = false;
    const RECORDS: &'static str = "ratings";

    fn begin(text: &mut Text<'_>) -> Result<Separator, Error> {
        let first = text.lines().enumerate().find(|(_, line)| !line.is_empty());
        let Some((at, first)) = first else {
            return Ok(Separator::Space);
        };
        let separator = Separator::of(first);
        if is_header(separator, first) {
            text.skip_lines(at + 1);
        }
        Ok(separator)
    }

    fn line(separator: Separator, columns: &mut Columns<f32>, line: &[u8]) -> Result<(), Malformed> {
        let mut fields = separator.fields(line);
        let (Some(user), Some(item), Some(value)) = (fields.next(), fields.next(), fields.next()) else {
            let expected = format!("a user, an item and a number separated by {}", separator.name());
            return Err(Malformed::new("rating", line, expected));
        };
        let rating = number(value).ok_or_else(|| malformed_value(value))?;
        columns.push(FIELDS, [user, item], rating)
    }

    #[inline]
    fn rest(separator: Separator, text: &[u8]) -> Option<(f32, usize)> {
        let start = match (separator, text) {
            (Separator::Byte(separator), [first, ..]) if *first == separator => 1,
            (Separator::Space, [b' ', ..]) => 1,
            (Separator::Colons, [b':', b':', ..]) => 2,
            _ => return None,
        };
        let is_value = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
        let len = text[start..].iter().position(|byte| !is_value(byte))?;
        let rating = number(&text[start..start + len])?;
        next_line(separator, &text[start + len..]).map(|next| (rating, start + len + next))
    }
}

#[cold]
fn malformed_value(value: &[u8]) -> Malformed {
    let hint = if value.contains(&b',') { "; use a decimal point" } else { "" };
    Malformed::new("rating", value, format!("a finite number{hint}"))
}

/// Whether none of the first three fields is a number.
fn is_header(separator: Separator, line: &[u8]) -> bool {
    let looks_numeric = |field: &[u8]| integer(field).is_some() || fast_float2::parse::<f64, _>(field).is_ok();
    separator.fields(line).count() >= 3 && !separator.fields(line).take(3).any(looks_numeric)
}

/// Renumbers ratings by the users and items of a model.
pub(crate) fn with_names(ratings: Dataset<f32>, left_names: &Dictionary, right_names: &Dictionary) -> TestRatings {
    let left_ids = ratings.left_names.translate(left_names);
    let right_ids = ratings.right_names().translate(right_names);
    let mut test = TestRatings { known: Default::default(), others: Vec::new() };
    let known = &mut test.known;
    (known.num_left, known.num_right) = (left_names.len(), right_names.len());
    let edges = &ratings.edges;
    for ((&left, &right), &rating) in edges.left.iter().zip(&edges.right).zip(&edges.data) {
        match (left_ids[left as usize], right_ids[right as usize]) {
            (Some(left), Some(right)) => {
                known.push(left, right, rating);
            }
            (left, right) => test.others.push(OtherRating { left, right, rating }),
        }
    }
    test
}

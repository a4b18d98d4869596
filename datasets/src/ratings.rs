//! Ratings: `user item value` a line, separated by tabs, commas, `::` or white space, as the first line has it.
//!
//! Further fields are ignored, a header line is skipped, and a pair that is rated again counts again.

use crate::delimited;
use crate::loaded::Loaded;
use crate::text::{Input, Malformed, Separator, Text, integer, number};
use crate::{Dataset, Dictionary, Error, OtherRating, TestRatings};

const FIELDS: [&str; 2] = ["user", "item"];

/// Reads ratings. Those that take more than `room` bytes are set aside in a file.
pub(crate) fn read(input: &Input<'_>, room: usize) -> Result<Loaded<f32>, Error> {
    delimited::read(input, false, "ratings", room, begin, |&separator, columns, line| {
        let mut fields = separator.fields(line);
        let (Some(user), Some(item), Some(value)) = (fields.next(), fields.next(), fields.next()) else {
            let expected = format!("a user, an item and a number separated by {}", separator.name());
            return Err(Malformed::new("rating", line, expected));
        };
        let rating = number(value).ok_or_else(|| malformed_value(value))?;
        columns.push(FIELDS, [user, item], rating)
    })
}

#[cold]
fn malformed_value(value: &[u8]) -> Malformed {
    let hint = if value.contains(&b',') { "; use a decimal point" } else { "" };
    Malformed::new("rating", value, format!("a finite number{hint}"))
}

/// Skips a header; returns the separator.
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

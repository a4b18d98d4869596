//! Edge lists as SNAP has them: `from to` a line, comment lines start with `#` or `%`.
//!
//! Fields are separated by tabs, commas, `::` or white space, as the first line has it; further fields are ignored.
//! Both ends are vertices of one square graph; only vertices with an edge exist.

use crate::Error;
use crate::delimited;
use crate::loaded::Loaded;
use crate::text::{Input, Malformed, Separator, Text};

const FIELDS: [&str; 2] = ["source vertex", "target vertex"];

/// Reads an edge list. Edges that take more than `room` bytes are set aside in a file.
pub(crate) fn read(input: &Input<'_>, room: usize) -> Result<Loaded<()>, Error> {
    delimited::read(input, true, "edges", room, begin, |&separator, columns, line| {
        if is_comment(line) {
            return Ok(());
        }
        let mut fields = separator.fields(line);
        let left = fields.next().unwrap_or_default();
        let Some(right) = fields.next() else {
            let expected = format!("two vertices separated by {}", separator.name());
            return Err(Malformed::new("edge", line, expected));
        };
        columns.push(FIELDS, [left, right], ())
    })
}

fn is_comment(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'#' | b'%'))
}

fn begin(text: &mut Text<'_>) -> Result<Separator, Error> {
    let first = text.lines().find(|line| !line.is_empty() && !is_comment(line));
    Ok(Separator::of(first.unwrap_or_default()))
}

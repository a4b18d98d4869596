//! Edge lists as SNAP has them: `from to` a line, comment lines start with `#` or `%`.
//!
//! Fields are separated by tabs, commas, `::` or white space, as the first line has it; further fields are ignored.
//! Both ends are vertices of one square graph; only vertices with an edge exist.
//!
//! The first line is a header, and skipped, if neither of its ends is a number and all ends in the lines after it are
//! integers, as far as [`FIRST_LINES`] go. Where ids are names it is an edge, whatever it says.

use crate::Error;
use crate::columns::{Columns, ENDS};
use crate::delimited::{self, Delimited, FIRST_LINES};
use crate::loaded::Loaded;
use crate::text::{Input, Malformed, Separator, Text, integer, next_line, number};

const FIELDS: [&str; 2] = ["source vertex", "target vertex"];

/// Reads an edge list. Edges that take more than `room` bytes are set aside in a file.
pub(crate) fn read(input: &Input<'_>, room: usize) -> Result<Loaded<()>, Error> {
    delimited::read::<EdgeLines>(input, room)
}

struct EdgeLines;

impl Delimited for EdgeLines {
    type Data = ();
    const SQUARE: bool = true;
    const RECORDS: &'static str = "edges";

    fn begin(text: &mut Text<'_>) -> Result<Separator, Error> {
        let mut lines = edges(text);
        let Some((at, first)) = lines.next() else { return Ok(Separator::Space) };
        let separator = Separator::of(first);
        let rest: Vec<_> = lines.map(|(_, line)| line).collect();
        if is_header(separator, first, &rest) {
            text.skip_lines(at + 1);
        }
        Ok(separator)
    }

    fn line(separator: Separator, columns: &mut Columns<()>, line: &[u8]) -> Result<(), Malformed> {
        if is_comment(line) {
            return Ok(());
        }
        let mut fields = separator.fields(line);
        let left = fields.next().unwrap_or_default();
        let Some(right) = fields.next() else {
            let expected = format!("two vertices separated by {}, as in the first line", separator.name());
            return Err(Malformed::new("edge", line, expected));
        };
        columns.push(FIELDS, [left, right], ())
    }

    #[inline]
    fn rest(separator: Separator, text: &[u8]) -> Option<((), usize)> {
        next_line(separator, text).map(|next| ((), next))
    }
}

/// Returns the first lines that are no comments, with their places.
fn edges<'t>(text: &'t Text<'_>) -> impl Iterator<Item = (usize, &'t [u8])> {
    text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !is_comment(line)).take(FIRST_LINES)
}

fn is_comment(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'#' | b'%'))
}

fn is_header(separator: Separator, first: &[u8], rest: &[&[u8]]) -> bool {
    let both = |line: &[u8], is: fn(&[u8]) -> bool| separator.fields(line).take(2).filter(|end| is(end)).count() == 2;
    let is_edge = |line: &&[u8]| both(line, |end| integer(end).is_some());
    both(first, |end| number(end).is_none()) && !rest.is_empty() && rest.iter().all(is_edge)
}

/// Says where the edges have numbers, in all of the first lines.
pub(crate) fn weights(input: &Input<'_>) -> Option<&'static str> {
    let is_weighted = |separator: Separator, lines: &[&[u8]]| {
        lines.iter().all(|line| separator.fields(line).nth(2).and_then(number).is_some())
    };
    // A header has none.
    let found = with_first_lines(input, |separator, first, rest| {
        is_weighted(separator, rest) && (is_weighted(separator, &[first]) || is_header(separator, first, rest))
    });
    found.unwrap_or(false).then_some("numbers in its third column")
}

/// Returns the first line where it is read as an edge but reads like the names of columns.
pub(crate) fn doubtful_header(input: &Input<'_>) -> Option<String> {
    with_first_lines(input, |separator, first, rest| {
        let is_end = |(end, name): (&[u8], &str)| end.eq_ignore_ascii_case(name.as_bytes());
        let is_ends = |names: &[&str; 2]| separator.fields(first).zip(*names).filter(|&pair| is_end(pair)).count() == 2;
        let is_doubtful = !is_header(separator, first, rest) && ENDS.iter().any(is_ends);
        is_doubtful.then(|| String::from_utf8_lossy(first).into_owned())
    })
    .flatten()
}

/// Looks at the first edges; whatever is wrong with them is reported when they are read.
fn with_first_lines<R>(input: &Input<'_>, look: impl Fn(Separator, &[u8], &[&[u8]]) -> R) -> Option<R> {
    let text = input.head().ok()?;
    let lines: Vec<_> = edges(&text).map(|(_, line)| line).collect();
    let (first, rest) = lines.split_first()?;
    Some(look(Separator::of(first), first, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, parse_graph};

    #[test]
    fn a_header_is_no_edge() {
        let expected = parse_graph(b"1 2\n3 1\n", Format::Edges).unwrap();
        for text in [
            "source,target\n1,2\n3,1\n",
            "Source\tTarget\r\n1\t2\r\n3\t1\r\n",
            "# crawled\n\nfrom::to\n1::2\n# one more\n3::1\n",
            "\u{feff}FromNodeId ToNodeId\n1 2\n3 1\n",
            "src,dst,weight\n1,2,0.5\n3,1,2\n",
        ] {
            assert_eq!(parse_graph(text.as_bytes(), Format::Edges).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_first_edge_of_a_graph_of_names_is_kept() {
        for text in [
            "alice,bob\nbob,carol\n",
            "alice,bob\n",
            "alice,bob\n1,2\n2,carol\n",
            "alice,1\n1,2\n",
            "source,target\na,b\n",
        ] {
            let read = parse_graph(text.as_bytes(), Format::Edges).unwrap();
            assert_eq!(read.edges.num_edges(), text.lines().count(), "{text:?}");
        }
        // Numbers are ids, of a form that has to be corrected, but no header.
        assert!(parse_graph(b"-1,-2\n1,2\n", Format::Edges).is_err());
    }

    #[test]
    fn a_name_that_reads_like_a_header_is_doubtful() {
        let doubtful = |text: &str| doubtful_header(&Input::from_bytes(text.as_bytes()));
        assert_eq!(doubtful("Source,Target,since\nalice,bob,may\n").as_deref(), Some("Source,Target,since"));
        for text in ["source,target\n1,2\n", "alice bob\nbob alice\n", "source,bob\n", "source\n", ""] {
            assert_eq!(doubtful(text), None, "{text:?}");
        }
    }

    #[test]
    fn weights_are_numbers_beside_all_edges() {
        let weighted = |text: &str| weights(&Input::from_bytes(text.as_bytes())).is_some();
        for text in ["1 2 0.5\n2 3 1\n", "a,b,w\n1,2,3\n", "a\tb\t1e3\n"] {
            assert!(weighted(text), "{text:?}");
        }
        for text in ["1 2\n2 3\n", "1 2 x\n3 4 5\n", "a,b,w\nc,d,1\n", ""] {
            assert!(!weighted(text), "{text:?}");
        }
    }
}

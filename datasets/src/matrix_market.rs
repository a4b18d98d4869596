//! Matrix Market coordinate files: real, integer or pattern; general or symmetric.
//!
//! Rows are left vertices, columns right ones. A symmetric file leaves out one triangle, which is added: the mirror
//! image of an entry follows it.

use crate::columns::Columns;
use crate::entries::{self, Header, NUM_ENTRIES, index, size};
use crate::records::Record;
use crate::text::{Input, Malformed, Text, number, words};
use crate::{Error, Loaded};

/// What the first line says.
#[derive(Clone, Copy)]
struct Banner {
    pattern: bool,
    symmetric: bool,
}

/// Reads an edge from row to column for each entry; those of a pattern are 1. The matrix of a graph has to be square. Edges that take
/// more than `room` bytes are set aside in a file.
pub(crate) fn read<R: Record>(input: &Input<'_>, room: usize) -> Result<Loaded<R::Data>, Error> {
    let (banner, header) = begin(&mut entries::open(input)?)?;
    if R::SQUARE && header.num_left != header.num_right {
        let problem = format!("{} rows and {} columns, expected a square", header.num_left, header.num_right);
        return Err(Error::invalid(input.path(), problem));
    }
    header.read(input, R::SQUARE, room, skip, |columns, line| entry::<R>(columns, line, banner, header))
}

fn skip(text: &mut Text<'_>) -> Result<(), Error> {
    begin(text).map(drop)
}

/// Says that the entries have values.
pub(crate) fn weights(input: &Input<'_>) -> Option<&'static str> {
    let banner = banner(input.head().ok()?.next_line()?).ok()?;
    (!banner.pattern).then_some("values")
}

fn begin(text: &mut Text<'_>) -> Result<(Banner, Header), Error> {
    let banner = banner(text.next_line().unwrap_or_default());
    let banner = banner.map_err(|malformed| text.malformed(malformed))?;
    while let Some(line) = text.next_line() {
        if line.is_empty() || line.starts_with(b"%") {
            continue;
        }
        let header = sizes(line);
        let header = header.map_err(|malformed| text.malformed(malformed))?;
        if banner.symmetric && header.num_left != header.num_right {
            return Err(Error::invalid(text.path(), "symmetric, but rows and columns differ in number"));
        }
        return Ok((banner, Header { symmetric: banner.symmetric, ..header }));
    }
    Err(Error::invalid(text.path(), "the line with the numbers of rows, columns and entries is missing"))
}

fn banner(line: &[u8]) -> Result<Banner, Malformed> {
    let fields: Vec<String> = words(line).map(|field| String::from_utf8_lossy(field).to_ascii_lowercase()).collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    match fields[..] {
        [
            "%%matrixmarket",
            "matrix",
            "coordinate",
            kind @ ("real" | "integer" | "pattern"),
            shape @ ("general" | "symmetric"),
        ] => Ok(Banner { pattern: kind == "pattern", symmetric: shape == "symmetric" }),
        _ => {
            let expected =
                "\"%%MatrixMarket matrix coordinate\", then real, integer or pattern, then general or symmetric";
            Err(Malformed::new("first line", line, expected))
        }
    }
}

fn sizes(line: &[u8]) -> Result<Header, Malformed> {
    let fields: Vec<&[u8]> = words(line).collect();
    let [rows, columns, entries] = fields[..] else {
        return Err(Malformed::new("sizes", line, "the numbers of rows, columns and entries"));
    };
    let (num_left, num_right) = (size("number of rows", rows)?, size("number of columns", columns)?);
    Ok(Header { num_left, num_right, num_entries: size(NUM_ENTRIES, entries)?, symmetric: false })
}

#[inline]
fn entry<R: Record>(
    columns: &mut Columns<R::Data>,
    line: &[u8],
    banner: Banner,
    header: Header,
) -> Result<(), Malformed> {
    let mut fields = words(line);
    let left = index("row", fields.next().unwrap_or_default(), header.num_left)?;
    let right = index("column", fields.next().unwrap_or_default(), header.num_right)?;
    let value = if banner.pattern { b"1" } else { fields.next().unwrap_or_default() };
    let finite = number(value).ok_or_else(|| Malformed::new("value", value, "a finite number"))?;
    // Large counts are more than single precision holds.
    let data = R::of_text(value).or_else(|| R::of_number(f64::from(finite)));
    let data = data.ok_or_else(|| Malformed::new(R::number_name(), value, R::NUMBER))?;
    if fields.next().is_some() {
        return Err(Malformed::new("entry", line, "no more than a row, a column and a value"));
    }
    columns.push_ids([left, right], data);
    Ok(())
}

//! What edge lists and ratings have in common: two ids a line, in two columns.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use megagrid_partition::Side;

use crate::Error;
use crate::cache::EdgeData;
use crate::columns::{Columns, Named};
use crate::gather::Gathered;
use crate::loaded::Loaded;
use crate::text::{Input, Lines, Malformed, Separator, Text, plain_lines};

/// Lines that are looked at for names, and for a header, before the text is read.
pub(crate) const FIRST_LINES: usize = 100;

/// A format with an id in each of two columns.
pub(crate) trait Delimited: Sync {
    /// What an edge carries.
    type Data: EdgeData;
    /// Whether both columns name the same vertices.
    const SQUARE: bool;
    /// What the lines are.
    const RECORDS: &'static str;

    /// Skips a header; returns what separates the fields.
    fn begin(text: &mut Text<'_>) -> Result<Separator, Error>;

    /// Adds the edge of a line.
    fn line(separator: Separator, columns: &mut Columns<Self::Data>, line: &[u8]) -> Result<(), Malformed>;

    /// Reads what follows the two ids of a line, if it has the plainest form: the edge's data, and where the next line begins.
    fn rest(separator: Separator, text: &[u8]) -> Option<(Self::Data, usize)>;
}

/// The lines of a format in which fields are separated as each chunk says.
struct LinesOf<D>(PhantomData<D>);

impl<D: Delimited> Lines<(Separator, Columns<D::Data>)> for LinesOf<D> {
    fn line(&self, (separator, columns): &mut (Separator, Columns<D::Data>), line: &[u8]) -> Result<(), Malformed> {
        D::line(*separator, columns, line)
    }

    fn plain(&self, (separator, columns): &mut (Separator, Columns<D::Data>), text: &[u8]) -> (u64, usize) {
        if columns.named != Named::default() || columns.names_in.is_some() {
            return (0, 0);
        }
        plain_lines(*separator, text, &mut columns.ids, &mut columns.data, |text| D::rest(*separator, text))
    }
}

/// Reads lines with an id in each of two columns. A column is taken for integers unless the first lines tell otherwise;
/// where a name turns up in it later, the text is read again. Edges that take more than `room` bytes are set aside in a file.
pub(crate) fn read<D: Delimited>(input: &Input<'_>, room: usize) -> Result<Loaded<D::Data>, Error> {
    let square = D::SQUARE;
    let mut named = Named::default();
    // Whatever is wrong with the first lines is reported when they are read for good.
    if let Ok(mut head) = input.head()
        && let Ok(separator) = D::begin(&mut head)
    {
        while let Some(side) = first_name::<D>(&head, separator, Columns::new(square, named)) {
            named.note(side, square);
        }
    }
    loop {
        let mut all = Gathered::new(square, named, None, room, input.readers());
        let mut names_in = None;
        input.parse(
            D::begin,
            |&separator| (separator, Columns::new(square, named)),
            LinesOf::<D>(PhantomData),
            |(_, columns)| {
                names_in = columns.names_in;
                if names_in.is_some() {
                    return Ok(ControlFlow::Break(()));
                }
                all.append(columns, input.path())?;
                Ok(ControlFlow::Continue(()))
            },
        )?;
        match Named::agree(input.readers(), names_in).map_err(Error::io(input.path()))? {
            None => return all.finish(input.path(), D::RECORDS),
            Some(side) => named.note(side, square),
        }
    }
}

/// Returns the column that holds a name in the first lines although it was taken for integers.
fn first_name<D: Delimited>(head: &Text<'_>, separator: Separator, mut columns: Columns<D::Data>) -> Option<Side> {
    for text in head.lines().take(FIRST_LINES).filter(|line| !line.is_empty()) {
        D::line(separator, &mut columns, text).ok()?;
    }
    columns.names_in
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

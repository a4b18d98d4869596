//! What edge lists and ratings have in common: two ids a line, in two columns.

use std::ops::ControlFlow;

use megagrid_partition::Side;

use crate::cache::EdgeData;
use crate::columns::{Columns, Named};
use crate::gather::Gathered;
use crate::loaded::Loaded;
use crate::text::{Input, Malformed, Text};
use crate::{Error, Readers};

/// Lines that are looked at for names, and for a header, before the text is read.
pub(crate) const FIRST_LINES: usize = 100;

/// Reads lines with an id in each of two columns. A column is taken for integers unless the first lines tell otherwise;
/// where a name turns up in it later, the text is read again. `records` says what the lines are.
pub(crate) fn read<'a, H: Copy + Send + Sync, T: EdgeData>(
    input: &Input<'a>,
    square: bool,
    records: &'static str,
    room: usize,
    begin: impl Fn(&mut Text<'a>) -> Result<H, Error> + Sync,
    line: impl Fn(&H, &mut Columns<T>, &[u8]) -> Result<(), Malformed> + Sync,
) -> Result<Loaded<T>, Error> {
    let mut named = Named::default();
    // Whatever is wrong with the first lines is reported when they are read for good.
    if let Ok(mut head) = input.head()
        && let Ok(header) = begin(&mut head)
    {
        let line = |columns: &mut Columns<T>, text: &[u8]| line(&header, columns, text);
        while let Some(side) = first_name(&head, Columns::new(square, named), line) {
            named.note(side, square);
        }
    }
    loop {
        let mut all = Gathered::new(square, named, room, input.readers());
        let mut names_in = None;
        input.parse(
            &begin,
            |&header| (header, Columns::new(square, named)),
            |(header, columns), text| line(header, columns, text),
            |(_, columns)| {
                names_in = columns.names_in;
                if names_in.is_some() {
                    return Ok(ControlFlow::Break(()));
                }
                all.append(columns, input.path())?;
                Ok(ControlFlow::Continue(()))
            },
        )?;
        if let Some(readers) = input.readers() {
            names_in = agree(&**readers, names_in).map_err(Error::io(input.path()))?;
        }
        match names_in {
            None => return all.finish(input.path(), records),
            Some(side) => named.note(side, square),
        }
    }
}

/// Finds a column in which any process found a name: the first one's.
fn agree(readers: &dyn Readers, found: Option<Side>) -> std::io::Result<Option<Side>> {
    let code = found.map_or(0, |side| 1 + u64::from(side == Side::Right));
    let all = readers.gather_numbers([code])?;
    let code = all.into_iter().map(|[code]| code).find(|&code| code > 0);
    Ok(code.map(|code| if code == 1 { Side::Left } else { Side::Right }))
}

/// Returns the column that holds a name in the first lines although it was taken for integers.
fn first_name<T>(
    head: &Text<'_>,
    mut columns: Columns<T>,
    line: impl Fn(&mut Columns<T>, &[u8]) -> Result<(), Malformed>,
) -> Option<Side> {
    for text in head.lines().take(FIRST_LINES).filter(|line| !line.is_empty()) {
        line(&mut columns, text).ok()?;
    }
    columns.names_in
}

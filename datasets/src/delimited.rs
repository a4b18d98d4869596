//! What edge lists and ratings have in common: two ids a line, in two columns.

use std::ops::ControlFlow;

use megagrid_partition::Side;

use crate::cache::EdgeData;
use crate::column::{Ids, id};
use crate::gather::Gathered;
use crate::loaded::Loaded;
use crate::names::Tokens;
use crate::text::{Input, Malformed, Text};
use crate::{Error, Readers};

/// Lines that are looked at for names, and for a header, before the text is read.
pub(crate) const FIRST_LINES: usize = 100;

/// What columns that hold the ends of edges are called, in any case.
pub(crate) const ENDS: [[&str; 2]; 6] =
    [["user", "item"], ["user_id", "item_id"], ["source", "target"], ["src", "dst"], ["from", "to"], ["left", "right"]];

/// Which columns hold names; the others hold integers as far as they have been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) left: bool,
    pub(crate) right: bool,
}

impl Named {
    /// Notes a column that holds names after all; both hold the same ones in a square graph.
    pub(crate) fn note(&mut self, side: Side, square: bool) {
        self.left |= square || side == Side::Left;
        self.right |= square || side == Side::Right;
    }
}

/// The edges of a chunk, whose ends are integers or tokens of the text.
#[derive(Debug, Default)]
pub(crate) struct Columns<T> {
    /// Both columns name the same vertices.
    pub(crate) square: bool,
    pub(crate) named: Named,
    /// Integers of each column; none of a column of names.
    pub(crate) ids: [Ids; 2],
    /// Tokens of each column of names; of both, in turn, in the first one's place where the graph is square.
    pub(crate) tokens: [Tokens; 2],
    pub(crate) data: Vec<T>,
    /// The column that was taken for integers and holds a name. What follows it was not kept.
    pub(crate) names_in: Option<Side>,
}

impl<T> Columns<T> {
    pub(crate) fn new(square: bool, named: Named) -> Self {
        Self { square, named, ids: Default::default(), tokens: Default::default(), data: Vec::new(), names_in: None }
    }

    /// Adds an edge from the tokens of its ends. `fields` says what they stand for.
    #[inline]
    pub(crate) fn push(
        &mut self,
        fields: [&'static str; 2],
        [left, right]: [&[u8]; 2],
        data: T,
    ) -> Result<(), Malformed> {
        if self.names_in.is_some() {
            return Ok(());
        }
        if self.named.left {
            self.tokens[0].push(fields[0], left)?;
        } else if let Some(id) = id(fields[0], left)? {
            self.ids[0].push(id);
        } else {
            self.names_in = Some(Side::Left);
            return Ok(());
        }
        if self.named.right {
            self.tokens[usize::from(!self.square)].push(fields[1], right)?;
        } else if let Some(id) = id(fields[1], right)? {
            self.ids[1].push(id);
        } else {
            self.names_in = Some(Side::Right);
            return Ok(());
        }
        self.data.push(data);
        Ok(())
    }
}

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

//! What edge lists and ratings have in common: two ids a line, in two columns.

use std::ops::ControlFlow;
use std::path::Path;

use megagrid_partition::{EdgeList, Side};

use crate::column::{Column, id, intern};
use crate::ranks::Ranks;
use crate::text::{Input, Malformed, Text};
use crate::{Dataset, Error};

/// Which columns hold names; the others hold integers as far as they have been read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Named {
    left: bool,
    right: bool,
}

impl Named {
    /// Notes a column that holds names after all; both hold the same ones in a square graph.
    pub(crate) fn note(&mut self, side: Side, square: bool) {
        self.left |= square || side == Side::Left;
        self.right |= square || side == Side::Right;
    }
}

/// Edges whose ends are still ids of the text.
#[derive(Debug, Default)]
pub(crate) struct Columns<T> {
    /// Both columns name the same vertices; names are then in the left column's table.
    square: bool,
    named: Named,
    left: Column,
    right: Column,
    data: Vec<T>,
    /// The column that was taken for integers and holds a name. What follows it was not kept.
    pub(crate) names_in: Option<Side>,
}

impl<T> Columns<T> {
    pub(crate) fn new(square: bool, named: Named) -> Self {
        Self { square, named, left: Column::default(), right: Column::default(), data: Vec::new(), names_in: None }
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
            self.left.ids.push(intern(&mut self.left.names, fields[0], left)?);
        } else if let Some(id) = id(fields[0], left)? {
            self.left.ids.push(id);
        } else {
            self.names_in = Some(Side::Left);
            return Ok(());
        }
        if self.named.right {
            let names = if self.square { &mut self.left.names } else { &mut self.right.names };
            self.right.ids.push(intern(names, fields[1], right)?);
        } else if let Some(id) = id(fields[1], right)? {
            self.right.ids.push(id);
        } else {
            self.names_in = Some(Side::Right);
            return Ok(());
        }
        self.data.push(data);
        Ok(())
    }

    /// Adds the edges of the chunk that follows.
    pub(crate) fn append(&mut self, mut chunk: Self, path: &Path) -> Result<(), Error> {
        let entries = self.left.append(chunk.left, path)?;
        if self.square {
            chunk.right.ids.rename(&entries);
        }
        self.right.append(chunk.right, path)?;
        self.data.extend(chunk.data);
        Ok(())
    }

    /// Numbers the vertices. `records` says what the edges are.
    pub(crate) fn finish(self, path: &Path, records: &'static str) -> Result<Dataset<T>, Error> {
        let Self { square, left, right, data, .. } = self;
        if data.is_empty() {
            return Err(Error::Empty { path: path.to_path_buf(), records });
        }
        let (left, right, left_names, right_names) = if !square {
            let (left, left_names) = left.finish(path)?;
            let (right, right_names) = right.finish(path)?;
            (left, right, left_names, Some(right_names))
        } else if self.named.left {
            let right = right.ids.into_entries();
            let (left, names) = left.finish(path)?;
            (left, right, names, None)
        } else {
            let ranks = Ranks::of(&[&left.ids, &right.ids], path)?;
            (left.ids.into_ranks(&ranks), right.ids.into_ranks(&ranks), ranks.into_dictionary(), None)
        };
        let (num_left, num_right) = (left_names.len(), right_names.as_ref().unwrap_or(&left_names).len());
        let edges = EdgeList { num_left, num_right, square, left, right, data };
        Ok(Dataset { edges, left_names, right_names })
    }
}

/// Reads lines with an id in each of two columns. A column is taken for integers; where a name turns up in it, the
/// text is read again. `records` says what the lines are.
pub(crate) fn read<'a, H: Copy + Send + Sync, T: Send>(
    input: &Input<'a>,
    square: bool,
    records: &'static str,
    begin: impl Fn(&mut Text<'a>) -> Result<H, Error> + Sync,
    line: impl Fn(&H, &mut Columns<T>, &[u8]) -> Result<(), Malformed> + Sync,
) -> Result<Dataset<T>, Error> {
    let mut named = Named::default();
    loop {
        let mut all = Columns::new(square, named);
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
        match names_in {
            None => return all.finish(input.path(), records),
            Some(side) => named.note(side, square),
        }
    }
}

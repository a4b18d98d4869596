//! The two columns of a chunk that hold the ends of edges: integers, or tokens of the text.

use std::path::Path;
use std::sync::Arc;

use megagrid_partition::Side;

use crate::column::id;
use crate::ids::Ids;
use crate::names::Tokens;
use crate::text::Malformed;
use crate::{Error, Readers};

/// What columns that hold the ends of edges are called, in any case.
pub(crate) const ENDS: [[&str; 2]; 20] = [
    ["user", "item"],
    ["user", "item_id"],
    ["user", "itemid"],
    ["user", "movie_id"],
    ["user", "movieid"],
    ["user_id", "item"],
    ["user_id", "item_id"],
    ["user_id", "itemid"],
    ["user_id", "movie_id"],
    ["user_id", "movieid"],
    ["userid", "item"],
    ["userid", "item_id"],
    ["userid", "itemid"],
    ["userid", "movie_id"],
    ["userid", "movieid"],
    ["source", "target"],
    ["src", "dst"],
    ["from", "to"],
    ["left", "right"],
    ["document", "word"],
];

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

/// How a pass over an input ended.
#[derive(Debug)]
pub(crate) enum Pass {
    /// All of it was read.
    Done,
    /// A column that was taken for integers holds a name.
    Name(Side),
    /// Quotes go over line ends, so a file has to be read from its beginning.
    Quotes,
}

impl Pass {
    /// Returns how the pass ended for all processes: as for the first one that is not done. Those behind a quote that goes over line
    /// ends may be wrong in anything that they say.
    pub(crate) fn agree(
        mine: Result<Self, Error>,
        readers: Option<&Arc<dyn Readers>>,
        path: &Path,
    ) -> Result<Self, Error> {
        let Some(readers) = readers else { return mine };
        let code = match &mine {
            Ok(Self::Done) => 0_u64,
            Ok(Self::Name(Side::Left)) => 1,
            Ok(Self::Name(Side::Right)) => 2,
            Ok(Self::Quotes) => 3,
            Err(_) => 4,
        };
        let all = readers.gather_numbers([code]).map_err(Error::io(path))?;
        let first = all.iter().position(|&[code]| code > 0);
        match first.map(|process| (process, all[process][0])) {
            None => Ok(Self::Done),
            Some((_, 1)) => Ok(Self::Name(Side::Left)),
            Some((_, 2)) => Ok(Self::Name(Side::Right)),
            Some((_, 3)) => Ok(Self::Quotes),
            // The others go on, and are told of it by the process that ends.
            Some(_) => mine.map(|_| Self::Done),
        }
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

    /// Adds an edge from the integers of its ends.
    #[inline]
    pub(crate) fn push_ids(&mut self, ends: [u64; 2], data: T) {
        self.ids.iter_mut().zip(ends).for_each(|(ids, end)| ids.push(end));
        self.data.push(data);
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

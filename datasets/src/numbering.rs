//! How the ids of an input become vertices `0..n` of a side.

use std::path::Path;

use crate::ids::Ids;
use crate::names::Numbered;
use crate::ranks::Ranks;
use crate::{Dictionary, Error};

#[derive(Debug)]
pub(crate) enum Numbering {
    Integers(Ranks),
    Names(Numbered),
    /// Ids are vertices, named by their numbers from 1.
    Counted(usize),
}

impl Numbering {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Integers(ranks) => ranks.len(),
            Self::Names(names) => names.len(),
            Self::Counted(number) => *number,
        }
    }

    /// Replaces ids by vertices, on all threads.
    pub(crate) fn vertices(&self, ids: Ids) -> Vec<u32> {
        match self {
            Self::Integers(ranks) => ids.map(|id| ranks.rank(id)),
            Self::Names(names) => ids.map(|code| names.id(code as u32)),
            Self::Counted(_) => ids.into_entries(),
        }
    }

    /// Returns how ids become vertices in another order, which gives the new id of each vertex.
    pub(crate) fn then(&self, new_of_old: &[u32]) -> Renumbering<'_> {
        match self {
            Self::Integers(Ranks::Dense { ranks, .. }) => {
                let vertex = |&rank: &u32| new_of_old.get(rank as usize).copied().unwrap_or_default();
                Renumbering::Table(ranks.iter().map(vertex).collect())
            }
            Self::Counted(_) => Renumbering::Table(new_of_old.to_vec()),
            _ => Renumbering::Steps(self, new_of_old.to_vec()),
        }
    }

    fn into_dictionary(self, path: &Path) -> Result<Dictionary, Error> {
        match self {
            Self::Integers(ranks) => Ok(ranks.into_dictionary()),
            Self::Names(names) => names.into_dictionary(path),
            Self::Counted(number) => Ok(Dictionary::from_integers((1..=number as u64).collect())),
        }
    }
}

/// How the ids of a text become vertices in another order: by one look into a table, where they are dense.
pub(crate) enum Renumbering<'n> {
    Table(Vec<u32>),
    Steps(&'n Numbering, Vec<u32>),
}

impl Renumbering<'_> {
    /// Replaces ids by vertices, on this thread.
    pub(crate) fn vertices(&self, ids: Ids) -> Vec<u32> {
        match self {
            Self::Table(vertices) => ids.replace(|id| vertices[id as usize]),
            Self::Steps(Numbering::Integers(ranks), new) => ids.replace(|id| new[ranks.rank(id) as usize]),
            Self::Steps(Numbering::Names(names), new) => ids.replace(|code| new[names.id(code as u32) as usize]),
            Self::Steps(Numbering::Counted(_), new) => ids.replace(|id| new[id as usize]),
        }
    }
}

/// The numbering of each side; of both in one where the graph is square.
#[derive(Debug)]
pub(crate) struct Numberings {
    pub(crate) left: Numbering,
    pub(crate) right: Option<Numbering>,
}

impl Numberings {
    pub(crate) fn is_square(&self) -> bool {
        self.right.is_none()
    }

    /// Returns the numbering of the left (0) or the right side (1).
    pub(crate) fn of(&self, side: usize) -> &Numbering {
        self.right.as_ref().filter(|_| side == 1).unwrap_or(&self.left)
    }

    /// Returns the names of the left and of the right side.
    pub(crate) fn into_dictionaries(self, path: &Path) -> Result<(Dictionary, Option<Dictionary>), Error> {
        let right = self.right.map(|right| right.into_dictionary(path)).transpose()?;
        Ok((self.left.into_dictionary(path)?, right))
    }
}

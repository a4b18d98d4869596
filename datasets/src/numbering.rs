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
}

impl Numbering {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Integers(ranks) => ranks.len(),
            Self::Names(names) => names.len(),
        }
    }

    /// Replaces ids by vertices, on all threads.
    pub(crate) fn vertices(&self, ids: Ids) -> Vec<u32> {
        match self {
            Self::Integers(ranks) => ids.map(|id| ranks.rank(id)),
            Self::Names(names) => ids.map(|code| names.id(code as u32)),
        }
    }

    fn into_dictionary(self, path: &Path) -> Result<Dictionary, Error> {
        match self {
            Self::Integers(ranks) => Ok(ranks.into_dictionary()),
            Self::Names(names) => names.into_dictionary(path),
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

//! A column of ids as they stand in a text, and how they become vertices `0..n`.
//!
//! A column whose tokens are all integers is numbered in ascending order; any other column in order of first
//! appearance. Neither depends on the number of threads.

use std::path::Path;

use megagrid_partition::parallel;

use crate::dictionary::NameTable;
use crate::ranks::Ranks;
use crate::text::{Malformed, integer};
use crate::{Dictionary, Error};

/// Integer ids, or entries of a name table.
#[derive(Clone, Debug)]
pub(crate) enum Ids {
    Narrow(Vec<u32>),
    /// From the first id on that needs more than 32 bits.
    Wide(Vec<u64>),
}

impl Default for Ids {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

/// Ids that one thread goes through at a time.
const AT_A_TIME: usize = 1 << 16;

fn max<T: Copy + Ord + Send + Sync>(ids: &[T]) -> Option<T> {
    let chunks: Vec<_> = ids.chunks(AT_A_TIME).collect();
    parallel::map(chunks.len(), |at| chunks[at].iter().copied().max()).into_iter().max().flatten()
}

impl Ids {
    #[inline]
    pub(crate) fn push(&mut self, id: u64) {
        if let Self::Narrow(ids) = self {
            match u32::try_from(id) {
                Ok(id) => return ids.push(id),
                Err(_) => self.widen(),
            }
        }
        if let Self::Wide(ids) = self {
            ids.push(id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(ids) => ids.len(),
            Self::Wide(ids) => ids.len(),
        }
    }

    /// Returns the bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Narrow(ids) => size_of_val(&ids[..]),
            Self::Wide(ids) => size_of_val(&ids[..]),
        }
    }

    /// Returns the largest id, 0 if there is none.
    pub(crate) fn max(&self) -> u64 {
        match self {
            Self::Narrow(ids) => max(ids).map_or(0, u64::from),
            Self::Wide(ids) => max(ids).unwrap_or(0),
        }
    }

    fn widen(&mut self) {
        if let Self::Narrow(ids) = self {
            *self = Self::Wide(ids.iter().map(|&id| u64::from(id)).collect());
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        if self.len() == 0 {
            *self = other;
            return;
        }
        if matches!(other, Self::Wide(_)) {
            self.widen();
        }
        match (self, other) {
            (Self::Narrow(ids), Self::Narrow(more)) => ids.extend_from_slice(&more),
            (Self::Wide(ids), Self::Narrow(more)) => ids.extend(more.into_iter().map(u64::from)),
            (Self::Wide(ids), Self::Wide(more)) => ids.extend_from_slice(&more),
            (Self::Narrow(_), Self::Wide(_)) => unreachable!("widened above"),
        }
    }

    /// Replaces entries of one name table by those of another; nothing to do for integers, which have none.
    pub(crate) fn rename(&mut self, entries: &[u32]) {
        if let (Self::Narrow(ids), false) = (self, entries.is_empty()) {
            ids.iter_mut().for_each(|id| *id = entries[*id as usize]);
        }
    }

    /// Replaces ids by what `vertex` returns for them, on all threads.
    pub(crate) fn map(self, vertex: impl Fn(u64) -> u32 + Sync) -> Vec<u32> {
        match self {
            Self::Narrow(mut ids) => {
                ids.shrink_to_fit();
                parallel::each_chunk(&mut ids, AT_A_TIME, |_, ids| {
                    ids.iter_mut().for_each(|id| *id = vertex(u64::from(*id)))
                });
                ids
            }
            Self::Wide(ids) => parallel::fill(ids.len(), |at| vertex(ids[at])),
        }
    }

    /// Returns the entries of a name table.
    pub(crate) fn into_entries(self) -> Vec<u32> {
        match self {
            Self::Narrow(mut entries) => {
                entries.shrink_to_fit();
                entries
            }
            Self::Wide(_) => unreachable!("entries have 32 bits"),
        }
    }
}

/// A column of ids: integers, or names in a table.
#[derive(Debug, Default)]
pub(crate) struct Column {
    pub(crate) ids: Ids,
    /// The names; the ids are its entries. Empty for a column of integers.
    pub(crate) names: NameTable,
}

impl Column {
    /// Adds the column of the chunk of text that follows. Returns the entries here of the chunk's names.
    pub(crate) fn append(&mut self, mut chunk: Self, path: &Path) -> Result<Vec<u32>, Error> {
        if self.names.len() + chunk.names.len() > u32::MAX as usize {
            return Err(Error::TooManyVertices { path: path.to_path_buf() });
        }
        let entries: Vec<u32> = chunk.names.iter().map(|name| self.names.intern(name)).collect();
        chunk.ids.rename(&entries);
        self.ids.append(chunk.ids);
        Ok(entries)
    }

    /// Numbers the vertices: returns the vertex of each entry of the column, and the names of the vertices.
    pub(crate) fn finish(self, path: &Path) -> Result<(Vec<u32>, Dictionary), Error> {
        if self.names.len() > 0 {
            return Ok((self.ids.into_entries(), self.names.into_dictionary(path)?));
        }
        let ranks = Ranks::of(&self.ids, path)?;
        Ok((self.ids.map(|id| ranks.rank(id)), ranks.into_dictionary()))
    }
}

/// Returns the entry of a name.
#[inline]
pub(crate) fn intern(names: &mut NameTable, field: &'static str, token: &[u8]) -> Result<u64, Malformed> {
    let before = names.len();
    let entry = names.intern(token);
    if names.len() > before && (token.is_empty() || std::str::from_utf8(token).is_err()) {
        return Err(Malformed::new(field, token, "an id in UTF-8"));
    }
    Ok(u64::from(entry))
}

/// Parses the id of a column that is thought to hold integers; `None` if it is a name.
#[inline]
pub(crate) fn id(field: &'static str, token: &[u8]) -> Result<Option<u64>, Malformed> {
    match integer(token) {
        Some(id) => Ok(Some(id)),
        None => not_an_integer(field, token),
    }
}

#[cold]
fn not_an_integer(field: &'static str, token: &[u8]) -> Result<Option<u64>, Malformed> {
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    let numeric = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    // "007" is a name; "-7" and numbers of more than 64 bits are slips.
    if token.is_empty() || (numeric && (digits.len() < token.len() || digits[0] != b'0')) {
        return Err(Malformed::new(field, token, "an id from 0 to 18446744073709551615, or a name"));
    }
    Ok(None)
}

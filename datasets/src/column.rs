//! A column of ids as they stand in a text, and how they become vertices `0..n`.
//!
//! A column whose tokens are all integers is numbered in ascending order; any other column in order of first
//! appearance. Neither depends on the number of threads.

use std::path::Path;

use crate::dictionary::dictionary;
use crate::ids::Ids;
use crate::name_table::NameTable;
use crate::ranks::Ranks;
use crate::text::{Malformed, integer};
use crate::{Dictionary, Error};

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
            return Err(Error::TooManyVertices(path.to_path_buf()));
        }
        let entries: Vec<u32> = chunk.names.iter().map(|name| self.names.intern(name)).collect();
        chunk.ids.rename(&entries);
        self.ids.append(chunk.ids);
        Ok(entries)
    }

    /// Numbers the vertices: returns the vertex of each entry of the column, and the names of the vertices.
    pub(crate) fn finish(self, path: &Path) -> Result<(Vec<u32>, Dictionary), Error> {
        if self.names.len() > 0 {
            let (text, offsets) = self.names.into_arena();
            return Ok((self.ids.into_entries(), dictionary(text, offsets, path)?));
        }
        let ranks = Ranks::of(&self.ids, path)?;
        Ok((self.ids.map(|id| ranks.rank(id)), ranks.into_dictionary()))
    }
}

#[inline]
pub(crate) fn intern(names: &mut NameTable, field: &'static str, token: &[u8]) -> Result<u64, Malformed> {
    let before = names.len();
    let entry = names.intern(token);
    if names.len() > before && (token.is_empty() || std::str::from_utf8(token).is_err()) {
        return Err(no_id(field, token));
    }
    Ok(u64::from(entry))
}

/// Reports what is no id, nor a name.
#[cold]
pub(crate) fn no_id(field: &'static str, token: &[u8]) -> Malformed {
    let expected = if token.is_empty() { "an id; leave out lines without one" } else { "an id in UTF-8" };
    Malformed::new(field, token, expected)
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
    if token.is_empty() {
        return Err(no_id(field, token));
    }
    // "007" is a name; "-7" and numbers of more than 64 bits are slips.
    if numeric && (digits.len() < token.len() || digits[0] != b'0') {
        return Err(Malformed::new(field, token, "an id from 0 to 18446744073709551615, or a name"));
    }
    Ok(None)
}

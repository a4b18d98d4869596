//! What Matrix Market and UCI bags of words have in common: a header with three counts, then entries with ids from 1.

use std::ops::ControlFlow;

use megagrid_partition::EdgeList;

use crate::text::{Input, Malformed, Text, integer};
use crate::{Dataset, Dictionary, Error};

/// The counts that a file begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) num_left: u64,
    pub(crate) num_right: u64,
    pub(crate) num_entries: u64,
}

/// Vertices without an entry that a header may announce: this number in any case, and a number for each entry. More would
/// take memory out of proportion to the file.
const EMPTY_VERTICES: u64 = 1 << 20;
const EMPTY_VERTICES_PER_ENTRY: u64 = 64;

/// Entries in the order of the file, ids from 0.
#[derive(Debug, Default)]
pub(crate) struct Entries<T> {
    pub(crate) edges: EdgeList<T>,
    /// Entries that the file has; fewer than the edges where it leaves out the mirror images.
    pub(crate) num_read: u64,
}

impl Header {
    /// Reads the entries after the header and checks that they are as many as it says and at least one.
    pub(crate) fn read<T: Default + Send>(
        self,
        text: Text<'_>,
        line: impl Fn(&mut Entries<T>, &[u8]) -> Result<(), Malformed> + Sync,
    ) -> Result<Entries<T>, Error> {
        let path = text.path().to_path_buf();
        let mut all = Entries::<T>::default();
        let counted = |entries: &mut Entries<T>, text: &[u8]| {
            entries.num_read += 1;
            line(entries, text)
        };
        let _ = text.parse(Entries::default, &counted, &mut |entries| {
            all.edges.append(entries.edges);
            all.num_read += entries.num_read;
            Ok(ControlFlow::Continue(()))
        })?;
        if all.num_read != self.num_entries {
            let (announced, found) = (self.num_entries, all.num_read);
            let problem = format!("its header announces {announced} entries, found {found}; is the file complete?");
            return Err(Error::invalid(&path, problem));
        }
        if all.edges.data.is_empty() {
            return Err(Error::Empty { path, records: "entries" });
        }
        let affordable = EMPTY_VERTICES.saturating_add(EMPTY_VERTICES_PER_ENTRY.saturating_mul(all.num_read));
        if let Some(size) = [self.num_left, self.num_right].into_iter().find(|&size| size > affordable) {
            let problem = format!("its header announces a side of {size} for {} entries; is it right?", all.num_read);
            return Err(Error::invalid(&path, problem));
        }
        Ok(all)
    }

    /// Makes the data set of entries whose vertices are named by their numbers, from 1.
    pub(crate) fn dataset<T>(self, entries: Entries<T>, square: bool) -> Dataset<T> {
        let numbers = |size: u64| Dictionary::from_integers((1..=size).collect());
        let (num_left, num_right) = (self.num_left as usize, self.num_right as usize);
        let right_names = (!square).then(|| numbers(self.num_right));
        let edges = EdgeList { num_left, num_right, square, ..entries.edges };
        Dataset { edges, left_names: numbers(self.num_left), right_names }
    }
}

/// Parses the size of a side or the number of entries.
pub(crate) fn size(field: &'static str, token: &[u8]) -> Result<u64, Malformed> {
    let size = integer(token).filter(|&size| size <= u64::from(u32::MAX) || field == NUM_ENTRIES);
    size.ok_or_else(|| Malformed::new(field, token, "an integer from 0 to 4294967295 in the header"))
}

/// The header's field that may exceed 32 bits.
pub(crate) const NUM_ENTRIES: &str = "number of entries";

/// Parses an id from 1 to `size`; returns it from 0.
#[inline]
pub(crate) fn index(field: &'static str, token: &[u8], size: u64) -> Result<u32, Malformed> {
    match integer(token) {
        Some(id) if 1 <= id && id <= size => Ok((id - 1) as u32),
        _ => Err(Malformed::new(field, token, format!("an integer from 1 to {size}, which the header gives"))),
    }
}

/// Finds the input's only file.
pub(crate) fn open<'a>(input: &Input<'a>) -> Result<Text<'a>, Error> {
    let text = input.single()?;
    if text.head().is_empty() {
        return Err(Error::Empty { path: text.path().to_path_buf(), records: "lines" });
    }
    Ok(text)
}

//! What Matrix Market and UCI bags of words have in common: a header with three counts, then entries with ids from 1.

use std::ops::ControlFlow;
use std::path::Path;

use crate::cache::EdgeData;
use crate::columns::{Columns, Named};
use crate::gather::Gathered;
use crate::text::{Input, Malformed, Text, integer};
use crate::{Error, Loaded};

/// The counts that a file begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) num_left: u64,
    pub(crate) num_right: u64,
    pub(crate) num_entries: u64,
    /// Whether an entry stands for its mirror image, too.
    pub(crate) symmetric: bool,
}

/// Vertices without an entry that a header may announce: this number in any case, and a number for each entry. More would
/// take memory out of proportion to the file.
const EMPTY_VERTICES: u64 = 1 << 20;
const EMPTY_VERTICES_PER_ENTRY: u64 = 64;

impl Header {
    /// Reads the entries after the header and checks that they are as many as it says and at least one. `begin` takes the header off
    /// the text. Edges that take more than `room` bytes are set aside in a file.
    pub(crate) fn read<T: EdgeData>(
        self,
        input: &Input<'_>,
        square: bool,
        room: usize,
        begin: impl Fn(&mut Text<'_>) -> Result<(), Error> + Sync,
        line: impl Fn(&mut Columns<T>, &[u8]) -> Result<(), Malformed> + Sync,
    ) -> Result<Loaded<T>, Error> {
        let (path, sizes) = (input.path(), [self.num_left, self.num_right]);
        let mut all = Gathered::new(square, Named::default(), Some(sizes), room, input.readers())
            .undirected(self.symmetric || input.is_undirected());
        let mut num_read = 0_u64;
        input.parse(
            begin,
            |()| (Columns::new(square, Named::default()), 0),
            |(columns, num_read): &mut (Columns<T>, u64), text: &[u8]| {
                *num_read += 1;
                line(columns, text)
            },
            |(columns, more)| {
                num_read += more;
                all.append(columns, path)?;
                Ok(ControlFlow::Continue(()))
            },
        )?;
        if let Some(readers) = input.readers() {
            let all = readers.gather_numbers([num_read]).map_err(Error::io(path))?;
            num_read = all.into_iter().map(|[num_read]| num_read).sum();
        }
        self.check(num_read, path)?;
        all.finish(path, "entries")
    }

    fn check(self, num_read: u64, path: &Path) -> Result<(), Error> {
        if num_read != self.num_entries {
            let announced = self.num_entries;
            let problem = format!("its header announces {announced} entries, found {num_read}; is the file complete?");
            return Err(Error::invalid(path, problem));
        }
        let affordable = EMPTY_VERTICES.saturating_add(EMPTY_VERTICES_PER_ENTRY.saturating_mul(num_read));
        let too_large = [self.num_left, self.num_right].into_iter().find(|&size| num_read > 0 && size > affordable);
        too_large.map_or(Ok(()), |size| {
            let problem = format!("its header announces a side of {size} for {num_read} entries; is it right?");
            Err(Error::invalid(path, problem))
        })
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
pub(crate) fn index(field: &'static str, token: &[u8], size: u64) -> Result<u64, Malformed> {
    match integer(token) {
        Some(id) if 1 <= id && id <= size => Ok(id - 1),
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

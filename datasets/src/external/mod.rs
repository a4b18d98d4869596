//! Edges that take more memory than they should, in temporary files.
//!
//! While a text is read, its edges go to a file window by window, with the ids of the text. When all are known, three
//! passes over that file follow: integers are ranked, degrees are counted, and edges are dealt to buckets of vertices
//! in a second file, where each bucket then is sorted (an external distribution sort). What remains is like a cache:
//! rows are read from the file when they are visited.
//!
//! Memory: a window of edges at a time, a bucket for each thread, and some numbers for each vertex. Files: the ids and
//! the data of all edges, and 12 bytes and the data of each edge beside them while edges are dealt.

mod distributed;
mod file;
mod grouping;
mod list;
mod spill;
#[cfg(test)]
mod tests;

use std::io;
use std::marker::PhantomData;
use std::ops::Range;

use megagrid_partition::{EdgeSource, Side};

use crate::cache::EdgeData;
pub use distributed::DistributedEdges;
pub(crate) use list::ExternalList;
pub(crate) use spill::Spill;

use self::file::TemporaryFile;

/// Edges grouped by the vertices of one side, in a temporary file.
#[derive(Debug)]
pub struct ExternalEdges<T> {
    file: TemporaryFile,
    places: Places,
    is_square: bool,
    /// The side whose vertices they are grouped by.
    side: Side,
    /// Of the left and of the right side.
    offsets: [Vec<u64>; 2],
    /// The sum of the edges' hashes.
    hashes: u64,
    data: PhantomData<T>,
}

impl<T: EdgeData> ExternalEdges<T> {
    /// Returns the sum of the edges' hashes.
    pub(crate) fn hashes(&self) -> u64 {
        self.hashes
    }

    /// Reads the data of the edges of some vertices.
    pub(crate) fn read_data(&self, rows: Range<usize>) -> io::Result<Vec<T>> {
        let offsets = self.offsets(self.side);
        let (start, end) = (offsets[rows.start], offsets[rows.end]);
        let mut data = Vec::new();
        self.file.read(self.places.data::<T>(start), (end - start) as usize, &mut data)?;
        Ok(data)
    }
}

impl<T: EdgeData> EdgeSource<T> for ExternalEdges<T> {
    fn is_square(&self) -> bool {
        self.is_square
    }

    fn offsets(&self, side: Side) -> &[u64] {
        &self.offsets[side as usize]
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[T])) -> io::Result<()> {
        if side != self.side {
            let problem = format!("the edges were not grouped by their {side} ends");
            return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
        }
        let offsets = self.offsets(side);
        let (start, end) = (offsets[rows.start], offsets[rows.end]);
        let num_edges = (end - start) as usize;
        let mut far_ends = Vec::new();
        self.file.read(self.places.far_end(start), num_edges, &mut far_ends)?;
        visit(&far_ends, &self.read_data(rows)?);
        Ok(())
    }
}

/// Where the file holds what belongs to an edge: all far ends, then all data, then both ends of all.
#[derive(Debug)]
struct Places {
    data: u64,
    ends: u64,
}

impl Places {
    fn new<T: EdgeData>(num_edges: usize) -> Self {
        let data = size_of::<u32>() as u64 * num_edges as u64;
        Self { data, ends: (data + T::TYPE.bytes() * num_edges as u64).next_multiple_of(size_of::<u64>() as u64) }
    }

    fn far_end(&self, edge: u64) -> u64 {
        size_of::<u32>() as u64 * edge
    }

    fn data<T: EdgeData>(&self, edge: u64) -> u64 {
        self.data + T::TYPE.bytes() * edge
    }

    /// Both ends, which are needed until the bucket is sorted.
    fn ends(&self, edge: u64) -> u64 {
        self.ends + size_of::<u64>() as u64 * edge
    }
}

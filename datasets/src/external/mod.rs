//! Edges that take more memory than they should, in temporary files.
//!
//! While a text is read, its edges go to a file window by window, with the ids of the text. When all are known, three
//! passes over that file follow: integers are ranked, degrees are counted, and edges are dealt to buckets of vertices
//! in a second file, where each bucket then is sorted (an external distribution sort). What remains is like a cache:
//! rows are read from the file when they are visited.
//!
//! Memory: a window of edges at a time, a bucket for each thread, and some numbers for each vertex. Files: the ids and
//! the data of all edges, then 6 bytes and the data of each edge; both at a time while edges are dealt.

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
    data: PhantomData<T>,
}

impl<T: EdgeData> ExternalEdges<T> {
    fn new(file: TemporaryFile, places: Places, is_square: bool, side: Side, offsets: [Vec<u64>; 2]) -> Self {
        Self { file, places, is_square, side, offsets, data: PhantomData }
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
        let far_ends: Vec<u32> = self.file.read(self.places.far_end(start), num_edges)?;
        let data: Vec<T> = self.file.read_data(self.places.data::<T>(start), num_edges)?;
        visit(&far_ends, &data);
        Ok(())
    }
}

/// Where the file holds what belongs to an edge: all far ends, then all data, then all rows.
#[derive(Debug)]
struct Places {
    data: u64,
    rows: u64,
}

impl Places {
    fn new<T: EdgeData>(num_edges: usize) -> Self {
        let data = size_of::<u32>() as u64 * num_edges as u64;
        Self { data, rows: data + T::TYPE.bytes() * num_edges as u64 }
    }

    fn far_end(&self, edge: u64) -> u64 {
        size_of::<u32>() as u64 * edge
    }

    fn data<T: EdgeData>(&self, edge: u64) -> u64 {
        self.data + T::TYPE.bytes() * edge
    }

    /// The row of a near end within its bucket, which is needed until the bucket is sorted.
    fn row(&self, edge: u64) -> u64 {
        self.rows + size_of::<u16>() as u64 * edge
    }
}

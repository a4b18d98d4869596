//! Edges that take more memory than they should, in a temporary file.
//!
//! While a text is read, its edges go to a file window by window, with the ids of the text. When all are known, integers are
//! ranked and degrees are counted over that file. Then each window is dealt to buckets of vertices and written back to its own
//! place. A bucket is read from all windows, and sorted, when it is visited.
//!
//! Memory: a window of edges, or a bucket, for each thread, and some numbers for each vertex and each bucket of a window. File: the
//! ids and the data of all edges.

mod distributed;
mod file;
mod grouping;
mod list;
mod spill;
#[cfg(test)]
mod tests;

pub use distributed::DistributedEdges;
pub use grouping::ExternalEdges;
pub(crate) use list::ExternalList;
pub(crate) use spill::Spill;

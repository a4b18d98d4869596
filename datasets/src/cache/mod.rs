//! The binary cache, `.mgrid`: a graph as the grid wants it, loaded by memory map.
//!
//! Ids are final: relabeled in descending order of degree. Edges are there twice, grouped by their right ends and by
//! their left ends, sorted within a vertex; repeated edges stay.
//!
//! # Layout
//! All numbers are little-endian, and every section starts at a multiple of 64 bytes.
//!
//! | bytes | what |
//! |---|---|
//! | 512 | header: magic, format version, edge type, flags, counts, file length, the place of each section, checksum |
//! | sections | offsets (u64) of both sides; far ends (u32) and data of the edges grouped by right and by left ends; names of both sides; labels (f32) |
//! | 8 per piece | XXH3 checksums of the sections' pieces of 1 MiB, covered by a checksum in the header |
//!
//! # Checks
//! Opening a cache checks the header, the checksums' own checksum and the offsets. The edges are checked piece by
//! piece when they are first visited, so that a visit of a window reads only that window. Beyond the checksums, far
//! ends are checked to be ids, and ascending within a vertex: no file, however made, gives edges that a grid could
//! not be built from.
//!
//! Not for exchange between programs: for that, see [`crate::output`].

mod edge_type;
mod file;
mod header;
mod kept;
mod names;
mod pieces;
mod read;
mod write;

pub use edge_type::{EdgeData, EdgeType};
pub(crate) use file::CacheFile;
pub use header::{FORMAT_VERSION, Info, info};
pub use kept::{kept_path, verify};
pub use read::Cache;
pub use write::write;

//! A cache as a source of edges.

use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use megagrid_partition::{EdgeList, EdgeSource, Side, parallel};

use super::file::CacheFile;
use super::header::Section;
use super::{EdgeData, EdgeType};
use crate::map::{Map, view};
use crate::{Dataset, Dictionary, Error, Labels, Readers};

/// Bytes of offsets that are checked at a time; a multiple of a piece.
const CHECK_BYTES: u64 = 4 << 20;

/// An open cache with edge data `T`.
///
/// Opening reads the header and checks the offsets; edges are mapped, and checked, window by window as they are
/// visited, and unmapped after the visit. Clones share the file.
///
/// # Examples
/// ```no_run
/// use megagrid_datasets::cache::Cache;
/// use megagrid_partition::{EdgeSource, Side};
///
/// let cache = Cache::<f32>::open("ratings.mgrid")?;
/// cache.visit_rows(Side::Left, 0..10, &mut |items, ratings| println!("{} {}", items.len(), ratings.len()))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cache<T> {
    file: Arc<CacheFile>,
    /// Of the left and of the right side. Mapped, and in memory only as far as they are used.
    offsets: [Arc<Map>; 2],
    edge_data: PhantomData<T>,
    /// The processes that share passes over all edges.
    readers: Option<Arc<dyn Readers>>,
}

impl<T: EdgeData> Cache<T> {
    /// Opens a cache.
    ///
    /// # Errors
    /// Where the file is not a cache, is one of another version, truncated or damaged, or its edges carry other data.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = CacheFile::open(path.as_ref())?;
        let (found, expected): (_, EdgeType) = (file.header.edge_type, T::TYPE);
        if found != expected {
            let (path, remedy) = (file.path, expected.remedy(found));
            return Err(Error::CacheEdgeType { path, found: found.name(), expected: expected.name(), remedy });
        }
        let offsets = [Arc::new(open_offsets(&file, Side::Left)?), Arc::new(open_offsets(&file, Side::Right)?)];
        Ok(Self { file: Arc::new(file), offsets, edge_data: PhantomData, readers: None })
    }

    /// Opens the cache that other processes open too: each then takes its part of a pass over all edges
    /// ([`Edges::summarize`](crate::Edges::summarize)).
    ///
    /// # Errors
    /// As [`Cache::open`]; a lost process, or one that has another cache.
    pub fn open_with(path: impl AsRef<Path>, readers: &Arc<dyn Readers>) -> Result<Self, Error> {
        let cache = Self::open(path)?;
        let path = &cache.file.path;
        let mine = [cache.file.header.pieces_checksum];
        let all = readers.gather_numbers(mine).map_err(Error::io(path))?;
        if let Some(process) = all.iter().position(|theirs| *theirs != mine) {
            return Err(Error::another_input(path, process));
        }
        Ok(Self { readers: Some(Arc::clone(readers)), ..cache })
    }

    /// Returns the processes that share passes over all edges, if there are some.
    pub(crate) fn readers(&self) -> Option<&dyn Readers> {
        self.readers.as_deref()
    }

    /// Reads the names of the vertices of a side.
    ///
    /// # Errors
    /// Where that part of the file is damaged or cannot be read.
    pub fn names(&self, side: Side) -> Result<Dictionary, Error> {
        self.file.names(side)
    }

    /// Reads the labels of the left vertices; `None` if they have none.
    ///
    /// # Errors
    /// Where that part of the file is damaged or cannot be read.
    pub fn labels(&self) -> Result<Option<Labels>, Error> {
        self.file.labels()
    }

    /// Reads the whole of it into memory, as a data set whose edges are ordered by left and then by right ends.
    ///
    /// # Errors
    /// Where a part of the file is damaged or cannot be read.
    pub fn to_dataset(&self) -> Result<Dataset<T>, Error> {
        let (num_edges, square) = (self.num_edges(), self.is_square());
        let [num_left, num_right] = [Side::Left, Side::Right].map(|side| self.num_vertices(side));
        let (mut left, mut right, mut data) = (Vec::with_capacity(num_edges), Vec::new(), Vec::new());
        self.visit(Side::Left, 0..num_left, &mut |far_ends, values| {
            right = far_ends.to_vec();
            data = values.to_vec();
        })?;
        for (vertex, &end) in self.offsets(Side::Left)[1..].iter().enumerate() {
            left.resize(end as usize, vertex as u32);
        }
        let right_names = if square { None } else { Some(self.names(Side::Right)?) };
        let edges = EdgeList { num_left, num_right, square, left, right, data };
        Ok(Dataset { edges, left_names: self.names(Side::Left)?, right_names })
    }

    /// Returns what remains useful when the edges are no longer needed.
    pub(crate) fn share_file(&self) -> Arc<CacheFile> {
        Arc::clone(&self.file)
    }

    fn visit(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[T])) -> Result<(), Error> {
        let (far_ends_section, data_section) = match side {
            Side::Left => (Section::LeftFarEnds, Section::LeftData),
            Side::Right => (Section::RightFarEnds, Section::RightData),
        };
        let groups = &self.offsets(side)[rows.start..=rows.end];
        let (start, end) = (groups[0], groups[groups.len() - 1]);
        let edge_bytes = T::TYPE.bytes();
        let far_ends = self.file.window(far_ends_section, 4 * start..4 * end)?;
        let data = self.file.window(data_section, edge_bytes * start..edge_bytes * end)?;
        let far_ends = view(far_ends.bytes()).map_err(Error::io(&self.file.path))?;
        let num_far = self.num_vertices(side.other());
        check_far_ends(far_ends, groups, num_far).map_err(|problem| self.file.damaged(far_ends_section, problem))?;
        let data = T::from_bytes(data.bytes(), far_ends.len()).map_err(Error::io(&self.file.path))?;
        if !T::are_valid(&data) {
            return Err(self.file.damaged(data_section, "infinite or undefined numbers"));
        }
        visit(far_ends, &data);
        Ok(())
    }
}

impl<T: EdgeData> EdgeSource<T> for Cache<T> {
    fn is_square(&self) -> bool {
        self.file.header.square
    }

    fn offsets(&self, side: Side) -> &[u64] {
        bytemuck::cast_slice(self.offsets[side as usize].bytes())
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[T])) -> io::Result<()> {
        self.visit(side, rows, visit).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// Checks the offsets of a side window by window, so that they are not all in memory at once, and maps them.
fn open_offsets(file: &CacheFile, side: Side) -> Result<Map, Error> {
    let section = if side == Side::Left { Section::LeftOffsets } else { Section::RightOffsets };
    let bytes = file.header.section_bytes(section);
    let windows: Vec<u64> = (0..bytes).step_by(CHECK_BYTES as usize).collect();
    let check = |start: u64| {
        let window = file.window(section, start..bytes.min(start + CHECK_BYTES))?;
        let offsets: &[u64] = view(window.bytes()).map_err(Error::io(&file.path))?;
        Ok((offsets.is_sorted(), [offsets[0], offsets[offsets.len() - 1]]))
    };
    let ends = parallel::map(windows.len(), |at| check(windows[at])).into_iter().collect::<Result<Vec<_>, Error>>()?;
    let rising = ends.iter().all(|(sorted, _)| *sorted) && ends.iter().flat_map(|(_, ends)| ends).is_sorted();
    let from_to = [ends.first().map(|(_, ends)| ends[0]), ends.last().map(|(_, ends)| ends[1])];
    if !rising || from_to != [Some(0), Some(file.header.num_edges)] {
        return Err(file.damaged(section, "numbers that do not rise from 0 to the number of edges"));
    }
    file.map_checked(section)
}

/// Checks that far ends are ids, and ascending within the rows whose bounds are `groups`.
fn check_far_ends(far_ends: &[u32], groups: &[u64], num_far: usize) -> Result<(), &'static str> {
    let max = far_ends.iter().copied().max();
    if max.is_some_and(|max| max as usize >= num_far) {
        return Err("ids beyond the number of vertices");
    }
    // Counting all descents, and then those from one row to the next, is several times as fast as row by row.
    let num_descents = far_ends.windows(2).filter(|pair| pair[0] > pair[1]).count();
    let between_rows = |start: &&u64| {
        let at = (**start - groups[0]) as usize;
        0 < at && at < far_ends.len() && far_ends[at - 1] > far_ends[at]
    };
    // Rows without edges start where the next one does.
    let starts = groups.chunk_by(|a, b| a == b).map(|equal| &equal[0]);
    let num_between_rows = starts.filter(between_rows).count();
    if num_descents == num_between_rows { Ok(()) } else { Err("ids that do not ascend within a vertex") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_ends_are_ids_and_ascend_within_rows() {
        let groups = [10, 12, 12, 12, 14, 15];
        assert_eq!(check_far_ends(&[3, 4, 1, 1, 0], &groups, 5), Ok(()));
        assert_eq!(check_far_ends(&[3, 5, 1, 2, 0], &groups, 5), Err("ids beyond the number of vertices"));
        assert_eq!(check_far_ends(&[4, 3, 5, 6, 0], &groups, 7), Err("ids that do not ascend within a vertex"));
        assert_eq!(check_far_ends(&[1, 2, 3, 2, 2], &groups, 7), Err("ids that do not ascend within a vertex"));
        assert_eq!(check_far_ends(&[], &[7, 7, 7], 0), Ok(()));
        assert_eq!(check_far_ends(&[], &[7], 0), Ok(()));
    }
}

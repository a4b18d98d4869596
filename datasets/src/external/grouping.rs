//! Edges on their way to being grouped: dealt to buckets in a temporary file, where each bucket is then sorted.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Mutex;

use megagrid_partition::{BucketSorter, Buckets, Dealt, Side, parallel};

use super::file::{TemporaryFile, error};
use super::{ExternalEdges, Places};
use crate::Error;
use crate::cache::EdgeData;
use crate::checksum::hash_all;

/// Edges on their way to being grouped by their near ends, in a temporary file.
pub(super) struct Grouping<T> {
    side: Side,
    /// Of the left and of the right side.
    offsets: [Vec<u64>; 2],
    buckets: Buckets,
    places: Places,
    file: TemporaryFile,
    /// How far each bucket is filled.
    filled: Vec<u64>,
    /// Edges on their way to the file, a part of them for each thread.
    dealt: Vec<Dealt<T>>,
}

/// What a thread sorts a bucket with.
#[derive(Default)]
struct Sorting<T> {
    sorter: BucketSorter<T>,
    ends: Vec<u64>,
    data: Vec<T>,
    far_ends: Vec<u32>,
    sorted: Vec<T>,
}

impl<T: EdgeData> Grouping<T> {
    /// Makes room for this number of edges, none of them there yet, to be grouped by `side`; `offsets` are those of
    /// both sides, as far as they are known.
    pub(super) fn new(num_edges: usize, side: Side, offsets: [Vec<u64>; 2]) -> Result<Self, Error> {
        let near_offsets = &offsets[side as usize];
        let buckets = Buckets::new(near_offsets);
        let filled = buckets.vertices().iter().map(|vertices| near_offsets[vertices.start]).collect();
        let (places, file) = (Places::new::<T>(num_edges), TemporaryFile::new()?);
        let dealt = vec![Dealt::default(); rayon::current_num_threads()];
        Ok(Self { side, offsets, buckets, places, file, filled, dealt })
    }

    pub(super) fn add(&mut self, near_ends: &[u32], far_ends: &[u32], data: &[T]) -> Result<(), Error> {
        self.buckets.deal(near_ends, far_ends, data, &mut self.dealt);
        let filled: Vec<_> = self.filled.iter_mut().enumerate().map(Mutex::new).collect();
        let written = parallel::map(filled.len(), |at| {
            let (bucket, filled) = &mut *parallel::lock(&filled[at]);
            for part in &self.dealt {
                let (ends, data) = part.bucket(*bucket);
                self.file.write(self.places.ends(**filled), ends)?;
                self.file.write(self.places.data::<T>(**filled), data)?;
                **filled += ends.len() as u64;
            }
            Ok(())
        });
        written.into_iter().collect()
    }

    /// Sorts what has been added.
    pub(super) fn finish(self, is_square: bool) -> Result<ExternalEdges<T>, Error> {
        let pool = Mutex::new(Vec::new());
        let sorted = parallel::map(self.buckets.vertices().len(), |bucket| {
            parallel::with_one_of(&pool, |sorting| self.sort(sorting, self.buckets.vertices()[bucket].clone()))
        });
        let hashes = sorted.into_iter().try_fold(0_u64, |sum, hashes| hashes.map(|hashes| sum.wrapping_add(hashes)))?;
        let Self { side, offsets, places, file, .. } = self;
        Ok(ExternalEdges { file, places, is_square, side, offsets, hashes, data: PhantomData })
    }

    /// Sorts a bucket; returns the sum of its edges' hashes.
    fn sort(&self, sorting: &mut Sorting<T>, vertices: Range<usize>) -> Result<u64, Error> {
        let offsets = &self.offsets[self.side as usize];
        let first = offsets[vertices.start];
        let num_edges = (offsets[vertices.end] - first) as usize;
        let Sorting { sorter, ends, data, far_ends, sorted } = sorting;
        self.file.read(self.places.ends(first), num_edges, ends).map_err(error)?;
        self.file.read(self.places.data::<T>(first), num_edges, data).map_err(error)?;
        far_ends.resize(num_edges, 0);
        sorted.resize(num_edges, T::default());
        sorter.sort(offsets, vertices, std::iter::once((&ends[..], &data[..])), far_ends, sorted);
        self.file.write(self.places.far_end(first), far_ends)?;
        self.file.write(self.places.data::<T>(first), sorted)?;
        Ok(match self.side {
            Side::Left => hash_all(ends.iter().map(|&ends| ((ends >> 32) as u32, ends as u32)), data),
            Side::Right => hash_all(ends.iter().map(|&ends| (ends as u32, (ends >> 32) as u32)), data),
        })
    }
}

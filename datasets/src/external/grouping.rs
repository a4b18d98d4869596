//! Edges on their way to being grouped: dealt to buckets in a temporary file, where each bucket is then sorted.

use std::ops::Range;
use std::sync::Mutex;

use megagrid_partition::{BucketSorter, Buckets, Dealt, parallel};

use super::Places;
use super::file::{TemporaryFile, error};
use crate::Error;
use crate::cache::EdgeData;

/// Edges on their way to being grouped by their near ends, in a temporary file.
pub(super) struct Grouping<'g> {
    offsets: &'g [u64],
    buckets: Buckets,
    places: Places,
    file: TemporaryFile,
    /// How far each bucket is filled.
    ends: Vec<u64>,
}

impl<'g> Grouping<'g> {
    /// Makes room for this number of edges, none of them there yet; `offsets` are those of the near ends.
    pub(super) fn new<T: EdgeData>(num_edges: usize, offsets: &'g [u64]) -> Result<Self, Error> {
        let buckets = Buckets::new(offsets);
        let ends = buckets.vertices().iter().map(|vertices| offsets[vertices.start]).collect();
        Ok(Self { offsets, buckets, places: Places::new::<T>(num_edges), file: TemporaryFile::new()?, ends })
    }

    pub(super) fn add<T: EdgeData>(&mut self, near_ends: &[u32], far_ends: &[u32], data: &[T]) -> Result<(), Error> {
        let dealt = self.buckets.deal(near_ends, far_ends, data);
        write(&self.file, &self.places, &dealt, &mut self.ends)
    }

    /// Sorts what has been added; returns the file and where in it everything is.
    pub(super) fn finish<T: EdgeData>(self) -> Result<(TemporaryFile, Places), Error> {
        sort::<T>(&self.file, &self.places, &self.buckets, self.offsets)?;
        Ok((self.file, self.places))
    }
}

/// Appends the edges dealt to each bucket to those in the file; `ends` says how far each bucket is filled.
fn write<T: EdgeData>(file: &TemporaryFile, places: &Places, dealt: &Dealt<T>, ends: &mut [u64]) -> Result<(), Error> {
    let parts: Vec<_> = dealt.starts.windows(2).zip(ends).map(Mutex::new).collect();
    let written = parallel::map(parts.len(), |at| {
        let mut part = parallel::lock(&parts[at]);
        let (bounds, end) = &mut *part;
        let part = bounds[0]..bounds[1];
        file.write(places.row(**end), &dealt.rows[part.clone()])?;
        file.write(places.far_end(**end), &dealt.far_ends[part.clone()])?;
        file.write_data(places.data::<T>(**end), &dealt.data[part.clone()])?;
        **end += part.len() as u64;
        Ok(())
    });
    written.into_iter().collect()
}

fn sort<T: EdgeData>(file: &TemporaryFile, places: &Places, buckets: &Buckets, offsets: &[u64]) -> Result<(), Error> {
    let sorters = Mutex::new(Vec::new());
    let sort = |sorter: &mut BucketSorter<T>, vertices: &Range<usize>| {
        let offsets = &offsets[vertices.start..=vertices.end];
        let first = offsets[0];
        let num_edges = (offsets[offsets.len() - 1] - first) as usize;
        let rows: Vec<u16> = file.read(places.row(first), num_edges).map_err(error)?;
        let mut far_ends: Vec<u32> = file.read(places.far_end(first), num_edges).map_err(error)?;
        let mut data: Vec<T> = file.read_data(places.data::<T>(first), num_edges).map_err(error)?;
        sorter.sort(offsets, &rows, &mut far_ends, &mut data);
        file.write(places.far_end(first), &far_ends)?;
        file.write_data(places.data::<T>(first), &data)
    };
    let vertices = buckets.vertices();
    let sorted =
        parallel::map(vertices.len(), |at| BucketSorter::with_one_of(&sorters, |sorter| sort(sorter, &vertices[at])));
    sorted.into_iter().collect()
}

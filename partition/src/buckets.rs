//! Edges dealt to runs of vertices: the first of two passes that group them.
//!
//! Buckets are few enough that each has its own open cache line while edges are dealt to them, and small enough that
//! one is sorted within the cache.

use std::borrow::Cow;
use std::ops::Range;

use crate::parallel;

/// A bucket is dealt to by a bounded number of streams, and sorted within a second-level cache where possible.
const MAX_BUCKETS: usize = 512;
const MIN_EDGES_PER_BUCKET: usize = 1 << 16;
/// The places of a bucket's vertices are to stay in the cache while it is sorted.
const MAX_VERTICES_PER_BUCKET: usize = 1 << 16;
/// Buckets end where a unit of vertices does; the units' table is to stay in the cache.
const MAX_UNITS: usize = 1 << 16;

/// Runs of vertices with about as many edges each: at most 512 of 2^16 edges or more, but for vertices with more
/// edges than that, and for runs of 2^16 vertices, which no bucket exceeds.
///
/// # Examples
/// ```
/// use megagrid_partition::{BucketSorter, Buckets};
///
/// let offsets = [0, 1, 3];
/// let buckets = Buckets::new(&offsets);
/// let mut dealt = [Default::default()];
/// buckets.deal(&[1, 0, 1], &[2, 2, 0], &[5, 6, 7], &mut dealt);
/// // All vertices are in one bucket.
/// let (mut far_ends, mut data) = ([0; 3], [0; 3]);
/// BucketSorter::default().sort(&offsets, 0..2, dealt.iter().map(|part| part.bucket(0)), &mut far_ends, &mut data);
/// assert_eq!((far_ends, data), ([2, 0, 2], [6, 7, 5]));
/// ```
#[derive(Clone, Debug)]
pub struct Buckets {
    /// A unit has `1 << unit_shift` vertices.
    unit_shift: u32,
    bucket_of_unit: Vec<u16>,
    /// Vertices of each bucket.
    vertices: Vec<Range<usize>>,
}

/// Returns the far ends and the data of a part of a list.
pub(crate) type FarEnds<'f, 'e, T> = &'f (dyn Fn(Range<usize>) -> (Cow<'e, [u32]>, Cow<'e, [T]>) + Sync);

/// Edges of a part of a list that lie bucket after bucket, in the order of the list within each.
#[derive(Clone, Debug, Default)]
pub struct Dealt<T> {
    /// Where each bucket starts, and the number of edges.
    starts: Vec<usize>,
    /// Near end and far end of each edge, the near one in the upper half.
    ends: Vec<u64>,
    data: Vec<T>,
}

impl<T> Dealt<T> {
    /// Returns the edges of a bucket: their ends, the near one in the upper half, and their data.
    ///
    /// # Panics
    /// Where there is no such bucket.
    #[must_use]
    pub fn bucket(&self, bucket: usize) -> (&[u64], &[T]) {
        let range = self.starts[bucket]..self.starts[bucket + 1];
        (&self.ends[range.clone()], &self.data[range])
    }

    /// Returns where each bucket begins, and the number of edges.
    #[must_use]
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Returns all edges, bucket after bucket; see [`Dealt::bucket`].
    #[must_use]
    pub fn edges(&self) -> (&[u64], &[T]) {
        (&self.ends, &self.data)
    }
}

impl Buckets {
    /// Makes the buckets of vertices whose edges lie as `offsets`, `[n + 1]`, say.
    #[must_use]
    pub fn new(offsets: &[u64]) -> Self {
        let num_vertices = offsets.len() - 1;
        let num_edges = offsets[num_vertices] as usize;
        let edges_per_bucket = (num_edges / MAX_BUCKETS).max(MIN_EDGES_PER_BUCKET) as u64;
        let unit_shift = num_vertices.div_ceil(MAX_UNITS).next_power_of_two().trailing_zeros();
        let mut buckets = Self { unit_shift, bucket_of_unit: Vec::new(), vertices: Vec::new() };
        for start in (0..num_vertices).step_by(1 << unit_shift) {
            let end = num_vertices.min(start + (1 << unit_shift));
            match buckets.vertices.last_mut() {
                Some(vertices)
                    if offsets[end] - offsets[vertices.start] <= edges_per_bucket
                        && end - vertices.start <= MAX_VERTICES_PER_BUCKET =>
                {
                    vertices.end = end;
                }
                _ => buckets.vertices.push(start..end),
            }
            buckets.bucket_of_unit.push((buckets.vertices.len() - 1) as u16);
        }
        buckets
    }

    fn of(&self, vertex: u32) -> usize {
        usize::from(self.bucket_of_unit[(vertex >> self.unit_shift) as usize])
    }

    /// Returns the vertices of each bucket.
    #[must_use]
    pub fn vertices(&self) -> &[Range<usize>] {
        &self.vertices
    }

    /// Deals edges to their buckets: a part of the list to each of `dealt`, on all threads. What these held before is gone.
    ///
    /// # Panics
    /// Where the lengths differ, a near end is in no bucket, or there is nothing to deal to.
    pub fn deal<T: Copy + Default + Send + Sync>(
        &self,
        near_ends: &[u32],
        far_ends: &[u32],
        data: &[T],
        dealt: &mut [Dealt<T>],
    ) {
        assert!(far_ends.len() == near_ends.len() && data.len() == near_ends.len(), "an edge has two ends and data");
        self.deal_from(near_ends, dealt, &|part| (Cow::Borrowed(&far_ends[part.clone()]), Cow::Borrowed(&data[part])));
    }

    /// Deals edges to their buckets; see [`Buckets::deal`].
    pub(crate) fn deal_from<'e, T: Copy + Default + Send + Sync>(
        &self,
        near_ends: &[u32],
        dealt: &mut [Dealt<T>],
        far: FarEnds<'_, 'e, T>,
    ) {
        let len = near_ends.len().div_ceil(dealt.len());
        let part = |at: usize| at * len..near_ends.len().min((at + 1) * len);
        let parts =
            dealt.iter_mut().enumerate().map(|(at, dealt)| (part(at).start.min(part(at).end)..part(at).end, dealt));
        parallel::consume(parts.collect(), |(part, dealt)| {
            let (far_ends, data) = far(part.clone());
            dealt.fill(self, &near_ends[part], &far_ends, &data);
        });
    }
}

impl<T: Copy + Default> Dealt<T> {
    fn fill(&mut self, buckets: &Buckets, near_ends: &[u32], far_ends: &[u32], data: &[T]) {
        self.starts.clear();
        self.starts.resize(buckets.vertices.len() + 1, 0);
        near_ends.iter().for_each(|&near| self.starts[buckets.of(near) + 1] += 1);
        (1..self.starts.len()).for_each(|bucket| self.starts[bucket] += self.starts[bucket - 1]);
        self.ends.resize(near_ends.len(), 0);
        self.data.resize(near_ends.len(), T::default());
        let mut next = self.starts.clone();
        for ((&near, &far), &datum) in near_ends.iter().zip(far_ends).zip(data) {
            let place = &mut next[buckets.of(near)];
            self.ends[*place] = u64::from(near) << 32 | u64::from(far);
            self.data[*place] = datum;
            *place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_where_vertices_no_longer_fit() {
        let offsets = vec![0_u64; 1_000_001];
        let buckets = Buckets::new(&offsets);
        assert!(buckets.vertices.iter().all(|vertices| vertices.len() <= MAX_VERTICES_PER_BUCKET));
        for vertex in [0, 65_535, 65_536, 999_999] {
            assert!(buckets.vertices[buckets.of(vertex)].contains(&(vertex as usize)));
        }
    }
}

//! Grouping edges in two passes: they are dealt to buckets of vertices, then the edges of each bucket are sorted.
//!
//! Buckets are few enough that each has its own open cache line while edges are dealt to them, and small enough that
//! one is sorted within the cache.

use std::ops::Range;
use std::sync::Mutex;

use crate::parallel::{self, lock};

/// What is to be moved along with the near ends of edges.
pub(crate) trait Carried<T>: Sync {
    /// Calls `visit` with the far end and data of each edge of a range, in order.
    fn for_each(&self, edges: Range<usize>, visit: impl FnMut(u32, T));

    fn data(&self) -> &[T];
}

/// Edges as they stand in a list.
pub(crate) struct Listed<'a, T> {
    pub(crate) far_ends: &'a [u32],
    pub(crate) data: &'a [T],
}

impl<T: Copy + Sync> Carried<T> for Listed<'_, T> {
    fn for_each(&self, edges: Range<usize>, mut visit: impl FnMut(u32, T)) {
        let far_ends = &self.far_ends[edges.clone()];
        far_ends.iter().zip(&self.data[edges]).for_each(|(&far, &data)| visit(far, data));
    }

    fn data(&self) -> &[T] {
        self.data
    }
}

/// A bucket is dealt to by a bounded number of streams, and sorted within a second-level cache where possible.
const MAX_BUCKETS: usize = 512;
const MIN_EDGES_PER_BUCKET: usize = 1 << 16;
/// A vertex's row within its bucket is kept in 16 bits.
const MAX_ROWS_PER_BUCKET: usize = 1 << 16;
/// Buckets end where a unit of vertices does; the units' table is to stay in the cache.
const MAX_UNITS: usize = 1 << 16;
/// More chunks than threads, so that a thread that comes late has less to do.
const CHUNKS_PER_THREAD: usize = 4;

/// Runs of vertices with about as many edges each: at most 512 of 2^16 edges or more, but for vertices with more
/// edges than that, and for runs of 2^16 vertices, which no bucket exceeds.
///
/// # Examples
/// ```
/// use megagrid_partition::{BucketSorter, Buckets};
///
/// let offsets = [0, 1, 3];
/// let buckets = Buckets::new(&offsets);
/// let mut dealt = buckets.deal(&[1, 0, 1], &[2, 2, 0], &[5, 6, 7]);
/// // All vertices are in one bucket.
/// BucketSorter::default().sort(&offsets, &dealt.rows, &mut dealt.far_ends, &mut dealt.data);
/// assert_eq!((dealt.far_ends, dealt.data), (vec![2, 0, 2], vec![6, 7, 5]));
/// ```
#[derive(Clone, Debug)]
pub struct Buckets {
    /// A unit has `1 << unit_shift` vertices.
    unit_shift: u32,
    bucket_of_unit: Vec<u16>,
    /// Vertices of each bucket.
    rows: Vec<Range<usize>>,
}

/// Edges that lie bucket after bucket.
#[derive(Clone, Debug)]
pub struct Dealt<T> {
    /// Where each bucket starts, and the number of edges.
    pub starts: Vec<usize>,
    /// The near end of each edge, counted from the first vertex of its bucket.
    pub rows: Vec<u16>,
    /// Far ends.
    pub far_ends: Vec<u32>,
    /// Data.
    pub data: Vec<T>,
}

impl Buckets {
    /// Makes the buckets of vertices whose edges lie as `offsets`, `[n + 1]`, say.
    #[must_use]
    pub fn new(offsets: &[u64]) -> Self {
        let num_vertices = offsets.len() - 1;
        let num_edges = offsets[num_vertices] as usize;
        let edges_per_bucket = (num_edges / MAX_BUCKETS).max(MIN_EDGES_PER_BUCKET) as u64;
        let unit_shift = num_vertices.div_ceil(MAX_UNITS).next_power_of_two().trailing_zeros();
        let mut buckets = Self { unit_shift, bucket_of_unit: Vec::new(), rows: Vec::new() };
        for start in (0..num_vertices).step_by(1 << unit_shift) {
            let end = num_vertices.min(start + (1 << unit_shift));
            match buckets.rows.last_mut() {
                Some(rows)
                    if offsets[end] - offsets[rows.start] <= edges_per_bucket
                        && end - rows.start <= MAX_ROWS_PER_BUCKET =>
                {
                    rows.end = end;
                }
                _ => buckets.rows.push(start..end),
            }
            buckets.bucket_of_unit.push((buckets.rows.len() - 1) as u16);
        }
        buckets
    }

    fn of(&self, vertex: u32) -> usize {
        usize::from(self.bucket_of_unit[(vertex >> self.unit_shift) as usize])
    }

    /// Returns the vertices of each bucket.
    #[must_use]
    pub fn vertices(&self) -> &[Range<usize>] {
        &self.rows
    }

    /// Moves each edge to its bucket, on all threads. Edges of a bucket keep their order.
    ///
    /// # Panics
    /// Where the lengths differ or a near end is in no bucket.
    #[must_use]
    pub fn deal<T: Copy + Send + Sync>(&self, near_ends: &[u32], far_ends: &[u32], data: &[T]) -> Dealt<T> {
        assert!(far_ends.len() == near_ends.len() && data.len() == near_ends.len(), "an edge has two ends and data");
        self.deal_carried(near_ends, &Listed { far_ends, data })
    }

    pub(crate) fn deal_carried<T: Copy + Send + Sync>(&self, near_ends: &[u32], far: &impl Carried<T>) -> Dealt<T> {
        let num_chunks = CHUNKS_PER_THREAD * rayon::current_num_threads();
        let chunk_len = near_ends.len().div_ceil(num_chunks).max(1);
        let sizes: Vec<Vec<usize>> = {
            let chunks: Vec<_> = near_ends.chunks(chunk_len).collect();
            parallel::map(chunks.len(), |at| self.count(chunks[at]))
        };
        let mut dealt = Dealt::new(near_ends.len(), far.data(), starts(&sizes, self.rows.len()));
        let far_ends = split_by_chunk(&mut dealt.far_ends, &sizes);
        let data = split_by_chunk(&mut dealt.data, &sizes);
        let rows = split_by_chunk(&mut dealt.rows, &sizes);
        let chunks = near_ends.chunks(chunk_len).enumerate().zip(rows).zip(far_ends).zip(data);
        parallel::consume(chunks.collect(), |((((chunk, near_ends), mut rows), mut far_ends), mut data)| {
            let mut near_ends_left = near_ends.iter();
            let start = chunk * chunk_len;
            far.for_each(start..start + near_ends.len(), |far_end, datum| {
                let Some(&near) = near_ends_left.next() else { return };
                let bucket = self.of(near);
                let places = (rows[bucket].next(), far_ends[bucket].next(), data[bucket].next());
                if let (Some(row), Some(far_place), Some(datum_place)) = places {
                    *row = (near as usize - self.rows[bucket].start) as u16;
                    *far_place = far_end;
                    *datum_place = datum;
                }
            });
        });
        dealt
    }

    fn count(&self, near_ends: &[u32]) -> Vec<usize> {
        let mut counts = vec![0; self.rows.len()];
        near_ends.iter().for_each(|&near| counts[self.of(near)] += 1);
        counts
    }

    /// Sorts all buckets, on all threads; see [`BucketSorter::sort`].
    pub(crate) fn sort<T: Copy + Send + Sync>(&self, offsets: &[u64], dealt: &mut Dealt<T>) {
        let sizes = || dealt.starts.windows(2).map(|pair| pair[1] - pair[0]);
        let far_ends = split(&mut dealt.far_ends, sizes());
        let data = split(&mut dealt.data, sizes());
        let mut rows_left = &dealt.rows[..];
        let mut work = Vec::with_capacity(far_ends.len());
        for ((bucket, far_ends), data) in self.rows.iter().zip(far_ends).zip(data) {
            let (rows, rest) = rows_left.split_at(far_ends.len());
            rows_left = rest;
            work.push((&offsets[bucket.start..=bucket.end], rows, far_ends, data));
        }
        let sorters = Mutex::new(Vec::new());
        parallel::consume(work, |(offsets, rows, far_ends, data)| {
            BucketSorter::with_one_of(&sorters, |sorter| sorter.sort(offsets, rows, far_ends, data));
        });
    }
}

impl<T: Copy> Dealt<T> {
    /// Makes room for edges that carry such data as `some`.
    fn new(num_edges: usize, some: &[T], starts: Vec<usize>) -> Self {
        let data = some.first().map_or(Vec::new(), |&any| vec![any; num_edges]);
        Self { starts, rows: vec![0; num_edges], far_ends: vec![0; num_edges], data }
    }
}

/// Returns where each bucket starts, from the sizes of its parts in each chunk.
fn starts(sizes: &[Vec<usize>], num_buckets: usize) -> Vec<usize> {
    let mut starts = vec![0; num_buckets + 1];
    for bucket in 0..num_buckets {
        starts[bucket + 1] = starts[bucket] + sizes.iter().map(|sizes| sizes[bucket]).sum::<usize>();
    }
    starts
}

/// Splits an array that lies bucket after bucket, and chunk after chunk within a bucket, into a chunk's places by bucket.
fn split_by_chunk<'a, X>(array: &'a mut [X], sizes: &[Vec<usize>]) -> Vec<Vec<std::slice::IterMut<'a, X>>> {
    let num_buckets = sizes.first().map_or(0, Vec::len);
    let mut places: Vec<Vec<_>> = sizes.iter().map(|_| Vec::with_capacity(num_buckets)).collect();
    let in_order = (0..num_buckets).flat_map(|bucket| sizes.iter().map(move |sizes| sizes[bucket]));
    for (at, piece) in split(array, in_order).into_iter().enumerate() {
        places[at % sizes.len()].push(piece.iter_mut());
    }
    places
}

fn split<X>(mut array: &mut [X], sizes: impl Iterator<Item = usize>) -> Vec<&mut [X]> {
    let split_first = |size| {
        let (piece, rest) = std::mem::take(&mut array).split_at_mut(size);
        array = rest;
        piece
    };
    sizes.map(split_first).collect()
}

/// Sorts the edges of buckets. It keeps its buffers from one bucket to the next.
#[derive(Clone, Debug)]
pub struct BucketSorter<T> {
    ends: Vec<u32>,
    far_ends: Vec<u32>,
    data: Vec<T>,
    order: Vec<u64>,
}

impl<T> Default for BucketSorter<T> {
    fn default() -> Self {
        Self { ends: Vec::new(), far_ends: Vec::new(), data: Vec::new(), order: Vec::new() }
    }
}

impl<T: Copy> BucketSorter<T> {
    /// Sorts with one of `sorters`, or with a new one while others have them all.
    pub fn with_one_of<R>(sorters: &Mutex<Vec<Self>>, sort: impl FnOnce(&mut Self) -> R) -> R {
        let mut sorter = lock(sorters).pop().unwrap_or_default();
        let result = sort(&mut sorter);
        lock(sorters).push(sorter);
        result
    }

    /// Groups the edges of a bucket by vertex, far ends ascending; edges with the same two ends keep their order.
    /// `offsets` are those of the bucket's vertices, with the end of the last one.
    ///
    /// # Complexity
    /// O(m) for m edges, and O(d log d) for a vertex of degree d.
    ///
    /// # Panics
    /// Where offsets and rows do not fit the edges.
    pub fn sort(&mut self, offsets: &[u64], rows: &[u16], far_ends: &mut [u32], data: &mut [T]) {
        self.group(offsets, rows, far_ends, data);
        for vertex in offsets.windows(2) {
            let range = (vertex[0] - offsets[0]) as usize..(vertex[1] - offsets[0]) as usize;
            self.sort_vertex(&mut far_ends[range.clone()], &mut data[range]);
        }
    }

    /// Moves the edges of a bucket to the places of their rows, whose offsets are given.
    fn group(&mut self, offsets: &[u64], rows: &[u16], far_ends: &mut [u32], data: &mut [T]) {
        self.keep(far_ends, data);
        self.ends.clear();
        self.ends.extend(offsets.iter().map(|offset| (offset - offsets[0]) as u32));
        for ((&row, &far_end), &datum) in rows.iter().zip(&self.far_ends).zip(&self.data) {
            let end = &mut self.ends[usize::from(row)];
            far_ends[*end as usize] = far_end;
            data[*end as usize] = datum;
            *end += 1;
        }
    }

    /// Sorts the edges of one vertex by far end; those with one far end keep their order.
    fn sort_vertex(&mut self, far_ends: &mut [u32], data: &mut [T]) {
        if far_ends.is_sorted() {
            return;
        }
        if size_of::<T>() == 0 {
            return far_ends.sort_unstable();
        }
        self.keep(far_ends, data);
        self.order.clear();
        self.order.extend(far_ends.iter().enumerate().map(|(at, &far)| u64::from(far) << 32 | at as u64));
        self.order.sort_unstable();
        for (to, &key) in self.order.iter().enumerate() {
            let from = key as u32 as usize;
            far_ends[to] = self.far_ends[from];
            data[to] = self.data[from];
        }
    }

    fn keep(&mut self, far_ends: &[u32], data: &[T]) {
        self.far_ends.clear();
        self.far_ends.extend_from_slice(far_ends);
        self.data.clear();
        self.data.extend_from_slice(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_where_rows_no_longer_fit() {
        let offsets = vec![0_u64; 1_000_001];
        let buckets = Buckets::new(&offsets);
        assert!(buckets.rows.iter().all(|rows| rows.len() <= MAX_ROWS_PER_BUCKET));
        for vertex in [0, 65_535, 65_536, 999_999] {
            assert!(buckets.rows[buckets.of(vertex)].contains(&(vertex as usize)));
        }
    }
}

//! Edges in memory, grouped by the vertices of one side or of both.
//!
//! A grouping is made in two passes, both on all threads. The first deals the edges into buckets: runs of vertices
//! with about as many edges each, few enough that every bucket has its own open cache line. The second counts out one
//! bucket after another within the cache, and sorts the far ends of each vertex.
//!
//! Memory: the list, one grouping and two bytes an edge while the first grouping is made; the list is gone before the
//! second is made from the first.

use std::io;
use std::ops::Range;

use rayon::prelude::*;

use crate::degrees::{count_degrees, offsets_of};
use crate::{EdgeList, EdgeSource, Side};

/// Edges grouped by the vertices of the sides that were asked for.
#[derive(Clone, Debug)]
pub struct GroupedEdges<T> {
    is_square: bool,
    left_offsets: Vec<u64>,
    right_offsets: Vec<u64>,
    by_left: Option<Grouping<T>>,
    by_right: Option<Grouping<T>>,
}

/// Far ends and data of the edges, `[m]` each, in the order of a side's offsets.
#[derive(Clone, Debug)]
struct Grouping<T> {
    far_ends: Vec<u32>,
    data: Vec<T>,
}

impl<T: Copy + Send + Sync> GroupedEdges<T> {
    /// Groups the edges by the vertices of each of `sides`. Far ends ascend within a vertex; repeated edges keep the
    /// order of the list. Offsets are there for both sides in any case.
    ///
    /// # Complexity
    /// O(m), and O(d log d) for a vertex of degree d.
    ///
    /// # Panics
    /// Where the list's arrays differ in length or an id is out of range.
    ///
    /// # Examples
    /// ```
    /// use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side};
    ///
    /// let list = EdgeList { num_left: 2, num_right: 3, left: vec![1, 0, 1], right: vec![2, 2, 0], data: vec![5, 6, 7], square: false };
    /// let edges = GroupedEdges::new(list, &[Side::Left]);
    /// assert_eq!(edges.offsets(Side::Left), [0, 1, 3]);
    /// edges.visit_rows(Side::Left, 1..2, &mut |items, ratings| assert_eq!((items, ratings), (&[0, 2][..], &[7, 5][..])))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn new(list: EdgeList<T>, sides: &[Side]) -> Self {
        let num_edges = list.num_edges();
        assert!(list.right.len() == num_edges && list.data.len() == num_edges, "an edge has two ends and data");
        let mut edges = Self {
            is_square: list.square,
            left_offsets: offsets_of(&count_degrees(&list.left, list.num_left)),
            right_offsets: offsets_of(&count_degrees(&list.right, list.num_right)),
            by_left: None,
            by_right: None,
        };
        match (sides.contains(&Side::Left), sides.contains(&Side::Right)) {
            (true, also_right) => {
                let EdgeList { left, right, data, .. } = list;
                edges.by_left = Some(group(&left, &edges.left_offsets, &Listed { far_ends: &right, data: &data }));
                drop((left, right, data));
                if let (true, Some(by_left)) = (also_right, &edges.by_left) {
                    let far = Grouped { grouping: by_left, offsets: &edges.left_offsets };
                    edges.by_right = Some(group(&by_left.far_ends, &edges.right_offsets, &far));
                }
            }
            (false, true) => {
                let far = Listed { far_ends: &list.left, data: &list.data };
                edges.by_right = Some(group(&list.right, &edges.right_offsets, &far));
            }
            (false, false) => {}
        }
        edges
    }
}

impl<T: Sync> EdgeSource<T> for GroupedEdges<T> {
    fn is_square(&self) -> bool {
        self.is_square
    }

    fn offsets(&self, side: Side) -> &[u64] {
        match side {
            Side::Left => &self.left_offsets,
            Side::Right => &self.right_offsets,
        }
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[T])) -> io::Result<()> {
        let grouping = match side {
            Side::Left => &self.by_left,
            Side::Right => &self.by_right,
        };
        let Some(grouping) = grouping else {
            let problem = format!("the edges were not grouped by their {side} ends");
            return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
        };
        let offsets = self.offsets(side);
        let range = offsets[rows.start] as usize..offsets[rows.end] as usize;
        visit(&grouping.far_ends[range.clone()], &grouping.data[range]);
        Ok(())
    }
}

/// What is to be moved along with the near ends of edges.
trait Carried<T>: Sync {
    /// Calls `visit` with the far end and data of each edge of a range, in order.
    fn for_each(&self, edges: Range<usize>, visit: impl FnMut(u32, T));

    /// Returns the data of all edges.
    fn data(&self) -> &[T];
}

/// Edges as they stand in a list.
struct Listed<'a, T> {
    far_ends: &'a [u32],
    data: &'a [T],
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

/// The edges of a grouping by the other side, whose vertices are the far ends now.
struct Grouped<'a, T> {
    grouping: &'a Grouping<T>,
    offsets: &'a [u64],
}

impl<T: Copy + Sync> Carried<T> for Grouped<'_, T> {
    fn for_each(&self, edges: Range<usize>, mut visit: impl FnMut(u32, T)) {
        let mut vertex = self.offsets.partition_point(|&offset| offset <= edges.start as u64) - 1;
        let mut start = edges.start;
        while start < edges.end {
            let end = edges.end.min(self.offsets[vertex + 1] as usize);
            self.grouping.data[start..end].iter().for_each(|&data| visit(vertex as u32, data));
            (start, vertex) = (end, vertex + 1);
        }
    }

    fn data(&self) -> &[T] {
        &self.grouping.data
    }
}

/// Far ends without data, grouped by near end, ascending within a group.
pub(crate) struct FarEnds {
    offsets: Vec<u64>,
    far_ends: Vec<u32>,
}

impl FarEnds {
    pub(crate) fn group(near_ends: &[u32], num_near: usize, far_ends: &[u32]) -> Self {
        let offsets = offsets_of(&count_degrees(near_ends, num_near));
        let no_data = vec![(); far_ends.len()];
        let far_ends = group(near_ends, &offsets, &Listed { far_ends, data: &no_data }).far_ends;
        Self { offsets, far_ends }
    }

    /// Returns the far ends of one near end after another.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.offsets.windows(2).map(|pair| &self.far_ends[pair[0] as usize..pair[1] as usize])
    }
}

/// Groups edges by their near ends.
fn group<T: Copy + Send + Sync>(near_ends: &[u32], offsets: &[u64], far: &impl Carried<T>) -> Grouping<T> {
    let Some(&any) = far.data().first() else {
        return Grouping { far_ends: Vec::new(), data: Vec::new() };
    };
    let buckets = Buckets::new(offsets);
    let mut grouping = Grouping { far_ends: vec![0; near_ends.len()], data: vec![any; near_ends.len()] };
    let mut rows = vec![0_u16; near_ends.len()];
    buckets.deal(near_ends, far, &mut rows, &mut grouping);
    buckets.sort(offsets, &rows, &mut grouping);
    grouping
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

/// Runs of vertices with about as many edges each.
struct Buckets {
    /// A unit has `1 << unit_shift` vertices.
    unit_shift: u32,
    bucket_of_unit: Vec<u16>,
    /// Vertices of each bucket.
    rows: Vec<Range<usize>>,
}

impl Buckets {
    fn new(offsets: &[u64]) -> Self {
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

    /// Moves each edge to its bucket, in the order of the input, and notes its row there.
    fn deal<T: Copy + Send + Sync>(
        &self,
        near_ends: &[u32],
        far: &impl Carried<T>,
        rows: &mut [u16],
        grouping: &mut Grouping<T>,
    ) {
        let num_chunks = CHUNKS_PER_THREAD * rayon::current_num_threads();
        let chunk_len = near_ends.len().div_ceil(num_chunks).max(1);
        let sizes: Vec<Vec<usize>> = near_ends.par_chunks(chunk_len).map(|chunk| self.count(chunk)).collect();
        let far_ends = split_by_chunk(&mut grouping.far_ends, &sizes);
        let data = split_by_chunk(&mut grouping.data, &sizes);
        let rows = split_by_chunk(rows, &sizes);
        let chunks = near_ends.par_chunks(chunk_len).enumerate().zip(rows).zip(far_ends).zip(data);
        chunks.for_each(|((((chunk, near_ends), mut rows), mut far_ends), mut data)| {
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
    }

    fn count(&self, near_ends: &[u32]) -> Vec<usize> {
        let mut counts = vec![0; self.rows.len()];
        near_ends.iter().for_each(|&near| counts[self.of(near)] += 1);
        counts
    }

    /// Groups the edges of each bucket by vertex, and sorts the far ends of each vertex.
    fn sort<T: Copy + Send + Sync>(&self, offsets: &[u64], rows: &[u16], grouping: &mut Grouping<T>) {
        let sizes: Vec<usize> =
            self.rows.iter().map(|rows| (offsets[rows.end] - offsets[rows.start]) as usize).collect();
        let mut rows_left = rows;
        let mut work = Vec::with_capacity(sizes.len());
        let far_ends = split(&mut grouping.far_ends, sizes.iter().copied());
        let data = split(&mut grouping.data, sizes.iter().copied());
        for ((bucket, far_ends), data) in self.rows.iter().zip(far_ends).zip(data) {
            let (rows, rest) = rows_left.split_at(far_ends.len());
            rows_left = rest;
            work.push((&offsets[bucket.start..=bucket.end], rows, far_ends, data));
        }
        work.into_par_iter().for_each_init(Scratch::default, |scratch, (offsets, rows, far_ends, data)| {
            scratch.group(offsets, rows, far_ends, data);
            for vertex in offsets.windows(2) {
                let range = (vertex[0] - offsets[0]) as usize..(vertex[1] - offsets[0]) as usize;
                scratch.sort(&mut far_ends[range.clone()], &mut data[range]);
            }
        });
    }
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

/// Buffers of one thread.
struct Scratch<T> {
    ends: Vec<u32>,
    far_ends: Vec<u32>,
    data: Vec<T>,
    order: Vec<u64>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self { ends: Vec::new(), far_ends: Vec::new(), data: Vec::new(), order: Vec::new() }
    }
}

impl<T: Copy> Scratch<T> {
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
    fn sort(&mut self, far_ends: &mut [u32], data: &mut [T]) {
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

    /// Random edges with repetitions; data number them.
    fn list(num_left: usize, num_right: usize, num_edges: usize) -> EdgeList<u32> {
        let mut random = crate::SplitMix::new(3, 0);
        let mut ids = |bound: usize| -> Vec<u32> {
            // The square of a uniform number: low ids have more edges.
            (0..num_edges).map(|_| (random.unit().powi(2) * bound as f64) as u32).collect()
        };
        let (left, right) = (ids(num_left), ids(num_right));
        EdgeList { num_left, num_right, square: false, left, right, data: (0..num_edges as u32).collect() }
    }

    fn check(list: &EdgeList<u32>, sides: &[Side]) {
        let edges = GroupedEdges::new(list.clone(), sides);
        for side in [Side::Left, Side::Right] {
            let (near, far) = match side {
                Side::Left => (&list.left, &list.right),
                Side::Right => (&list.right, &list.left),
            };
            let mut order: Vec<usize> = (0..list.num_edges()).collect();
            order.sort_by_key(|&edge| (near[edge], far[edge]));
            let offsets = edges.offsets(side);
            for (vertex, pair) in offsets.windows(2).enumerate() {
                assert!(order[pair[0] as usize..pair[1] as usize].iter().all(|&edge| near[edge] as usize == vertex));
            }
            let result = edges.visit_rows(side, 0..edges.num_vertices(side), &mut |far_ends, data| {
                assert!(order.iter().map(|&edge| far[edge]).eq(far_ends.iter().copied()), "{side}");
                assert!(order.iter().map(|&edge| list.data[edge]).eq(data.iter().copied()), "{side}");
            });
            match result {
                Ok(()) => assert!(sides.contains(&side)),
                Err(error) => {
                    assert_eq!(error.to_string(), format!("the edges were not grouped by their {side} ends"));
                    assert!(!sides.contains(&side));
                }
            }
        }
    }

    #[test]
    fn edges_are_those_of_a_stable_sort() {
        for (num_left, num_right, num_edges) in
            [(5, 7, 100), (1, 1, 10), (300, 100_000, 200_000), (200_000, 70, 100_000), (3, 4, 0), (0, 0, 0)]
        {
            let list = list(num_left, num_right, num_edges);
            for sides in [&[][..], &[Side::Left], &[Side::Right], &[Side::Right, Side::Left]] {
                check(&list, sides);
            }
        }
    }

    #[test]
    fn one_vertex_may_hold_all_edges() {
        let mut list = list(1000, 1000, 100_000);
        list.left.fill(999);
        check(&list, &[Side::Left, Side::Right]);
    }

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

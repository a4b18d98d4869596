//! Edges in memory, grouped by the vertices of one side or of both.
//!
//! A grouping is made in two passes, both on all threads: edges are dealt to [`Buckets`], and each bucket is sorted.
//!
//! Memory: the list and eight bytes and the data of each edge while these are dealt; the list is gone before they are sorted, and
//! before a second grouping is made from the first.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Mutex;

use crate::buckets::{Buckets, Dealt};
use crate::degrees::{count_degrees, offsets_of};
use crate::sorter::BucketSorter;
use crate::{EdgeList, EdgeSource, Side, parallel};

/// More parts than threads, so that a thread that comes late has less to do.
const PARTS_PER_THREAD: usize = 4;

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

impl<T: Copy + Default + Send + Sync> GroupedEdges<T> {
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
        let EdgeList { left, right, data, .. } = list;
        if sides.contains(&Side::Left) {
            let grouping = group(&edges.left_offsets, left, (right, data));
            if sides.contains(&Side::Right) {
                edges.by_right = Some(grouping.turned(&edges.left_offsets, &edges.right_offsets));
            }
            edges.by_left = Some(grouping);
        } else if sides.contains(&Side::Right) {
            edges.by_right = Some(group(&edges.right_offsets, right, (left, data)));
        }
        edges
    }
}

impl<T> GroupedEdges<T> {
    /// Returns the far ends of a vertex's edges, ascending, and their data.
    ///
    /// # Panics
    /// Where the edges were not grouped by that side, or have no such vertex.
    #[must_use]
    pub fn row(&self, side: Side, vertex: usize) -> (&[u32], &[T]) {
        let Some(row) = self.rows(side, vertex..vertex + 1) else { panic!("{}", not_grouped(side)) };
        row
    }

    /// Returns the far ends of edges of some vertices, and their data; `None` where they were not grouped by that side.
    fn rows(&self, side: Side, rows: Range<usize>) -> Option<(&[u32], &[T])> {
        let (offsets, grouping) = match side {
            Side::Left => (&self.left_offsets, &self.by_left),
            Side::Right => (&self.right_offsets, &self.by_right),
        };
        let Grouping { far_ends, data } = grouping.as_ref()?;
        let range = offsets[rows.start] as usize..offsets[rows.end] as usize;
        Some((&far_ends[range.clone()], &data[range]))
    }
}

fn not_grouped(side: Side) -> String {
    format!("the edges were not grouped by their {side} ends")
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
        let rows = self.rows(side, rows);
        let (far_ends, data) = rows.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, not_grouped(side)))?;
        visit(far_ends, data);
        Ok(())
    }
}

impl<T: Copy + Default + Send + Sync> Grouping<T> {
    /// Returns the same edges grouped by their far ends.
    fn turned(&self, offsets: &[u64], offsets_of_far_ends: &[u64]) -> Self {
        let near_ends = |part: Range<usize>| {
            let mut near_ends = Vec::with_capacity(part.len());
            let first = offsets.partition_point(|&offset| offset <= part.start as u64) - 1;
            for (vertex, &end) in (first..).zip(&offsets[first + 1..]) {
                near_ends.resize(part.end.min(end as usize) - part.start, vertex as u32);
                if end as usize >= part.end {
                    break;
                }
            }
            (Cow::Owned(near_ends), Cow::Borrowed(&self.data[part]))
        };
        let buckets = Buckets::new(offsets_of_far_ends);
        let mut dealt = parts();
        buckets.deal_from(&self.far_ends, &mut dealt, &near_ends);
        sort(&buckets, offsets_of_far_ends, dealt)
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
        let (buckets, dealt) = deal(&offsets, near_ends, far_ends, &vec![(); far_ends.len()]);
        let far_ends = sort(&buckets, &offsets, dealt).far_ends;
        Self { offsets, far_ends }
    }

    /// Returns the far ends of one near end after another.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.offsets.windows(2).map(|pair| &self.far_ends[pair[0] as usize..pair[1] as usize])
    }
}

fn parts<T: Clone + Default>() -> Vec<Dealt<T>> {
    vec![Dealt::default(); PARTS_PER_THREAD * rayon::current_num_threads()]
}

/// Groups edges by their near ends, which lie as `offsets` say.
fn group<T: Copy + Default + Send + Sync>(
    offsets: &[u64],
    near_ends: Vec<u32>,
    (far_ends, data): (Vec<u32>, Vec<T>),
) -> Grouping<T> {
    let (buckets, dealt) = deal(offsets, &near_ends, &far_ends, &data);
    drop((near_ends, far_ends, data));
    sort(&buckets, offsets, dealt)
}

/// Deals edges to buckets of their near ends.
fn deal<T: Copy + Default + Send + Sync>(
    offsets: &[u64],
    near_ends: &[u32],
    far_ends: &[u32],
    data: &[T],
) -> (Buckets, Vec<Dealt<T>>) {
    let (buckets, mut dealt) = (Buckets::new(offsets), parts());
    buckets.deal(near_ends, far_ends, data, &mut dealt);
    (buckets, dealt)
}

/// Sorts the edges that were dealt to buckets, on all threads.
fn sort<T: Copy + Default + Send + Sync>(buckets: &Buckets, offsets: &[u64], dealt: Vec<Dealt<T>>) -> Grouping<T> {
    let num_edges = offsets[offsets.len() - 1] as usize;
    let (mut far_ends, mut data) = (vec![0; num_edges], vec![T::default(); num_edges]);
    let (mut far_ends_left, mut data_left) = (&mut far_ends[..], &mut data[..]);
    let mut work = Vec::with_capacity(buckets.vertices().len());
    for (bucket, vertices) in buckets.vertices().iter().enumerate() {
        let len = (offsets[vertices.end] - offsets[vertices.start]) as usize;
        work.push((bucket, split_off(&mut far_ends_left, len), split_off(&mut data_left, len)));
    }
    let sorters = Mutex::new(Vec::new());
    parallel::consume(work, |(bucket, far_ends, data)| {
        let (vertices, parts) = (buckets.vertices()[bucket].clone(), dealt.iter().map(|part| part.bucket(bucket)));
        parallel::with_one_of(&sorters, |sorter: &mut BucketSorter<T>| {
            sorter.sort(offsets, vertices, parts, far_ends, data);
        });
    });
    Grouping { far_ends, data }
}

fn split_off<'a, X>(rest: &mut &'a mut [X], len: usize) -> &'a mut [X] {
    let (first, others) = std::mem::take(rest).split_at_mut(len);
    *rest = others;
    first
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
}

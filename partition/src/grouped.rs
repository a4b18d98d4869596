//! Edges in memory, grouped by the vertices of one side or of both.
//!
//! A grouping is made in two passes, both on all threads: edges are dealt to [`Buckets`], and each bucket is sorted.
//!
//! Memory: the list, one grouping and two bytes an edge while the first grouping is made; the list is gone before the
//! second is made from the first.

use std::io;
use std::ops::Range;

use crate::buckets::{Buckets, Carried, Dealt, Listed};
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
    let buckets = Buckets::new(offsets);
    let mut dealt = buckets.deal_carried(near_ends, far);
    buckets.sort(offsets, &mut dealt);
    let Dealt { far_ends, data, .. } = dealt;
    Grouping { far_ends, data }
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

//! Edges grouped by one end.

use megagrid_partition::{EdgeList, Side};

use crate::workers::offsets;

/// Edges grouped by one end, each with its other end and its data; in a group they are in the order of the list: other ends ascend where it
/// was made by [`list_by`](crate::job::list_by).
pub(crate) struct Csr<E> {
    pub offsets: Vec<u64>,
    pub ends: Vec<u32>,
    pub data: Vec<E>,
}

impl<E: Copy> Csr<E> {
    /// Groups a list by a side; `data` is what becomes of the edge of a number.
    pub fn new<T>(list: &EdgeList<T>, side: Side, data: impl Fn(usize) -> E) -> Self {
        let (near, far, vertices) = match side {
            Side::Left => (&list.left, &list.right, list.num_left),
            Side::Right => (&list.right, &list.left, list.num_right),
        };
        let offsets = offsets(near, vertices);
        let mut next = offsets.clone();
        let mut order = vec![0_u32; near.len()];
        for (edge, &vertex) in near.iter().enumerate() {
            order[next[vertex as usize] as usize] = edge as u32;
            next[vertex as usize] += 1;
        }
        let ends = order.iter().map(|&edge| far[edge as usize]).collect();
        let data = order.iter().map(|&edge| data(edge as usize)).collect();
        Self { offsets, ends, data }
    }

    /// Returns the other ends and the data of a vertex's edges.
    #[inline(always)]
    pub fn of(&self, vertex: usize) -> (&[u32], &[E]) {
        let span = self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize;
        (&self.ends[span.clone()], &self.data[span])
    }

    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub fn bytes(&self) -> u64 {
        (self.offsets.len() * 8 + self.ends.len() * 4 + size_of_val(&self.data[..])) as u64
    }
}

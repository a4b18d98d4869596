//! Edges in two lists: those to train on and those to test on, say.

use crate::EdgeList;
use crate::parallel::{consume, fill, map};

/// Edges of a piece of work.
const CHUNK: usize = 1 << 16;

impl<T: Copy + Default + Send + Sync> EdgeList<T> {
    /// Deals the edges to two lists of the same vertices, in their order: to the second those that `is_second` says, `[num_edges]`. Runs on all
    /// threads.
    ///
    /// # Panics
    /// Where that is not said of each edge.
    #[must_use]
    pub fn parts(&self, is_second: &[bool]) -> [Self; 2] {
        assert_eq!(is_second.len(), self.num_edges(), "each edge goes to one of the lists");
        let chunks: Vec<&[bool]> = is_second.chunks(CHUNK).collect();
        let of_second = map(chunks.len(), |at| chunks[at].iter().filter(|second| **second).count());
        [false, true].map(|which| {
            let of_part = |at: usize| if which { of_second[at] } else { chunks[at].len() - of_second[at] };
            let num_edges = (0..chunks.len()).map(of_part).sum();
            let (mut left, mut right) = (vec![0; num_edges], vec![0; num_edges]);
            let mut data = vec![T::default(); num_edges];
            let mut rest = (&mut left[..], &mut right[..], &mut data[..]);
            let room = |at: usize| {
                let (lefts, rights, items) = std::mem::take(&mut rest);
                let ((lefts, left), (rights, right)) =
                    (lefts.split_at_mut(of_part(at)), rights.split_at_mut(of_part(at)));
                let (items, data) = items.split_at_mut(of_part(at));
                rest = (left, right, data);
                (at, lefts.iter_mut().zip(rights).zip(items))
            };
            consume((0..chunks.len()).map(room).collect(), |(at, room)| {
                let edges = (at * CHUNK..).zip(chunks[at]).filter(|(_, second)| **second == which);
                for (((left, right), data), (edge, _)) in room.zip(edges) {
                    (*left, *right, *data) = (self.left[edge], self.right[edge], self.data[edge]);
                }
            });
            Self { num_left: self.num_left, num_right: self.num_right, square: self.square, left, right, data }
        })
    }

    /// Deals the left vertices with their edges to two lists: to the second those that `is_second` says, `[num_left]`. In each of them left vertices
    /// are numbered anew, in their order; right ones keep their ids.
    ///
    /// # Panics
    /// Where that is not said of each left vertex.
    #[must_use]
    pub fn parts_by_left(&self, is_second: &[bool]) -> [Self; 2] {
        assert_eq!(is_second.len(), self.num_left, "each vertex goes to one of the lists");
        let mut numbers = [0_u32; 2];
        let of = |&second: &bool| {
            let number = &mut numbers[usize::from(second)];
            std::mem::replace(number, *number + 1)
        };
        let new_ids: Vec<u32> = is_second.iter().map(of).collect();
        let mut parts = self.parts(&fill(self.num_edges(), |edge| is_second[self.left[edge] as usize]));
        for (part, number) in parts.iter_mut().zip(numbers) {
            part.num_left = number as usize;
            part.left = fill(part.num_edges(), |edge| new_ids[part.left[edge] as usize]);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    #[test]
    fn edges_keep_their_order_whatever_their_number() {
        for num_edges in [0, 1, 1000, CHUNK, 2 * CHUNK + 77] {
            let mut random = SplitMix::new(5, num_edges as u64);
            let mut list = EdgeList { num_left: 40, num_right: 30, ..EdgeList::default() };
            for edge in 0..num_edges {
                list.push(random.below(40) as u32, random.below(30) as u32, edge);
            }
            let is_second: Vec<bool> = (0..num_edges).map(|_| random.below(5) == 0).collect();
            let parts = list.parts(&is_second);
            for (part, which) in parts.iter().zip([false, true]) {
                let expected: Vec<usize> = (0..num_edges).filter(|&edge| is_second[edge] == which).collect();
                assert_eq!(part.data, expected);
                assert!((0..expected.len()).all(|at| part.left[at] == list.left[expected[at]]));
                assert!((0..expected.len()).all(|at| part.right[at] == list.right[expected[at]]));
                assert_eq!((part.num_left, part.num_right), (40, 30));
            }
        }
    }

    #[test]
    fn left_vertices_go_with_their_edges_and_are_numbered_anew() {
        let list = EdgeList {
            num_left: 4,
            num_right: 9,
            left: vec![3, 0, 1, 3, 2],
            right: vec![8, 7, 6, 5, 4],
            data: vec!['a', 'b', 'c', 'd', 'e'],
            square: false,
        };
        let [first, second] = list.parts_by_left(&[false, true, true, false]);
        assert_eq!((first.num_left, &first.left[..], &first.right[..]), (2, &[1, 0, 1][..], &[8, 7, 5][..]));
        assert_eq!((second.num_left, &second.left[..], &second.data[..]), (2, &[0, 1][..], &['c', 'e'][..]));
        assert_eq!(second.num_right, 9);
    }
}

//! Which vertices have a replica where, while a greedy strategy places them.

/// A set of partitions for each vertex, one bit a partition.
pub(crate) struct ReplicaSets {
    words_per_vertex: usize,
    words: Vec<u64>,
}

impl ReplicaSets {
    pub(crate) fn new(num_vertices: usize, num_partitions: usize) -> Self {
        let words_per_vertex = num_partitions.div_ceil(64);
        Self { words_per_vertex, words: vec![0; num_vertices * words_per_vertex] }
    }

    pub(crate) fn contains(&self, vertex: usize, partition: usize) -> bool {
        self.words[vertex * self.words_per_vertex + partition / 64] >> (partition % 64) & 1 == 1
    }

    pub(crate) fn insert(&mut self, vertex: usize, partition: usize) {
        self.words[vertex * self.words_per_vertex + partition / 64] |= 1 << (partition % 64);
    }

    /// Returns the partitions of a vertex, ascending.
    pub(crate) fn of(&self, vertex: usize) -> impl Iterator<Item = usize> {
        let words = &self.words[vertex * self.words_per_vertex..][..self.words_per_vertex];
        words.iter().enumerate().flat_map(|(at, &word)| {
            let rests = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
            rests.take_while(|&rest| rest != 0).map(move |rest| 64 * at + rest.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_inserted() {
        let mut sets = ReplicaSets::new(3, 130);
        for partition in [0, 63, 64, 129] {
            sets.insert(1, partition);
        }
        assert_eq!(sets.of(1).collect::<Vec<_>>(), [0, 63, 64, 129]);
        assert!(sets.contains(1, 129) && !sets.contains(1, 128) && !sets.contains(2, 0));
        assert_eq!(sets.of(0).count() + sets.of(2).count(), 0);
    }
}

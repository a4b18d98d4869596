//! Sorting the edges of a bucket: the second of two passes that group them.

use std::ops::Range;

/// Bits of a far end that are sorted by at a time: that many open cache lines fit the first-level cache twice.
const DIGIT_BITS: u32 = 10;
/// With fewer edges, counting digits takes longer than comparing.
const FEW_EDGES: usize = 1 << 10;

/// Sorts the edges of buckets. It keeps its buffers from one bucket to the next.
#[derive(Clone, Debug)]
pub struct BucketSorter<T> {
    /// Near end and far end in one number, and data.
    edges: Vec<(u64, T)>,
    sorted: Vec<(u64, T)>,
    next: Vec<u32>,
}

impl<T> Default for BucketSorter<T> {
    fn default() -> Self {
        Self { edges: Vec::new(), sorted: Vec::new(), next: Vec::new() }
    }
}

impl<T: Copy + Default> BucketSorter<T> {
    /// Groups the edges of a bucket by vertex, far ends ascending; edges with the same two ends keep their order. They come in
    /// parts, each with the ends of edges, the near ones in the upper half, and their data. `offsets` are those of all
    /// vertices.
    ///
    /// # Complexity
    /// O(m) for m edges.
    ///
    /// # Panics
    /// Where the parts do not have the edges that the offsets of `vertices` announce.
    pub fn sort<'e>(
        &mut self,
        offsets: &[u64],
        vertices: Range<usize>,
        parts: impl Iterator<Item = (&'e [u64], &'e [T])>,
        far_ends: &mut [u32],
        data: &mut [T],
    ) where
        T: 'e,
    {
        self.edges.clear();
        parts.for_each(|(ends, data)| self.edges.extend(ends.iter().copied().zip(data.iter().copied())));
        self.sort_by_far_end();
        let first = offsets[vertices.start];
        self.next.clear();
        self.next.extend(offsets[vertices.clone()].iter().map(|offset| (offset - first) as u32));
        for &(ends, datum) in &self.edges {
            let next = &mut self.next[(ends >> 32) as usize - vertices.start];
            far_ends[*next as usize] = ends as u32;
            data[*next as usize] = datum;
            *next += 1;
        }
    }

    /// Sorts the edges by far end, digit by digit; those with one far end keep their order.
    fn sort_by_far_end(&mut self) {
        if self.edges.len() < FEW_EDGES {
            return self.edges.sort_by_key(|&(ends, _)| ends as u32);
        }
        let all = self.edges.iter().fold(0, |all, &(ends, _)| all | ends as u32);
        let bits = u32::BITS - all.leading_zeros();
        let digits = bits.div_ceil(DIGIT_BITS);
        self.sorted.resize(self.edges.len(), (0, T::default()));
        for digit in 0..digits {
            let width = bits.div_ceil(digits);
            let value = |ends: u64| (ends as u32 >> (digit * width)) as usize & ((1 << width) - 1);
            self.next.clear();
            self.next.resize(1 << width, 0);
            self.edges.iter().for_each(|&(ends, _)| self.next[value(ends)] += 1);
            let mut start = 0;
            self.next.iter_mut().for_each(|next| start += std::mem::replace(next, start));
            for &edge in &self.edges {
                let next = &mut self.next[value(edge.0)];
                self.sorted[*next as usize] = edge;
                *next += 1;
            }
            std::mem::swap(&mut self.edges, &mut self.sorted);
        }
    }
}

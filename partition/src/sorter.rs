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
    /// Where the next edge of each vertex goes.
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
        parts: impl Iterator<Item = (&'e [u64], &'e [T])> + Clone,
        far_ends: &mut [u32],
        data: &mut [T],
    ) where
        T: 'e,
    {
        let num_edges: usize = parts.clone().map(|(ends, _)| ends.len()).sum();
        assert!(num_edges == far_ends.len(), "the bucket has the edges that its vertices have");
        if num_edges < FEW_EDGES {
            self.edges.clear();
            parts.for_each(|(ends, data)| self.edges.extend(ends.iter().copied().zip(data.iter().copied())));
            self.edges.sort_by_key(|&(ends, _)| ends as u32);
        } else {
            self.edges.resize(num_edges, (0, T::default()));
            self.sort_by_far_end(parts);
        }
        let first = offsets[vertices.start];
        self.next.clear();
        self.next.extend(offsets[vertices.clone()].iter().map(|offset| (offset - first) as u32));
        let next = &mut self.next[..];
        for &(ends, datum) in &self.edges {
            let next = &mut next[(ends >> 32) as usize - vertices.start];
            far_ends[*next as usize] = ends as u32;
            data[*next as usize] = datum;
            *next += 1;
        }
    }

    /// Sorts edges by far end, digit by digit; those with one far end keep their order. While edges are placed by one digit, the
    /// next one is counted.
    fn sort_by_far_end<'e>(&mut self, parts: impl Iterator<Item = (&'e [u64], &'e [T])> + Clone)
    where
        T: 'e,
    {
        let all_bits = parts.clone().fold(0, |all, (ends, _)| ends.iter().fold(all, |all, &ends| all | ends as u32));
        let bits = u32::BITS - all_bits.leading_zeros();
        let digits = bits.div_ceil(DIGIT_BITS).max(1);
        let width = bits.div_ceil(digits);
        let digit = |at: u32| Digit { shift: at % digits * width, mask: (1 << width) - 1 };
        let mut counts = [0; 1 << DIGIT_BITS];
        for (ends, _) in parts.clone() {
            ends.iter().for_each(|&ends| counts[digit(0).of(ends)] += 1);
        }
        for at in 0..digits {
            let (mut next, mut start) = (std::mem::replace(&mut counts, [0; 1 << DIGIT_BITS]), 0);
            next.iter_mut().for_each(|next| start += std::mem::replace(next, start));
            let by = [digit(at), digit(at + 1)];
            if at == 0 {
                for (ends, data) in parts.clone() {
                    let edges = ends.iter().copied().zip(data.iter().copied());
                    place(edges, by, &mut next, &mut counts, &mut self.edges);
                }
            } else {
                self.sorted.resize(self.edges.len(), (0, T::default()));
                place(self.edges.iter().copied(), by, &mut next, &mut counts, &mut self.sorted);
                std::mem::swap(&mut self.edges, &mut self.sorted);
            }
        }
    }
}

type Counts = [u32; 1 << DIGIT_BITS];

/// Some bits of a far end.
#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    mask: u64,
}

impl Digit {
    #[inline(always)]
    fn of(self, ends: u64) -> usize {
        (ends >> self.shift & self.mask) as usize % (1 << DIGIT_BITS)
    }
}

/// Moves edges to their places by one digit, which `next` has, and counts another one.
#[inline(always)]
fn place<T: Copy>(
    edges: impl Iterator<Item = (u64, T)>,
    [placed, counted]: [Digit; 2],
    next: &mut Counts,
    counts: &mut Counts,
    into: &mut [(u64, T)],
) {
    for edge in edges {
        let next = &mut next[placed.of(edge.0)];
        into[*next as usize] = edge;
        *next += 1;
        counts[counted.of(edge.0)] += 1;
    }
}

//! The pool of access buffers: first in, first out. With twice the largest layer it cannot block for ever, which a
//! list of free places could, when these are in pieces.
//!
//! Why not: buffers are taken in the order of accesses, so those of the layer that the application is in lie one
//! after the other, and all before them are given back without anyone waiting. From the place p where the layer
//! begins, a layer of L values fits before the end of 2L values if p ≤ L; else the part that goes on at 0 has p > L
//! values before it meets the layer's beginning.

use std::collections::VecDeque;

/// The pool, in values; where it is in a device's memory is no business of this.
#[derive(Debug)]
pub(crate) struct Ring {
    capacity: usize,
    /// Where the next buffer would begin.
    head: usize,
    /// Buffers that are taken, the oldest first.
    taken: VecDeque<Taken>,
}

#[derive(Debug)]
struct Taken {
    ticket: u64,
    start: usize,
    is_done: bool,
}

impl Ring {
    pub fn new(capacity: usize) -> Self {
        Self { capacity, head: 0, taken: VecDeque::new() }
    }

    /// Takes a buffer of `len` values, at least one, if there is room; returns where it begins.
    pub fn take(&mut self, ticket: u64, len: usize) -> Option<usize> {
        let start = match self.taken.front() {
            None if len <= self.capacity => 0,
            None => return None,
            // From head to the end and from 0 to the oldest are free.
            Some(oldest) if self.head > oldest.start => {
                if self.head + len <= self.capacity {
                    self.head
                } else if len <= oldest.start {
                    0
                } else {
                    return None;
                }
            }
            // From head to the oldest is free; nothing where they meet.
            Some(oldest) if self.head + len <= oldest.start => self.head,
            Some(_) => return None,
        };
        self.head = start + len;
        self.taken.push_back(Taken { ticket, start, is_done: false });
        Some(start)
    }

    /// Gives a buffer back. Its place is free when those that were taken before it are given back too.
    pub fn give_back(&mut self, ticket: u64) {
        if let Some(taken) = self.taken.iter_mut().find(|taken| taken.ticket == ticket) {
            taken.is_done = true;
        }
        while self.taken.front().is_some_and(|oldest| oldest.is_done) {
            self.taken.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Layers of buffers, each posted in some order once the application has all of it: with twice the largest
        /// layer every buffer is found, and no two overlap.
        #[test]
        fn a_ring_of_twice_the_largest_layer_never_blocks(
            layers in vec(vec((1_usize..40, any::<u16>()), 1..5), 1..30),
            spare in 0_usize..50,
        ) {
            let largest = layers.iter().map(|layer| layer.iter().map(|buffer| buffer.0).sum::<usize>()).max();
            let mut ring = Ring::new(2 * largest.unwrap_or(0) + spare);
            let mut live: BTreeMap<u64, std::ops::Range<usize>> = BTreeMap::new();
            let mut ticket = 0;
            for layer in layers {
                let mut held = Vec::new();
                for (len, order) in layer {
                    let start = ring.take(ticket, len);
                    prop_assert!(start.is_some(), "no room for {len} in {ring:?}");
                    let place = start.unwrap_or_default()..start.unwrap_or_default() + len;
                    prop_assert!(place.end <= ring.capacity);
                    prop_assert!(live.values().all(|other| other.end <= place.start || place.end <= other.start));
                    live.insert(ticket, place);
                    held.push((order, ticket));
                    ticket += 1;
                }
                held.sort_unstable();
                for (_, ticket) in held {
                    ring.give_back(ticket);
                    live.remove(&ticket);
                }
            }
        }

        /// As far as there is room buffers are taken ahead, and never over each other.
        #[test]
        fn buffers_taken_ahead_never_overlap(lens in vec(1_usize..30, 1..80), choices in vec(any::<bool>(), 200)) {
            let mut ring = Ring::new(64);
            let mut live: VecDeque<(u64, std::ops::Range<usize>)> = VecDeque::new();
            let mut next = 0;
            for take in choices {
                if take && (next as usize) < lens.len() {
                    if let Some(start) = ring.take(next, lens[next as usize]) {
                        let place = start..start + lens[next as usize];
                        prop_assert!(place.end <= 64);
                        prop_assert!(live.iter().all(|(_, other)| other.end <= place.start || place.end <= other.start));
                        live.push_back((next, place));
                        next += 1;
                    }
                } else if let Some((ticket, _)) = live.pop_front() {
                    ring.give_back(ticket);
                }
            }
        }
    }

    #[test]
    fn a_full_ring_refuses_until_the_oldest_is_given_back() {
        let mut ring = Ring::new(10);
        assert_eq!(ring.take(0, 4), Some(0));
        assert_eq!(ring.take(1, 6), Some(4));
        assert_eq!(ring.take(2, 1), None);
        ring.give_back(1);
        assert_eq!(ring.take(2, 1), None);
        ring.give_back(0);
        assert_eq!(ring.take(2, 10), Some(0));
        assert_eq!(ring.take(3, 11), None);
    }
}

//! The best rows of a query so far.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A row that was found, and its product.
pub type Found = (u32, f32);

/// A candidate; the greatest is the worst.
#[derive(Clone, Copy, PartialEq)]
struct Candidate {
    row: u32,
    product: f32,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        other.product.total_cmp(&self.product).then(self.row.cmp(&other.row))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best rows of a query so far.
pub(super) struct Best<'l> {
    heap: BinaryHeap<Candidate>,
    n: usize,
    left_out: &'l [u32],
}

impl<'l> Best<'l> {
    /// Looks for `n` rows, without those left out, ascending.
    pub fn new(n: usize, left_out: &'l [u32]) -> Self {
        Self { heap: BinaryHeap::new(), n, left_out }
    }

    /// Takes in a row and its product.
    pub fn take(&mut self, row: u32, product: f32) {
        if !product.is_finite() || self.left_out.binary_search(&row).is_ok() {
            return;
        }
        // Zeros are equal, whatever their sign.
        let candidate = Candidate { row, product: product + 0.0 };
        if self.heap.len() < self.n {
            self.heap.push(candidate);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && candidate < *worst
        {
            *worst = candidate;
        }
    }

    /// Returns the least that a product has to be to be one of the best.
    pub fn least(&self) -> f32 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.n => worst.product,
            _ => f32::NEG_INFINITY,
        }
    }

    /// Returns the rows and their products, best first, ties by row.
    pub fn sorted(self) -> Vec<Found> {
        self.heap.into_sorted_vec().into_iter().map(|one| (one.row, one.product)).collect()
    }
}

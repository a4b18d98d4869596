//! The best rows of a query so far.

use std::cmp::Ordering;

/// A row that was found, and its product.
pub type Found = (u32, f32);

/// The best rows of a query so far, and others: all are chosen from once there are twice as many as asked for, which takes a few comparisons a row.
pub(super) struct Best<'l> {
    candidates: Vec<Found>,
    n: usize,
    /// The product of the worst of the best rows when they were last chosen.
    least: f32,
    left_out: &'l [u32],
}

/// Higher products first, then lower rows.
fn better((row, product): &Found, (other_row, other): &Found) -> Ordering {
    other.total_cmp(product).then(row.cmp(other_row))
}

impl<'l> Best<'l> {
    /// Looks for `n` rows, without those left out, ascending.
    pub fn new(n: usize, left_out: &'l [u32]) -> Self {
        Self { candidates: Vec::new(), n, least: f32::NEG_INFINITY, left_out }
    }

    /// Takes in a row and its product.
    pub fn take(&mut self, row: u32, product: f32) {
        // Most that may be among the best are not. Not a number is not at least anything.
        if !(product >= self.least && product.is_finite()) || self.left_out.binary_search(&row).is_ok() {
            return;
        }
        // Zeros are equal, whatever their sign.
        self.candidates.push((row, product + 0.0));
        if self.candidates.len() >= 2 * self.n {
            let (_, worst, _) = self.candidates.select_nth_unstable_by(self.n - 1, better);
            self.least = worst.1;
            self.candidates.truncate(self.n);
        }
    }

    /// Returns the least that a product has to be to be one of the best.
    pub fn least(&self) -> f32 {
        self.least
    }

    /// Returns the rows and their products, best first, ties by row.
    pub fn sorted(mut self) -> Vec<Found> {
        self.candidates.sort_unstable_by(better);
        self.candidates.truncate(self.n);
        self.candidates
    }
}

//! Where ratings are counted from, and in what unit.

use megagrid_datasets::Edges;
use megagrid_partition::EdgeSource;

use crate::Error;
use crate::error::reading;
use crate::input::Digest;

/// What training counts ratings by: that of nearly all of them, for one wrong rating of a million hides what all others say.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    deviation: f64,
    /// Ratings that are far from all others.
    far: u64,
}

/// What is farther from the mean, in standard deviations, is left out of both.
const FAR: f64 = 10.0;
/// Where the values have no scale of their own, some are far from what is left each time.
const MOST_ROUNDS: usize = 8;

impl Scale {
    /// Begins with what was found of all ratings.
    pub(super) fn of_all(digest: &Digest) -> Self {
        Self { mean: digest.mean, deviation: digest.deviation, far: 0 }
    }

    /// Finds the scale of nearly all ratings. All processes call it, before edges are distributed.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub(super) fn of(ratings: &Edges<f32>, digest: &Digest) -> Result<Self, Error> {
        let mut scale = Self::of_all(digest);
        let Some(range) = digest.range else { return Ok(scale) };
        let (mut left, mut ends) = (ratings.num_edges() as f64, range);
        for _ in 0..MOST_ROUNDS {
            let Self { mean, deviation, .. } = scale;
            if ends.iter().all(|end| (end - mean).abs() <= FAR * deviation) {
                break;
            }
            let off = |rating: f32| f64::from(rating) - mean;
            let is_near = |rating: f32| off(rating).abs() <= FAR * deviation;
            let sum = |value: &(dyn Fn(f32) -> f64 + Sync)| ratings.summarize(|&rating| value(rating)).map_err(reading);
            left = sum(&|rating| f64::from(u8::from(is_near(rating))))?.sum;
            let near = sum(&|rating| if is_near(rating) { off(rating) } else { 0.0 })?;
            let (shift, square) = (near.sum / left.max(1.0), near.squares / left.max(1.0));
            (scale.mean, scale.deviation) = (mean + shift, (square - shift * shift).max(0.0).sqrt());
            ends = near.range.map_or(ends, |ends| ends.map(|end| mean + end));
        }
        scale.far = (ratings.num_edges() as f64 - left) as u64;
        Ok(scale)
    }

    /// Tells of ratings that are far from all others, if there are some.
    pub(super) fn tell(&self, digest: &Digest, ratings: usize) {
        let Some([least, greatest]) = digest.range.filter(|_| self.far > 0) else { return };
        tracing::warn!(
            "{} of {ratings} ratings, which go from {least} to {greatest}, are far from all others, whose mean is {:.4}; they count as {FAR} \
             times the unit off",
            self.far,
            self.mean
        );
    }

    /// Returns the unit that training counts ratings in if nothing is said: the largest power of two that is no more than their standard
    /// deviation, which is 1 for stars (measured: deviations of 1 to 3 units are learned alike, smaller ones slower). By such a power factors,
    /// too, are scaled nearly without rounding.
    pub(super) fn unit(self) -> f32 {
        match self.deviation {
            deviation if deviation > 0.0 => 2_f32.powi(deviation.log2().floor().clamp(-120.0, 120.0) as i32),
            _ => 1.0,
        }
    }
}

//! Random streams and the distributions drawn from them.

use std::convert::Infallible;

use megagrid_partition::SplitMix;
use rand::TryRng;
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};

use crate::Error;

/// A stream that the crate `rand_distr` draws from.
pub(super) struct Random(pub(super) SplitMix);

impl Random {
    /// Makes the stream of an item. `purpose` tells apart the streams that one item needs.
    pub(super) fn new(seed: u64, purpose: u64, item: usize) -> Self {
        Self(SplitMix::new(seed ^ purpose << 56, item as u64))
    }

    /// Draws from the normal distribution of mean 0.
    pub(super) fn normal(&mut self, deviation: f64) -> f64 {
        let standard: f64 = StandardNormal.sample(self);
        deviation * standard
    }

    /// Draws an index with the chances that `weights` has tabulated.
    pub(super) fn pick(&mut self, weights: &WeightedAliasIndex<f64>) -> usize {
        weights.sample(self)
    }

    /// Draws from a Dirichlet distribution.
    pub(super) fn dirichlet(&mut self, concentrations: &[f64]) -> Vec<f64> {
        let mut gamma = |&shape: &f64| Gamma::new(shape, 1.0).map_or(0.0, |gamma| gamma.sample(self));
        let mut shares: Vec<f64> = concentrations.iter().map(&mut gamma).collect();
        let sum: f64 = shares.iter().sum();
        if sum > 0.0 {
            shares.iter_mut().for_each(|share| *share /= sum);
        } else {
            // All underflowed: with concentrations that small, one share is all but 1.
            let at = self.0.below(shares.len() as u64) as usize;
            shares[at] = 1.0;
        }
        shares
    }
}

impl TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.0.bits() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.bits())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.bits().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// Makes a Poisson distribution for the lengths of lists; refuses means out of range. `name` is that of the setting.
pub(super) fn lengths(name: &'static str, mean: f64) -> Result<Poisson<f64>, Error> {
    let poisson = Poisson::new(mean).ok().filter(|_| (1e-3..=1e6).contains(&mean));
    poisson.ok_or(Error::Setting { name, found: mean, expected: "0.001 to 1000000" })
}

/// Returns weights `1 / rank^exponent` for ranks 1 to `num_items`, summing to 1 [Zipf's law].
pub(super) fn zipf(num_items: usize, exponent: f64) -> Vec<f64> {
    let mut weights: Vec<f64> = (1..=num_items).map(|rank| (rank as f64).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    weights
}

/// Tabulates weights for [`Random::pick`].
///
/// # Panics
/// Where none of the weights is positive or one is not finite.
pub(super) fn alias_table(weights: Vec<f64>) -> WeightedAliasIndex<f64> {
    WeightedAliasIndex::new(weights).expect("the settings were checked: weights are finite, and one is positive")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirichlet_shares_sum_to_one_and_follow_their_concentrations() {
        let concentrations = [0.5, 1.0, 2.5];
        let mut means = [0.0; 3];
        for item in 0..10_000 {
            let shares = Random::new(1, 2, item).dirichlet(&concentrations);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            means.iter_mut().zip(shares).for_each(|(mean, share)| *mean += share / 10_000.0);
        }
        for (mean, concentration) in means.iter().zip(concentrations) {
            assert!((mean - concentration / 4.0).abs() < 0.01, "{means:?}");
        }
        let tiny = Random::new(1, 2, 0).dirichlet(&[1e-9; 4]);
        assert!((tiny.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{tiny:?}");
    }

    #[test]
    fn zipf_weights_fall_with_the_rank() {
        let weights = zipf(4, 1.0);
        assert!((weights[0] / weights[3] - 4.0).abs() < 1e-12);
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

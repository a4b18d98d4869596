//! The running likelihood: how likely words were when their topics were drawn.

use megagrid_stages::Combine;
use serde::{Deserialize, Serialize};

/// The logarithm of a product of many masses, each the sum of the weights that a token's topic was drawn by:
/// `Σ_k (n_dk + alpha_k) phi_kw`, counts without the token. Over `n_d - 1 + Σ_k alpha_k` it is the probability of the word in its
/// document, given all other tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// The logarithm of what `product` has no room for.
    log: f64,
    product: f64,
    /// Tokens drawn.
    tokens: u64,
}

impl Default for Drawn {
    fn default() -> Self {
        Self { log: 0.0, product: 1.0, tokens: 0 }
    }
}

impl Drawn {
    /// Adds a mass. A logarithm is taken once in dozens of them.
    #[inline(always)]
    pub(super) fn add(&mut self, mass: f32) {
        self.product *= f64::from(mass);
        self.tokens += 1;
        if !(1e-200..1e200).contains(&self.product) {
            self.settle();
        }
    }

    #[cold]
    fn settle(&mut self) {
        self.log += self.product.ln();
        self.product = 1.0;
    }
}

/// The draws of an iteration, or a clock of several, that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Draws {
    pub(super) drawn: Drawn,
    /// The sum of alpha that they were made with.
    pub(super) prior: f64,
}

impl Draws {
    /// Returns the mean logarithm of a token's probability, where tokens of documents with `lengths` had a topic drawn; `None`
    /// where none was weighed, as in the first iteration.
    #[must_use]
    pub fn per_token(&self, lengths: &[u64]) -> Option<f64> {
        let Drawn { log, product, tokens } = self.drawn;
        let others = |&length: &u64| length as f64 * (length.saturating_sub(1) as f64 + self.prior).ln();
        // Each token was weighed once in each iteration of the clock, but for its first draw.
        let all: u64 = lengths.iter().sum();
        let is_whole = tokens > 0 && tokens.is_multiple_of(all);
        let of_documents = || lengths.iter().filter(|length| **length > 0).map(others).sum::<f64>();
        is_whole.then(|| (log + product.ln() - (tokens / all) as f64 * of_documents()) / tokens as f64)
    }
}

impl Combine for Drawn {
    fn combine(&mut self, from: &mut Self) {
        let from = std::mem::take(from);
        self.log += from.log + from.product.ln();
        self.tokens += from.tokens;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_of_many_masses_keeps_its_logarithm() {
        let masses: Vec<f32> = (1..=5000).map(|n| n as f32 * 1e-3).collect();
        let (mut all, mut rest) = (Drawn::default(), Drawn::default());
        masses[..3000].iter().for_each(|&mass| all.add(mass));
        masses[3000..].iter().for_each(|&mass| rest.add(mass));
        all.combine(&mut rest);
        assert_eq!(rest, Drawn::default());
        let exact: f64 = masses.iter().map(|&mass| f64::from(mass).ln()).sum();
        let lengths = [1, 0, 4999];
        let others = 0.5_f64.ln() + 4999.0 * 4998.5_f64.ln();
        let draws = Draws { drawn: all, prior: 0.5 };
        let found = draws.per_token(&lengths).unwrap();
        assert!((found - (exact - others) / 5000.0).abs() < 1e-12, "{found}");
        assert_eq!((draws.per_token(&[4999]), Draws::default().per_token(&[])), (None, None));
    }
}

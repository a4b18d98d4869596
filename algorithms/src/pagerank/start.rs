//! What a run of PageRank is given, and what comes of it: the damping, first ranks, scores.

use serde::{Deserialize, Serialize};

/// What a page's master knows: the score, up to the common factor; what a link passes on of it for each unit of weight, d / the weight of
/// all links out of it (which each weigh 1 if nothing else is said), and 0 for a dangling page; the page's part of the restart
/// distribution.
pub type Rank = [f32; 3];

/// What all workers know.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// Mass that restarts, distributed by each page's `restart`.
    pub restart: f32,
    /// L1 change of the scores in the last iteration, over their sum.
    pub residual: f64,
    /// Sum of the scores.
    pub mass: f64,
    /// The smallest residual so far.
    least: f64,
    /// For how many iterations it has been that.
    stalled: u32,
}

/// A residual that is smaller may be made of rounding: sums of a million links lose as much in single precision.
const OF_ROUNDING: f64 = 1e-4;
/// Each iteration lessens the residual, but for rounding; where so many have not, none will.
const MOST_STALLED: u32 = 8;

impl State {
    /// Returns what all workers know after an iteration, of the sums of scores, of those of dangling pages, and of changes.
    #[must_use]
    pub fn after(damping: Damping, [mass, dangling, change]: [f64; 3]) -> Self {
        let d = damping.get();
        let (restart, residual) = (((1.0 - d) * mass + d * dangling) as f32, change / mass);
        Self { restart, residual, mass, least: residual, stalled: 0 }
    }

    /// Remembers what the residuals were until the state before.
    pub(super) fn since(self, before: &Self) -> Self {
        if self.residual < before.least {
            return self;
        }
        Self { least: before.least, stalled: before.stalled + 1, ..self }
    }

    /// Tells whether single precision allows no smaller residual.
    #[must_use]
    pub fn is_at_rounding(&self) -> bool {
        self.residual < OF_ROUNDING && self.stalled >= MOST_STALLED
    }
}

/// The chance of following a link, in (0, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Damping(f64);

impl Damping {
    /// The usual choice.
    pub const DEFAULT: Self = Self(0.85);

    /// Checks a damping.
    ///
    /// # Errors
    /// A value outside (0, 1).
    pub fn new(damping: f64) -> Result<Self, crate::Error> {
        if damping > 0.0 && damping < 1.0 {
            Ok(Self(damping))
        } else {
            Err(crate::Error::setting("damping", damping, "a number above 0 and below 1, 0.85 say"))
        }
    }

    /// Returns the chance.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Where a surfer restarts: the chance of each page. They sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Restart(Vec<f32>);

impl Restart {
    /// Takes pages and their weights; a page may be there several times, and those that are not there have a chance of 0.
    ///
    /// # Errors
    /// Weights that are below 0 or no numbers, or that sum to 0 or to no finite number.
    ///
    /// # Panics
    /// Where a page is not below `pages`.
    pub fn new(pages: usize, weights: &[(usize, f64)]) -> Result<Self, crate::Error> {
        if let Some((_, weight)) = weights.iter().find(|(_, weight)| !(weight.is_finite() && *weight >= 0.0)) {
            return Err(crate::Error::setting("weight of a restart", weight, "a finite number, 0 or above"));
        }
        // The sum of nothing would be -0.
        let sum = weights.iter().fold(0.0, |sum, (_, weight)| sum + weight);
        if !(sum.is_finite() && sum > 0.0) {
            let expected = "a finite number above 0, so that there is a page to restart at";
            return Err(crate::Error::setting("sum of the weights of restarts", sum, expected));
        }
        let mut chances = vec![0.0; pages];
        weights.iter().for_each(|&(page, weight)| chances[page] += weight / sum);
        Ok(Self(chances.into_iter().map(|chance| chance as f32).collect()))
    }

    /// Returns the chance of each page.
    #[must_use]
    pub fn chances(&self) -> &[f32] {
        &self.0
    }
}

/// The start of a run: every page has its part of the restart distribution, or the score that it had.
pub struct Start<'s> {
    damping: Damping,
    pages: usize,
    /// The weight of all links out of a page.
    out_weight: &'s (dyn Fn(usize) -> f64 + Sync),
    /// Uniform if absent.
    restart: Option<&'s Restart>,
    /// Scores of an earlier run, by page; of new pages nothing.
    scores: &'s [Option<f32>],
}

impl<'s> Start<'s> {
    /// Begins with restarts at some pages, or at all, equally likely. `out_weight` is the weight of all links out of a page: their number
    /// where they have no weights.
    #[must_use]
    pub fn new(
        damping: Damping,
        pages: usize,
        restart: Option<&'s Restart>,
        out_weight: &'s (dyn Fn(usize) -> f64 + Sync),
    ) -> Self {
        Self { damping, pages, out_weight, restart, scores: &[] }
    }

    /// Begins with the scores that pages had, if there are any. Those of pages that have gone are missed: the scores are up to a common factor.
    #[must_use]
    pub fn at(self, scores: &'s [Option<f32>]) -> Self {
        let is_any = scores.iter().flatten().any(|&score| score > 0.0);
        Self { scores: if is_any { scores } else { &[] }, ..self }
    }

    /// Returns a page's first rank and what it passes on along a link of weight 1.
    #[must_use]
    pub fn page(&self, page: usize) -> (Rank, f32) {
        let restart = self.restart.map_or(1.0 / self.pages as f32, |restart| restart.0[page]);
        let weight = (self.out_weight)(page);
        let per_link = if weight == 0.0 { 0.0 } else { (self.damping.get() / weight) as f32 };
        let score = self.scores.get(page).copied().flatten().unwrap_or(restart);
        ([score, per_link, restart], score * per_link)
    }

    /// Returns what all workers know before the first iteration.
    #[must_use]
    pub fn state(&self) -> State {
        let (mut mass, mut dangling) = (0.0, 0.0);
        for [score, per_link, _] in (0..self.pages).map(|page| self.page(page).0) {
            mass += f64::from(score);
            dangling += if per_link == 0.0 { f64::from(score) } else { 0.0 };
        }
        // The parts of a distribution sum to 1, but for rounding.
        let mass = if self.scores.is_empty() { 1.0 } else { mass };
        State::after(self.damping, [mass, dangling, f64::INFINITY])
    }
}

/// Returns the scores, which sum to 1, from the ranks.
#[must_use]
pub fn scores(ranks: impl Iterator<Item = Rank>) -> Vec<f32> {
    let mut scores: Vec<f32> = ranks.map(|rank| rank[0]).collect();
    let sum: f64 = scores.iter().map(|&score| f64::from(score)).sum();
    scores.iter_mut().for_each(|score| *score = (f64::from(*score) / sum) as f32);
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_chances_that_sum_to_one() {
        let restart = Restart::new(4, &[(3, 1.0), (0, 2.0), (3, 5.0)]).unwrap();
        assert_eq!(restart.chances(), [0.25, 0.0, 0.0, 0.75]);
        // None of these overflows on its way to a chance.
        assert_eq!(Restart::new(2, &[(0, 1e300), (1, 3e300)]).unwrap().chances(), [0.25, 0.75]);
        for weights in [&[][..], &[(0, 0.0)], &[(0, 1.0), (1, -1.0)], &[(0, f64::NAN)], &[(0, f64::MAX), (1, f64::MAX)]]
        {
            assert!(Restart::new(2, weights).is_err(), "{weights:?}");
        }
    }

    #[test]
    fn a_residual_that_no_longer_falls_is_made_of_rounding() {
        let mut state = State::after(Damping::DEFAULT, [1.0, 0.0, f64::INFINITY]);
        let mut next = |residual: f64| {
            state = State::after(Damping::DEFAULT, [1.0, 0.0, residual]).since(&state);
            state.is_at_rounding()
        };
        assert!([1e-2, 1e-3, 1e-5].iter().all(|&residual| !next(residual)));
        assert!((0..7).all(|_| !next(1.1e-5)) && next(1.1e-5) && next(1e-5) && !next(0.9e-5));
        // One that is larger is of a graph that settles slowly.
        assert!((0..20).all(|_| !next(1e-3)));
    }
}

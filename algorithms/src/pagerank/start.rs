//! What a run of PageRank is given, and what comes of it: the damping, first ranks, scores.

use serde::{Deserialize, Serialize};

/// What a page's master knows: the score, up to the common factor; what each link passes on of it, d / outdegree, and 0 for a
/// dangling page; the page's part of the restart distribution.
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

/// The start of a run: every page has its part of the restart distribution.
pub struct Start<'s> {
    damping: Damping,
    pages: usize,
    out_degree: &'s (dyn Fn(usize) -> u64 + Sync),
    /// Restart probability of each page; uniform if absent.
    restart: Option<Vec<f32>>,
}

impl<'s> Start<'s> {
    /// Begins with restarts at the pages `sources`, equally likely; at all pages if there are none.
    #[must_use]
    pub fn new(
        damping: Damping,
        pages: usize,
        sources: &[usize],
        out_degree: &'s (dyn Fn(usize) -> u64 + Sync),
    ) -> Self {
        let restart = (!sources.is_empty()).then(|| {
            let mut restart = vec![0.0; pages];
            sources.iter().for_each(|&page| restart[page] += 1.0 / sources.len() as f32);
            restart
        });
        Self { damping, pages, out_degree, restart }
    }

    /// Returns a page's first rank and what it passes on along each link.
    #[must_use]
    pub fn page(&self, page: usize) -> (Rank, f32) {
        let restart = self.restart.as_ref().map_or(1.0 / self.pages as f32, |restart| restart[page]);
        let links = (self.out_degree)(page);
        let per_link = if links == 0 { 0.0 } else { (self.damping.get() / links as f64) as f32 };
        ([restart, per_link, restart], restart * per_link)
    }

    /// Returns what all workers know before the first iteration.
    #[must_use]
    pub fn state(&self) -> State {
        let d = self.damping.get();
        let ranks = (0..self.pages).map(|page| self.page(page).0);
        let dangling: f64 = ranks.filter(|rank| rank[1] == 0.0).map(|rank| f64::from(rank[0])).sum();
        State { restart: ((1.0 - d) + d * dangling) as f32, residual: f64::INFINITY, mass: 1.0 }
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

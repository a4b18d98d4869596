//! What a run found when it was looked at: whether it has settled is told by the objective before.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Error, past};

/// All looks, beside checkpoints.
const FILE: &str = "looks.json";

/// What was found after an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Look {
    /// After which iteration.
    pub iteration: u64,
    /// The exact objective.
    pub objective: f64,
    /// The tolerance that it was held against.
    pub tolerance: f64,
    /// Whether that was reached.
    pub has_converged: bool,
}

/// The looks of a run with a tolerance, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks(Vec<Look>);

impl Looks {
    /// Takes a look.
    pub fn push(&mut self, look: Look) {
        self.0.push(look);
    }

    /// Returns the last objective of a leg that began after `since` iterations.
    pub fn before(&self, since: u64) -> Option<f64> {
        self.0.last().filter(|last| last.iteration > since).map(|last| last.objective)
    }

    /// Tells whether a tolerance was reached after this iteration.
    pub fn has_converged(&self, iteration: u64, tolerance: f64) -> bool {
        self.0
            .last()
            .is_some_and(|last| last.iteration == iteration && last.has_converged && last.tolerance <= tolerance)
    }

    /// Saves all of them beside the checkpoint that is about to be written.
    pub fn save(&self, directory: &Path) -> Result<(), Error> {
        past::save(&self.0, directory, FILE)
    }

    /// Goes on from the checkpoint of `iterations` in a directory; those of earlier versions have no looks.
    pub fn load(directory: &Path, iterations: u64) -> Result<Self, Error> {
        let all = past::load::<Look>(directory, FILE)?;
        Ok(Self(all.into_iter().filter(|look| look.iteration <= iterations).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_gone_on_with_from_any_checkpoint() {
        let place = tempfile::tempdir().unwrap();
        let mut looks = Looks::default();
        for (iteration, objective, has_converged) in [(2, 9.0, false), (4, 8.0, false), (6, 8.0, true)] {
            looks.push(Look { iteration, objective, tolerance: 0.1, has_converged });
        }
        looks.save(place.path()).unwrap();
        let at = |iterations| Looks::load(place.path(), iterations).unwrap();
        assert_eq!((at(5).before(0), at(3).before(0), at(3).before(2)), (Some(8.0), Some(9.0), None));
        assert!(at(6).has_converged(6, 0.1) && !at(6).has_converged(6, 0.01) && !at(5).has_converged(4, 0.1));
        Looks::default().save(place.path()).unwrap();
        assert_eq!(at(6).before(0), None);
    }
}

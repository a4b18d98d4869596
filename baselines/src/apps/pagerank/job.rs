//! What is to be ranked, and what all systems need of it.

use std::collections::BTreeMap;

use megagrid_algorithms::pagerank::{Damping, Start, State};
use megagrid_partition::EdgeList;

use crate::job::Measured;

/// What is to be ranked.
#[derive(Clone, Copy, Debug)]
pub struct Job<'j> {
    /// Links.
    pub graph: &'j EdgeList<()>,
    /// The chance of following a link.
    pub damping: Damping,
}

impl Job<'_> {
    /// Calls `each` with the start of a run.
    pub(super) fn start<T>(&self, each: impl FnOnce(&Start<'_>) -> T) -> T {
        let mut degrees = vec![0_u64; self.graph.num_left];
        self.graph.left.iter().for_each(|&page| degrees[page as usize] += 1);
        each(&Start::new(self.damping, degrees.len(), None, &|page| degrees[page] as f64))
    }
}

/// Returns the objective and the metrics of a state.
pub(super) fn measured(state: &State) -> Measured {
    (state.residual, BTreeMap::from([("residual", state.residual)]))
}

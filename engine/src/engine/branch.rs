//! Branches: several states of one run, of which one at a time is in the engine and runs.
//!
//! A branch is what training changes, as it is between two iterations: all four roles of the vertices of both sides, edge data in
//! slices (the topics of tokens), the shared context and the iterations done, from which random numbers follow. It is the same
//! that a [checkpoint](crate::checkpoint) holds, in memory and in the plan's layout; saving a checkpoint saves the branch that is
//! in the engine. Edges, their ids, and data of one item per edge are the input's: all branches share them.
//!
//! To fork is to copy, each worker its own shards; to switch is to exchange pointers. Memory of branches that were freed is used
//! again. Between two runs of the engine nothing is under way, so each of several processes forks, switches and frees what it
//! keeps by itself; all have to do so at the same place.

use std::sync::Arc;

use megagrid_stages::{EdgeItem, Program, Store};

use super::estimate;
use crate::Error;
use crate::grid::{Disjoint, VertexArrays, same_arrays};
use crate::run::Run;

/// A state of a run that is not in the engine.
pub struct Branch<P: Program> {
    pub(super) left: Arc<VertexArrays<P::Left>>,
    pub(super) right: Arc<VertexArrays<P::Right>>,
    /// Data of edges; none unless they are slices.
    pub(super) edges: Vec<Disjoint<EdgeItem<P>>>,
    pub(super) global: Arc<P::Global>,
    pub(super) iterations: u64,
    /// Of which edges of the engine it is a state.
    pub(super) edition: u64,
}

impl<P: Program> Branch<P> {
    /// Returns the iterations that it has done.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Makes room for a state of the same run.
    pub(super) fn like(run: &Run<P>, edition: u64) -> Result<Self, Error> {
        let grid = &run.grid;
        estimate::check(grid.branch_bytes())?;
        let left = Arc::new(grid.left.like()?);
        let right = if grid.is_square() { same_arrays::<P>(&left) } else { Arc::new(grid.right.like()?) };
        let data = if P::Edge::SHAPE.is_slice() { &grid.data[..] } else { &[] };
        let edges = data.iter().map(Disjoint::like).collect::<Result<_, _>>()?;
        Ok(Self { left, right, edges, global: run.globals.current(), iterations: 0, edition })
    }
}

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

use megagrid_stages::{EdgeItem, Left, On, Program, Right, Sequence, Stages, Store};

use crate::engine::{Engine, Settings, Shared, make_plan, replicas, same_arrays, with_crossings};
use crate::grid::{Disjoint, Grid, Source, VertexArrays};
use crate::plan::Plan;
use crate::stage::{Collect, hold};
use crate::{Error, memory, os, sync};

/// A state of a run that is not in the engine.
pub struct Branch<P: Program> {
    left: Arc<VertexArrays<P::Left>>,
    right: Arc<VertexArrays<P::Right>>,
    /// Data of the edges of each right shard; none unless they are slices.
    edges: Vec<Disjoint<EdgeItem<P>>>,
    global: Arc<P::Global>,
    iterations: u64,
}

impl<P: Program> Branch<P> {
    /// Returns the iterations that it has done.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    fn like(shared: &Shared<P>) -> Result<Self, Error> {
        let grid = &shared.grid;
        memory::check(grid.branch_bytes())?;
        let left = Arc::new(grid.left.like()?);
        let right = if grid.is_square() { same_arrays::<P>(&left) } else { Arc::new(grid.right.like()?) };
        let columns = if P::Edge::SHAPE.is_slice() { &grid.columns[..] } else { &[] };
        let edges = columns.iter().map(|column| column.data.like()).collect::<Result<_, _>>()?;
        Ok(Self { left, right, edges, global: shared.globals.current(), iterations: 0 })
    }
}

impl<P: Program> Engine<P> {
    /// Copies the state of the run to a new branch, between iterations.
    ///
    /// # Complexity
    /// A copy of the vertex data, and of edge data in slices, by all workers.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn fork(&mut self) -> Result<Branch<P>, Error> {
        let mut branch = match self.spare.pop() {
            Some(branch) => branch,
            None => Branch::like(&self.shared)?,
        };
        let Shared { plan, grid, globals, .. } = &*self.shared;
        let copy = |worker: usize| {
            if !grid.is_square() {
                copy_side::<P, Left>(plan, worker, grid, &branch.left);
            }
            copy_side::<P, Right>(plan, worker, grid, &branch.right);
            let columns = grid.columns.iter().zip(&branch.edges);
            for (column, into) in columns.skip(worker % plan.threads()).step_by(plan.threads()) {
                hold(|| into.try_copy(&column.data, 0..into.num_pieces()));
            }
        };
        std::thread::scope(|threads| {
            let workers = plan.local_workers();
            for worker in workers.clone().skip(1) {
                threads.spawn(move || {
                    os::keep_current_thread_on(&plan.homes[worker].processors);
                    copy(worker);
                });
            }
            copy(workers.start);
        });
        branch.global = globals.current();
        branch.iterations = self.done;
        Ok(branch)
    }

    /// Exchanges the state of the run with a branch of this engine: what ran is then in the branch, and the next
    /// [`Engine::run_until`] goes on with what the branch had.
    ///
    /// # Errors
    /// A run that failed and left threads behind.
    pub fn switch(&mut self, branch: &mut Branch<P>) -> Result<(), Error> {
        let shared = Arc::get_mut(&mut self.shared).ok_or(Error::Running)?;
        std::mem::swap(&mut shared.grid.left, &mut branch.left);
        std::mem::swap(&mut shared.grid.right, &mut branch.right);
        for (column, data) in shared.grid.columns.iter_mut().zip(&mut branch.edges) {
            std::mem::swap(&mut column.data, data);
        }
        shared.globals.swap(&mut branch.global);
        std::mem::swap(&mut self.done, &mut branch.iterations);
        Ok(())
    }

    /// Ends a branch of this engine, whose memory the next one takes.
    pub fn free(&mut self, branch: Branch<P>) {
        self.spare.push(branch);
    }

    /// Lets the run go on with other stage functions, another slack, vector level or injection, on the same grid. `source` is
    /// what the engine was made of; settings that are not named here have to be those that it was made with.
    ///
    /// # Errors
    /// [`Error::OtherGrid`]: the edges would have to be laid out anew, as for other workers, mini-batches, row widths or
    /// another seed; what making a plan refuses; [`Error::Running`] from within a run.
    pub fn reconfigure<'s, T: 's, S: Stages<P>>(
        &mut self,
        source: impl Into<Source<'s, T, P>>,
        sequence: Sequence<P, S>,
        settings: &Settings,
    ) -> Result<(), Error> {
        let (collect, body) = Collect::from(&sequence)?;
        let (mut plan, _) = make_plan::<P, T>(&source.into(), collect.infos, &body, settings)?;
        let shared = Arc::get_mut(&mut self.shared).ok_or(Error::Running)?;
        let is_same = settings.dims == shared.dims && settings.seed == shared.seed;
        if !is_same || !plan.has_grid_of(&shared.plan) {
            return Err(Error::OtherGrid);
        }
        plan.traffic = shared.sync.as_ref().and_then(|sync| sync::predict::<P>(&plan, &sync.mirrors, settings.dims));
        plan.placement = shared.plan.placement;
        shared.replicas = replicas::<P>(&plan, shared.sync.as_ref(), settings)?;
        shared.stages = with_crossings(collect.stages, &plan);
        shared.grid.level = settings.level;
        shared.inject = settings.inject;
        shared.plan = Arc::new(plan);
        Ok(())
    }
}

/// Copies the shards of a side that a worker keeps.
fn copy_side<P: Program, O: On<P>>(plan: &Plan, worker: usize, grid: &Grid<P>, into: &VertexArrays<O::Vertex>) {
    for shard in plan.shards_at(O::SIDE, worker) {
        hold(|| into.try_copy(grid.rows::<O>(), &grid.pieces(O::SIDE).of(shard..shard + 1)));
    }
}

//! Forking, switching and freeing branches, and going on with other stage functions.

use std::sync::Arc;

use megagrid_partition::ShardId;
use megagrid_stages::{Left, On, Program, Right, Sequence, Stages, Store};

use super::Engine;
use super::branch::Branch;
use super::build::with_slack;
use super::planning::make_plan;
use super::settings::Settings;
use crate::Error;
use crate::grid::{self, Grid, Source, VertexArrays, hold, on_workers};
use crate::plan::Plan;
use crate::run::Run;
use crate::stages::Collected;
use crate::sync;

impl<P: Program> Engine<P> {
    /// Copies the state of the run to a new branch, between iterations. What edges carry is part of it only where that is a slice: data of
    /// one item an edge are the input's, and all branches share them, also where a stage changes them.
    ///
    /// # Complexity
    /// A copy of the vertex data, and of edge data in slices, by all workers.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn fork(&mut self) -> Result<Branch<P>, Error> {
        let mut branch = match self.spare.pop() {
            Some(branch) => branch,
            None => Branch::like(&self.run, self.edition)?,
        };
        let Run { plan, grid, globals, .. } = &*self.run;
        on_workers(plan, |worker| {
            if !grid.is_square() {
                copy_side::<P, Left>(plan, worker, grid, &branch.left);
            }
            copy_side::<P, Right>(plan, worker, grid, &branch.right);
            for (shard, column) in grid.columns.iter().enumerate() {
                let Some(into) = branch.edges.get(column.data) else { continue };
                let is_own = |block: &usize| plan.writer_of_block(*block, ShardId(shard)).0 == worker;
                for block in (0..column.edges.blocks().len()).filter(is_own) {
                    hold(|| into.try_copy(grid.data_of(shard), column.piece(block)));
                }
            }
        });
        branch.global = globals.current();
        branch.iterations = self.done;
        Ok(branch)
    }

    /// Exchanges the state of the run with a branch of this engine: what ran is then in the branch, and the next
    /// [`Engine::run_until`] goes on with what the branch had.
    ///
    /// # Errors
    /// A branch that was forked before edges [came](Self::append) or [went](Self::remove); a run that failed and left threads behind.
    pub fn switch(&mut self, branch: &mut Branch<P>) -> Result<(), Error> {
        if branch.edition != self.edition {
            return Err(Error::BranchOfOtherEdges);
        }
        let run = Arc::get_mut(&mut self.run).ok_or(Error::Running)?;
        std::mem::swap(&mut run.grid.left, &mut branch.left);
        std::mem::swap(&mut run.grid.right, &mut branch.right);
        run.grid.awake = grid::awake::<P::Right>(&run.grid.columns);
        if P::Edge::SHAPE.is_slice() {
            std::mem::swap(&mut run.grid.data, &mut branch.edges);
        }
        run.globals.swap(&mut branch.global);
        std::mem::swap(&mut self.done, &mut branch.iterations);
        Ok(())
    }

    /// Ends a branch of this engine, whose memory the next one takes.
    pub fn free(&mut self, branch: Branch<P>) {
        if branch.edition == self.edition {
            self.spare.push(branch);
        }
    }

    /// Lets the run go on with other stage functions, another slack, vector level or injection, on the same grid. `source` is
    /// what the engine was made of, with all that [came](Self::append) since; settings that are not named here have to be those that it was made with.
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
        let program = Collected::of(&sequence)?;
        let (mut plan, _) = make_plan(&source.into(), &program, settings)?;
        let run = Arc::get_mut(&mut self.run).ok_or(Error::Running)?;
        let is_same = settings.dims == run.dims && settings.seed == run.seed;
        if !is_same || !plan.has_grid_of(&run.plan) {
            return Err(Error::OtherGrid);
        }
        plan.traffic = run.sync.as_ref().and_then(|sync| sync::predict::<P>(&plan, &sync.mirrors, settings.dims));
        plan.quality = run.plan.quality;
        (run.replicas, run.served) = with_slack::<P>(&plan, run.sync.as_ref(), settings)?;
        run.stages = program.with_crossings(&plan);
        run.grid.level = settings.level;
        run.inject = settings.inject;
        run.plan = Arc::new(plan);
        (self.program, self.settings) = (program, settings.clone());
        Ok(())
    }
}

/// Copies the shards of a side that a worker keeps, and the deltas of its own.
fn copy_side<P: Program, O: On<P>>(plan: &Plan, worker: usize, grid: &Grid<P>, into: &VertexArrays<O::Vertex>) {
    let (from, thread) = (grid.rows::<O>(), worker % plan.threads());
    for (ShardId(shard), keeper) in plan.writers_of_rows(O::SIDE) {
        let pieces = grid.pieces(O::SIDE).of(shard..shard + 1);
        if keeper.0 == worker {
            hold(|| into.try_copy(from, &pieces));
        }
        if into.has_partials() {
            hold(|| into.try_copy_deltas(from, pieces.clone(), thread));
        }
    }
}

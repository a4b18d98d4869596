//! The engine: a program on a graph, ready to run.

mod append;
mod batches;
mod branch;
mod branches;
mod build;
mod carry;
mod changed_edges;
mod estimate;
mod fork;
mod memory;
mod planning;
mod settings;
mod vertices;

use std::ops::ControlFlow;
use std::sync::Arc;

use bytemuck::Zeroable;
use megagrid_partition::{ProcessId, ShardId, WorkerId};
use megagrid_stages::{
    Combine, Context, Exchange, First, IntoExchange, IntoIncident, On, Program, Store, Vertex, mode,
};

pub use batches::Batches;
pub use branch::Branch;
pub use branches::Branches;
pub use memory::MEMORY;
pub use planning::plan;
pub use settings::Settings;
pub use vertices::Vertices;

use crate::Error;
use crate::grid::{Grid, hold, on_workers};
use crate::plan::{Plan, Task};
use crate::run::{self, IterationReport, Run};
use crate::stages::{Collected, Scratch, exchange, visit};

/// A program on a graph, ready to run.
///
/// # Examples
/// ```
/// use megagrid_datasets::Edges;
/// use megagrid_engine::{Engine, Settings};
/// use megagrid_stages::*;
///
/// vertex! { struct Page { sync: u32, delta: u32 } }
/// program! { struct Links { vertices: Page } }
///
/// let links = Edges::square(3, [(0, 2), (1, 2), (2, 0)]).unwrap();
/// let count = Sequence::new()
///     .exchange(|_: Read<Page>, to: Add<Page>| *to.delta += 1)
///     .apply(Right, |page: Master<Page>| *page.sync = *page.delta);
/// let mut engine = Engine::<Links>::new(&links, count, &Settings::default())?;
/// engine.iterate(1)?;
/// assert!(engine.on(Right).iter().eq(&[1, 0, 2]));
/// # Ok::<(), megagrid_engine::Error>(())
/// ```
pub struct Engine<P: Program> {
    pub(crate) run: Arc<Run<P>>,
    /// What the run was made of, beside the edges.
    program: Collected<P>,
    settings: Settings,
    pub(crate) done: u64,
    reports: Vec<IterationReport>,
    /// Memory of branches that were freed.
    pub(crate) spare: Vec<Branch<P>>,
    /// How often edges came or went.
    edition: u64,
    /// Where the edges of each vertex begin among those of all processes, left and right, once edges came or went.
    offsets: Option<[Vec<u64>; 2]>,
}

impl<P: Program> Engine<P> {
    /// Returns what was decided.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.run.plan
    }

    /// Returns the memory of the run.
    #[must_use]
    pub fn grid(&self) -> &Grid<P> {
        &self.run.grid
    }

    /// Returns the number of iterations done.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.done
    }

    /// Returns reports of the iterations since the look before the last one, in order: with slack, workers may have gone on from one
    /// to the next without a look.
    #[must_use]
    pub fn reports(&self) -> &[IterationReport] {
        &self.reports
    }

    /// Returns the latest shared context.
    #[must_use]
    pub fn global(&self) -> Arc<P::Global> {
        self.run.globals.current()
    }

    /// Sets the shared context, between iterations. It begins as its default.
    pub fn set_global(&mut self, global: P::Global) {
        self.run.globals.set(global);
    }

    /// Continues a run: sets the shared context and how many iterations are done.
    pub fn resume(&mut self, iterations: u64, global: P::Global) {
        self.done = iterations;
        self.set_global(global);
    }

    /// Sets the first values of a side's vertices by id, on the threads that will keep them. Both sides of a square graph
    /// are the same vertices. Deltas begin at zero; once edges came or went, those that are not applied yet stay. Between two runs:
    /// within one of several processes with slack, masters go on from the rows that they had.
    ///
    /// # Panics
    /// Where the padding of a row is not left at zero.
    pub fn init<O: On<P>>(&mut self, _: O, set: impl Fn(usize, First<'_, O::Vertex>) + Sync) {
        let Run { plan, grid, .. } = &*self.run;
        let (arrays, pieces, order) = (grid.rows::<O>(), grid.pieces(O::SIDE), grid.order(O::SIDE));
        let is_first = self.edition == 0;
        on_workers(&self.run.plan, |worker| {
            let thread = worker % plan.threads();
            let copy = if arrays.has_partials() { thread } else { 0 };
            for (ShardId(shard), keeper) in plan.writers_of_rows(O::SIDE) {
                let pieces = pieces.of(shard..shard + 1);
                if keeper.0 != worker {
                    // Its own deltas of others' rows.
                    if is_first && arrays.has_partials() {
                        hold(|| arrays.try_clear_deltas(pieces.clone(), thread));
                    }
                    continue;
                }
                let mut owned = hold(|| arrays.try_own_copies(pieces.clone(), copy..copy + 1));
                let padding = owned.padding.clone();
                for row in owned.each_row() {
                    let first = First {
                        sync: <O::Vertex as Vertex>::Sync::view_mut(row.sync),
                        master: <O::Vertex as Vertex>::Master::view_mut(row.master),
                        mirror: <O::Vertex as Vertex>::Mirror::view_mut(row.mirror),
                    };
                    // The first write maps a page near its writer; one after a read would interrupt all processors.
                    if is_first {
                        row.delta.fill(Zeroable::zeroed());
                    }
                    set(order.id(row.row), first);
                    row.assert_padding(&padding, || "init".to_owned());
                }
            }
        });
    }

    /// Runs a stage on every vertex of a side with the data of all its edges, between iterations: for data that is looked at
    /// only then. Each worker begins with a new context. With several processes each runs it on the vertices that it keeps.
    ///
    /// # Panics
    /// When no stage of the sequence is an Incident on that side.
    pub fn visit<O: On<P>, A: IntoIncident<P, O::Vertex, F>, F>(&mut self, _: O, stage: A) {
        let stage = stage.into_stage();
        let Run { plan, grid, .. } = &*self.run;
        let shape = plan.side(O::SIDE);
        let is_indexed = grid.places[O::SIDE as usize].len() == shape.num_shards();
        assert!(is_indexed, "a stage of the sequence visits the {} side's vertices with their edges", O::SIDE);
        let (global, iteration) = (self.global(), self.done);
        on_workers(&self.run.plan, |worker| {
            let (mut context, mut scratch) = (P::Worker::default(), Scratch::default());
            let mut cx = Context { worker: &mut context, global: &*global, iteration, seed: 0 };
            for shard in (0..shape.num_shards()).filter(|&shard| shape.owners[shard] == worker) {
                hold(|| visit::<P, O, _>(&stage, (grid, plan), shard, &mut scratch, &mut cx));
            }
        });
    }

    /// Runs `n` more iterations.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub fn iterate(&mut self, n: u64) -> Result<(), Error> {
        self.run_until(self.done.saturating_add(n), |_, _| Ok(false))
    }

    /// Runs iterations until `last` are done in all, or `between` returns `true`. `between` is given the engine at each look, and
    /// what is to be said of the last iteration; [`reports`](Self::reports) has those before it too. There is a look after each
    /// iteration, but where slack lets iterations flow into each other: see [`Settings::look_every`]. With several processes all
    /// of them end where one of them does.
    ///
    /// # Errors
    /// A stage function that panics; a lost process; what `between` fails with, which is [`Error::Stopped`] if it is an error of another kind; [`Error::Running`] from within `between`, or
    /// after a run whose threads could not be ended.
    pub fn run_until(
        &mut self,
        last: u64,
        mut between: impl FnMut(&mut Self, &IterationReport) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        Arc::get_mut(&mut self.run).ok_or(Error::Running)?;
        memory::tell(&self.run.grid);
        let state = Arc::clone(&self.run);
        let mut failed = None;
        let done = run::run(&state, self.done, last, &mut |reports| {
            let Some(report) = reports.last().cloned() else { return ControlFlow::Continue(()) };
            (self.done, self.reports) = (report.iteration, reports);
            match between(self, &report) {
                Ok(false) => ControlFlow::Continue(()),
                Ok(true) => ControlFlow::Break(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => {
                self.done = done?;
                Ok(())
            }
        }
    }

    /// Runs a function that only adds to its context on every edge, between iterations, and returns the sum of all workers'
    /// contexts, combined in ascending order: for objectives and the like. With several processes all of them call it.
    ///
    /// # Errors
    /// A lost process.
    pub fn total<E, F>(&mut self, stage: E) -> Result<P::Worker, Error>
    where
        E: IntoExchange<P, F, Stage: Exchange<P, Left = mode::Read, Right = mode::Read>>,
    {
        run::refresh(&self.run, self.done)?;
        let stage = stage.into_stage();
        let mine = on_workers(&self.run.plan, |worker| self.part_of_total(&stage, worker));
        let mut total = P::Worker::default();
        for mut part in run::all_gather(self.run.peers.as_deref(), mine)? {
            total.combine(&mut part);
        }
        Ok(total)
    }

    /// Runs a function on those edges that a worker runs in an iteration and that this process answers for.
    fn part_of_total<E: Exchange<P, Left = mode::Read, Right = mode::Read>>(
        &self,
        stage: &E,
        worker: usize,
    ) -> P::Worker {
        let Run { plan, grid, .. } = &*self.run;
        let mut context = P::Worker::default();
        let global = self.global();
        let mut cx = Context { worker: &mut context, global: &*global, iteration: self.done, seed: 0 };
        let this = ProcessId(plan.processes.this);
        for right in (0..plan.right.num_shards()).map(ShardId) {
            // Edges may be in the processes of both their ends.
            let is_run_here =
                |left: ShardId| plan.answers_for(left, right) && plan.runner(this, left, right) == WorkerId(worker);
            for lefts in runs_of(plan.left.num_shards(), |left| is_run_here(ShardId(left))) {
                let task = Task::new(lefts, right.0..right.0 + 1, 0..plan.layers);
                hold(|| exchange(stage, grid, plan, worker, &task, &mut cx));
            }
        }
        context
    }

    /// Brings all vertices' data to the first process, whose views then show every vertex as it is; those of others show
    /// what they keep. With several processes all of them call it; with one there is nothing to do.
    ///
    /// # Errors
    /// A lost process.
    pub fn collect(&mut self) -> Result<(), Error> {
        run::collect(&self.run, self.done)
    }

    /// Finds whether something succeeded in every process, which all of them call: the first that failed keeps its error,
    /// and the others get [`Error::Elsewhere`]. With one process there is nothing to do.
    ///
    /// # Errors
    /// The failure; a lost process.
    pub fn agree<T, E: std::fmt::Display + From<Error>>(&self, here: Result<T, E>) -> Result<T, E> {
        run::agree(self.run.peers.as_deref(), here)
    }

    /// Looks at a side's vertices, between iterations.
    #[must_use]
    pub fn on<O: On<P>>(&self, _: O) -> Vertices<'_, O::Vertex> {
        let grid = &self.run.grid;
        Vertices::of(grid.rows::<O>(), grid.order(O::SIDE))
    }
}

/// Lists the longest ranges of numbers below `end` that are wanted.
fn runs_of(end: usize, is_wanted: impl Fn(usize) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for number in (0..end).filter(|&number| is_wanted(number)) {
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

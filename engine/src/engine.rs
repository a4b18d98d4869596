//! The engine: a program on a graph, ready to run.

mod build;
mod planning;
mod view;

use std::ops::ControlFlow;
use std::sync::Arc;

use megagrid_partition::Side;
use megagrid_stages::simd::Level;
use megagrid_stages::{
    Combine, Context, Exchange, First, IntoExchange, IntoIncident, On, Program, Store, Vertex, mode,
};

use crate::branch::Branch;
use crate::globals::Globals;
use crate::grid::Grid;
use crate::metrics::IterationReport;
use crate::plan::{Plan, Task};
use crate::stage::{self, RunStage, Scratch, hold};
use crate::sync::{self, Peers, Replicas, Replication};
use crate::topology::Topology;
use crate::{Error, Injection, driver, os};

pub(crate) use build::{replicas, same_arrays, with_crossings};
pub(crate) use planning::make_plan;
pub use planning::plan;
pub use view::Vertices;

/// How a program is to be run. Every field has a sensible default.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Worker threads. Default: the cores of the machine.
    pub workers: usize,
    /// Clocks that a worker may be ahead of the slowest; `None`: any number. Default: 0.
    pub slack: Option<u64>,
    /// With slack and several processes: whether masters' rows go to mirrors only when those would be too old (SSP), rather
    /// than after every clock (ESSP). Default: false.
    pub lazy: bool,
    /// The other processes of the run; `None`: there are none, which is the default. `workers` is then those of each.
    pub peers: Option<Arc<dyn Peers>>,
    /// Decides everything random. Default: 1.
    pub seed: u64,
    /// Items of a row. Default: 1.
    pub dims: usize,
    /// What hot loops are compiled for. Default: the widest level of the processor.
    pub level: Level,
    /// What the machine looks like. Default: detected.
    pub topology: Topology,
    /// What disturbs workers, as an experiment. Default: nothing.
    pub inject: Option<Injection>,
    /// Whether edges are cut into a grid of shards sized for the caches. Default: true; off for comparisons.
    pub grid: bool,
    /// Whether what other processes need first is sent first. Default: true; off for comparisons.
    pub early: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let topology = Topology::detect();
        Self {
            workers: topology.num_cores(),
            slack: Some(0),
            lazy: false,
            peers: None,
            seed: 1,
            dims: 1,
            level: Level::detect(),
            topology,
            inject: None,
            grid: true,
            early: true,
        }
    }
}

/// What the workers of a run share.
pub(crate) struct Shared<P: Program> {
    pub plan: Arc<Plan>,
    pub grid: Grid<P>,
    pub globals: Globals<P>,
    pub stages: Vec<Box<dyn RunStage<P>>>,
    pub seed: u64,
    pub inject: Option<Injection>,
    pub dims: usize,
    pub peers: Option<Arc<dyn Peers>>,
    pub sync: Option<Replication>,
    pub replicas: Option<Replicas<RightItem<P>>>,
}

/// What an array of the right side's synced data is made of.
pub(crate) type RightItem<P> = <<<P as Program>::Right as Vertex>::Sync as Store>::Item;

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
    pub(crate) shared: Arc<Shared<P>>,
    pub(crate) done: u64,
    /// Memory of branches that were freed.
    pub(crate) spare: Vec<Branch<P>>,
}

impl<P: Program> Engine<P> {
    /// Returns what was decided.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.shared.plan
    }

    /// Returns the memory of the run.
    #[must_use]
    pub fn grid(&self) -> &Grid<P> {
        &self.shared.grid
    }

    /// Returns the number of iterations done.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.done
    }

    /// Returns the latest shared context.
    #[must_use]
    pub fn global(&self) -> Arc<P::Global> {
        self.shared.globals.current()
    }

    /// Sets the shared context, between iterations. It begins as its default.
    pub fn set_global(&mut self, global: P::Global) {
        self.shared.globals.set(global);
    }

    /// Continues a run: sets the shared context and how many iterations are done.
    pub fn resume(&mut self, iterations: u64, global: P::Global) {
        self.done = iterations;
        self.set_global(global);
    }

    /// Sets the first values of a side's vertices by id, on the threads that will keep them. Both sides of a square graph
    /// are the same vertices.
    ///
    /// # Panics
    /// In debug builds where the padding of a row is not left at zero.
    pub fn init<O: On<P>>(&mut self, _: O, set: impl Fn(usize, First<'_, O::Vertex>) + Sync) {
        let Shared { plan, grid, .. } = &*self.shared;
        let (arrays, pieces, order) = (grid.rows::<O>(), grid.pieces(O::SIDE), grid.order(O::SIDE));
        self.on_threads(|worker| {
            for shard in plan.shards_at(O::SIDE, worker) {
                let mut owned = hold(|| arrays.try_own(pieces.of(shard..shard + 1)));
                let padding = owned.padding.clone();
                for row in owned.each_row() {
                    let first = First {
                        sync: <O::Vertex as Vertex>::Sync::view_mut(row.sync),
                        master: <O::Vertex as Vertex>::Master::view_mut(row.master),
                        mirror: <O::Vertex as Vertex>::Mirror::view_mut(row.mirror),
                    };
                    set(order.id(row.row), first);
                    row.check_padding(&padding, || "init".to_owned());
                }
            }
        });
    }

    /// Runs a stage on every vertex of a side with the data of all its edges, between iterations: for data that is looked at
    /// only then. Each worker begins with a new context. With several processes each runs it on the vertices that it keeps.
    ///
    /// # Panics
    /// When no stage of the sequence is an Incident on that side.
    pub fn visit<O: On<P>, A, F>(&mut self, _: O, stage: A)
    where
        A: IntoIncident<P, O::Vertex, F>,
    {
        let stage = stage.into_stage();
        let Shared { plan, grid, .. } = &*self.shared;
        let shape = plan.side(O::SIDE);
        let is_indexed = grid.places[usize::from(O::SIDE == Side::Right)].len() == shape.num_shards();
        assert!(is_indexed, "a stage of the sequence visits the {} side's vertices with their edges", O::SIDE);
        let (global, iteration) = (self.global(), self.done);
        self.on_threads(|worker| {
            let (mut context, mut scratch) = (P::Worker::default(), Scratch::default());
            let mut cx = Context { worker: &mut context, global: &*global, iteration, seed: 0 };
            for shard in (0..shape.num_shards()).filter(|&shard| shape.owners[shard] == worker) {
                hold(|| stage::visit::<P, O, _>(&stage, (grid, plan), shard, &mut scratch, &mut cx));
            }
        });
    }

    /// Runs `n` more iterations.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub fn iterate(&mut self, n: u64) -> Result<(), Error> {
        self.run_until(self.done + n, |_, _| Ok(false))
    }

    /// Runs iterations until `last` are done in all, or `between` returns `true`; `between` is given the engine after each,
    /// and what is to be said of it. With several processes all of them end where one of them does.
    ///
    /// # Errors
    /// A stage function that panics; a lost process; what `between` fails with; [`Error::Running`] from within `between`, or
    /// after a run whose threads could not be ended.
    pub fn run_until(
        &mut self,
        last: u64,
        mut between: impl FnMut(&mut Self, &IterationReport) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        Arc::get_mut(&mut self.shared).ok_or(Error::Running)?;
        let shared = Arc::clone(&self.shared);
        let mut failed = None;
        let done = driver::run(&shared, self.done, last, |report| {
            self.done = report.iteration;
            match between(self, report) {
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
        sync::refresh(&self.shared, self.done)?;
        let stage = stage.into_stage();
        let mine = self.on_threads(|worker| self.part_of_total(&stage, worker));
        let mut total = P::Worker::default();
        for mut part in sync::all_gather(self.shared.peers.as_deref(), mine)? {
            total.combine(&mut part);
        }
        Ok(total)
    }

    /// Runs a function on a worker's share of the edges that this process answers for.
    fn part_of_total<E>(&self, stage: &E, worker: usize) -> P::Worker
    where
        E: Exchange<P, Left = mode::Read, Right = mode::Read>,
    {
        let Shared { plan, grid, .. } = &*self.shared;
        let mut context = P::Worker::default();
        let global = self.global();
        let mut cx = Context { worker: &mut context, global: &*global, iteration: self.done, seed: 0 };
        for right in (worker % plan.threads()..plan.right.num_shards()).step_by(plan.threads()) {
            // Edges may be in the processes of both their ends.
            for lefts in runs_of(plan.left.num_shards(), |left| plan.answers_for(left, right)) {
                let task = Task {
                    left: lefts,
                    right: right..right + 1,
                    layers: 0..plan.layers,
                    copies: [0, 0],
                    turn: None,
                    hand_over: [None; 2],
                    publish: None,
                };
                hold(|| stage::exchange(stage, grid, plan, worker, &task, &mut cx));
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
        sync::collect(&self.shared, self.done)
    }

    /// Finds whether something succeeded in every process, which all of them call: the first that failed keeps its error,
    /// and the others get [`Error::Elsewhere`]. With one process there is nothing to do.
    ///
    /// # Errors
    /// The failure; a lost process.
    pub fn agree<T, E: std::fmt::Display + From<Error>>(&self, here: Result<T, E>) -> Result<T, E> {
        sync::agree(self.shared.peers.as_deref(), here)
    }

    /// Looks at a side's vertices, between iterations.
    #[must_use]
    pub fn on<O: On<P>>(&self, _: O) -> Vertices<'_, O::Vertex> {
        let grid = &self.shared.grid;
        Vertices::of(grid.rows::<O>(), grid.order(O::SIDE))
    }

    /// Calls `work` for each worker of this process on a thread of its own, where its rows are, and returns the results in
    /// order.
    fn on_threads<R: Send>(&self, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
        let plan = &self.shared.plan;
        std::thread::scope(|threads| {
            let work = &work;
            let on_thread = |worker: usize| {
                threads.spawn(move || {
                    os::keep_current_thread_on(&plan.homes[worker].processors);
                    work(worker)
                })
            };
            let parts: Vec<_> = plan.local_workers().map(on_thread).collect();
            let join = |part: std::thread::ScopedJoinHandle<'_, R>| match part.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            parts.into_iter().map(join).collect()
        })
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

//! The engine: a program on a graph, ready to run.

mod build;
mod planning;
mod view;

use std::ops::ControlFlow;
use std::sync::Arc;

use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::simd::Level;
use megagrid_stages::{Access, Context, Exchange, Program, Read, Store, Vertex};

use crate::branch::Branch;
use crate::grid::{Capacities, EdgeInput, Grid, VertexArrays};
use crate::machine::os;
use crate::machine::topology::Topology;
use crate::plan::{Plan, Task};
use crate::run::{self, Injection, IterationReport, Peers, Run};
use crate::{Error, stage};

pub(crate) use build::{replicas, with_crossings};
pub(crate) use planning::make_plan;
pub use planning::plan;
pub use view::{InitView, SideView};

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
    /// Items of a row, left and right. Default: 1.
    pub dims: [usize; 2],
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
            dims: [1, 1],
            level: Level::detect(),
            topology,
            inject: None,
            grid: true,
            early: true,
        }
    }
}

/// A graph as a program's input: its edges and what becomes of their data.
pub struct Input<'i, T, P: Program> {
    /// The edges.
    pub source: &'i dyn EdgeSource<T>,
    /// How an edge of the source becomes edge data of the program.
    pub edge: EdgeInput<'i, T, P>,
    /// Capacities of stores of counts, by vertex id, left and right.
    pub capacities: [Capacities<'i>; 2],
}

/// A program on a graph, ready to run.
pub struct Engine<P: Program> {
    pub(crate) shared: Arc<Run<P>>,
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

    /// Continues a run: sets the shared context and how many iterations are done.
    pub fn resume(&mut self, iterations: u64, global: P::Global) {
        self.done = iterations;
        self.shared.globals.set(global);
    }

    /// Sets the first values of the left side's vertices, on the threads that will keep them.
    pub fn init_left(&self, set: impl Fn(usize, InitView<'_, P::Left>) + Sync) {
        self.init(&self.shared.grid.left, Side::Left, &set);
    }

    /// Sets the first values of the right side's vertices (of all vertices on a square graph).
    pub fn init_right(&self, set: impl Fn(usize, InitView<'_, P::Right>) + Sync) {
        self.init(&self.shared.grid.right, Side::Right, &set);
    }

    fn init<V: Vertex>(&self, arrays: &VertexArrays<V>, side: Side, set: &(impl Fn(usize, InitView<'_, V>) + Sync)) {
        let (grid, plan) = (&self.shared.grid, &self.shared.plan);
        let pieces = if side == Side::Left { &grid.left_pieces } else { &grid.right_pieces };
        std::thread::scope(|threads| {
            for worker in plan.local_workers() {
                threads.spawn(move || {
                    os::keep_current_thread_on(&plan.homes[worker].processors);
                    for shard in plan.shards_at(side, worker) {
                        // No run is under way: `&self` is all that a run would need, but runs take `&mut self`.
                        let Some(mut owned) = arrays.try_own(pieces.of(shard..shard + 1)) else { continue };
                        for items in owned.each_row() {
                            let view = InitView {
                                sync: V::Sync::view_mut(items.sync),
                                master: V::Master::view_mut(items.master),
                                mirror: V::Mirror::view_mut(items.mirror),
                            };
                            set(grid.order(side).id(items.row), view);
                        }
                    }
                });
            }
        });
    }

    /// Runs iterations until `last` are done in all, or `between` breaks; `between` sees each report and the engine.
    ///
    /// # Errors
    /// A stage function that panics.
    pub fn run(
        &mut self,
        last: u64,
        mut between: impl FnMut(&IterationReport, &Self) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        self.done = run::run(&shared, self.done, last, |report| {
            self.done = report.iteration;
            between(report, self)
        })?;
        Ok(())
    }

    /// Runs a function that writes nothing but its context on every edge, between iterations, and returns the workers'
    /// contexts in order. For objectives and the like. With several processes all of them call it.
    ///
    /// # Errors
    /// A lost process.
    pub fn measure<E: Exchange<P, Left = Read, Right = Read>>(&self, stage: &E) -> Result<Vec<P::Worker>, Error>
    where
        Read: Access<P::Left> + Access<P::Right>,
    {
        run::refresh(&self.shared, self.done)?;
        let workers = self.shared.plan.local_workers();
        let mine = std::thread::scope(|threads| {
            let parts: Vec<_> = workers.map(|id| threads.spawn(move || self.measure_part(stage, id))).collect();
            let join = |part: std::thread::ScopedJoinHandle<'_, P::Worker>| match part.join() {
                Ok(context) => context,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            parts.into_iter().map(join).collect()
        });
        run::all_gather(self.shared.peers.as_deref(), mine)
    }

    /// Brings all vertices' data to the first process, whose views then show every vertex as it is; those of others show
    /// what they keep. With several processes all of them call it; with one there is nothing to do.
    ///
    /// # Errors
    /// A lost process.
    pub fn collect(&self) -> Result<(), Error> {
        run::collect(&self.shared, self.done)
    }

    /// Finds whether something succeeded in every process, which all of them call: the first that failed keeps its error,
    /// and the others get [`Error::Elsewhere`]. With one process there is nothing to do.
    ///
    /// # Errors
    /// The failure; a lost process.
    pub fn agree<T, E: std::fmt::Display + From<Error>>(&self, here: Result<T, E>) -> Result<T, E> {
        run::agree(self.shared.peers.as_deref(), here)
    }

    fn measure_part<E: Exchange<P, Left = Read, Right = Read>>(&self, stage: &E, worker: usize) -> P::Worker {
        let Run { plan, grid, .. } = &*self.shared;
        let mut context = P::Worker::default();
        let global = self.global();
        let mut cx = Context { worker: &mut context, global: &*global, iteration: self.done, seed: 0 };
        for shard in (worker % plan.threads()..plan.right.num_shards()).step_by(plan.threads()) {
            let lefts = 0..plan.left.num_shards();
            let task = Task {
                left: lefts,
                right: shard..shard + 1,
                layers: 0..plan.layers,
                copies: [0, 0],
                turn: None,
                hand_over: [None; 2],
                publish: None,
            };
            while stage::exchange(stage, grid, plan, worker, &task, &mut cx).is_none() {
                std::thread::yield_now();
            }
        }
        context
    }

    /// Looks at the left side's vertices, between iterations.
    #[must_use]
    pub fn left(&self) -> SideView<'_, P::Left> {
        SideView::of(&self.shared.grid.left, self.shared.grid.order(Side::Left))
    }

    /// Looks at the right side's vertices, between iterations.
    #[must_use]
    pub fn right(&self) -> SideView<'_, P::Right> {
        SideView::of(&self.shared.grid.right, self.shared.grid.order(Side::Right))
    }
}

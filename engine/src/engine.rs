//! The engine: a program on a graph, ready to run.

use std::ops::ControlFlow;
use std::sync::Arc;

use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::simd::Level;
use megagrid_stages::{Access, Context, EdgeItem, Exchange, Program, Read, Sequence, Stages, Store, Vertex, row_width};

use crate::Injection;
use crate::branch::Branch;
use crate::globals::Globals;
use crate::grid::{self, Capacities, EdgeInput, Grid, Pieces, RowOrder, SharedRows, VertexArrays};
use crate::metrics::IterationReport;
use crate::plan::{self, Outline, Plan, StageKind, Task};
use crate::stage::{self, Collect, RunStage};
use crate::sync::{self, Mirrors, Peers, Push, Replicas, Replication};
use crate::topology::Topology;
use crate::{Error, driver, memory, os};

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

/// What the workers of a run share.
pub(crate) struct Shared<P: Program> {
    pub plan: Arc<Plan>,
    pub grid: Grid<P>,
    pub globals: Globals<P>,
    pub stages: Vec<Box<dyn RunStage<P>>>,
    pub seed: u64,
    pub inject: Option<Injection>,
    pub dims: [usize; 2],
    pub peers: Option<Arc<dyn Peers>>,
    pub sync: Option<Replication>,
    pub replicas: Option<Replicas<RightItem<P>>>,
}

/// What an array of the right side's synced data is made of.
pub(crate) type RightItem<P> = <<<P as Program>::Right as Vertex>::Sync as Store>::Item;

/// A program on a graph, ready to run.
pub struct Engine<P: Program> {
    pub(crate) shared: Arc<Shared<P>>,
    pub(crate) done: u64,
    /// Memory of branches that were freed.
    pub(crate) spare: Vec<Branch<P>>,
}

/// Makes the plan of a program on a graph, without its memory. With several processes it reads the edges, to foresee what
/// crosses between them, and asks no other process.
///
/// # Errors
/// See [`Plan::make`]; workers 0; a square program on a bipartite graph; edges that cannot be read.
pub fn plan<P: Program, S: Stages<P>, T>(
    input: &Input<'_, T, P>,
    sequence: &Sequence<P, S>,
    settings: &Settings,
) -> Result<Plan, Error> {
    let (collect, body) = Collect::from(sequence);
    foresee(input, collect.infos, &body, settings).map(|(plan, _)| plan)
}

/// Makes a plan, and with several processes the mirrors of all.
fn foresee<P: Program, T>(
    input: &Input<'_, T, P>,
    infos: Vec<plan::StageInfo>,
    body: &[Outline],
    settings: &Settings,
) -> Result<(Plan, Option<Arc<Mirrors>>), Error> {
    let (mut plan, orders) = make_plan::<P, T>(input, infos, body, settings)?;
    if !plan.is_distributed() {
        return Ok((plan, None));
    }
    let mirrors = Mirrors::foresee(&plan, input.source, &orders)?;
    plan.traffic = sync::predict::<P>(&plan, &mirrors, settings.dims);
    plan.placement = mirrors.placement(&plan);
    Ok((plan, Some(Arc::new(mirrors))))
}

pub(crate) fn make_plan<P: Program, T>(
    input: &Input<'_, T, P>,
    infos: Vec<plan::StageInfo>,
    body: &[Outline],
    settings: &Settings,
) -> Result<(Plan, [RowOrder; 2]), Error> {
    if settings.workers == 0 || settings.workers > 4096 {
        let found = settings.workers.to_string();
        return Err(Error::Setting { name: "workers", found, expected: "1 to 4096" });
    }
    let source = input.source;
    let orders = row_orders(source, &infos, body, settings.seed);
    let degree = |side: Side| {
        let (offsets, order) = (source.offsets(side), &orders[usize::from(side == Side::Right)]);
        Box::new(move |row: usize| {
            let id = order.id(row);
            offsets[id + 1] - offsets[id]
        }) as Box<dyn Fn(usize) -> u64 + '_>
    };
    let processes = settings.peers.as_ref().map_or_else(plan::Processes::default, |peers| plan::Processes {
        this: peers.process(),
        count: peers.processes(),
    });
    let widths = settings.dims.map(row_width);
    let items = memory::edge_items(input)?;
    let [left_capacities, right_capacities] = input.capacities;
    let sizes = plan::Input {
        degrees: [degree(Side::Left), degree(Side::Right)],
        rows: [source.num_vertices(Side::Left), source.num_vertices(Side::Right)],
        edges: source.num_edges() as u64,
        row_bytes: [
            grid::touched_bytes::<P::Left>(widths[0], left_capacities),
            grid::touched_bytes::<P::Right>(widths[1], right_capacities),
        ],
        edge_bytes: items * size_of::<EdgeItem<P>>() as u64,
        square: source.is_square(),
        workers: settings.workers * processes.count,
        processes,
        slack: settings.slack,
        topology: &settings.topology,
        grid: settings.grid,
        early: settings.early,
    };
    let mut plan = Plan::make(infos, body, &sizes)?;
    drop(sizes);
    plan.memory_bytes = memory::estimate(&plan, input, &orders, settings.dims, items);
    Ok((plan, orders))
}

fn row_orders<T>(source: &dyn EdgeSource<T>, infos: &[plan::StageInfo], body: &[Outline], seed: u64) -> [RowOrder; 2] {
    [Side::Left, Side::Right].map(|side| row_order(source, infos, body, side, seed))
}

/// Brings the edges to the processes that run them, where each has read a part.
fn distribute<T>(plan: &Plan, orders: &[RowOrder; 2], source: &dyn EdgeSource<T>) -> Result<(), Error> {
    if !plan.is_distributed() {
        return Ok(());
    }
    let keepers = [Side::Left, Side::Right].map(|side| plan.keepers_of_edges(side));
    source.distribute(&|left, right| {
        let [of_left, of_right] = [(left, 0), (right, 1)]
            .map(|(id, side): (u32, usize)| keepers[side].get(orders[side].row(id as usize)).copied());
        [of_left, of_right.filter(|_| of_left != of_right)]
    })?;
    Ok(())
}

/// Rows are in the order of ids, but for sides whose vertices are dealt to random blocks, or change in place, where every
/// shard is to have its share of hubs.
fn row_order<T>(
    source: &dyn EdgeSource<T>,
    infos: &[plan::StageInfo],
    body: &[Outline],
    side: Side,
    seed: u64,
) -> RowOrder {
    use megagrid_stages::{BatchOrder, Mode};
    let rows = source.num_vertices(side);
    let (mut cut, mut random) = (false, false);
    for outline in body {
        outline.walk(&mut |inner| {
            if let Outline::Vertices(of, _, order, _) = inner {
                cut |= *of == side;
                random |= *of == side && *order == BatchOrder::RandomBlocks;
            }
        });
    }
    let in_place = infos.iter().any(|stage| plan::rotates(stage.kind) || stage.kind.mode(side) == Some(Mode::Update));
    let shuffled = (random || in_place && !cut) && !source.is_square();
    if shuffled { RowOrder::shuffled(rows, seed ^ u64::from(side == Side::Right)) } else { RowOrder::Natural(rows) }
}

/// Adds the stages that cross between processes to those of a program.
pub(crate) fn with_crossings<P: Program>(
    mut stages: Vec<Box<dyn RunStage<P>>>,
    plan: &Plan,
) -> Vec<Box<dyn RunStage<P>>> {
    for stage in &plan.stages[stages.len()..] {
        stages.push(match stage.kind {
            StageKind::Deliver(side) => Box::new(sync::Deliver(side)),
            StageKind::Publish(side) => Box::new(sync::Publish(side)),
            StageKind::TakeRows => Box::new(sync::TakeRows),
            StageKind::SendChanges => Box::new(sync::SendChanges),
            StageKind::SendEdges(side) => Box::new(sync::SendEdges(side)),
            _ => unreachable!("a plan adds stages that cross between processes alone"),
        });
    }
    stages
}

/// Makes the replicas that a plan needs.
pub(crate) fn replicas<P: Program>(
    plan: &Plan,
    sync: Option<&Replication>,
    settings: &Settings,
) -> Result<Option<Replicas<RightItem<P>>>, Error> {
    let Some(Replication { mirrors, .. }) = sync.filter(|_| plan.mirrors_updates()) else { return Ok(None) };
    let push = match settings.slack {
        None => Push::EveryChange,
        Some(slack) if settings.lazy => Push::WhenNeeded(slack),
        Some(_) => Push::EveryClock,
    };
    Replicas::new::<P::Right>(plan, mirrors, settings.dims[1], push).map(Some)
}

impl<P: Program> Engine<P> {
    /// Prepares a program for a bipartite graph.
    ///
    /// # Errors
    /// A square input; more memory than the machine has; edges that cannot be read; see [`Plan::make`].
    pub fn bipartite<T: Copy + Sync, S: Stages<P>>(
        input: &Input<'_, T, P>,
        sequence: &Sequence<P, S>,
        global: P::Global,
        settings: &Settings,
    ) -> Result<Self, Error> {
        if input.source.is_square() {
            let advice = "read the input as ratings, samples or documents";
            return Err(Error::Squareness { expected: "bipartite", found: "square", advice });
        }
        Self::build(input, sequence, global, settings, |bounds, copies, capacities| {
            let [left, right] = bounds;
            Ok((
                Arc::new(VertexArrays::new(left, settings.dims[0], copies[0], capacities[0].as_deref())?),
                Arc::new(VertexArrays::new(right, settings.dims[1], copies[1], capacities[1].as_deref())?),
            ))
        })
    }

    /// Prepares a program whose two sides are the same vertices.
    ///
    /// # Errors
    /// A bipartite input; more memory than the machine has; edges that cannot be read; see [`Plan::make`].
    pub fn square<V: Vertex, T: Copy + Sync, S: Stages<P>>(
        input: &Input<'_, T, P>,
        sequence: &Sequence<P, S>,
        global: P::Global,
        settings: &Settings,
    ) -> Result<Self, Error>
    where
        P: Program<Left = V, Right = V>,
    {
        if !input.source.is_square() {
            let advice = "read the input as a graph with one id space";
            return Err(Error::Squareness { expected: "square", found: "bipartite", advice });
        }
        if V::TRACKED {
            return Err(Error::SquareTracked);
        }
        Self::build(input, sequence, global, settings, |bounds, copies, capacities| {
            let bounds = grid::refine(&bounds[0], &bounds[1]);
            let copies = copies[0].max(copies[1]);
            let arrays = Arc::new(VertexArrays::new(bounds, settings.dims[0], copies, capacities[0].as_deref())?);
            Ok((Arc::clone(&arrays), arrays))
        })
    }

    fn build<T: Copy + Sync, S: Stages<P>>(
        input: &Input<'_, T, P>,
        sequence: &Sequence<P, S>,
        global: P::Global,
        settings: &Settings,
        rows: impl FnOnce([Vec<usize>; 2], [usize; 2], [Option<Vec<u32>>; 2]) -> Result<Arrays<P>, Error>,
    ) -> Result<Self, Error> {
        let (collect, body) = Collect::from(sequence);
        let peers = settings.peers.as_deref();
        let cluster = peers.and_then(|peers| Some((peers.process(), peers.virtual_cluster()?)));
        let (mut plan, orders, foreseen) = if let Some((this, cluster)) = cluster {
            let orders = row_orders(input.source, &collect.infos, &body, settings.seed);
            let of_all = cluster.share(this, || foresee::<P, T>(input, collect.infos, &body, settings))?;
            let (plan, mirrors) = (*of_all).clone();
            (Plan { processes: plan::Processes { this, ..plan.processes }, ..plan }, orders, mirrors)
        } else {
            let (plan, orders) = make_plan::<P, T>(input, collect.infos, &body, settings)?;
            (plan, orders, None)
        };
        memory::check(plan.memory_bytes)?;
        distribute(&plan, &orders, input.source)?;
        let by_row = [0, 1].map(|side| {
            input.capacities[side].map(|by_id| (0..by_id.len()).map(|row| by_id[orders[side].id(row)]).collect())
        });
        let (left, right) = rows([plan.left.bounds.clone(), plan.right.bounds.clone()], plan.copies, by_row)?;
        let columns = grid::build_columns(&plan, &orders, input.source, &input.edge, settings.seed)?;
        let grid = Grid {
            left_pieces: Pieces::new(&plan.left.bounds, left.bounds()),
            right_pieces: Pieces::new(&plan.right.bounds, right.bounds()),
            left,
            right,
            orders,
            places: grid::places(&plan, &columns)?,
            columns,
            left_shards: plan.left.num_shards(),
            level: settings.level,
        };
        let globals = Globals::new(plan.workers, global);
        let stages = with_crossings(collect.stages, &plan);
        let sync = match &settings.peers {
            Some(_) if foreseen.is_some() => foreseen.map(|mirrors| Replication::new(&plan, mirrors)),
            Some(peers) => {
                let mirrors = Mirrors::agree(&plan, &grid, &**peers)?;
                plan.traffic = sync::predict::<P>(&plan, &mirrors, settings.dims);
                plan.placement = mirrors.placement(&plan);
                Some(Replication::new(&plan, Arc::new(mirrors)))
            }
            None => None,
        };
        let replicas = replicas::<P>(&plan, sync.as_ref(), settings)?;
        let shared = Shared {
            plan: Arc::new(plan),
            grid,
            globals,
            stages,
            seed: settings.seed,
            inject: settings.inject,
            dims: settings.dims,
            peers: settings.peers.clone(),
            sync,
            replicas,
        };
        Ok(Self { shared: Arc::new(shared), done: 0, spare: Vec::new() })
    }

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
                    os::pin_current_thread(plan.homes[worker].1);
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
        self.done = driver::run(&shared, self.done, last, |report| {
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
        sync::refresh(&self.shared)?;
        let workers = self.shared.plan.local_workers();
        let mine = std::thread::scope(|threads| {
            let parts: Vec<_> = workers.map(|id| threads.spawn(move || self.measure_part(stage, id))).collect();
            let join = |part: std::thread::ScopedJoinHandle<'_, P::Worker>| match part.join() {
                Ok(context) => context,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            parts.into_iter().map(join).collect()
        });
        sync::all_gather(self.shared.peers.as_deref(), mine)
    }

    /// Brings all vertices' data to the first process, whose views then show every vertex as it is; those of others show
    /// what they keep. With several processes all of them call it; with one there is nothing to do.
    ///
    /// # Errors
    /// A lost process.
    pub fn collect(&self) -> Result<(), Error> {
        sync::collect(&self.shared)
    }

    /// Finds whether something succeeded in every process, which all of them call: the first that failed keeps its error,
    /// and the others get [`Error::Elsewhere`]. With one process there is nothing to do.
    ///
    /// # Errors
    /// The failure; a lost process.
    pub fn agree<T, E: std::fmt::Display + From<Error>>(&self, here: Result<T, E>) -> Result<T, E> {
        sync::agree(self.shared.peers.as_deref(), here)
    }

    fn measure_part<E: Exchange<P, Left = Read, Right = Read>>(&self, stage: &E, worker: usize) -> P::Worker {
        let Shared { plan, grid, .. } = &*self.shared;
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
                hand_over: None,
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

type Arrays<P> = (Arc<VertexArrays<<P as Program>::Left>>, Arc<VertexArrays<<P as Program>::Right>>);

/// The first values of a vertex.
pub struct InitView<'a, V: Vertex> {
    /// Synced data.
    pub sync: <V::Sync as Store>::Mut<'a>,
    /// Data of the master.
    pub master: <V::Master as Store>::Mut<'a>,
    /// Data of the replica.
    pub mirror: <V::Mirror as Store>::Mut<'a>,
}

/// All vertices of a side by id.
pub struct SideView<'v, V: Vertex> {
    rows: SharedRows<'v, V>,
    order: &'v RowOrder,
}

impl<'v, V: Vertex> SideView<'v, V> {
    fn of(arrays: &'v VertexArrays<V>, order: &'v RowOrder) -> Self {
        let pieces = arrays.bounds().len() - 1;
        loop {
            if let Some(rows) = arrays.try_share(0..pieces) {
                return Self { rows, order };
            }
            std::thread::yield_now();
        }
    }

    /// Returns the number of vertices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Tells whether there is no vertex.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Views a vertex's synced data.
    #[must_use]
    pub fn sync(&self, id: usize) -> <V::Sync as Store>::Ref<'_> {
        self.rows.sync.view(self.order.row(id))
    }

    /// Views a vertex's master data.
    #[must_use]
    pub fn master(&self, id: usize) -> <V::Master as Store>::Ref<'_> {
        self.rows.master.view(self.order.row(id))
    }

    /// Views a vertex's mirror data.
    #[must_use]
    pub fn mirror(&self, id: usize) -> <V::Mirror as Store>::Ref<'_> {
        self.rows.mirror.view(self.order.row(id))
    }
}

//! From a plan to the memory of a run: vertex arrays, the grid, mirrors, replicas.

use std::sync::Arc;

use megagrid_partition::{EdgeSource, ShardId, Side};
use megagrid_stages::{EdgeItem, Program, Sequence, Stages, Vertex};

use super::planning::{is_square, make_plan, predict, row_orders};
use super::settings::Settings;
use super::{Engine, estimate};
use crate::Error;
use crate::grid::{self, Capacities, Columns, Grid, Pieces, RowOrder, Source, VertexArrays, same_arrays};
use crate::plan::{self, Plan};
use crate::run::{Modelled, Run, Shared};
use crate::stages::{Collected, Globals};
use crate::sync::{self, Mirrors, Push, Replicas, Replication, Served};

type Arrays<P> = (Arc<VertexArrays<<P as Program>::Left>>, Arc<VertexArrays<<P as Program>::Right>>);

/// Brings the edges to the processes that run them, where each has read a part.
fn distribute<T>(plan: &Plan, orders: &[RowOrder; 2], source: &dyn EdgeSource<T>) -> Result<(), Error> {
    if !plan.is_distributed() {
        return Ok(());
    }
    let rows = |left, right| (orders[0].row(left as usize), orders[1].row(right as usize));
    source.distribute(&|left, right| plan.placement.holders(rows(left, right)))?;
    Ok(())
}

/// Returns what the first of several virtual processes made for all.
fn share<T: Clone + Send + Sync + 'static>(
    modelled: &dyn Modelled,
    make: impl Fn() -> Result<T, Error>,
) -> Result<T, Error> {
    let thing = modelled.share(&mut || Ok(Arc::new(make()?) as Shared))?;
    let Ok(thing) = thing.downcast::<T>() else {
        unreachable!("all processes share the same things in the same order")
    };
    Ok((*thing).clone())
}

/// What a plan with slack needs of other processes' rows: replicas, and what is served.
type WithSlack<P> = (Option<Replicas<<P as Program>::Right>>, Option<Served>);

/// Makes what a plan with slack needs.
pub fn with_slack<P: Program>(
    plan: &Plan,
    sync: Option<&Replication>,
    settings: &Settings,
) -> Result<WithSlack<P>, Error> {
    let Some(Replication { mirrors, .. }) = sync else { return Ok((None, None)) };
    let in_transit = settings.peers.as_deref().and_then(|peers| peers.modelled()?.in_transit());
    if in_transit.is_some() && (settings.slack.is_some() || !plan.mirrored) {
        let expected =
            "no slack, and a program that changes rows of both sides in place: they are bounded by the size of changes";
        let found = settings.slack.map_or_else(|| "another program".to_owned(), |slack| slack.to_string());
        return Err(Error::Setting { name: "slack of a cluster with a bound on values", found, expected });
    }
    let push = match settings.slack {
        None if in_transit.is_some() => Push::ToAll,
        None => Push::EveryChange,
        Some(slack) if settings.lazy => Push::WhenNeeded(slack),
        Some(_) => Push::EveryClock,
    };
    let replicas =
        plan.mirrored.then(|| Replicas::new(plan, mirrors, settings.dims, (push, in_transit))).transpose()?;
    Ok((replicas, Served::new(plan, mirrors, push)))
}

/// Makes the arrays of both sides; on a square graph they are the same. `bounds` and `copies` are those of the plan,
/// `capacities` by row.
fn arrays<P: Program>(plan: &Plan, dims: usize, capacities: [Option<Vec<u32>>; 2]) -> Result<Arrays<P>, Error> {
    let (left, right, copies) = (plan.left.bounds.clone(), plan.right.bounds.clone(), plan.copies);
    if is_square::<P>() {
        let (bounds, copies) = (grid::refine(&left, &right), copies[0].max(copies[1]));
        let left = side::<P::Left>(plan, Side::Right, bounds, (dims, copies), capacities[0].as_deref())?;
        return Ok((Arc::clone(&left), same_arrays::<P>(&left)));
    }
    Ok((
        side(plan, Side::Left, left, (dims, copies[0]), capacities[0].as_deref())?,
        side(plan, Side::Right, right, (dims, copies[1]), capacities[1].as_deref())?,
    ))
}

/// Makes the arrays of the vertices that keepers of a side's shards write first.
fn side<V: Vertex>(
    plan: &Plan,
    side: Side,
    bounds: Vec<usize>,
    (dims, copies): (usize, usize),
    capacities: Capacities<'_>,
) -> Result<Arc<VertexArrays<V>>, Error> {
    let (pieces, mut writers) = (Pieces::new(&plan.side(side).bounds, &bounds), vec![None; bounds.len() - 1]);
    for (ShardId(shard), worker) in plan.writers_of_rows(side) {
        writers[pieces.of(shard..shard + 1)].fill(Some(worker));
    }
    let joints = plan.joints(writers.into_iter());
    Ok(Arc::new(VertexArrays::new(bounds, dims, copies, capacities)?.split_pages(&joints)))
}

impl<P: Program> Engine<P> {
    /// Prepares a program for a graph: a program with one vertex type for a square graph, whose two sides are the same
    /// vertices, any other for a bipartite one. Vertices begin as all-zero bytes, the shared context as its default.
    ///
    /// # Errors
    /// A sequence that cannot run ([`Sequence::check`]); a square program on a bipartite graph or the other way round; more
    /// memory than the machine has; edges that cannot be read; see [`Plan::make`].
    pub fn new<'s, T: Copy + Send + Sync + 's, S: Stages<P>>(
        source: impl Into<Source<'s, T, P>>,
        sequence: Sequence<P, S>,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let program = Collected::of(&sequence)?;
        let run = run((&source.into(), None), &program, settings)?;
        let (reports, spare) = (Vec::new(), Vec::new());
        let (run, settings) = (Arc::new(run), settings.clone());
        Ok(Self { run, program, settings, done: 0, reports, spare, edition: 0, offsets: None })
    }
}

/// Makes columns in a shorter way than from all edges, where there is one.
pub(super) type MakeColumns<'m, P> = &'m dyn Fn(&Plan, &[RowOrder; 2]) -> Option<Result<Columns<EdgeItem<P>>, Error>>;

/// Makes the memory of a run: all of it, whatever sequence or edges it is for.
pub(super) fn run<P: Program, T: Copy + Send + Sync>(
    (source, columns): (&Source<'_, T, P>, Option<MakeColumns<'_, P>>),
    program: &Collected<P>,
    settings: &Settings,
) -> Result<Run<P>, Error> {
    settings.check()?;
    estimate::check(estimate::least(source, settings))?;
    for side in [Side::Left, Side::Right] {
        let vertices = source.edges.num_vertices(side);
        if let Some(found) = source.capacities[side as usize].map(<[u32]>::len).filter(|&found| found != vertices) {
            return Err(Error::Capacities { side, vertices, found });
        }
    }
    let peers = settings.peers.as_deref();
    let modelled = peers.and_then(|peers| Some((peers.process(), peers.modelled()?)));
    let (mut plan, orders, predicted) = if let Some((this, modelled)) = modelled {
        let orders = row_orders(source.edges, (&program.infos, &program.body), settings.seed);
        let (plan, mirrors) = share(modelled, || predict(source, program, settings))?;
        (Plan { processes: plan::Processes { this, ..plan.processes }, ..plan }, orders, mirrors)
    } else {
        let (plan, orders) = make_plan(source, program, settings)?;
        (plan, orders, None)
    };
    estimate::check(plan.memory_bytes)?;
    distribute(&plan, &orders, source.edges)?;
    let by_row = [0, 1].map(|side| {
        source.capacities[side].map(|by_id| (0..by_id.len()).map(|row| by_id[orders[side].id(row)]).collect())
    });
    let (left, right) = arrays::<P>(&plan, settings.dims, by_row)?;
    let (columns, data) = match columns.and_then(|make| make(&plan, &orders)) {
        Some(columns) => columns?,
        None => grid::build_columns::<T, P::Edge>(&plan, &orders, (source.edges, &source.fill), settings.seed)?,
    };
    let grid = Grid {
        left_pieces: Pieces::new(&plan.left.bounds, left.bounds()),
        right_pieces: Pieces::new(&plan.right.bounds, right.bounds()),
        left,
        right,
        orders,
        places: grid::places(&plan, &columns)?,
        awake: grid::awake::<P::Right>(&columns),
        columns,
        data,
        left_shards: if plan.whole { 1 } else { plan.left.num_shards() },
        level: settings.level,
    };
    let globals = Globals::new(plan.workers);
    let stages = program.with_crossings(&plan);
    let sync = match &settings.peers {
        Some(_) if predicted.is_some() => predicted.map(|mirrors| Replication::new(&plan, mirrors)),
        Some(peers) => {
            let mirrors = Mirrors::agree(&plan, &grid.columns, &|mine| peers.all_gather(mine))?;
            plan.traffic = sync::predict::<P>(&plan, &mirrors, settings.dims);
            plan.quality = mirrors.quality(&plan);
            Some(Replication::new(&plan, Arc::new(mirrors)))
        }
        None => None,
    };
    let (replicas, served) = with_slack::<P>(&plan, sync.as_ref(), settings)?;
    Ok(Run {
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
        served,
    })
}

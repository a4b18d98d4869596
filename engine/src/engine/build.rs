//! From a plan to the memory of a run: vertex arrays, the grid, mirrors, replicas.

use std::any::Any;
use std::sync::Arc;

use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Program, Sequence, Stages};

use super::planning::{is_square, make_plan, predict, row_orders};
use super::{Engine, RightItem, Settings, Shared};
use crate::globals::Globals;
use crate::grid::{self, Grid, Pieces, RowOrder, Source, VertexArrays};
use crate::plan::{self, Plan, StageKind};
use crate::stage::{Collect, RunStage};
use crate::sync::{self, Mirrors, Push, Replicas, Replication};
use crate::{Error, memory};

type Arrays<P> = (Arc<VertexArrays<<P as Program>::Left>>, Arc<VertexArrays<<P as Program>::Right>>);

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
            _ => unreachable!("a plan adds only stages that cross between processes"),
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
    Replicas::new::<P::Right>(plan, mirrors, settings.dims, push).map(Some)
}

/// Returns one side's arrays as those of the other, which has the same vertex type.
pub(crate) fn same_arrays<P: Program>(left: &Arc<VertexArrays<P::Left>>) -> Arc<VertexArrays<P::Right>> {
    let both: Arc<dyn Any + Send + Sync> = Arc::<VertexArrays<P::Left>>::clone(left);
    let Ok(right) = both.downcast() else { unreachable!("both sides of a square graph have one vertex type") };
    right
}

/// Makes the arrays of both sides; on a square graph they are the same. `bounds` and `copies` are those of the plan,
/// `capacities` by row.
fn arrays<P: Program>(plan: &Plan, dims: usize, capacities: [Option<Vec<u32>>; 2]) -> Result<Arrays<P>, Error> {
    let (left, right, copies) = (plan.left.bounds.clone(), plan.right.bounds.clone(), plan.copies);
    if is_square::<P>() {
        let bounds = grid::refine(&left, &right);
        let left = VertexArrays::new(bounds, dims, copies[0].max(copies[1]), capacities[0].as_deref())?;
        let left = Arc::new(left);
        return Ok((Arc::clone(&left), same_arrays::<P>(&left)));
    }
    Ok((
        Arc::new(VertexArrays::new(left, dims, copies[0], capacities[0].as_deref())?),
        Arc::new(VertexArrays::new(right, dims, copies[1], capacities[1].as_deref())?),
    ))
}

impl<P: Program> Engine<P> {
    /// Prepares a program for a graph: a program with one vertex type for a square graph, whose two sides are the same
    /// vertices, any other for a bipartite one. Vertices begin as all-zero bytes, the shared context as its default.
    ///
    /// # Errors
    /// A sequence that cannot run ([`Sequence::check`]); a square program on a bipartite graph or the other way round; more
    /// memory than the machine has; edges that cannot be read; see [`Plan::make`].
    pub fn new<'s, T: Copy + Sync + 's, S: Stages<P>>(
        source: impl Into<Source<'s, T, P>>,
        sequence: Sequence<P, S>,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let source = source.into();
        let (collect, body) = Collect::from(&sequence)?;
        let peers = settings.peers.as_deref();
        let cluster = peers.and_then(|peers| Some((peers.process(), peers.virtual_cluster()?)));
        let (mut plan, orders, predicted) = if let Some((this, cluster)) = cluster {
            let orders = row_orders(source.edges, &collect.infos, &body, settings.seed);
            let of_all = cluster.share(this, || predict::<P, T>(&source, collect.infos, &body, settings))?;
            let (plan, mirrors) = (*of_all).clone();
            (Plan { processes: plan::Processes { this, ..plan.processes }, ..plan }, orders, mirrors)
        } else {
            let (plan, orders) = make_plan::<P, T>(&source, collect.infos, &body, settings)?;
            (plan, orders, None)
        };
        memory::check(plan.memory_bytes)?;
        distribute(&plan, &orders, source.edges)?;
        let by_row = [0, 1].map(|side| {
            source.capacities[side].map(|by_id| (0..by_id.len()).map(|row| by_id[orders[side].id(row)]).collect())
        });
        let (left, right) = arrays::<P>(&plan, settings.dims, by_row)?;
        let columns = grid::build_columns(&plan, &orders, &source, settings.seed)?;
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
        let globals = Globals::new(plan.workers);
        let stages = with_crossings(collect.stages, &plan);
        let sync = match &settings.peers {
            Some(_) if predicted.is_some() => predicted.map(|mirrors| Replication::new(&plan, mirrors)),
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
}

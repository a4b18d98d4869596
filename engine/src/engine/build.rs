//! From a plan to the memory of a run: vertex arrays, the grid, mirrors, replicas.

use std::sync::Arc;

use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Program, Sequence, Stages, Vertex};

use super::planning::{make_plan, predict, row_orders};
use super::{Engine, Input, Settings};
use crate::grid::{self, Grid, Pieces, RowOrder, VertexArrays};
use crate::plan::{self, Plan, StageKind};
use crate::run::{Modelled, Run, Thing};
use crate::stage::{Collect, RunStage};
use crate::stages::{Deliver, Globals, Publish, SendChanges, SendEdges, TakeRows};
use crate::sync::{self, Mirrors, Push, Replicas, Replication, RightItem};
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
            StageKind::Deliver(side) => Box::new(Deliver(side)),
            StageKind::Publish(side) => Box::new(Publish(side)),
            StageKind::TakeRows => Box::new(TakeRows),
            StageKind::SendChanges => Box::new(SendChanges),
            StageKind::SendEdges(side) => Box::new(SendEdges(side)),
            _ => unreachable!("a plan adds stages that cross between processes alone"),
        });
    }
    stages
}

/// Returns what the first of several virtual processes made for all.
fn share<T: Clone + Send + Sync + 'static>(
    modelled: &dyn Modelled,
    mut make: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let thing = modelled.share(&mut || Ok(Arc::new(make()?) as Thing))?;
    let Ok(thing) = thing.downcast::<T>() else {
        unreachable!("all processes share the same things in the same order")
    };
    Ok((*thing).clone())
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
        let modelled = peers.and_then(|peers| Some((peers.process(), peers.modelled()?)));
        let (mut plan, orders, predicted) = if let Some((this, modelled)) = modelled {
            let orders = row_orders(input.source, &collect.infos, &body, settings.seed);
            let (plan, mirrors) = share(modelled, || predict::<P, T>(input, &collect.infos, &body, settings))?;
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
            Some(_) if predicted.is_some() => predicted.map(|mirrors| Replication::new(&plan, mirrors)),
            Some(peers) => {
                let mirrors = Mirrors::agree(&plan, &grid, |mine| peers.all_gather(mine))?;
                plan.traffic = sync::predict::<P>(&plan, &mirrors, settings.dims);
                plan.placement = mirrors.placement(&plan);
                Some(Replication::new(&plan, Arc::new(mirrors)))
            }
            None => None,
        };
        let replicas = replicas::<P>(&plan, sync.as_ref(), settings)?;
        let run = Run {
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
        Ok(Self { shared: Arc::new(run), done: 0, spare: Vec::new() })
    }
}

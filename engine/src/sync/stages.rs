//! Stages that send: deltas to masters, synced rows to mirrors, a rotating shard to its next visitor.

use megagrid_partition::Side;
use megagrid_stages::{Context, Program, Vertex};

use super::rows::{pack_deltas, pack_sync, pack_whole};
use super::{Body, Kind, Message, Replication};
use crate::grid::{Pieces, VertexArrays};
use crate::plan::{Plan, Task};
use crate::stage::{RunStage, Site};

/// Sends this process's deltas of a shard to the process of its masters.
pub struct Deliver(pub Side);

impl<P: Program> RunStage<P> for Deliver {
    fn run(&self, site: &Site<'_, P>, task: &Task, _: &mut Context<'_, P>) -> Option<u64> {
        let (Some(sync), grid) = (site.sync, site.grid) else { return Some(0) };
        match self.0 {
            Side::Left => deliver(sync, site, Side::Left, task.left.start, &grid.left, &grid.left_pieces),
            Side::Right => deliver(sync, site, Side::Right, task.right.start, &grid.right, &grid.right_pieces),
        }
    }
}

fn deliver<P: Program, V: Vertex>(
    sync: &Replication,
    site: &Site<'_, P>,
    side: Side,
    shard: usize,
    arrays: &VertexArrays<V>,
    pieces: &Pieces,
) -> Option<u64> {
    let pick = sync.mirrors.of(side, site.plan.processes.this, shard);
    if pick.is_empty() {
        return Some(0);
    }
    let mut rows = arrays.try_own(pieces.of(shard..shard + 1))?;
    let body = Body::Own(pack_deltas(&mut rows, pick, site.dims[usize::from(side == Side::Right)]));
    let to = site.plan.side(side).owners[shard];
    site.outbox.put(Message { kind: Kind::Deltas, body, ..address(site, side, shard, to) });
    Some(0)
}

/// Sends synced rows of a shard to the processes that use them.
pub struct Publish(pub Side);

impl<P: Program> RunStage<P> for Publish {
    fn run(&self, site: &Site<'_, P>, task: &Task, _: &mut Context<'_, P>) -> Option<u64> {
        let (Some(sync), grid) = (site.sync, site.grid) else { return Some(0) };
        match self.0 {
            Side::Left => publish(sync, site, Side::Left, task.left.start, &grid.left, &grid.left_pieces),
            Side::Right => publish(sync, site, Side::Right, task.right.start, &grid.right, &grid.right_pieces),
        }
    }
}

fn publish<P: Program, V: Vertex>(
    sync: &Replication,
    site: &Site<'_, P>,
    side: Side,
    shard: usize,
    arrays: &VertexArrays<V>,
    pieces: &Pieces,
) -> Option<u64> {
    let plan = site.plan;
    let rows = arrays.try_share(pieces.of(shard..shard + 1))?;
    for process in others(plan) {
        let pick = sync.mirrors.of(side, process, shard);
        if !pick.is_empty() {
            let body = Body::Own(pack_sync(&rows, pick, site.dims[usize::from(side == Side::Right)]));
            // Any worker of the process can take rows in: they take turns.
            let to = process * plan.threads() + shard % plan.threads();
            site.outbox.put(Message { kind: Kind::Rows, body, ..address(site, side, shard, to) });
        }
    }
    Some(0)
}

/// Sends a rotating shard to the worker that visits it next; `visits` have ended with this one.
pub fn hand_over<P: Program>(site: &Site<'_, P>, shard: usize, to: usize, visits: u64) {
    let (grid, pieces) = (site.grid, site.grid.right_pieces.of(shard..shard + 1));
    let rows = crate::stage::hold(|| grid.right.try_share(pieces.clone()));
    let body = Body::Own(pack_whole(&rows, site.dims[1], false));
    site.outbox.put(Message { kind: Kind::Shard, number: visits, body, ..address(site, Side::Right, shard, to) });
}

/// Returns the processes other than this one, the next one first.
pub fn others(plan: &Plan) -> impl Iterator<Item = usize> + use<> {
    let (this, count) = (plan.processes.this, plan.processes.count);
    (1..count).map(move |step| (this + step) % count)
}

fn address<P: Program>(site: &Site<'_, P>, side: Side, shard: usize, to: usize) -> Message {
    Message {
        side,
        shard: shard as u32,
        stage: site.stage as u32,
        from: site.worker as u32,
        to: to as u32,
        ..Message::default()
    }
}

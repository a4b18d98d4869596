//! Stages that send: deltas to masters, synced rows to mirrors, a rotating shard to its next visitor.

use std::ops::Range;

use megagrid_partition::{ProcessId, ShardId, Side, WorkerId};
use megagrid_stages::{Context, Left, On, Program, Right};

use super::site::{RunStage, Site};
use crate::grid::hold;
use crate::plan::Task;
use crate::sync::{
    Body, DueRows, Kind, Malformed, Message, Slice, about_sync_bytes, about_whole_bytes, pack_deltas, pack_sync,
    pack_whole, slices, sync_body,
};

/// Sends this process's deltas of a shard to the process of its masters.
pub struct Deliver(pub Side);

impl<P: Program> RunStage<P> for Deliver {
    fn run(&self, site: &Site<'_, P>, task: &Task, _: &mut Context<'_, P>) -> Option<u64> {
        match self.0 {
            Side::Left => deliver::<P, Left>(site, task.left.start),
            Side::Right => deliver::<P, Right>(site, task.right.start),
        }
    }
}

fn deliver<P: Program, O: On<P>>(site: &Site<'_, P>, shard: usize) -> Option<u64> {
    let (Some(sync), grid) = (site.sync, site.grid) else { return Some(0) };
    let this = ProcessId(site.plan.processes.this);
    let pick = sync.mirrors.added(site.plan, O::SIDE, this, ShardId(shard));
    if pick.is_empty() {
        return Some(0);
    }
    let mut rows = grid.rows::<O>().try_own(grid.pieces(O::SIDE).of(shard..shard + 1))?;
    let to = site.plan.side(O::SIDE).owners[shard];
    let message = Message { kind: Kind::Deltas, number: site.clock, ..address(site, O::SIDE, shard, to) };
    let put = |places, body| site.outbox.put(slice(message.clone(), places, Body::Own(body)));
    pack_deltas(&mut rows, pick, site.dims, put);
    Some(0)
}

/// Sends synced rows of a shard to the processes that use them.
pub struct Publish(pub Side);

impl<P: Program> RunStage<P> for Publish {
    fn run(&self, site: &Site<'_, P>, task: &Task, _: &mut Context<'_, P>) -> Option<u64> {
        match self.0 {
            Side::Left => publish::<P, Left>(site, task.left.start),
            Side::Right => publish::<P, Right>(site, task.right.start),
        }
    }
}

fn publish<P: Program, O: On<P>>(site: &Site<'_, P>, shard: usize) -> Option<u64> {
    let (Some(sync), grid) = (site.sync, site.grid) else { return Some(0) };
    let (plan, dims) = (site.plan, site.dims);
    let (arrays, pieces) = (grid.rows::<O>(), grid.pieces(O::SIDE).of(shard..shard + 1));
    let rows = arrays.try_share(pieces.clone())?;
    let row_bytes = about_sync_bytes(&rows, dims);
    for process in plan.processes.others(plan.processes.this) {
        let pick = sync.mirrors.of(O::SIDE, ProcessId(process), ShardId(shard));
        // Any worker of the process can take rows in: they take turns.
        let to = process * plan.threads() + shard % plan.threads();
        for places in slices(pick.len(), row_bytes) {
            let body = sync_body(arrays, pieces.clone(), &rows, &pick.part(places.clone()), dims);
            site.outbox.put(slice(Message { kind: Kind::Rows, ..address(site, O::SIDE, shard, to) }, places, body));
        }
    }
    Some(0)
}

/// Sends rows of a shard to the processes that they are due to, now that a process's part of a clock is applied.
pub fn show<P: Program, O: On<P>>(
    site: &Site<'_, P>,
    shard: usize,
    from: ProcessId,
    clock: u64,
) -> Result<(), Malformed> {
    let (Some(sync), Some(served), grid) = (site.sync, site.served, site.grid) else { return Err(Malformed) };
    let (plan, dims) = (site.plan, site.dims);
    for DueRows { process, age, included } in served.enter(plan, (O::SIDE, ShardId(shard)), from, clock)? {
        let rows = hold(|| grid.rows::<O>().try_share(grid.pieces(O::SIDE).of(shard..shard + 1)));
        let pick = sync.mirrors.of(O::SIDE, process, ShardId(shard));
        let to = process.0 * plan.threads() + shard % plan.threads();
        for places in slices(pick.len(), about_sync_bytes(&rows, dims)) {
            let body = [&included.to_le_bytes(), &pack_sync(&rows, &pick.part(places.clone()), dims)[..]].concat();
            let message = Message { kind: Kind::Fresh, number: age, ..address(site, O::SIDE, shard, to) };
            site.outbox.put(slice(message, places, Body::Own(body)));
        }
    }
    Ok(())
}

/// Sends a rotating shard to the worker that visits it next; `visits` have ended with this one.
pub fn hand_over<P: Program>(site: &Site<'_, P>, shard: ShardId, to: WorkerId, visits: u64) {
    let (ShardId(shard), WorkerId(to)) = (shard, to);
    let (grid, dims) = (site.grid, site.dims);
    let rows = hold(|| grid.right.try_share(grid.right_pieces.of(shard..shard + 1)));
    for places in slices(rows.rows.len(), about_whole_bytes(&rows, dims)) {
        let message = Message { kind: Kind::Shard, number: visits, ..address(site, Side::Right, shard, to) };
        let body = Body::Own(pack_whole(&rows, &Slice::Range(places.clone()), dims, false));
        site.outbox.put(slice(message, places, body));
    }
}

/// Fills in which rows a message holds.
fn slice(message: Message, places: Range<usize>, body: Body) -> Message {
    Message { first: places.start as u32, rows: places.len() as u32, body, ..message }
}

pub(super) fn address<P: Program>(site: &Site<'_, P>, side: Side, shard: usize, to: usize) -> Message {
    Message {
        side,
        shard: shard as u32,
        stage: site.stage as u32,
        from: site.worker as u32,
        to: to as u32,
        ..Message::default()
    }
}

/// Takes in rows that masters sent, before a clock that changes them in place.
pub struct TakeRows;

impl<P: Program> RunStage<P> for TakeRows {
    fn run(&self, site: &Site<'_, P>, task: &Task, _: &mut Context<'_, P>) -> Option<u64> {
        if let (Some(sync), Some(replicas)) = (site.sync, site.replicas) {
            let (grid, shard) = (site.grid, task.right.start);
            let pick = sync.mirrors.of(Side::Right, ProcessId(site.plan.processes.this), ShardId(shard));
            let taken = replicas.take_in(pick, shard, &grid.right, &grid.right_pieces);
            assert!(taken.is_ok(), "changes of this process fit the rows of shard {shard} that its master sent");
        }
        Some(0)
    }
}

/// Sends what a clock changed in place to the masters.
pub struct SendChanges;

impl<P: Program> RunStage<P> for SendChanges {
    fn run(&self, site: &Site<'_, P>, task: &Task, _: &mut Context<'_, P>) -> Option<u64> {
        let (Some(sync), Some(replicas)) = (site.sync, site.replicas) else { return Some(0) };
        let (plan, grid, shard) = (site.plan, site.grid, task.right.start);
        let this = ProcessId(plan.processes.this);
        let pick = sync.mirrors.of(Side::Right, this, ShardId(shard));
        if pick.is_empty() {
            return Some(0);
        }
        let change = replicas.change(pick, shard, site.clock, &grid.right, &grid.right_pieces);
        let keeper = plan.side(Side::Right).owners[shard];
        if plan.process_of(keeper) == plan.processes.this {
            let fresh = replicas.add(&sync.mirrors, ShardId(shard), this, site.clock, change);
            let sent = fresh.map(|fresh| replicas.send(plan, site.outbox, shard, fresh));
            assert!(sent.is_ok(), "a process's own changes fit its shards");
        } else {
            let body = Body::Own(replicas.pack_change(&change, pick.len()));
            let number = site.clock;
            site.outbox.put(Message { kind: Kind::Changes, number, body, ..address(site, Side::Right, shard, keeper) });
        }
        Some(0)
    }
}

//! Stages that send: deltas to masters, synced rows to mirrors, a rotating shard to its next visitor.

use std::ops::Range;
use std::sync::Arc;

use megagrid_partition::Side;
use megagrid_stages::{Context, Program, Vertex};

use super::lent::sync_body;
use super::replicas::Fresh;
use super::rows::{about_row_bytes, pack_deltas, pack_whole};
use super::slices::{Slice, slices};
use super::{Body, Kind, Malformed, Message, Outbox, Replicas, Replication};
use crate::engine::Shared;
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
    let to = site.plan.side(side).owners[shard];
    let put = |places, body| {
        site.outbox.put(slice(
            Message { kind: Kind::Deltas, ..address(site, side, shard, to) },
            places,
            Body::Own(body),
        ));
    };
    pack_deltas(&mut rows, pick, site.dims, put);
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
    arrays: &Arc<VertexArrays<V>>,
    pieces: &Pieces,
) -> Option<u64> {
    let (plan, dims) = (site.plan, site.dims);
    let rows = arrays.try_share(pieces.of(shard..shard + 1))?;
    let row_bytes = about_row_bytes(&rows.sync, rows.rows.len(), dims);
    for process in others(plan.processes.this, plan.processes.count) {
        let pick = sync.mirrors.of(side, process, shard);
        // Any worker of the process can take rows in: they take turns.
        let to = process * plan.threads() + shard % plan.threads();
        for places in slices(pick.len(), row_bytes) {
            let body = sync_body(arrays, pieces.of(shard..shard + 1), &rows, &pick.part(places.clone()), dims);
            site.outbox.put(slice(Message { kind: Kind::Rows, ..address(site, side, shard, to) }, places, body));
        }
    }
    Some(0)
}

/// Sends a rotating shard to the worker that visits it next; `visits` have ended with this one.
pub fn hand_over<P: Program>(site: &Site<'_, P>, shard: usize, to: usize, visits: u64) {
    let (grid, dims) = (site.grid, site.dims);
    let rows = crate::stage::hold(|| grid.right.try_share(grid.right_pieces.of(shard..shard + 1)));
    let all = rows.rows.len();
    let row_bytes = about_row_bytes(&rows.sync, all, dims) + about_row_bytes(&rows.mirror, all, dims);
    for places in slices(all, row_bytes) {
        let message = Message { kind: Kind::Shard, number: visits, ..address(site, Side::Right, shard, to) };
        let body = Body::Own(pack_whole(&rows, &Slice::Range(places.clone()), dims, false));
        site.outbox.put(slice(message, places, body));
    }
}

/// Returns the processes other than one of them, the next one first.
pub fn others(process: usize, count: usize) -> impl Iterator<Item = usize> {
    (1..count).map(move |step| (process + step) % count)
}

/// Fills in which rows a message holds.
fn slice(message: Message, places: Range<usize>, body: Body) -> Message {
    Message { first: places.start as u32, rows: places.len() as u32, body, ..message }
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

/// Takes in rows that masters sent, before a clock that changes them in place.
pub struct TakeRows;

impl<P: Program> RunStage<P> for TakeRows {
    fn run(&self, site: &Site<'_, P>, task: &Task, _: &mut Context<'_, P>) -> Option<u64> {
        if let (Some(sync), Some(replicas)) = (site.sync, site.replicas) {
            let (grid, shard) = (site.grid, task.right.start);
            let pick = sync.mirrors.of(Side::Right, site.plan.processes.this, shard);
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
        let pick = sync.mirrors.of(Side::Right, plan.processes.this, shard);
        if pick.is_empty() {
            return Some(0);
        }
        let change = replicas.change(pick, shard, site.clock, &grid.right, &grid.right_pieces);
        let keeper = plan.side(Side::Right).owners[shard];
        if plan.process_of(keeper) == plan.processes.this {
            let fresh = replicas.add(&sync.mirrors, shard, plan.processes.this, site.clock, &change);
            let sent = fresh.map(|fresh| send_fresh(replicas, plan, site.outbox, shard, fresh));
            assert!(sent.is_ok(), "a process's own changes fit its shards");
        } else {
            let body = Body::Own(replicas.pack_change(&change, pick.len()));
            let number = site.clock;
            site.outbox.put(Message { kind: Kind::Changes, number, body, ..address(site, Side::Right, shard, keeper) });
        }
        Some(0)
    }
}

/// Sends rows of a shard from their masters to those that they are due to, this process among them.
fn send_fresh<I: megagrid_stages::Item>(
    replicas: &Replicas<I>,
    plan: &Plan,
    outbox: &Outbox,
    shard: usize,
    fresh: Vec<(usize, Fresh<I>)>,
) {
    for (process, fresh) in fresh {
        if process == plan.processes.this {
            replicas.arrive(shard, fresh);
        } else {
            let (seat, threads) = (shard % plan.threads(), plan.threads());
            outbox.put(Message {
                kind: Kind::Fresh,
                side: Side::Right,
                shard: shard as u32,
                stage: 0,
                from: (plan.processes.this * threads + seat) as u32,
                to: (process * threads + seat) as u32,
                number: fresh.age,
                body: Body::Own(replicas.pack_fresh(&fresh)),
                ..Message::default()
            });
        }
    }
}

/// Takes changes into a master's rows, or keeps rows that a master sent.
pub fn take_message<P: Program>(shared: &Shared<P>, outbox: &Outbox, message: &Message) -> Result<(), Malformed> {
    let (Some(sync), Some(replicas)) = (&shared.sync, &shared.replicas) else { return Err(Malformed) };
    let (plan, shard, bytes) = (&shared.plan, message.shard as usize, &*message.body.bytes());
    if message.kind == Kind::Fresh {
        replicas.arrive(shard, replicas.unpack_fresh(shard, message.number, bytes)?);
        return Ok(());
    }
    let process = plan.process_of(message.from as usize);
    let rows = sync.mirrors.of(Side::Right, process, shard).len();
    let change = replicas.unpack_change(bytes, rows)?;
    let fresh = replicas.add(&sync.mirrors, shard, process, message.number, &change)?;
    send_fresh(replicas, plan, outbox, shard, fresh);
    Ok(())
}

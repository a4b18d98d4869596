//! Master and mirrors across processes: what a worker sends, and what becomes of what arrives.
//!
//! At slack 0 every message belongs to a step: the one in which it was sent. No worker begins a step that uses what others
//! send ([`After::All`](crate::plan::After::All)) before all messages of earlier steps have arrived and were taken in; see
//! [`Board::arrive`](crate::board::Board::arrive). Other steps wait for the workers of their own process alone.

mod arithmetic;
mod collective;
mod dirty;
mod edges;
mod lent;
mod message;
mod mirrors;
mod outbox;
mod peers;
mod replicas;
mod rows;
mod slices;
mod stages;
mod table;
mod traffic;
mod transport;

use std::sync::{Arc, Mutex, PoisonError};

use megagrid_partition::Side;
use megagrid_stages::{Program, Vertex};

pub use peers::Peers;
pub use traffic::{Amount, Traffic};

pub(crate) use collective::{agree, all_gather, begin, collect, refresh};
pub(crate) use edges::SendEdges;
pub(crate) use message::{Body, Kind, Message, Parcel};
pub(crate) use mirrors::Mirrors;
pub(crate) use outbox::Outbox;
pub(crate) use replicas::{Push, Replicas};
pub(crate) use rows::Malformed;
pub(crate) use slices::Pick;
pub(crate) use stages::{Deliver, Publish, SendChanges, TakeRows, hand_over, others};
pub(crate) use traffic::predict;
pub(crate) use transport::{Arrived, Timely, Transport, connect};

use crate::Error;
use crate::board::Board;
use crate::engine::Shared;
use crate::grid::{OwnedRows, Pieces, VertexArrays};
use crate::plan::Plan;
use rows::{add_deltas, unpack_whole};
use slices::Slice;

/// What a process knows of the others during a run.
pub struct Replication {
    pub mirrors: Arc<Mirrors>,
    /// `[side][shard]`: deltas that have arrived for the next Apply.
    inbox: [Vec<Mutex<Vec<Message>>>; 2],
    /// What was sent to other processes.
    sent: Mutex<Traffic>,
}

impl Replication {
    pub fn new(plan: &Plan, mirrors: Arc<Mirrors>) -> Self {
        let boxes = |side: Side| (0..plan.side(side).num_shards()).map(|_| Mutex::default()).collect();
        Self { mirrors, inbox: [boxes(Side::Left), boxes(Side::Right)], sent: Mutex::default() }
    }

    fn inbox(&self, side: Side, shard: usize) -> std::sync::MutexGuard<'_, Vec<Message>> {
        self.inbox[usize::from(side == Side::Right)][shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what other processes sent for a shard to its deltas, in the order of their numbers.
    pub fn add_arrived<V: Vertex>(
        &self,
        side: Side,
        shard: usize,
        dims: usize,
        rows: &mut OwnedRows<'_, V>,
        plan: &Plan,
    ) -> Result<(), Malformed> {
        let mut arrived = std::mem::take(&mut *self.inbox(side, shard));
        arrived.sort_by_key(|message| message.from);
        arrived.iter().try_for_each(|message| {
            let pick = self.mirrors.of(side, plan.process_of(message.from as usize), shard);
            add_deltas(rows, &slice_of(pick, message)?, dims, &message.body.bytes())
        })
    }

    /// Returns what was sent so far.
    pub fn sent(&self) -> Traffic {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes in what another process sent.
pub fn receive<P: Program>(shared: &Shared<P>, board: &Board, outbox: &Outbox, message: &Message) -> Result<(), Error> {
    let Some(sync) = &shared.sync else { return Ok(()) };
    let (plan, grid, shard) = (&*shared.plan, &shared.grid, message.shard as usize);
    let known = match message.kind {
        Kind::Empty => return Ok(()),
        Kind::Sums => (message.stage as usize) < shared.stages.len(),
        Kind::Edges => shard < plan.right.num_shards(),
        _ => shard < plan.side(message.side).num_shards(),
    };
    let taken = if !known {
        Err(Malformed)
    } else if message.kind == Kind::Deltas {
        sync.inbox(message.side, shard).push(message.clone());
        Ok(())
    } else if message.kind == Kind::Sums {
        shared.stages[message.stage as usize].receive(&shared.globals, message)
    } else if let Kind::Changes | Kind::Fresh = message.kind {
        stages::take_message(shared, outbox, message)
    } else if message.kind == Kind::Edges {
        edges::take(grid, message)
    } else if message.side == Side::Left {
        take_rows(sync, plan, &grid.left, &grid.left_pieces, shared.dims, message)
    } else {
        take_rows(sync, plan, &grid.right, &grid.right_pieces, shared.dims, message)
    };
    taken.map_err(|Malformed| Error::Message { process: plan.process_of(message.from as usize) })?;
    if message.kind == Kind::Shard && message.places().end == plan.side(message.side).rows(shard).len() {
        board.receive(shard, message.number);
    }
    Ok(())
}

fn take_rows<V: Vertex>(
    sync: &Replication,
    plan: &Plan,
    arrays: &VertexArrays<V>,
    pieces: &Pieces,
    dims: usize,
    message: &Message,
) -> Result<(), Malformed> {
    let shard = message.shard as usize;
    let mut rows = crate::stage::hold(|| arrays.try_own(pieces.of(shard..shard + 1)));
    let all = rows.rows.len();
    match message.kind {
        Kind::Shard => {
            unpack_whole(&mut rows, &slice_of(&Pick::All(all), message)?, dims, false, &message.body.bytes())
        }
        _ => {
            let pick = sync.mirrors.of(message.side, plan.processes.this, shard);
            rows::unpack_sync(&mut rows, &slice_of(pick, message)?, dims, &message.body.bytes())
        }
    }
}

/// Returns the rows that a message holds of those that a process uses.
fn slice_of<'p>(pick: &'p Pick, message: &Message) -> Result<Slice<'p>, Malformed> {
    let places = message.places();
    if places.end <= pick.len() { Ok(pick.part(places)) } else { Err(Malformed) }
}

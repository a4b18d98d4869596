//! Master and mirrors across processes: what a worker sends, and what becomes of what arrives.
//!
//! At slack 0 every message belongs to a step: the one in which it was sent. No worker begins a step that uses what others
//! send ([`After::All`](crate::plan::After::All)) before all messages of earlier steps have arrived and were taken in; see
//! [`Board::arrive`](crate::board::Board::arrive). Other steps wait for the workers of their own process alone.

mod arithmetic;
mod collective;
mod dirty;
mod edges;
mod message;
mod mirrors;
mod peers;
mod replicas;
mod rows;
mod stages;
mod table;
mod traffic;
mod transport;

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};

use megagrid_partition::Side;
use megagrid_stages::{Program, Vertex};

pub use peers::Peers;
pub use traffic::{Amount, Traffic};

pub(crate) use collective::{agree, all_gather, begin, collect, refresh};
pub(crate) use edges::SendEdges;
pub(crate) use message::{Body, Kind, Message, Parcel};
pub(crate) use mirrors::Mirrors;
pub(crate) use replicas::{Push, Replicas};
pub(crate) use rows::{Malformed, Pick, add_deltas, unpack_whole};
pub(crate) use stages::{Deliver, Publish, SendChanges, TakeRows, hand_over, others};
pub(crate) use traffic::predict;
pub(crate) use transport::{Arrived, Timely, Transport, connect};

use crate::Error;
use crate::board::Board;
use crate::engine::Shared;
use crate::grid::{OwnedRows, Pieces, VertexArrays};
use crate::plan::Plan;

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
            add_deltas(rows, pick, dims, message.body.bytes())
        })
    }

    /// Returns what was sent so far.
    pub fn sent(&self) -> Traffic {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Messages of a step are sent together up to about so many bytes, which transports carry best.
const PARCEL_BYTES: u64 = 256 << 10;

/// What a worker is about to send.
#[derive(Default)]
pub struct Outbox {
    messages: RefCell<Vec<Message>>,
    /// Whether urgent ones may wait.
    is_patient: bool,
    /// Whether one of them is urgent, and the bytes of all.
    is_urgent: Cell<bool>,
    waiting_bytes: Cell<u64>,
    /// What was put in since it was counted last.
    sent: Cell<Traffic>,
}

impl Outbox {
    /// Begins empty; a patient one lets urgent messages wait for others.
    pub fn new(is_patient: bool) -> Self {
        Self { is_patient, ..Self::default() }
    }

    /// Puts a message in.
    pub fn put(&self, message: Message) {
        let bytes = message.wire_bytes() as u64;
        let mut sent = self.sent.get();
        sent.count(&message);
        self.sent.set(sent);
        self.waiting_bytes.set(self.waiting_bytes.get() + bytes);
        self.is_urgent.set(self.is_urgent.get() || message.is_urgent() && !self.is_patient);
        self.messages.borrow_mut().push(message);
    }

    /// Tells whether messages are worth sending before the step ends.
    pub fn is_due(&self) -> bool {
        self.is_urgent.get() || self.waiting_bytes.get() >= PARCEL_BYTES
    }

    /// Takes all messages out, those for one worker together.
    pub fn parcels(&self) -> impl Iterator<Item = Parcel> + use<> {
        self.is_urgent.set(false);
        self.waiting_bytes.set(0);
        let mut messages = std::mem::take(&mut *self.messages.borrow_mut());
        messages.sort_by_key(|message| message.to);
        std::iter::from_fn(move || {
            let to = messages.first()?.to;
            let rest = messages.split_off(messages.partition_point(|message| message.to == to));
            Some(Parcel { messages: std::mem::replace(&mut messages, rest), ..Parcel::default() })
        })
    }

    /// Moves the count of what was sent to the process's.
    pub fn count(&self, sync: &Replication) {
        let mine = self.sent.take();
        if mine != Traffic::default() {
            let mut sent = sync.sent.lock().unwrap_or_else(PoisonError::into_inner);
            *sent = *sent + mine;
        }
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
        take_rows(sync, plan, &grid.left, &grid.left_pieces, shared.dims[0], message)
    } else {
        take_rows(sync, plan, &grid.right, &grid.right_pieces, shared.dims[1], message)
    };
    taken.map_err(|Malformed| Error::Message { process: plan.process_of(message.from as usize) })?;
    if message.kind == Kind::Shard {
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
    match message.kind {
        Kind::Shard => unpack_whole(&mut rows, dims, false, message.body.bytes()),
        _ => {
            let pick = sync.mirrors.of(message.side, plan.processes.this, shard);
            rows::unpack_sync(&mut rows, pick, dims, message.body.bytes())
        }
    }
}

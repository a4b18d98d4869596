//! What a process knows of the others during a run, and what has come from them.

use std::sync::{Arc, Mutex, MutexGuard};

use megagrid_partition::parallel::lock;
use megagrid_partition::{ProcessId, ShardId, Side};
use megagrid_stages::Vertex;

use super::codec::add_deltas;
use super::message::{Malformed, Message};
use super::mirrors::Mirrors;
use super::pick::{Pick, Slice};
use crate::grid::OwnedRows;
use crate::plan::Plan;

pub struct Replication {
    pub mirrors: Arc<Mirrors>,
    /// `[side][shard]`: deltas that have arrived for the next Apply.
    inbox: [Vec<Mutex<Vec<Message>>>; 2],
}

impl Replication {
    pub fn new(plan: &Plan, mirrors: Arc<Mirrors>) -> Self {
        let boxes = |side: Side| (0..plan.side(side).num_shards()).map(|_| Mutex::default()).collect();
        Self { mirrors, inbox: [boxes(Side::Left), boxes(Side::Right)] }
    }

    fn inbox(&self, side: Side, shard: usize) -> MutexGuard<'_, Vec<Message>> {
        lock(&self.inbox[side as usize][shard])
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
            let process = ProcessId(plan.process_of(message.from as usize));
            let pick = self.mirrors.added(plan, side, process, ShardId(shard));
            add_deltas(rows, &slice_of(pick, message)?, dims, &message.body.bytes())
        })
    }

    /// Keeps deltas that arrived until the next Apply.
    pub fn keep(&self, deltas: &Message) {
        self.inbox(deltas.side, deltas.shard as usize).push(deltas.clone());
    }
}

/// Returns the rows that a message holds of those that a process uses.
pub fn slice_of<'p>(pick: &'p Pick, message: &Message) -> Result<Slice<'p>, Malformed> {
    let places = message.places();
    if places.end <= pick.len() { Ok(pick.part(places)) } else { Err(Malformed) }
}

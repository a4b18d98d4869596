//! Traffic: what crosses between processes in an iteration, as a plan predicts it and as it is counted.

use std::ops::{Add, Sub};

use megagrid_partition::Side;
use megagrid_stages::{Program, Vertex};
use serde::{Deserialize, Serialize};

use super::message::{HEADER_BYTES, Kind, Message};
use super::rows::row_bytes;
use super::slices::rows_of_slice;
use super::{Mirrors, others};
use crate::plan::{Plan, StageKind};

/// Messages, and their bytes with headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Messages.
    pub messages: u64,
    /// Bytes that the engine gives to the transport.
    pub bytes: u64,
}

impl Amount {
    /// Adds the messages of so many rows.
    fn add_rows(&mut self, rows: usize, row_bytes: usize) {
        let in_slice = rows_of_slice(row_bytes);
        let rest = rows % in_slice;
        self.add_bodies((rows / in_slice) as u64, in_slice * row_bytes);
        self.add_bodies(u64::from(rest > 0), rest * row_bytes);
    }

    /// Adds messages with so many bytes in each body.
    fn add_bodies(&mut self, messages: u64, body: usize) {
        self.messages += messages;
        self.bytes += messages * (HEADER_BYTES + body.next_multiple_of(8)) as u64;
    }
}

/// What all processes send each other, by kind of message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Synced rows, from masters to mirrors.
    pub rows: Amount,
    /// Deltas, from mirrors to masters.
    pub deltas: Amount,
    /// Shards that rotate, from one visitor to the next.
    pub shards: Amount,
    /// Sums for a GlobalSync.
    pub sums: Amount,
    /// What replicas changed in place, to masters.
    pub changes: Amount,
    /// Masters' rows, back to replicas.
    pub fresh: Amount,
    /// Data of edges, to the processes of their other ends.
    #[serde(default)]
    pub edges: Amount,
}

impl Traffic {
    /// The names of the kinds, in the order of [`Self::amounts`].
    pub const NAMES: [&'static str; 7] = ["rows", "deltas", "shards", "sums", "changes", "fresh", "edges"];

    /// Lists the amounts by kind.
    #[must_use]
    pub fn amounts(&self) -> [Amount; 7] {
        [self.rows, self.deltas, self.shards, self.sums, self.changes, self.fresh, self.edges]
    }

    /// Returns the messages and bytes of all kinds.
    #[must_use]
    pub fn total(&self) -> Amount {
        let add = |a: Amount, b: Amount| Amount { messages: a.messages + b.messages, bytes: a.bytes + b.bytes };
        self.amounts().into_iter().fold(Amount::default(), add)
    }

    fn zip(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let of = |a: Amount, b: Amount| Amount { messages: of(a.messages, b.messages), bytes: of(a.bytes, b.bytes) };
        Self {
            rows: of(self.rows, other.rows),
            deltas: of(self.deltas, other.deltas),
            shards: of(self.shards, other.shards),
            sums: of(self.sums, other.sums),
            changes: of(self.changes, other.changes),
            fresh: of(self.fresh, other.fresh),
            edges: of(self.edges, other.edges),
        }
    }

    /// Counts a message that is sent.
    pub(super) fn count(&mut self, message: &Message) {
        let amount = match message.kind {
            Kind::Empty => return,
            Kind::Rows => &mut self.rows,
            Kind::Deltas => &mut self.deltas,
            Kind::Shard => &mut self.shards,
            Kind::Sums => &mut self.sums,
            Kind::Changes => &mut self.changes,
            Kind::Fresh => &mut self.fresh,
            Kind::Edges => &mut self.edges,
        };
        amount.add_bodies(1, message.body.len());
    }
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}

impl Sub for Traffic {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
}

/// Bytes of a vertex by what is sent of it; `None` where that depends on what it holds.
struct VertexBytes {
    synced: Option<usize>,
    delta: Option<usize>,
    moved: Option<usize>,
}

impl VertexBytes {
    fn of<V: Vertex>(dims: usize) -> Self {
        let synced = row_bytes::<V::Sync>(dims);
        Self {
            synced,
            delta: row_bytes::<V::Delta>(dims),
            moved: synced.zip(row_bytes::<V::Mirror>(dims)).map(|(sync, mirror)| sync + mirror),
        }
    }
}

/// Predicts what all processes send in an iteration at slack 0; `None` where that depends on the data or on time: with slack,
/// for entries and for data of edges. Sums count as those of a worker context without content.
pub fn predict<P: Program>(plan: &Plan, mirrors: &Mirrors, dims: usize) -> Option<Traffic> {
    if plan.slack != Some(0) {
        return None;
    }
    let sides = [VertexBytes::of::<P::Left>(dims), VertexBytes::of::<P::Right>(dims)];
    let bytes = |side: Side| &sides[usize::from(side == Side::Right)];
    let sums = bincode::serialized_size(&P::Worker::default()).ok()? as usize;
    let mut traffic = Traffic::default();
    for step in plan.steps.iter() {
        let kind = plan.stages[step.stage].kind;
        let tasks =
            step.tasks.iter().enumerate().flat_map(|(worker, tasks)| tasks.iter().map(move |task| (worker, task)));
        for (worker, task) in tasks {
            let process = plan.process_of(worker);
            let shard = |side| task.shard(side);
            let sends = task.publish.map_or(kind, |stage| plan.stages[stage].kind);
            if let StageKind::SendEdges(_) = sends {
                return None;
            }
            if let StageKind::Publish(side) = sends {
                for other in others(process, plan.processes.count) {
                    let rows = mirrors.of(side, other, shard(side)).len();
                    traffic.rows.add_rows(rows, bytes(side).synced?);
                }
            }
            match kind {
                StageKind::Exchange(..) if task.hand_over[0].is_some() => {
                    let rows = plan.right.rows(task.right.start).len();
                    traffic.shards.add_rows(rows, bytes(Side::Right).moved?);
                }
                StageKind::Deliver(side) => {
                    let rows = mirrors.of(side, process, shard(side)).len();
                    traffic.deltas.add_rows(rows, bytes(side).delta?);
                }
                StageKind::GlobalSync(..) if task.left.is_empty() && task.right.is_empty() => {
                    traffic.sums.add_bodies(plan.processes.count as u64 - 1, sums);
                }
                _ => {}
            }
        }
    }
    Some(traffic)
}

//! What processes will send each other in an iteration.

use megagrid_partition::{ProcessId, ShardId, Side};
use megagrid_stages::{Combine, Program, Vertex};

use super::form::row_bytes;
use super::message::wire_bytes;
use super::mirrors::Mirrors;
use super::pick::rows_of_slice;
use crate::plan::{Amount, Plan, StageKind, Traffic};

fn add_rows(amount: &mut Amount, rows: usize, row_bytes: usize) {
    let in_slice = rows_of_slice(row_bytes);
    let rest = rows % in_slice;
    add_bodies(amount, (rows / in_slice) as u64, in_slice * row_bytes);
    add_bodies(amount, u64::from(rest > 0), rest * row_bytes);
}

/// Adds messages with `body` bytes in each body.
fn add_bodies(amount: &mut Amount, messages: u64, body: usize) {
    amount.messages += messages;
    amount.bytes += messages * wire_bytes(body) as u64;
}

/// Bytes of a vertex by what is sent of it; `None` where that depends on what it holds.
struct VertexBytes {
    synced: Option<usize>,
    delta: Option<usize>,
    moved: Option<usize>,
}

impl VertexBytes {
    fn of<V: Vertex>(dims: usize) -> Self {
        let synced = row_bytes::<V, V::Sync>(dims);
        Self {
            synced,
            delta: row_bytes::<V, V::Delta>(dims),
            moved: synced.zip(row_bytes::<V, V::Mirror>(dims)).map(|(sync, mirror)| sync + mirror),
        }
    }
}

/// Predicts what all processes send in an iteration at slack 0; `None` where that depends on the data or on time: with slack,
/// for replicas, for entries, for counts and for data of edges. Sums count as [`Combine::sized`] says.
pub fn predict<P: Program>(plan: &Plan, mirrors: &Mirrors, dims: usize) -> Option<Traffic> {
    if plan.slack != Some(0) || plan.mirrored {
        return None;
    }
    let sides = [VertexBytes::of::<P::Left>(dims), VertexBytes::of::<P::Right>(dims)];
    let bytes = |side: Side| &sides[side as usize];
    let sums = bincode::serialized_size(&P::Worker::sized(dims)).ok()? as usize;
    let mut traffic = Traffic::default();
    for step in plan.steps.iter() {
        let kind = plan.stages[step.stage].kind;
        let tasks =
            step.tasks.iter().enumerate().flat_map(|(worker, tasks)| tasks.iter().map(move |task| (worker, task)));
        for (worker, task) in tasks {
            let process = plan.process_of(worker);
            let shard = |side| ShardId(task.shard(side));
            let sends = task.publish.map_or(kind, |stage| plan.stages[stage].kind);
            if let StageKind::SendEdges(_) = sends {
                return None;
            }
            if let StageKind::Publish(side) = sends {
                for other in plan.processes.others(process) {
                    let rows = mirrors.of(side, ProcessId(other), shard(side)).len();
                    add_rows(&mut traffic.rows, rows, bytes(side).synced?);
                }
            }
            match kind {
                StageKind::Exchange(..) if task.hand_over[0].is_some() => {
                    let rows = plan.right.rows(task.right.start).len();
                    add_rows(&mut traffic.shards, rows, bytes(Side::Right).moved?);
                }
                StageKind::Deliver(side) => {
                    let rows = mirrors.added(plan, side, ProcessId(process), shard(side)).len();
                    add_rows(&mut traffic.deltas, rows, bytes(side).delta?);
                }
                StageKind::GlobalSync(..) if task.left.is_empty() && task.right.is_empty() => {
                    add_bodies(&mut traffic.sums, plan.processes.count as u64 - 1, sums);
                }
                _ => {}
            }
        }
    }
    Some(traffic)
}

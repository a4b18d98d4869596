//! Data of edges that are in the processes of both their ends: after a visit of either end's vertices, the other has them too.
//!
//! No stage reads or changes the data of the edges between two shards between the visit that changed them and the next barrier
//! but in the process that keeps the visited side, so that messages are taken in as they come.

use bytemuck::{cast_slice, pod_collect_to_vec};
use megagrid_partition::Side;
use megagrid_stages::{Context, Program};

use super::crossing::address;
use super::site::{RunStage, Site};
use crate::grid::{Grid, hold, row_of_blocks};
use crate::plan::Task;
use crate::sync::{Body, Kind, Malformed, Message};

/// Sends the data of the edges of a shard of a side to the processes of their other ends.
pub struct SendEdges(pub Side);

impl<P: Program> RunStage<P> for SendEdges {
    fn run(&self, site: &Site<'_, P>, task: &Task, _: &mut Context<'_, P>) -> Option<u64> {
        let (plan, columns) = (site.plan, &site.grid.columns);
        let send = |(column, block): (usize, usize)| {
            let other = self.0.other();
            let shard = if other == Side::Left { block % site.grid.left_shards } else { column };
            let to = plan.side(other).owners[shard];
            if plan.process_of(to) == plan.processes.this || columns[column].edges.blocks()[block].edges.is_empty() {
                return;
            }
            let data = hold(|| site.grid.data_of(column).try_share(columns[column].piece(block)));
            let (number, body) = (block as u64, Body::Own(cast_slice(&data).to_vec()));
            site.outbox.put(Message { kind: Kind::Edges, number, body, ..address(site, self.0, column, to) });
        };
        match self.0 {
            Side::Left => row_of_blocks(plan, task.left.start).for_each(send),
            Side::Right => {
                let column = task.right.start;
                (0..columns[column].edges.blocks().len()).for_each(|block| send((column, block)));
            }
        }
        Some(0)
    }
}

/// Takes in the data of a block's edges.
pub fn take<P: Program>(grid: &Grid<P>, message: &Message) -> Result<(), Malformed> {
    let (shard, block) = (message.shard as usize, message.number as usize);
    let column = &grid.columns[shard];
    if block >= column.edges.blocks().len() {
        return Err(Malformed);
    }
    let mut data = hold(|| grid.data_of(shard).try_own(column.piece(block)));
    let bytes = message.body.bytes();
    if bytes.len() != size_of_val(&data[..]) {
        return Err(Malformed);
    }
    data.copy_from_slice(&pod_collect_to_vec::<u8, _>(&bytes));
    Ok(())
}

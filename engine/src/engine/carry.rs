//! What vertices have, from one grid to the next: rows lie elsewhere, and there may be more of them.

use bytemuck::Zeroable;
use megagrid_partition::ShardId;
use megagrid_stages::{Additive, Item, Left, On, Program, Right, Store, Vertex};

use crate::Error;
use crate::grid::{Capacities, Grid, hold, on_workers};
use crate::run::Run;

/// Copies the vertices of a grid to those of a run with the same ids. Each worker writes the rows that it keeps.
pub(super) fn carry<P: Program>(from: &Grid<P>, into: &Run<P>) {
    if !from.is_square() {
        carry_side::<P, Left>(from, into);
    }
    carry_side::<P, Right>(from, into);
}

fn carry_side<P: Program, O: On<P>>(from: &Grid<P>, into: &Run<P>) {
    let (old, new, plan) = (from.rows::<O>(), into.grid.rows::<O>(), &into.plan);
    let (old_order, new_order) = (from.order(O::SIDE), into.grid.order(O::SIDE));
    let pieces = old.bounds().len() - 1;
    let (rows, deltas) = (hold(|| old.try_share(0..pieces)), hold(|| old.try_share_deltas(0..pieces)));
    on_workers(plan, |worker| {
        let (thread, mut sum) = (worker % plan.threads(), Vec::new());
        let copy = if new.has_partials() { thread } else { 0 };
        for (ShardId(shard), keeper) in plan.writers_of_rows(O::SIDE) {
            let pieces = into.grid.pieces(O::SIDE).of(shard..shard + 1);
            if keeper.0 != worker {
                if new.has_partials() {
                    hold(|| new.try_clear_deltas(pieces.clone(), thread));
                }
                continue;
            }
            let mut owned = hold(|| new.try_own_copies(pieces.clone(), copy..copy + 1));
            for row in owned.rows.clone() {
                let (id, to) = (new_order.id(row), owned.row(row));
                to.delta.fill(Zeroable::zeroed());
                if id >= old_order.len() {
                    continue;
                }
                let from = old_order.row(id);
                put(rows.sync.items(from), to.sync);
                put(rows.mirror.items(from), to.mirror);
                put(rows.master.items(from), to.master);
                if deltas.len() == 1 {
                    put(deltas[0].items(from), to.delta);
                    continue;
                }
                sum.clear();
                sum.extend_from_slice(deltas[0].items(from));
                let delta = <O::Vertex as Vertex>::Delta::view_mut(&mut sum);
                deltas[1..].iter().for_each(|partial| delta.add(partial.view(from)));
                put(&sum, to.delta);
            }
        }
    });
}

/// Copies items to as many, or to more of entries that have room.
fn put<I: Item>(from: &[I], into: &mut [I]) {
    into[..from.len()].copy_from_slice(from);
}

/// Returns the capacities of a side's vertices by id, given those that were said to be for all of its `vertices`.
pub(super) fn capacities<P: Program, O: On<P>>(
    grid: &Grid<P>,
    vertices: usize,
    said: Capacities<'_>,
) -> Result<Option<Vec<u32>>, Error> {
    let order = grid.order(O::SIDE);
    let Some(before) = grid.rows::<O>().capacities() else { return Ok(None) };
    let before: Vec<u32> = (0..order.len()).map(|id| before[order.row(id)]).collect();
    match said {
        None if vertices == before.len() => Ok(Some(before)),
        None => Err(Error::NoCapacities),
        Some(said) if said.len() == vertices && before.iter().zip(said).all(|(before, said)| before <= said) => {
            Ok(Some(said.to_vec()))
        }
        Some(said) => Err(Error::Capacities { side: O::SIDE, vertices, found: said.len() }),
    }
}

//! Apply at work: row by row of a shard, after what has arrived was added to its deltas.

use std::marker::PhantomData;
use std::sync::Arc;

use megagrid_partition::Side;
use megagrid_stages::simd::Kernel;
use megagrid_stages::{Apply, Context, Master, On, Program, Read, Shape, Store, Vertex};

use super::site::{RunStage, Site, name};
use crate::grid::{OwnedRow, OwnedRows};
use crate::plan::Task;

pub struct RunApply<O, A>(pub Arc<A>, pub PhantomData<O>);

impl<P: Program, O: On<P>, A: Apply<P, O::Vertex>> RunStage<P> for RunApply<O, A> {
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        let (grid, shards) = (site.grid, task.shards(O::SIDE));
        let mut owned = grid.rows::<O>().try_own(grid.pieces(O::SIDE).of(shards.clone()))?;
        add_arrived(site, O::SIDE, shards.start, &mut owned);
        Some(apply::<P, O::Vertex, A>(&self.0, owned, site, cx))
    }
}

fn apply<P: Program, V: Vertex, A: Apply<P, V>>(
    stage: &A,
    owned: OwnedRows<'_, V>,
    site: &Site<'_, P>,
    cx: &mut Context<'_, P>,
) -> u64 {
    let (vertices, reduces) = (owned.rows.len() as u64, site.plan.reduces[site.stage]);
    if reduces && owned.has_partials() {
        site.grid.level.run(ApplyRows::<P, V, A, true> { stage, owned, reduces, cx });
    } else {
        site.grid.level.run(ApplyRows::<P, V, A, false> { stage, owned, reduces, cx });
    }
    vertices
}

/// Adds what other processes sent for a shard to its deltas.
///
/// # Panics
/// When a message has other rows than the plan says, which ends the run.
fn add_arrived<P: Program, V: Vertex>(site: &Site<'_, P>, side: Side, shard: usize, owned: &mut OwnedRows<'_, V>) {
    if let Some(sync) = site.sync {
        let added = sync.add_arrived(site.plan.side_of_masters(side), shard, site.dims, owned, site.plan);
        assert!(added.is_ok(), "deltas that another process sent do not fit the rows of shard {shard}");
    }
}

/// Apply on the active rows; `PARTS`: their deltas are in several parts. A loop that need not ask keeps more in registers.
struct ApplyRows<'k, 'h, 'c, P: Program, V: Vertex, A, const PARTS: bool> {
    stage: &'k A,
    owned: OwnedRows<'h, V>,
    /// Whether there are deltas to reduce.
    reduces: bool,
    cx: &'k mut Context<'c, P>,
}

impl<P: Program, V: Vertex, A: Apply<P, V>, const PARTS: bool> Kernel for ApplyRows<'_, '_, '_, P, V, A, PARTS> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        // A context that no pointer leads to stays in registers while the rows are written.
        let mut at_hand = std::mem::take(self.cx.worker);
        let mut cx = Context::<P> { worker: &mut at_hand, ..*self.cx };
        let (mut old, padding) = (Vec::new(), self.owned.padding.clone());
        let mut rows = self.owned.each_row_in_parts();
        while let Some(mut row) = rows.next() {
            if is_active::<P, V, A>(self.stage, &row, &cx) {
                if PARTS {
                    rows.fetch_after(&row);
                    rows.reduce_row(&mut row);
                }
                apply_row::<P, V, A>(self.stage, &mut row, self.reduces, &mut old, &mut cx);
                row.check_padding(&padding, name::<A>);
            }
        }
        *self.cx.worker = at_hand;
    }
}

#[inline(always)]
fn is_active<P: Program, V: Vertex, A: Apply<P, V>>(stage: &A, row: &OwnedRow<'_, V>, cx: &Context<'_, P>) -> bool {
    stage.is_active(Read { sync: V::Sync::view(row.sync), mirror: V::Mirror::view(row.mirror) }, cx)
}

/// Runs Apply on one row, whose delta was `reduced` or is zero, and refreshes its mirror data; `old` is scratch.
#[inline(always)]
fn apply_row<P: Program, V: Vertex, A: Apply<P, V>>(
    stage: &A,
    row: &mut OwnedRow<'_, V>,
    reduced: bool,
    old: &mut Vec<<V::Sync as Store>::Item>,
    cx: &mut Context<'_, P>,
) {
    let keeps_mirror = V::Mirror::SHAPE != Shape::Nothing;
    // One value stays in registers: through memory its way would be as long as that of all that is written before it.
    let value = if V::Sync::SHAPE == Shape::Value { row.sync.first().copied() } else { None };
    if keeps_mirror && value.is_none() {
        old.clear();
        old.extend_from_slice(row.sync);
    }
    let vertex = Master {
        sync: V::Sync::view_mut(row.sync),
        master: V::Master::view_mut(row.master),
        delta: V::Delta::view(row.delta),
    };
    stage.apply(vertex, cx);
    if reduced {
        row.delta.fill(bytemuck::Zeroable::zeroed());
    }
    if keeps_mirror {
        let old = value.as_ref().map_or(&old[..], std::slice::from_ref);
        V::refresh(V::Mirror::view_mut(row.mirror), V::Sync::view(old), V::Sync::view(row.sync));
    }
}

//! Apply at work: row by row of a shard, after what has arrived was added to its deltas.

use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::cast_slice;
use megagrid_partition::{ProcessId, ShardId, Side};
use megagrid_stages::simd::Kernel;
use megagrid_stages::{Apply, Context, Master, On, Program, Read, Shape, Store, Vertex};

use super::crossing::show;
use super::site::{RunStage, Site, name};
use crate::grid::{OwnedRow, OwnedRows};
use crate::plan::{Part, Task};
use crate::sync::{Malformed, Message, add_deltas, slice_of};

pub struct RunApply<O, A>(pub Arc<A>, pub PhantomData<O>);

impl<P: Program, O: On<P>, A: Apply<P, O::Vertex>> RunStage<P> for RunApply<O, A> {
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        let (plan, rows, shards) = (site.plan, site.grid.rows::<O>(), task.shards(O::SIDE));
        let (pieces, part) = (site.grid.pieces(O::SIDE).of(shards.clone()), plan.parts[O::SIDE as usize]);
        let copies = match (part, task.copies[O::SIDE as usize]) {
            (Some(Part::Worker), copy) => copy..copy + 1,
            _ => 0..rows.num_deltas(),
        };
        let mut owned = if skips::<P, O::Vertex, A>(&self.0, cx) {
            rows.try_own_awake(pieces, copies)?
        } else {
            rows.try_own_copies(pieces, copies)?
        };
        if part.is_none() {
            add_arrived(site, O::SIDE, shards.start, &mut owned);
        }
        let applied = apply::<P, O::Vertex, A>(&self.0, owned, (site, part.is_some()), cx);
        let this = ProcessId(plan.processes.this);
        if part == Some(Part::Process) && uses::<P, O>(site, this, shards.start) {
            let shown = show::<P, O>(site, shards.start, this, site.clock);
            assert!(shown.is_ok(), "a process's own part is applied to its shards");
        }
        Some(applied)
    }

    fn serve(&self, site: &Site<'_, P>, message: &Message, cx: &mut Context<'_, P>) -> Result<Option<u64>, Malformed> {
        let (shard, from) = (message.shard as usize, ProcessId(site.plan.process_of(message.from as usize)));
        let sync =
            site.sync.filter(|_| site.plan.keeper(O::SIDE, shard) == site.plan.processes.this).ok_or(Malformed)?;
        let pick = sync.mirrors.added(site.plan, O::SIDE, from, ShardId(shard));
        // Into the first array: what workers of this process add there meanwhile is applied with it.
        let pieces = site.grid.pieces(O::SIDE).of(shard..shard + 1);
        let Some(mut owned) = site.grid.rows::<O>().try_own_copies(pieces, 0..1) else { return Ok(None) };
        add_deltas(&mut owned, &slice_of(pick, message)?, site.dims, &message.body.bytes())?;
        if message.places().end < pick.len() {
            return Ok(Some(0));
        }
        let applied = apply::<P, O::Vertex, A>(&self.0, owned, (site, true), cx);
        show::<P, O>(site, shard, from, message.number)?;
        Ok(Some(applied))
    }
}

/// Tells whether a process uses rows of a shard.
fn uses<P: Program, O: On<P>>(site: &Site<'_, P>, process: ProcessId, shard: usize) -> bool {
    site.sync.is_some_and(|sync| !sync.mirrors.added(site.plan, O::SIDE, process, ShardId(shard)).is_empty())
}

/// Tells whether a stage passes by vertices that rest.
fn skips<P: Program, V: Vertex, A: Apply<P, V>>(stage: &A, cx: &Context<'_, P>) -> bool {
    V::RESTS && !stage.visits_resting(cx)
}

fn apply<P: Program, V: Vertex, A: Apply<P, V>>(
    stage: &A,
    owned: OwnedRows<'_, V>,
    (site, in_parts): (&Site<'_, P>, bool),
    cx: &mut Context<'_, P>,
) -> u64 {
    let (vertices, reduces) = (owned.rows.len() as u64, site.plan.reduces[site.stage]);
    if reduces && owned.has_partials() {
        site.grid.level.run(ApplyRows::<P, V, A, true> { stage, owned, reduces, in_parts, cx });
    } else {
        site.grid.level.run(ApplyRows::<P, V, A, false> { stage, owned, reduces, in_parts, cx });
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
    /// Whether they are parts of sums: rows to which nothing was added since are passed by.
    in_parts: bool,
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
        if skips::<P, V, A>(self.stage, &cx) {
            self.awake(&mut old, &mut cx);
            *self.cx.worker = at_hand;
            return;
        }
        let mut rows = self.owned.each_row_in_parts();
        while let Some(mut row) = rows.next() {
            if is_active::<P, V, A>(self.stage, &row, &cx) {
                if PARTS {
                    rows.fetch_after(&row);
                    rows.reduce_row(&mut row);
                }
                visit::<P, V, A>(self.stage, &mut row, (self.reduces, self.in_parts), &mut old, &mut cx);
                row.check_padding(&padding, name::<A>);
            }
        }
        *self.cx.worker = at_hand;
    }
}

impl<P: Program, V: Vertex, A: Apply<P, V>, const PARTS: bool> ApplyRows<'_, '_, '_, P, V, A, PARTS> {
    /// Visits the rows that are awake only.
    #[inline(always)]
    fn awake(&mut self, old: &mut Vec<<V::Sync as Store>::Item>, cx: &mut Context<'_, P>) {
        let (padding, owned) = (self.owned.padding.clone(), &mut self.owned);
        let rests = owned.rests;
        for piece in 0..rests.len() {
            let (rows, mut awake) = rests.list(piece);
            let mut each = awake.each(rests.wakings_of(piece), rows.len());
            while let Some((row, later)) = each.next() {
                if let Some(later) = later {
                    owned.fetch(rows.start + later);
                }
                let mut at = owned.row(rows.start + row);
                if !V::is_resting(V::Sync::view(at.sync)) && is_active::<P, V, A>(self.stage, &at, cx) {
                    if PARTS {
                        owned.reduce_row(rows.start + row);
                        at = owned.row(rows.start + row);
                    }
                    visit::<P, V, A>(self.stage, &mut at, (self.reduces, self.in_parts), old, cx);
                    at.check_padding(&padding, name::<A>);
                }
                each.pass(row, V::is_resting(V::Sync::view(at.sync)));
            }
        }
    }
}

#[inline(always)]
fn is_active<P: Program, V: Vertex, A: Apply<P, V>>(stage: &A, row: &OwnedRow<'_, V>, cx: &Context<'_, P>) -> bool {
    stage.is_active(Read { sync: V::Sync::view(row.sync), mirror: V::Mirror::view(row.mirror) }, cx)
}

/// Runs Apply on one row, whose delta was `reduced` or is zero, and refreshes its mirror data; `old` is scratch. Where deltas are parts of
/// sums, a row to which nothing was added stays as it is.
#[inline(always)]
fn visit<P: Program, V: Vertex, A: Apply<P, V>>(
    stage: &A,
    row: &mut OwnedRow<'_, V>,
    (reduced, in_parts): (bool, bool),
    old: &mut Vec<<V::Sync as Store>::Item>,
    cx: &mut Context<'_, P>,
) {
    if A::ADDITIVE && in_parts && cast_slice::<_, u8>(row.delta).iter().all(|&byte| byte == 0) {
        return;
    }
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

//! An edge function at work: block by block, compiled for common widths of rows.

use std::cell::Cell;
use std::sync::Arc;

use megagrid_partition::{ShardId, Side, SplitMix, WorkerId};
use megagrid_stages::simd::Kernel;
use megagrid_stages::{Context, EdgeItem, Exchange, Program, Shape, Store, Vertex};

use super::site::{RunStage, Site, name};
use crate::grid::{Awake, Edges, Fixed, Grid, HeldRows, Id, LocalEdges, Runtime, Visits, Walk, Width, hold};
use crate::plan::{Plan, Task};

pub struct RunExchange<E>(pub Arc<E>);

impl<P: Program, E: Exchange<P>> RunStage<P> for RunExchange<E> {
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        exchange(&*self.0, site.grid, site.plan, site.worker, task, cx)
    }
}

/// Runs an edge function on the blocks of a task.
pub fn exchange<P: Program, E: Exchange<P>>(
    stage: &E,
    grid: &Grid<P>,
    plan: &Plan,
    worker: usize,
    task: &Task,
    cx: &mut Context<'_, P>,
) -> Option<u64> {
    if stage.is_idle(cx) {
        return Some(0);
    }
    if plan.whole {
        return in_random_order(stage, grid, task, cx);
    }
    let (mut edges, mut visits, skips) = (0, Visits::default(), skips(stage, cx));
    let is_own = |left| task.turn.is_none() || plan.works_on(WorkerId(worker), Side::Left, ShardId(left));
    for shard in task.right.clone() {
        visits.begin();
        let column = &grid.columns[shard];
        let rights = grid.right_pieces.of(shard..shard + 1);
        let take = || grid.right.try_hold::<E::Right>(rights.clone(), task.copies[1]);
        // Before anything was changed a refused worker takes another task.
        let mut right = if edges == 0 { take()? } else { hold(take) };
        for layer in task.layers.clone() {
            for left in task.left.clone().filter(|&left| is_own(left)) {
                let block = layer * grid.left_shards + left % grid.left_shards;
                let len = column.edges.blocks()[block].edges.len();
                if len == 0 {
                    continue;
                }
                let pieces = grid.left_pieces.of(left..left + 1);
                let mut left = hold(|| grid.left.try_hold::<E::Left>(pieces.clone(), task.copies[0]));
                let mut data = hold(|| grid.data_of(shard).try_own(column.piece(block)));
                let mut awake = if skips { grid.awake_in(shard, block) } else { None };
                let awake = awake.as_deref_mut().map(|awake| (awake, grid.right.rests(&rights).wakings()));
                let (left, right, data) = (&mut left, &mut right, &mut *data);
                let at = BlockAt { stage, block, left, right, data, visits: &mut visits, awake };
                at.run(grid, &column.edges, cx);
                edges += len as u64;
                left.check_padding(grid.left.dims(), grid.left.width(), name::<E>);
            }
        }
        right.check_padding(grid.right.dims(), grid.right.width(), name::<E>);
    }
    Some(edges)
}

/// Tells whether a stage passes by right vertices that rest.
fn skips<P: Program, E: Exchange<P>>(stage: &E, cx: &Context<'_, P>) -> bool {
    E::GROUPED && P::Right::RESTS && !stage.visits_resting(cx)
}

thread_local! {
    /// Room that a worker keeps: memory that is given back and mapped anew interrupts all processors.
    static VISITS: Cell<Vec<Visits>> = const { Cell::new(Vec::new()) };
}

/// Runs an edge function on all edges of the right vertices of a task. Their order is random over all columns: in each the vertices
/// are shuffled and cut into parts, and the parts of one number run column by column, in random order.
fn in_random_order<P: Program, E: Exchange<P>>(
    stage: &E,
    grid: &Grid<P>,
    task: &Task,
    cx: &mut Context<'_, P>,
) -> Option<u64> {
    let (seed, mut edges, skips) = (cx.seed, 0, skips(stage, cx));
    let columns = task.right.clone().flat_map(|shard| task.layers.clone().map(move |layer| (shard, layer)));
    let (mut visits, mut columns) = (VISITS.take(), Vec::from_iter(columns.enumerate()));
    visits.resize_with(columns.len().max(visits.len()), Visits::default);
    visits.iter_mut().for_each(Visits::begin);
    let parts = if E::WHOLE && columns.len() > 1 { PARTS } else { 1 };
    for part in 0..parts {
        SplitMix::new(!seed, cx.iteration << 8 | part as u64).shuffle(&mut columns);
        for &(n, (shard, layer)) in &columns {
            cx.seed = SplitMix::new(seed, n as u64).bits();
            visits[n].turn_to(part, parts);
            if visits[n].is_done() {
                continue;
            }
            let (column, block) = (&grid.columns[shard], layer * grid.left_shards);
            let (lefts, rights) = (grid.left_pieces.of(task.left.clone()), grid.right_pieces.of(shard..shard + 1));
            let mut right = hold(|| grid.right.try_hold::<E::Right>(rights.clone(), task.copies[1]));
            let mut left = hold(|| grid.left.try_hold::<E::Left>(lefts.clone(), task.copies[0]));
            let mut data = hold(|| grid.data_of(shard).try_own(column.piece(block)));
            let mut awake = if skips && part == 0 { grid.awake_in(shard, block) } else { None };
            let awake = awake.as_deref_mut().map(|awake| (awake, grid.right.rests(&rights).wakings()));
            let (left, right, data) = (&mut left, &mut right, &mut *data);
            BlockAt { stage, block, left, right, data, visits: &mut visits[n], awake }.run(grid, &column.edges, cx);
            edges += column.edges.blocks()[block].edges.len() as u64 * u64::from(part == 0);
            left.check_padding(grid.left.dims(), grid.left.width(), name::<E>);
            right.check_padding(grid.right.dims(), grid.right.width(), name::<E>);
        }
    }
    cx.seed = seed;
    VISITS.set(visits);
    Some(edges)
}

/// Parts that the right vertices of a shard run in, where there are others.
const PARTS: usize = 16;

/// A block with everything that it needs held.
struct BlockAt<'b, 'h, P: Program, E: Exchange<P>> {
    stage: &'b E,
    block: usize,
    left: &'b mut HeldRows<'h, P::Left, E::Left>,
    right: &'b mut HeldRows<'h, P::Right, E::Right>,
    data: &'b mut [EdgeItem<P>],
    visits: &'b mut Visits,
    awake: Option<(&'b mut Awake, u64)>,
}

impl<P: Program, E: Exchange<P>> BlockAt<'_, '_, P, E> {
    const ROWS: bool = has::<P::Left>(Shape::Row) || has::<P::Right>(Shape::Row);
    const FIXED_WIDTHS: bool = Self::ROWS && E::FIXED_WIDTHS;
    const ITEMS: bool = Self::ROWS || has::<P::Left>(Shape::Entries) || has::<P::Right>(Shape::Entries);

    /// Common row widths are compiled in, so that the loops over a row unroll: where there are rows, and ids are narrow, as
    /// those of all shards that fit a cache with their rows are. Tests have one of them, and compile in less time: to the last bit all do the same.
    fn run(self, grid: &Grid<P>, edges: &Edges, cx: &mut Context<'_, P>) {
        let (left, right) = (grid.left.width(), grid.right.width());
        let runtime = (Runtime(left), Runtime(right));
        let edges = match edges {
            Edges::Narrow(edges) => edges,
            Edges::Wide(edges) => return self.run_widths(grid, edges, runtime, cx),
        };
        // The compiler leaves out what a constant rules out: nothing is compiled for widths that a program has not.
        if Self::FIXED_WIDTHS {
            match if left == right { left } else { 0 } {
                16 => self.run_widths(grid, edges, (Fixed::<16>, Fixed::<16>), cx),
                #[cfg(not(debug_assertions))]
                32 => self.run_widths(grid, edges, (Fixed::<32>, Fixed::<32>), cx),
                #[cfg(not(debug_assertions))]
                64 => self.run_widths(grid, edges, (Fixed::<64>, Fixed::<64>), cx),
                #[cfg(not(debug_assertions))]
                112 => self.run_widths(grid, edges, (Fixed::<112>, Fixed::<112>), cx),
                #[cfg(not(debug_assertions))]
                128 => self.run_widths(grid, edges, (Fixed::<128>, Fixed::<128>), cx),
                _ => self.run_widths(grid, edges, runtime, cx),
            }
        } else {
            self.run_widths(grid, edges, runtime, cx);
        }
    }

    fn run_widths<I: Id, W: Width>(
        self,
        grid: &Grid<P>,
        edges: &LocalEdges<I>,
        widths: (W, W),
        cx: &mut Context<'_, P>,
    ) {
        let Self { stage, block, left, right, data, visits, awake } = self;
        let walk = Walk { edges, block, left, right, data, visits, awake, stage, widths };
        // Where an edge has no rows to go over, a vector would hold the ends of several edges.
        let level = if Self::ITEMS { grid.level } else { grid.level.of_scattered() };
        level.run(OneBlock { walk, cx });
    }
}

/// Tells whether one of a vertex type's stores has a shape.
const fn has<V: Vertex>(shape: Shape) -> bool {
    let shape = shape as u8;
    <V::Sync as Store>::SHAPE as u8 == shape
        || <V::Delta as Store>::SHAPE as u8 == shape
        || <V::Mirror as Store>::SHAPE as u8 == shape
        || <V::Master as Store>::SHAPE as u8 == shape
}

struct OneBlock<'k, 'w, 'h, 'c, P: Program, E: Exchange<P>, I, W> {
    walk: Walk<'w, 'h, P, E, I, W>,
    cx: &'k mut Context<'c, P>,
}

impl<P: Program, E: Exchange<P>, I: Id, W: Width> Kernel for OneBlock<'_, '_, '_, '_, P, E, I, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut at_hand = std::mem::take(self.cx.worker);
        self.walk.run(&mut Context { worker: &mut at_hand, ..*self.cx });
        *self.cx.worker = at_hand;
    }
}

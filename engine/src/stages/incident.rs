//! Stages on a vertex and the data of all its edges.
//!
//! The data of a vertex's edges are copied together, shown to the stage, and copied back, from a column that is held as a
//! whole or from a row of blocks that is laid out one after the other. Shards are sized so that both stay in a cache.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use megagrid_partition::Side;
use megagrid_partition::parallel::with_one_of;
use megagrid_stages::simd::Kernel;
use megagrid_stages::{Context, EdgeItem, Incident, On, Program, Store, Update, Vertex};

use super::site::{RunStage, Site, name};
use crate::grid::{Grid, OwnedRows, Places, row_of_blocks};
use crate::plan::{Plan, Task};

/// Memory of a task, kept from one to the next.
pub struct Scratch<P: Program> {
    /// A left shard's blocks, one after the other.
    row: Vec<EdgeItem<P>>,
    /// The items of the vertex at hand.
    vertex: Vec<EdgeItem<P>>,
}

impl<P: Program> Default for Scratch<P> {
    fn default() -> Self {
        Self { row: Vec::new(), vertex: Vec::new() }
    }
}

impl<P: Program> Scratch<P> {
    /// Lays out the data of a left shard's blocks, by column and place in it, one after the other. `None`: a hold was refused.
    pub(super) fn row(
        &mut self,
        blocks: impl Iterator<Item = (usize, usize)>,
        grid: &Grid<P>,
    ) -> Option<&[EdgeItem<P>]> {
        self.row.clear();
        for (column, block) in blocks {
            let piece = grid.columns[column].piece(block);
            self.row.extend_from_slice(&grid.data_of(column).try_share(piece)?);
        }
        Some(&self.row)
    }
}

/// Scratch for as many tasks as run at a time.
pub(super) type Pool<P> = Mutex<Vec<Scratch<P>>>;

/// An Incident ready to run tasks.
pub struct RunIncident<P: Program, O, A>(Arc<A>, Pool<P>, PhantomData<O>);

impl<P: Program, O, A> RunIncident<P, O, A> {
    pub fn new(stage: &Arc<A>) -> Self {
        Self(Arc::clone(stage), Pool::default(), PhantomData)
    }
}

impl<P: Program, O: On<P>, A: Incident<P, O::Vertex>> RunStage<P> for RunIncident<P, O, A> {
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        let shard = task.shard(O::SIDE);
        with_one_of(&self.1, |scratch| visit::<P, O, A>(&self.0, (site.grid, site.plan), shard, scratch, cx))
    }
}

/// Runs a stage on the vertices of a shard, and returns the number of their edges; `None`: a hold was refused and nothing
/// was changed.
pub fn visit<P: Program, O: On<P>, A: Incident<P, O::Vertex>>(
    stage: &A,
    (grid, plan): (&Grid<P>, &Plan),
    shard: usize,
    scratch: &mut Scratch<P>,
    cx: &mut Context<'_, P>,
) -> Option<u64> {
    let rows = grid.rows::<O>().try_own(grid.pieces(O::SIDE).of(shard..shard + 1))?;
    match O::SIDE {
        Side::Left => visit_left(stage, rows, (grid, plan), shard, scratch, cx),
        Side::Right => visit_right(stage, rows, grid, shard, scratch, cx),
    }
}

fn visit_left<P: Program, V: Vertex, A: Incident<P, V>>(
    stage: &A,
    rows: OwnedRows<'_, V>,
    (grid, plan): (&Grid<P>, &Plan),
    shard: usize,
    scratch: &mut Scratch<P>,
    cx: &mut Context<'_, P>,
) -> Option<u64> {
    let own = |(column, block): (usize, usize)| grid.data_of(column).try_own(grid.columns[column].piece(block));
    let mut blocks: Vec<_> = row_of_blocks(plan, shard).map(own).collect::<Option<_>>()?;
    let Scratch { row, vertex } = scratch;
    row.clear();
    blocks.iter().for_each(|block| row.extend_from_slice(block));
    let places = &grid.places[0][shard];
    grid.level.run(VisitRows { stage, rows, places, items: row, vertex, cx });
    let mut rest = &row[..];
    for block in &mut blocks {
        let (items, after) = rest.split_at(block.len());
        block.copy_from_slice(items);
        rest = after;
    }
    let edges = |(column, block): (usize, usize)| grid.columns[column].edges.blocks()[block].edges.len() as u64;
    Some(row_of_blocks(plan, shard).map(edges).sum())
}

fn visit_right<P: Program, V: Vertex, A: Incident<P, V>>(
    stage: &A,
    rows: OwnedRows<'_, V>,
    grid: &Grid<P>,
    shard: usize,
    scratch: &mut Scratch<P>,
    cx: &mut Context<'_, P>,
) -> Option<u64> {
    let data = grid.data_of(shard);
    let mut items = data.try_own(0..data.num_pieces())?;
    let places = &grid.places[1][shard];
    grid.level.run(VisitRows { stage, rows, places, items: &mut items, vertex: &mut scratch.vertex, cx });
    Some(grid.columns[shard].edges.len() as u64)
}

/// The vertices of a shard with everything that they need held.
struct VisitRows<'k, 'h, 'c, P: Program, V: Vertex, A> {
    stage: &'k A,
    rows: OwnedRows<'h, V>,
    places: &'k Places,
    items: &'k mut [EdgeItem<P>],
    vertex: &'k mut Vec<EdgeItem<P>>,
    cx: &'k mut Context<'c, P>,
}

impl<P: Program, V: Vertex, A: Incident<P, V>> Kernel for VisitRows<'_, '_, '_, P, V, A> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { stage, mut rows, places, items, vertex, cx } = self;
        // A context that no pointer leads to stays in registers while the rows are written.
        let mut at_hand = std::mem::take(cx.worker);
        let mut near = Context::<P> { worker: &mut at_hand, ..*cx };
        let (first, padding) = (rows.rows.start, rows.padding.clone());
        for row in rows.each_row() {
            let places = places.of(row.row - first);
            vertex.clear();
            vertex.extend(places.iter().map(|&place| items[place as usize]));
            let view = Update { sync: V::Sync::view_mut(row.sync), mirror: V::Mirror::view_mut(row.mirror) };
            stage.visit(view, vertex, &mut near);
            for (item, &place) in vertex.iter().zip(places) {
                items[place as usize] = *item;
            }
            row.check_padding(&padding, name::<A>);
        }
        *cx.worker = at_hand;
    }
}

//! Stages on a vertex with all its edges and the vertices at their other ends, of which all rows are shared meanwhile.

use std::marker::PhantomData;
use std::sync::Arc;

use megagrid_partition::Side;
use megagrid_partition::parallel::with_one_of;
use megagrid_stages::simd::{Kernel, prefetch};
use megagrid_stages::{Context, EdgeItem, Gather, Neighbors, On, Program, Store, Update, Vertex};

use super::incident::{Pool, Scratch};
use super::site::{RunStage, Site, name};
use crate::grid::{AtHand, Grid, OwnedRows, Places, Role, row_of_blocks};
use crate::plan::{Plan, Task};

/// A Gather ready to run tasks.
pub struct RunGather<P: Program, O, G>(Arc<G>, Pool<P>, PhantomData<O>);

impl<P: Program, O, G> RunGather<P, O, G> {
    pub fn new(stage: &Arc<G>) -> Self {
        Self(Arc::clone(stage), Pool::default(), PhantomData)
    }
}

impl<P: Program, O: On<P>, G: Gather<P, O>> RunStage<P> for RunGather<P, O, G> {
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        let shard = task.shard(O::SIDE);
        with_one_of(&self.1, |scratch| gather::<P, O, G>(&self.0, (site.grid, site.plan), shard, scratch, cx))
    }
}

/// Runs a stage on the vertices of a shard, and returns the number of their edges; `None`: a hold was refused and nothing was
/// changed.
fn gather<P: Program, O: On<P>, G: Gather<P, O>>(
    stage: &G,
    (grid, plan): (&Grid<P>, &Plan),
    shard: usize,
    scratch: &mut Scratch<P>,
    cx: &mut Context<'_, P>,
) -> Option<u64> {
    let rows = grid.rows::<O>().try_own(grid.pieces(O::SIDE).of(shard..shard + 1))?;
    let others = grid.pieces(O::SIDE.other()).of(0..plan.side(O::SIDE.other()).num_shards());
    let others = grid.rows::<O::Other>().try_share(others)?;
    let places = &grid.places[O::SIDE as usize][shard];
    let visit = |items: &[EdgeItem<P>]| {
        let (vertices, others) = (PhantomData::<O>, &others.sync);
        grid.level.run(EachVertex { stage, rows, vertices, others, places, items, cx });
        Some(items.len() as u64)
    };
    match O::SIDE {
        Side::Left => visit(scratch.row(row_of_blocks(plan, shard), grid)?),
        Side::Right => {
            let data = grid.data_of(shard);
            visit(&data.try_share(0..data.num_pieces())?)
        }
    }
}

/// The vertices of a shard with everything that they need held.
struct EachVertex<'k, 'h, 'c, P: Program, O: On<P>, G> {
    stage: &'k G,
    rows: OwnedRows<'h, O::Vertex>,
    vertices: PhantomData<O>,
    others: &'k SyncOfOthers<'h, P, O>,
    places: &'k Places,
    items: &'k [EdgeItem<P>],
    cx: &'k mut Context<'c, P>,
}

type Other<P, O> = <<O as On<P>>::Other as On<P>>::Vertex;
type SyncOfOthers<'h, P, O> = Role<'h, <Other<P, O> as Vertex>::Sync>;

impl<P: Program, O: On<P>, G: Gather<P, O>> Kernel for EachVertex<'_, '_, '_, P, O, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { stage, mut rows, others, places, items, cx, .. } = self;
        // A context that no pointer leads to stays in registers while the rows are written.
        let mut at_hand = std::mem::take(cx.worker);
        let mut near = Context::<P> { worker: &mut at_hand, ..*cx };
        let (first, padding) = (rows.rows.start, rows.padding.clone());
        let (all, ahead) = (places.ends(), Ahead::new(others, size_of_val(items)));
        for row in rows.each_row() {
            let edges = places.span(row.row - first);
            let sync = <O::Vertex as Vertex>::Sync::view_mut(row.sync);
            let mirror = <O::Vertex as Vertex>::Mirror::view_mut(row.mirror);
            let (places, ends) = (&all.0[edges.clone()], &all.1[edges.clone()]);
            let neighbors =
                Near::<P, O> { others: others.at_hand(), places, ends, all, first: edges.start, items, ahead };
            stage.gather(Update { sync, mirror }, &neighbors, &mut near);
            row.check_padding(&padding, name::<G>);
        }
        *cx.worker = at_hand;
    }
}

/// How many bytes of rows are fetched ahead, in how many rows at most (measured: implicit feedback).
const AHEAD: (usize, usize) = (4096, 32);
/// What takes no more bytes is near anyway (measured: regression of few features).
const NEAR: usize = 1 << 18;

/// How many edges ahead what an edge needs is fetched; 0: it is near.
#[derive(Clone, Copy)]
struct Ahead {
    /// The row at its other end.
    row: usize,
    /// What it carries.
    item: usize,
}

impl Ahead {
    fn new<S: Store + ?Sized>(rows: &Role<'_, S>, bytes_of_items: usize) -> Self {
        let bytes = if rows.num_items() > 0 { size_of_val(rows.items(rows.first())) } else { 0 };
        let row = (AHEAD.0 / bytes.max(1)).clamp(1, AHEAD.1);
        let of = |bytes: usize, ahead: usize| if bytes > NEAR { ahead } else { 0 };
        Self { row: of(rows.num_items() * size_of::<S::Item>(), row), item: of(bytes_of_items, AHEAD.1) }
    }
}

/// The edges of the vertex at hand.
struct Near<'k, P: Program, O: On<P>> {
    others: AtHand<'k, <Other<P, O> as Vertex>::Sync>,
    /// Where the items of its edges are, and the rows at their other ends.
    places: &'k [u32],
    ends: &'k [u32],
    /// The same of all edges of the shard, and which is its first: what is fetched may be the next vertex's.
    all: (&'k [u32], &'k [u32]),
    first: usize,
    items: &'k [EdgeItem<P>],
    ahead: Ahead,
}

impl<P: Program, O: On<P>> Neighbors<P, O> for Near<'_, P, O> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline(always)]
    fn edge(&self, edge: usize) -> &EdgeItem<P> {
        let Ahead { item: ahead, .. } = self.ahead;
        if ahead > 0
            && let Some(&place) = self.all.0.get(self.first + edge + ahead)
        {
            prefetch(self.items.as_ptr().wrapping_add(place as usize), 1);
        }
        &self.items[self.places[edge] as usize]
    }

    #[inline(always)]
    fn sync(&self, edge: usize) -> &<Other<P, O> as Vertex>::Sync {
        let Ahead { row: ahead, .. } = self.ahead;
        if ahead > 0
            && let Some(&end) = self.all.1.get(self.first + edge + ahead)
        {
            let items = self.others.items(end as usize);
            prefetch(items.as_ptr(), size_of_val(items));
        }
        self.others.view(self.ends[edge] as usize)
    }
}

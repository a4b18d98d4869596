//! Edges that come and edges that go: an engine goes on with others, and its vertices keep what they have.

use std::ops::Range;
use std::sync::Arc;

use megagrid_partition::{EdgeSource, Holders, ShardId, Side};
use megagrid_stages::{EdgeItem, Left, Program, Right, Store};

use super::build;
use super::carry::{capacities, carry};
use super::changed_edges::{Gone, More, One, Together};
use super::planning::check_square;
use super::{Engine, estimate};
use crate::Error;
use crate::grid::{Capacities, Change, Listing, RowOrder, Source};
use crate::plan::Plan;
use crate::run::{Run, spread};

impl<P: Program> Engine<P> {
    /// Takes more edges, between iterations, and the vertices that come with them, and plans anew. Returns the ids of the new vertices,
    /// left and right.
    ///
    /// `more` has as many vertices as there are then: those that there were keep their ids, and new ones follow. All keep what they have,
    /// and edges what they carry; new vertices begin as all-zero bytes, until [`init`](Self::init) sets them. The shared context and
    /// the number of iterations stay. What runs from then on is, bit by bit, what an engine runs that was made of all edges, these behind
    /// the others, and has the same values.
    ///
    /// With several processes all of them call it, as they call [`new`](Self::new): each with all that is to come, or with the part that
    /// it has read. Deltas that are not applied in the iteration in which they are added are then lost.
    ///
    /// # Examples
    /// ```
    /// use megagrid_datasets::Edges;
    /// use megagrid_engine::{Engine, Settings};
    /// use megagrid_stages::*;
    ///
    /// vertex! { struct Page { sync: u32, delta: u32, master: u32 } }
    /// program! { struct Links { vertices: Page } }
    ///
    /// let count = Sequence::new()
    ///     .exchange(|_: Read<Page>, to: Add<Page>| *to.delta += 1)
    ///     .apply(Right, |page: Master<Page>| *page.sync = *page.delta + *page.master);
    /// let links = Edges::square(3, [(0, 2), (1, 2), (2, 0)]).unwrap();
    /// let mut engine = Engine::<Links>::new(&links, count, &Settings::default())?;
    /// engine.iterate(1)?;
    ///
    /// let [new, _] = engine.append(&Edges::square(4, [(3, 2), (3, 0)]).unwrap())?;
    /// engine.init(Right, |id, page| if new.contains(&id) { *page.master = 10 });
    /// engine.remove(&Edges::square(4, [(0, 2)]).unwrap())?;
    /// engine.iterate(1)?;
    /// assert!(engine.on(Right).iter().eq(&[2, 0, 2, 10]));
    /// # Ok::<(), megagrid_engine::Error>(())
    /// ```
    ///
    /// # Complexity
    /// Blocks are copied at the speed of memory, and edges of the vertices that get some or lose some are sorted in: less than
    /// [`new`](Self::new) from edges in memory. All edges are grouped and laid out anew, which is some times as long as that and takes
    /// 16 bytes an edge and its data, with several processes, where rows of both sides change in place, and where left shards begin at
    /// other rows than before: workers share the left side out, or many edges or vertices came. Memory: a second grid beside what there
    /// is, and from the first change on 16 bytes a vertex.
    ///
    /// # Errors
    /// As [`new`](Self::new); capacities, where vertices have them, that are missing or smaller than before;
    /// [`Error::VirtualEdges`] on a virtual cluster; [`Error::Running`] from within a run. The engine is then as it was.
    pub fn append<'s, T: Copy + Send + Sync + 's>(
        &mut self,
        more: impl Into<Source<'s, T, P>>,
    ) -> Result<[Range<usize>; 2], Error> {
        let more = more.into();
        self.check_change(more.edges.is_square())?;
        let before = [Side::Left, Side::Right].map(|side| self.run.grid.order(side).len());
        let vertices = [Side::Left, Side::Right].map(|side| before[side as usize].max(more.edges.num_vertices(side)));
        let capacities = self.capacities(vertices, more.capacities)?;
        let bring = |holders: Holders<'_>, into: &mut Listing<P>| {
            more.edges.distribute(holders)?;
            into.extend_from(&more)
        };
        let offsets = [Side::Left, Side::Right].map(|side| more.edges.offsets(side));
        let more = More { offsets, items: estimate::edge_items(&more)?, bring: &bring };
        self.rebuild(vertices, (Some(more), &Gone::default()), &capacities)?;
        Ok([before[0]..vertices[0], before[1]..vertices[1]])
    }

    /// Takes edges back by their ends, between iterations, and plans anew: all that join the two ends of an edge of `gone`, whatever they
    /// carry. Vertices stay, those without edges too, and keep what they have; so do edges. What runs from then on is, bit by bit, what
    /// an engine runs that was made of the edges that are left, and has the same values. See [`append`](Self::append).
    ///
    /// # Errors
    /// [`Error::NoEdge`]: an edge that is not there; as [`append`](Self::append). The engine is then as it was.
    pub fn remove<T>(&mut self, gone: &dyn EdgeSource<T>) -> Result<(), Error> {
        self.check_change(gone.is_square())?;
        let vertices = [Side::Left, Side::Right].map(|side| self.run.grid.order(side).len());
        let ends = self.agree(ends_of(gone, vertices, &self.run))?;
        let gone = self.agree(Gone::find(&self.run.grid, &self.run.plan, ends))?;
        let capacities = self.capacities(vertices, [None, None])?;
        self.rebuild(vertices, (None, &gone), &capacities)
    }

    /// Refuses a change that this engine cannot make.
    fn check_change(&mut self, is_square: bool) -> Result<(), Error> {
        Arc::get_mut(&mut self.run).ok_or(Error::Running)?;
        if self.run.peers.as_deref().is_some_and(|peers| peers.modelled().is_some()) {
            return Err(Error::VirtualEdges);
        }
        check_square::<P>(is_square)
    }

    /// Returns the capacities of all vertices, by id.
    fn capacities(&self, [left, right]: [usize; 2], said: [Capacities<'_>; 2]) -> Result<[Option<Vec<u32>>; 2], Error> {
        let grid = &self.run.grid;
        if grid.is_square() {
            let both = capacities::<P, Left>(grid, left, said[0])?;
            return Ok([both.clone(), both]);
        }
        Ok([capacities::<P, Left>(grid, left, said[0])?, capacities::<P, Right>(grid, right, said[1])?])
    }

    /// Makes the grid of the edges that the engine keeps and of more edges, with `vertices` left and right ones.
    fn rebuild(
        &mut self,
        vertices: [usize; 2],
        (more, gone): (Option<More<'_, P>>, &Gone),
        capacities: &[Option<Vec<u32>>; 2],
    ) -> Result<(), Error> {
        spread(&self.run, self.done)?;
        let (run, known) = (Arc::clone(&self.run), self.offsets.clone());
        let before = (&*run, known.as_ref());
        if P::Edge::SHAPE.is_slice() {
            let numbers = |listing: &mut Listing<P>| (0..listing.len()).collect::<Vec<usize>>();
            let edges = Together::new(before, vertices, (more, gone), numbers)?;
            let items = |edge: usize| {
                let listing = edges.listing();
                listing.map_or(&[][..], |listing| &listing.items[listing.items_of(edge..edge + 1)])
            };
            let source =
                Source::slices(&edges, |&edge| items(edge).len(), |&edge, into| into.copy_from_slice(items(edge)));
            let source = Source { items: Some(edges.items()), ..source };
            return self.build_on((source, edges.change().as_ref()), capacities);
        }
        let carried = |listing: &mut Listing<P>| std::mem::take(&mut listing.items).into_iter().map(One).collect();
        let edges = Together::<P, One<EdgeItem<P>>>::new(before, vertices, (more, gone), carried)?;
        let source = Source::slices(&edges, |_| 1, |one, into| into[0] = one.0);
        self.build_on((source, edges.change().as_ref()), capacities)
    }

    /// Makes the run of other edges, and takes it in the place of this one.
    fn build_on<T: Copy + Send + Sync>(
        &mut self,
        (source, change): (Source<'_, T, P>, Option<&Change<'_, P>>),
        capacities: &[Option<Vec<u32>>; 2],
    ) -> Result<(), Error> {
        let [left, right] = capacities.each_ref().map(Option::as_deref);
        let (source, seed) = (source.capacities(left, right), self.settings.seed);
        let kept = |plan: &Plan, orders: &[RowOrder; 2]| {
            let change = change.filter(|change| change.keeps_blocks(plan, orders))?;
            Some(change.columns(plan, orders, (seed, source.edges.offsets(Side::Right))))
        };
        let run = build::run((&source, Some(&kept)), &self.program, &self.settings)?;
        carry(&self.run.grid, &run);
        self.offsets = Some([Side::Left, Side::Right].map(|side| source.edges.offsets(side).to_vec()));
        run.globals.swap(&mut self.run.globals.current());
        self.run = Arc::new(run);
        self.spare.clear();
        self.edition += 1;
        Ok(())
    }
}

/// Returns the ends of edges that are to go, ascending, right ends in the upper halves: those for which this process answers.
fn ends_of<T, P: Program>(gone: &dyn EdgeSource<T>, vertices: [usize; 2], run: &Run<P>) -> Result<Vec<u64>, Error> {
    let (plan, orders) = (&run.plan, &run.grid.orders);
    let rows = |left: u32, right: u32| {
        let is_there = (left as usize) < vertices[0] && (right as usize) < vertices[1];
        is_there.then(|| (orders[0].row(left as usize), orders[1].row(right as usize)))
    };
    gone.distribute(&|left, right| rows(left, right).map_or([Some(0), None], |rows| plan.placement.holders(rows)))?;
    let mut all = Vec::new();
    for window in gone.windows() {
        gone.visit_ends(window, &mut |ends| all.extend_from_slice(ends))?;
    }
    all.sort_unstable();
    all.dedup();
    if let Some((left, right)) = all.iter().map(|&ends| of(ends)).find(|&(left, right)| rows(left, right).is_none()) {
        return Err(Error::NoEdge { left, right });
    }
    all.retain(|&ends| {
        let (left, right) = of(ends);
        rows(left, right).is_some_and(|rows| answers_for(plan, rows))
    });
    Ok(all)
}

fn of(ends: u64) -> (u32, u32) {
    (ends as u32, (ends >> 32) as u32)
}

/// Tells whether this process answers for the edges between two rows, if there are any.
fn answers_for(plan: &Plan, (left, right): (usize, usize)) -> bool {
    let shard = |side: Side, row: usize| ShardId(plan.side(side).bounds.partition_point(|&bound| bound <= row) - 1);
    plan.placement.holds(plan.processes.this, (left, right))
        && plan.answers_for(shard(Side::Left, left), shard(Side::Right, right))
}

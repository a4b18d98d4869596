//! The walk over a block whose edges are grouped by right vertex, vertices with equally many edges side by side, so that the
//! loops' lengths can be predicted.

use std::ops::Range;

use megagrid_partition::SplitMix;
use megagrid_stages::mode::{Access, Mode, Replica};
use megagrid_stages::simd::prefetch;
use megagrid_stages::{Additive, Context, Exchange, Program, Shape, Store, Vertex};

use super::block::{Id, Run};
use super::edge_data::{Data, FETCHED};
use super::ends::{Endpoint, Ends};
use super::prefetch::{Addresses, DeltaItem};
use super::width::Width;

/// Right vertices that are looked at before the edges of the first of them run.
const LOOKED_AT: usize = 128;
/// How many active ones ahead what one needs is fetched (measured: BlockPG).
const VISITS_AHEAD: usize = 3;
/// How many edges ahead the left end's value is fetched, where it takes many bytes (measured: BlockPG, 48 and 120 bytes).
const ENDS_AHEAD: usize = 32;
/// Sums kept at hand are split over this many, so that an addition need not wait for the one before it.
const LANES: usize = 4;

/// A block's groups.
pub struct Groups<'g, P: Program, E: Exchange<P>, I, W: Width> {
    pub lefts: Ends<'g, P::Left, E::Left, I, W>,
    pub rights: Ends<'g, P::Right, E::Right, I, W>,
    /// How many edges they have.
    pub runs: &'g [Run],
}

/// A right vertex whose edges are to run.
#[derive(Clone, Copy, Default)]
struct Visit {
    /// Its number in the block.
    vertex: usize,
    /// Its first edge in the block.
    first: usize,
    /// Its edges.
    degree: usize,
}

/// Which right vertices of a shard run.
pub struct Visits {
    /// By row of the shard; empty before they were asked.
    pub active: Vec<bool>,
    /// Those that run in random order.
    list: Vec<Visit>,
    /// Which part of these runs, of how many.
    part: (usize, usize),
}

impl Default for Visits {
    fn default() -> Self {
        Self { active: Vec::new(), list: Vec::new(), part: (0, 1) }
    }
}

impl Visits {
    /// Begins with a shard.
    pub fn begin(&mut self) {
        self.active.clear();
        self.part = (0, 1);
    }

    /// Lets part `n` of `all` run next, where vertices run in random order: the first part once the shard was begun.
    pub fn turn_to(&mut self, n: usize, all: usize) {
        self.part = (n, all);
    }

    /// Returns the list's range that runs now.
    fn now(&self) -> Range<usize> {
        let (n, all) = self.part;
        self.list.len() * n / all..self.list.len() * (n + 1) / all
    }
}

impl<P: Program, E: Exchange<P>, I: Id, W: Width> Groups<'_, P, E, I, W> {
    /// Whether the delta of the right vertex is one value: it is kept at hand while the vertex's edges run.
    const AT_HAND: bool = matches!((E::Right::MODE, <P::Right as Vertex>::Delta::SHAPE), (Mode::Add, Shape::Value));

    /// Runs the edges of all right vertices.
    #[inline(always)]
    pub fn all(mut self, mut data: Data<'_, P>, stage: &E, cx: &mut Context<'_, P>) {
        let (mut edge, mut vertex) = (0, 0);
        for run in self.runs {
            let (degree, vertices) = (run.degree as usize, run.vertices as usize);
            let rows = vertex..vertex + vertices;
            // Where an edge is a few instructions, a length known beforehand saves half of them.
            match degree {
                _ if !Self::AT_HAND => self.run(rows, edge, degree, &mut data, stage, cx),
                1 => self.run(rows, edge, 1, &mut data, stage, cx),
                2 => self.run(rows, edge, 2, &mut data, stage, cx),
                3 => self.run(rows, edge, 3, &mut data, stage, cx),
                4 => self.run(rows, edge, 4, &mut data, stage, cx),
                _ => self.run(rows, edge, degree, &mut data, stage, cx),
            }
            vertex += vertices;
            edge += degree * vertices;
        }
    }

    /// Runs the edges of the active right vertices only. They are collected before their edges run, so that which are active
    /// need not be predicted, and what each needs is fetched while others run.
    #[inline(always)]
    pub fn active(mut self, which: &mut Visits, mut data: Data<'_, P>, stage: &E, cx: &mut Context<'_, P>) {
        if E::WHOLE {
            return self.shuffled(which, data, stage, cx);
        }
        let is_active = &which.active;
        let (mut runs, mut visits) = (Runs::new(self.runs), [Visit::default(); LOOKED_AT]);
        let (ids, addresses) = (self.rights.ids(), self.rights.addresses());
        for (n, rows) in ids.chunks(LOOKED_AT).enumerate() {
            let mut found = 0;
            for (vertex, row) in rows.iter().enumerate() {
                visits[found].vertex = vertex;
                found += usize::from(is_active[row.index()]);
            }
            for visit in &mut visits[..found] {
                if Self::AT_HAND {
                    addresses.delta(rows[visit.vertex]);
                }
                let vertex = n * LOOKED_AT + visit.vertex;
                let (degree, first) = runs.find(vertex);
                *visit = Visit { vertex, first, degree };
            }
            self.visits(&visits[..found], &mut data, stage, cx);
        }
    }

    /// Runs the edges of the active right vertices in random order, or of a part of them.
    #[inline(always)]
    fn shuffled(mut self, which: &mut Visits, mut data: Data<'_, P>, stage: &E, cx: &mut Context<'_, P>) {
        if which.part.0 == 0 {
            let mut runs = Runs::new(self.runs);
            which.list.clear();
            which.list.reserve(self.rights.ids().len());
            for (vertex, row) in self.rights.ids().iter().enumerate() {
                if which.active[row.index()] {
                    let (degree, first) = runs.find(vertex);
                    which.list.push(Visit { vertex, first, degree });
                }
            }
            SplitMix::new(cx.seed, cx.iteration).shuffle(&mut which.list);
        }
        self.visits(&which.list[which.now()], &mut data, stage, cx);
    }

    /// Runs vertices that have equally many edges, one after the other from edge `first`.
    #[inline(always)]
    fn run(
        &mut self,
        vertices: Range<usize>,
        first: usize,
        degree: usize,
        data: &mut Data<'_, P>,
        stage: &E,
        cx: &mut Context<'_, P>,
    ) {
        let mut rights = self.rights.part(vertices);
        let vertices = rights.ids().len();
        for vertex in 0..vertices {
            let at = Visit { vertex, first: first + vertex * degree, degree };
            edges_of(&mut rights.at(vertex), &mut self.lefts, at, data, stage, cx);
        }
    }

    #[inline(always)]
    fn visits(&mut self, visits: &[Visit], data: &mut Data<'_, P>, stage: &E, cx: &mut Context<'_, P>) {
        let (ids_of_rights, rights) = (self.rights.ids(), self.rights.addresses());
        for (n, &visit) in visits.iter().enumerate() {
            if let Some(&Visit { vertex, first, degree }) = visits.get(n + VISITS_AHEAD) {
                if E::WHOLE {
                    rights.value(ids_of_rights[vertex], E::Right::MODE);
                    rights.delta(ids_of_rights[vertex]);
                }
                let ids = self.lefts.ids().as_ptr().wrapping_add(first);
                prefetch(ids, FETCHED.min(degree * size_of::<I>()));
                data.prefetch(first, degree);
            }
            let (mut far, lefts) = (self.rights.at(visit.vertex), &mut self.lefts);
            stage.begin(far.again(None).read(), cx);
            match visit.degree {
                1 if Self::AT_HAND => edges_of(&mut far, lefts, Visit { degree: 1, ..visit }, data, stage, cx),
                2 if Self::AT_HAND => edges_of(&mut far, lefts, Visit { degree: 2, ..visit }, data, stage, cx),
                _ => edges_of(&mut far, lefts, visit, data, stage, cx),
            }
            if E::WHOLE && stage.turn(E::Right::view(far.again(None)), cx) {
                answers(&mut far, lefts, visit, data, stage, cx);
            }
            stage.end(E::Right::view(far), cx);
        }
    }
}

/// Runs the edges of a right vertex, `far`.
#[inline(always)]
fn edges_of<P: Program, E: Exchange<P>, I: Id, W: Width>(
    far: &mut Endpoint<'_, P::Right, E::Right, W>,
    lefts: &mut Ends<'_, P::Left, E::Left, I, W>,
    visit: Visit,
    data: &mut Data<'_, P>,
    stage: &E,
    cx: &mut Context<'_, P>,
) {
    let at_hand = Groups::<P, E, I, W>::AT_HAND;
    let Visit { first, degree, .. } = visit;
    let (ahead, addresses) = (Ahead(lefts.ids(), first), lefts.addresses());
    let mut ends = lefts.part(first..first + degree);
    let mut data = data.part(first..first + degree);
    let mut kept = [<DeltaItem<P::Right> as bytemuck::Zeroable>::zeroed(); LANES];
    let in_lanes = at_hand && degree >= 2 * LANES;
    let mut edge = 0;
    if in_lanes {
        while let Some(mut few) = ends.take::<LANES>() {
            let mut data = data.part(edge..edge + LANES);
            for (lane, kept) in kept.iter_mut().enumerate() {
                ahead.fetch::<P::Left, W>(edge + lane, &addresses, E::Left::MODE);
                let far = far.again(Some(std::slice::from_mut(kept)));
                stage.exchange(E::Left::view(few.at(lane)), E::Right::view(far), data.at(lane), cx);
            }
            edge += LANES;
        }
    }
    let rest = ends.ids().len();
    let mut data = data.part(edge..edge + rest);
    for at in 0..rest {
        ahead.fetch::<P::Left, W>(edge + at, &addresses, E::Left::MODE);
        let far = far.again(if at_hand { Some(&mut kept[..1]) } else { None });
        stage.exchange(E::Left::view(ends.at(at)), E::Right::view(far), data.at(at), cx);
    }
    if at_hand {
        for kept in &kept[..if in_lanes { LANES } else { 1 }] {
            far.delta().add(<P::Right as Vertex>::Delta::view(std::slice::from_ref(kept)));
        }
    }
}

/// Runs the edges of a right vertex a second time.
#[inline(always)]
fn answers<P: Program, E: Exchange<P>, I: Id, W: Width>(
    far: &mut Endpoint<'_, P::Right, E::Right, W>,
    lefts: &mut Ends<'_, P::Left, E::Left, I, W>,
    Visit { first, degree, .. }: Visit,
    data: &mut Data<'_, P>,
    stage: &E,
    cx: &mut Context<'_, P>,
) {
    let (mut ends, mut data) = (lefts.part(first..first + degree), data.part(first..first + degree));
    for edge in 0..ends.ids().len() {
        stage.answer(E::Left::view(ends.at(edge)), E::Right::view(far.again(None)), data.at(edge), cx);
    }
}

/// The left ends of a block, and the first edge of those that run.
#[derive(Clone, Copy)]
struct Ahead<'i, I>(&'i [I], usize);

impl<I: Id> Ahead<'_, I> {
    /// Fetches the value of an edge's left end some edges ahead, where values are large.
    #[inline(always)]
    fn fetch<V: Vertex, W: Width>(self, edge: usize, addresses: &Addresses<V, W>, mode: Mode) {
        if Addresses::<V, W>::LARGE_VALUE
            && let Some(&id) = self.0.get(self.1 + edge + ENDS_AHEAD)
        {
            addresses.value(id, mode);
        }
    }
}

/// The runs of a block, to be asked for its vertices in ascending order.
struct Runs<'r> {
    rest: std::slice::Iter<'r, Run>,
    degree: usize,
    /// Vertices of the runs before this one, and with it.
    vertices: Range<usize>,
    /// Edges of the runs before.
    edges: usize,
}

impl<'r> Runs<'r> {
    fn new(runs: &'r [Run]) -> Self {
        Self { rest: runs.iter(), degree: 0, vertices: 0..0, edges: 0 }
    }

    /// Returns the degree of a vertex, by its number in the block, and its first edge.
    #[inline(always)]
    fn find(&mut self, vertex: usize) -> (usize, usize) {
        while vertex >= self.vertices.end {
            let Some(run) = self.rest.next() else { break };
            self.edges += self.degree * self.vertices.len();
            self.degree = run.degree as usize;
            self.vertices = self.vertices.end..self.vertices.end + run.vertices as usize;
        }
        (self.degree, self.edges + (vertex - self.vertices.start) * self.degree)
    }
}

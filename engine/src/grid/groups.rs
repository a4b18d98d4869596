//! The walk over a block whose edges are grouped by right vertex, vertices with equally many edges side by side, so that the
//! loops' lengths can be predicted.

use std::ops::Range;

use megagrid_partition::SplitMix;
use megagrid_stages::mode::{Access, Mode, Replica};
use megagrid_stages::simd::prefetch;
use megagrid_stages::{Additive, Context, Exchange, Program, Shape, Store, Vertex};

use super::awake::Awake;
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
/// Edges of a vertex with more than these run in pieces, whose sums are added two by two: a long sum in single precision loses what is
/// added last, of equal values always to the same side.
const PIECE: usize = 1 << 8;
/// Sums of 1, 2, 4, … pieces that there may be: a block has less than 2³² edges.
const SUMS: usize = 33 - PIECE.ilog2() as usize;

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
    vertex: u32,
    /// Its first edge in the block.
    first: u32,
    /// Its edges.
    degree: u32,
}

impl Visit {
    /// Positions in a block fit 32 bits.
    #[inline(always)]
    fn new(vertex: usize, first: usize, degree: usize) -> Self {
        Self { vertex: vertex as u32, first: first as u32, degree: degree as u32 }
    }

    #[inline(always)]
    fn vertex(self) -> usize {
        self.vertex as usize
    }

    /// Returns its edges in the block.
    #[inline(always)]
    fn edges(self) -> Range<usize> {
        let first = self.first as usize;
        first..first + self.degree as usize
    }
}

/// Which right vertices of a shard run.
pub struct Visits {
    /// By row of the shard; empty before they were asked.
    pub active: Vec<bool>,
    /// Those of a block, where they run in random order or others were not looked at.
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

    /// Tells whether vertices are listed, and none of them runs now.
    pub fn is_done(&self) -> bool {
        self.part.0 > 0 && self.now().is_empty()
    }

    /// Tells whether it is yet to be asked which vertices of the shard are active.
    pub(super) fn asks(&self) -> bool {
        self.part.0 == 0 && self.active.is_empty()
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
            // Tested by itself, so that the compiler makes nothing for what never happens.
            if Self::AT_HAND {
                // Where an edge is a few instructions, a length known beforehand saves half of them.
                match degree {
                    1 => self.run(rows, edge, 1, &mut data, stage, cx),
                    2 => self.run(rows, edge, 2, &mut data, stage, cx),
                    3 => self.run(rows, edge, 3, &mut data, stage, cx),
                    4 => self.run(rows, edge, 4, &mut data, stage, cx),
                    ..=PIECE => self.run(rows, edge, degree, &mut data, stage, cx),
                    _ => {
                        for (n, vertex) in rows.enumerate() {
                            let visit = Visit::new(vertex, edge + n * degree, degree);
                            in_pieces(&mut self.rights.at(vertex), &mut self.lefts, visit, &mut data, stage, cx);
                        }
                    }
                }
            } else {
                self.run(rows, edge, degree, &mut data, stage, cx);
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
            if which.part.0 == 0 {
                self.list(which);
                SplitMix::new(cx.seed, cx.iteration).shuffle(&mut which.list);
            }
            return self.visits(&which.list[which.now()], &mut data, stage, cx);
        }
        let is_active = &which.active;
        let (mut runs, mut visits) = (Runs::new(self.runs), [Visit::default(); LOOKED_AT]);
        let (ids, addresses) = (self.rights.ids(), self.rights.addresses());
        for (n, rows) in ids.chunks(LOOKED_AT).enumerate() {
            let mut found = 0;
            for (vertex, row) in rows.iter().enumerate() {
                visits[found].vertex = vertex as u32;
                found += usize::from(is_active[row.index()]);
            }
            for visit in &mut visits[..found] {
                if Self::AT_HAND {
                    addresses.delta(rows[visit.vertex()]);
                }
                *visit = runs.find(n * LOOKED_AT + visit.vertex());
            }
            self.visits(&visits[..found], &mut data, stage, cx);
        }
    }

    /// Runs the edges of the active right vertices among those that are awake: the others are not looked at.
    #[inline(always)]
    pub fn awake(
        mut self,
        awake: &mut Awake,
        wakings: u64,
        which: &mut Visits,
        mut data: Data<'_, P>,
        stage: &E,
        cx: &mut Context<'_, P>,
    ) {
        let (ids, addresses, rights) = (self.rights.ids(), self.rights.addresses(), &mut self.rights);
        let mut runs = Runs::new(self.runs);
        which.list.clear();
        let mut each = awake.each(wakings, ids.len());
        while let Some((vertex, later)) = each.next() {
            if let Some(later) = later {
                addresses.value(ids[later], Mode::Read);
            }
            let right = rights.at(vertex).read();
            let rests = P::Right::is_resting(right.sync);
            each.pass(vertex, rests);
            if !rests && stage.is_active(right, cx) {
                which.list.push(runs.find(vertex));
            }
        }
        if E::WHOLE {
            SplitMix::new(cx.seed, cx.iteration).shuffle(&mut which.list);
        }
        self.visits(&which.list[which.now()], &mut data, stage, cx);
    }

    /// Lists the active right vertices of the block.
    #[inline(always)]
    fn list(&self, which: &mut Visits) {
        let mut runs = Runs::new(self.runs);
        which.list.clear();
        which.list.reserve(self.rights.ids().len());
        for (vertex, row) in self.rights.ids().iter().enumerate() {
            if which.active[row.index()] {
                which.list.push(runs.find(vertex));
            }
        }
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
            let at = Visit::new(vertex, first + vertex * degree, degree);
            edges_of(&mut rights.at(vertex), &mut self.lefts, at, None, data, stage, cx);
        }
    }

    #[inline(always)]
    fn visits(&mut self, visits: &[Visit], data: &mut Data<'_, P>, stage: &E, cx: &mut Context<'_, P>) {
        let (ids_of_rights, rights) = (self.rights.ids(), self.rights.addresses());
        for (n, &visit) in visits.iter().enumerate() {
            // Ids are in the order of the block and visits are not: an id is waited for as rows are.
            if let Some(&visit) = visits.get(n + 2 * VISITS_AHEAD) {
                prefetch(ids_of_rights.as_ptr().wrapping_add(visit.vertex()), 1);
            }
            if let Some(&visit) = visits.get(n + VISITS_AHEAD) {
                if E::WHOLE || P::Right::RESTS {
                    rights.value(ids_of_rights[visit.vertex()], E::Right::MODE);
                    rights.delta(ids_of_rights[visit.vertex()]);
                }
                let ids = self.lefts.ids().as_ptr().wrapping_add(visit.first as usize);
                prefetch(ids, FETCHED.min(visit.degree as usize * size_of::<I>()));
                data.prefetch(visit.edges());
            }
            let (mut far, lefts) = (self.rights.at(visit.vertex()), &mut self.lefts);
            stage.begin(far.again(None).read(), cx);
            match visit.degree {
                1 if Self::AT_HAND => edges_of(&mut far, lefts, Visit { degree: 1, ..visit }, None, data, stage, cx),
                2 if Self::AT_HAND => edges_of(&mut far, lefts, Visit { degree: 2, ..visit }, None, data, stage, cx),
                _ => edges_of(&mut far, lefts, visit, None, data, stage, cx),
            }
            if E::WHOLE && stage.turn(E::Right::view(far.again(None)), cx) {
                answers(&mut far, lefts, visit, data, stage, cx);
            }
            stage.end(E::Right::view(far), cx);
        }
    }
}

/// Runs the edges of a right vertex, `far`, piece by piece. Hubs are few: it is compiled once, not for each vector level.
#[inline(never)]
fn in_pieces<P: Program, E: Exchange<P>, I: Id, W: Width>(
    far: &mut Endpoint<'_, P::Right, E::Right, W>,
    lefts: &mut Ends<'_, P::Left, E::Left, I, W>,
    visit: Visit,
    data: &mut Data<'_, P>,
    stage: &E,
    cx: &mut Context<'_, P>,
) {
    let zero = <DeltaItem<P::Right> as bytemuck::Zeroable>::zeroed();
    let mut sums = [zero; SUMS];
    let edges = visit.edges();
    for (pieces, first) in edges.clone().step_by(PIECE).enumerate() {
        let piece = Visit::new(visit.vertex(), first, PIECE.min(edges.end - first));
        let mut sum = zero;
        edges_of(far, lefts, piece, Some(&mut sum), data, stage, cx);
        // As a binary number counts: sums of as many pieces are added, and wait for the next of as many.
        let carried = pieces.trailing_ones() as usize;
        sums[..carried].iter_mut().for_each(|waiting| add::<P::Right>(&mut sum, &std::mem::replace(waiting, zero)));
        sums[carried] = sum;
    }
    // Those of the fewest pieces first; those that do not wait are zero.
    let mut whole = zero;
    sums.iter().for_each(|sum| add::<P::Right>(&mut whole, sum));
    far.delta().add(<P::Right as Vertex>::Delta::view(std::slice::from_ref(&whole)));
}

/// Adds to a sum that is kept at hand.
#[inline(always)]
fn add<V: Vertex>(sum: &mut DeltaItem<V>, more: &DeltaItem<V>) {
    V::Delta::view_mut(std::slice::from_mut(sum)).add(V::Delta::view(std::slice::from_ref(more)));
}

/// Runs the edges of a right vertex, `far`. What is kept at hand is added to `sum`, or to the delta where there is none.
#[inline(always)]
fn edges_of<P: Program, E: Exchange<P>, I: Id, W: Width>(
    far: &mut Endpoint<'_, P::Right, E::Right, W>,
    lefts: &mut Ends<'_, P::Left, E::Left, I, W>,
    visit: Visit,
    mut sum: Option<&mut DeltaItem<P::Right>>,
    data: &mut Data<'_, P>,
    stage: &E,
    cx: &mut Context<'_, P>,
) {
    let at_hand = Groups::<P, E, I, W>::AT_HAND;
    let edges = visit.edges();
    let (ahead, addresses) = (Ahead(lefts.ids(), edges.start), lefts.addresses());
    let (mut ends, mut data) = (lefts.part(edges.clone()), data.part(edges.clone()));
    let mut kept = [<DeltaItem<P::Right> as bytemuck::Zeroable>::zeroed(); LANES];
    let in_lanes = at_hand && edges.len() >= 2 * LANES;
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
            match &mut sum {
                Some(sum) => add::<P::Right>(sum, kept),
                None => far.delta().add(<P::Right as Vertex>::Delta::view(std::slice::from_ref(kept))),
            }
        }
    }
}

/// Runs the edges of a right vertex a second time.
#[inline(always)]
fn answers<P: Program, E: Exchange<P>, I: Id, W: Width>(
    far: &mut Endpoint<'_, P::Right, E::Right, W>,
    lefts: &mut Ends<'_, P::Left, E::Left, I, W>,
    visit: Visit,
    data: &mut Data<'_, P>,
    stage: &E,
    cx: &mut Context<'_, P>,
) {
    let (mut ends, mut data) = (lefts.part(visit.edges()), data.part(visit.edges()));
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

    /// Returns the visit of a vertex, by its number in the block.
    #[inline(always)]
    fn find(&mut self, vertex: usize) -> Visit {
        while vertex >= self.vertices.end {
            let Some(run) = self.rest.next() else { break };
            self.edges += self.degree * self.vertices.len();
            self.degree = run.degree as usize;
            self.vertices = self.vertices.end..self.vertices.end + run.vertices as usize;
        }
        Visit::new(vertex, self.edges + (vertex - self.vertices.start) * self.degree, self.degree)
    }
}

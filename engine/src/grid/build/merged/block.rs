//! One block after the other, out of those of other columns.

use std::cmp::Reverse;
use std::ops::Range;

use megagrid_stages::{EdgeItem, Program, Store};

use super::super::bring::Built;
use super::super::{Id, Listed, LocalEdges};
use crate::grid::Listing;
use crate::grid::block::Growing;
use crate::grid::disjoint::Shared;

/// An edge that comes or goes, in the column of its right end.
pub struct Changed {
    pub block: u32,
    /// Local.
    pub right: u32,
    /// Of all rows.
    pub left: u32,
    /// Its number among those that come.
    pub edge: usize,
}

/// A column that there is, of which a new one has some rows.
pub struct From<'f, I, P: Program> {
    pub edges: &'f LocalEdges<I>,
    pub data: Shared<'f, EdgeItem<P>>,
    pub rows: Range<usize>,
    /// What makes them rows of the new one.
    pub shift: isize,
}

/// To search for a vertex takes as long as to look at about this many.
const SEARCH: usize = 16;

/// Vertices of a run that stay as they are.
struct Piece {
    from: usize,
    degree: usize,
    /// Which right ids of the block.
    vertices: Range<usize>,
    /// The place of their first edge in memory.
    edge: usize,
}

/// A vertex that gets edges or loses some.
struct Vertex {
    right: usize,
    /// The column that had its edges, and their places in memory.
    before: Option<(usize, Range<usize>)>,
    /// Its edges among those made anew.
    edges: Range<usize>,
}

/// A block that is being made.
pub struct Block<'b, I, P: Program> {
    from: &'b [From<'b, I, P>],
    come: &'b Listing<P>,
    /// Its number in the columns that there are.
    number: Option<usize>,
    /// By row, whether the vertex gets edges or loses some.
    is_changed: Vec<bool>,
    pieces: Vec<Piece>,
    vertices: Vec<Vertex>,
    /// The edges of these vertices.
    lefts: Vec<I>,
    items: Items<P>,
}

impl<'b, I: Id, P: Program> Block<'b, I, P> {
    pub fn new(from: &'b [From<'b, I, P>], come: &'b Listing<P>, rows: usize) -> Self {
        let (is_changed, pieces, vertices) = (vec![false; rows], Vec::new(), Vec::new());
        let (lefts, items) = (Vec::new(), Items::with_capacity(0));
        Self { from, come, number: None, is_changed, pieces, vertices, lefts, items }
    }

    /// Begins the block that was `number`, if there was any, of left rows from `first` on, with those of its edges that come and those
    /// that go, by right and left end.
    pub fn begin(&mut self, number: Option<usize>, first: usize, (come, gone): (&[Changed], &[Changed])) {
        let mut rights: Vec<usize> = come.iter().chain(gone).map(|one| one.right as usize).collect();
        rights.sort_unstable();
        rights.dedup();
        rights.iter().for_each(|&right| self.is_changed[right] = true);
        self.vertices.clear();
        self.vertices.extend(rights.iter().map(|&right| Vertex { right, before: None, edges: 0..0 }));
        self.number = number;
        self.find();
        rights.iter().for_each(|&right| self.is_changed[right] = false);
        self.lefts.clear();
        self.items.clear();
        for vertex in 0..self.vertices.len() {
            let right = self.vertices[vertex].right as u32;
            let of_vertex = |all: &'_ [Changed]| {
                all.partition_point(|one| one.right < right)..all.partition_point(|one| one.right <= right)
            };
            self.make(vertex, first, (&come[of_vertex(come)], &gone[of_vertex(gone)]));
        }
        self.vertices.retain(|vertex| !vertex.edges.is_empty());
        self.vertices.sort_by_key(|vertex| Reverse(vertex.edges.len()));
        if self.from.len() > 1 {
            self.pieces.sort_by_key(|piece| Reverse(piece.degree));
        }
    }

    /// Finds the edges of vertices that change, and what lies between these vertices.
    fn find(&mut self) {
        let Self { from, number, is_changed, pieces, vertices, .. } = self;
        pieces.clear();
        for (n, from) in from.iter().enumerate() {
            let Some(block) = number.map(|number| &from.edges.blocks()[number]) else { return };
            let (rights, row) = (from.edges.right(block), |right: &I| right.index().wrapping_add_signed(from.shift));
            let (mut begin, mut edge) = (0, block.edges.start);
            for run in from.edges.runs(block) {
                let (degree, of_run) = (run.degree as usize, begin..begin + run.vertices as usize);
                let of_rows = &rights[of_run.clone()];
                let below = |bound: usize| match of_rows.last() {
                    Some(last) if last.index() < bound => of_rows.len(),
                    _ if bound == 0 => 0,
                    _ => of_rows.partition_point(|right| right.index() < bound),
                };
                let inside = begin + below(from.rows.start)..begin + below(from.rows.end);
                let place = |vertex: usize| edge + (vertex - of_run.start) * degree;
                let mut push = |vertices: Range<usize>| {
                    if !vertices.is_empty() {
                        pieces.push(Piece { from: n, degree, edge: place(vertices.start), vertices });
                    }
                };
                let mut rest = inside.clone();
                let mut cut = |vertex: &mut Vertex, at: usize| {
                    push(rest.start..at);
                    rest.start = at + 1;
                    vertex.before = Some((n, place(at)..place(at + 1)));
                };
                if vertices.len() * SEARCH < inside.len() {
                    for vertex in vertices.iter_mut() {
                        let of_rows = &rights[inside.clone()];
                        let at = inside.start + of_rows.partition_point(|right| row(right) < vertex.right);
                        if at < inside.end && row(&rights[at]) == vertex.right {
                            cut(vertex, at);
                        }
                    }
                } else if !vertices.is_empty() {
                    for at in inside {
                        let right = row(&rights[at]);
                        if is_changed[right] {
                            let found = vertices.partition_point(|vertex| vertex.right < right);
                            cut(&mut vertices[found], at);
                        }
                    }
                }
                push(rest);
                edge = place(of_run.end);
                begin = of_run.end;
            }
        }
    }

    /// Makes the edges of a vertex: those that there are and do not go, and after those with the same left end those that come.
    fn make(&mut self, vertex: usize, first: usize, (come, gone): (&[Changed], &[Changed])) {
        let Self { from, vertices, lefts, items, .. } = self;
        let begin = lefts.len();
        let mut come = come.iter().peekable();
        let mut take = |most: usize, lefts: &mut Vec<I>, items: &mut Items<P>| {
            while let Some(one) = come.next_if(|one| (one.left as usize) < most) {
                lefts.push(I::truncated(one.left - first as u32));
                items.push(&self.come.items[self.come.items_of(one.edge..one.edge + 1)]);
            }
        };
        if let Some((from, edges)) = vertices[vertex].before.clone().map(|(n, edges)| (&from[n], edges)) {
            for edge in edges {
                let left = from.edges.lefts_at(edge..edge + 1)[0];
                let row = first + left.index();
                if gone.binary_search_by_key(&row, |one| one.left as usize).is_err() {
                    take(row, lefts, items);
                    lefts.push(left);
                    items.keep(from, edge..edge + 1);
                }
            }
        }
        take(usize::MAX, lefts, items);
        vertices[vertex].edges = begin..lefts.len();
    }

    /// Writes the block.
    pub fn write(&self, into: &mut Growing<'_, I>, items: &mut Items<P>) {
        let mut changed = self.vertices.iter().peekable();
        let write = |vertex: &Vertex, into: &mut Growing<'_, I>, items: &mut Items<P>| {
            into.push(vertex.edges.len(), std::iter::once(vertex.right), &self.lefts[vertex.edges.clone()]);
            items.extend(&self.items, vertex.edges.clone());
        };
        for piece in &self.pieces {
            let from = &self.from[piece.from];
            let row = |right: I| right.index().wrapping_add_signed(from.shift);
            let Some(block) = self.number.map(|number| &from.edges.blocks()[number]) else { return };
            let rights = &from.edges.right(block)[piece.vertices.clone()];
            let keep = |vertices: Range<usize>, into: &mut Growing<'_, I>, items: &mut Items<P>| {
                let edges = piece.edge + vertices.start * piece.degree..piece.edge + vertices.end * piece.degree;
                let lefts = from.edges.lefts_at(edges.clone());
                into.push(piece.degree, rights[vertices].iter().map(|&right| row(right)), lefts);
                items.keep(from, edges);
            };
            let mut begin = 0;
            while let Some(vertex) = changed.next_if(|vertex| {
                let last = rights.last().map_or(0, |&last| row(last));
                (Reverse(vertex.edges.len()), vertex.right) < (Reverse(piece.degree), last)
            }) {
                if vertex.edges.len() == piece.degree {
                    let at = rights.partition_point(|&right| row(right) < vertex.right);
                    keep(begin..at, into, items);
                    begin = at;
                }
                write(vertex, into, items);
            }
            keep(begin..rights.len(), into, items);
        }
        changed.for_each(|vertex| write(vertex, into, items));
    }
}

/// The data of edges, one after the other.
pub struct Items<P: Program> {
    items: Vec<EdgeItem<P>>,
    /// Where the items of each edge end, where they are slices.
    ends: Vec<u32>,
}

impl<P: Program> Items<P> {
    pub fn with_capacity(items: usize) -> Self {
        Self { items: Vec::with_capacity(items), ends: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    fn clear(&mut self) {
        self.items.clear();
        self.ends.clear();
    }

    /// Appends the items of an edge.
    fn push(&mut self, items: &[EdgeItem<P>]) {
        self.items.extend_from_slice(items);
        if P::Edge::SHAPE.is_slice() {
            self.ends.push(self.items.len() as u32);
        }
    }

    /// Appends the items of edges that there are.
    fn keep<I: Id>(&mut self, from: &From<'_, I, P>, edges: Range<usize>) {
        let first = |edge: usize| from.edges.first_item(edge);
        let (begin, span) = (self.items.len(), first(edges.start)..first(edges.end));
        if P::Edge::SHAPE.is_slice() {
            self.ends.extend(edges.map(|edge| (first(edge + 1) - span.start + begin) as u32));
        }
        self.items.extend_from_slice(&from.data[span]);
    }

    /// Appends the items of some edges of others.
    fn extend(&mut self, others: &Self, edges: Range<usize>) {
        if !P::Edge::SHAPE.is_slice() {
            return self.items.extend_from_slice(&others.items[edges]);
        }
        let end = |edge: usize| if edge == 0 { 0 } else { others.ends[edge - 1] as usize };
        edges.for_each(|edge| self.push(&others.items[end(edge)..end(edge + 1)]));
    }

    /// Joins them with their edges, whose blocks' items end at `bounds`.
    pub fn of<I: Id>(self, mut edges: Listed<I>, bounds: Vec<usize>) -> Built<I, EdgeItem<P>> {
        if P::Edge::SHAPE.is_slice() {
            edges.set_slice_offsets(std::iter::once(0).chain(self.ends).collect());
        }
        Built { edges, items: self.items.into_boxed_slice().into(), bounds }
    }
}

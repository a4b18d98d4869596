//! Gather, apply, scatter as PowerGraph's synchronous engine and its toolkits do it.
//!
//! A superstep is for the vertices that were sent a message: each receives the sum of its messages, gathers over its edges into
//! sums that every edge allocates, applies, and scatters over its edges, where it may signal the other end. Messages for one vertex are
//! added under its lock. This is what published figures of GAS were measured with; [`super`] is what the model allows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use megagrid_partition::{EdgeList, Side};

use super::csr::Csr;
use crate::Error;
use crate::crew::{self, Spent, lock};

/// A vertex program.
pub trait VertexProgram: Sync {
    /// What a vertex knows.
    type Vertex: Send + Sync;
    type Edge: Copy + Send + Sync;
    /// What is gathered.
    type Gather: Send;
    /// What vertices send each other.
    type Message: Send;
    /// Whether scatter goes over all edges as they are stored, seen from their left ends, instead of vertex by vertex.
    const SWEEPS: bool = false;

    /// Tells whether a vertex gathers, and whether it scatters.
    fn phases(&self, _: usize) -> [bool; 2] {
        [true, true]
    }

    /// Returns an edge's part of a vertex's sum; may signal the other end.
    fn gather(&self, edge: EdgeView<'_, Self>, signals: &Signals<'_, Self>) -> Self::Gather;

    fn add(&self, sum: &mut Self::Gather, part: Self::Gather);

    fn combine(&self, _: &mut Self::Message, _: Self::Message) {}

    /// Changes a vertex by what it gathered and received.
    fn apply(&self, id: usize, vertex: &mut Self::Vertex, sum: Option<Self::Gather>, message: Self::Message);

    /// Looks at an edge; may signal the other end.
    fn scatter(&self, edge: EdgeView<'_, Self>, signals: &Signals<'_, Self>);
}

/// An edge as one of its ends sees it.
pub struct EdgeView<'e, P: VertexProgram + ?Sized> {
    pub vertex: &'e P::Vertex,
    /// The number of the other end.
    pub other_id: usize,
    pub other: &'e P::Vertex,
    /// What the edge carries.
    pub edge: P::Edge,
}

type Inbox<M> = Vec<Mutex<Option<M>>>;

/// Where vertices are signalled.
pub struct Signals<'s, P: VertexProgram + ?Sized> {
    program: &'s P,
    /// The worker that signals.
    pub worker: usize,
    inbox: &'s Inbox<P::Message>,
    sent: &'s AtomicU64,
}

impl<P: VertexProgram + ?Sized> Signals<'_, P> {
    /// Sends a vertex a message, and so makes it active in the next superstep.
    pub fn signal(&self, id: usize, message: P::Message) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let slot = &mut *lock(&self.inbox[id]);
        match slot {
            Some(sum) => self.program.combine(sum, message),
            None => *slot = Some(message),
        }
    }
}

/// A graph with its vertices and their messages.
pub struct Faithful<P: VertexProgram> {
    /// Edges by either end, and where the other ends count from.
    edges: [(Csr<P::Edge>, usize); 2],
    /// Edges as they are stored, if they are swept.
    stored: Vec<([u32; 2], P::Edge)>,
    is_square: bool,
    num_left: usize,
    /// All vertices, left ones first.
    pub vertices: Vec<P::Vertex>,
    inbox: Inbox<P::Message>,
    workers: usize,
}

impl<P: VertexProgram> Faithful<P> {
    /// Takes a graph and its vertices. Those of a square graph gather over edges that lead to them and scatter over those that lead
    /// from them.
    pub fn new<T>(
        list: &EdgeList<T>,
        data: impl Fn(usize) -> P::Edge,
        vertices: Vec<P::Vertex>,
        workers: usize,
    ) -> Self {
        let first_right = if list.square { 0 } else { list.num_left };
        let edges = [(Csr::new(list, Side::Left, &data), first_right), (Csr::new(list, Side::Right, &data), 0)];
        let ends = list.left.iter().zip(&list.right).filter(|_| P::SWEEPS).enumerate();
        let stored = ends.map(|(edge, (&left, &right))| ([left, right], data(edge))).collect();
        let inbox = vertices.iter().map(|_| Mutex::new(None)).collect();
        Self { edges, stored, is_square: list.square, num_left: list.num_left, vertices, inbox, workers }
    }

    /// Signals a vertex before the first superstep.
    pub fn signal(&mut self, id: usize, message: P::Message) {
        *self.inbox[id].get_mut().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }

    /// Runs a superstep; returns the workers' times and how many messages were sent.
    pub(crate) fn superstep(&mut self, program: &P) -> Result<(Vec<Spent>, u64), Error> {
        let received: Vec<(usize, P::Message)> = self
            .inbox
            .iter_mut()
            .enumerate()
            .filter_map(|(id, slot)| Some((id, slot.get_mut().unwrap_or_else(PoisonError::into_inner).take()?)))
            .collect();
        let active: Vec<usize> = received.iter().map(|(id, _)| *id).collect();
        let sent = AtomicU64::new(0);
        let parts = crew::parts(active.len(), self.workers, |at| at as u64);
        let shared = &*self;
        let signals = |worker| Signals { program, worker, inbox: &shared.inbox, sent: &sent };
        let (gathered, mut spent) = crew::step(parts.clone(), |worker, part| {
            let signals = signals(worker);
            active[part].iter().map(|&id| shared.gather(program, id, &signals)).collect::<Vec<_>>()
        })?;
        let begin = std::time::Instant::now();
        for ((id, message), sum) in received.into_iter().zip(gathered.into_iter().flatten()) {
            program.apply(id, &mut self.vertices[id], sum, message);
        }
        let applied = begin.elapsed();
        let shared = &*self;
        let parts = if P::SWEEPS { crew::parts(self.stored.len(), self.workers, |at| at as u64) } else { parts };
        let (_, more) = crew::step(parts, |worker, part| {
            let signals = Signals { program, worker, inbox: &shared.inbox, sent: &sent };
            if P::SWEEPS {
                shared.sweep(part, &signals);
            } else {
                active[part].iter().for_each(|&id| shared.scatter(id, &signals));
            }
        })?;
        for (spent, more) in spent.iter_mut().zip(more) {
            spent.compute += more.compute;
            spent.wait += more.wait;
            spent.sync += applied;
        }
        Ok((spent, sent.into_inner()))
    }

    /// Returns a vertex's edges to gather over (0) or to scatter over (1).
    fn edges(&self, id: usize, phase: usize) -> impl Iterator<Item = EdgeView<'_, P>> {
        let is_left = if self.is_square { phase == 1 } else { id < self.num_left };
        let (csr, first) = &self.edges[usize::from(!is_left)];
        let local = if is_left || self.is_square { id } else { id - self.num_left };
        let (ends, data) = csr.of(local);
        ends.iter().zip(data).map(move |(&end, &edge)| {
            let other_id = first + end as usize;
            EdgeView { vertex: &self.vertices[id], other_id, other: &self.vertices[other_id], edge }
        })
    }

    fn gather(&self, program: &P, id: usize, signals: &Signals<'_, P>) -> Option<P::Gather> {
        let [gathers, _] = program.phases(id);
        if !gathers {
            return None;
        }
        let mut parts = self.edges(id, 0).map(|edge| program.gather(edge, signals));
        let mut sum = parts.next()?;
        parts.for_each(|part| program.add(&mut sum, part));
        Some(sum)
    }

    fn scatter(&self, id: usize, signals: &Signals<'_, P>) {
        let [_, scatters] = signals.program.phases(id);
        if scatters {
            self.edges(id, 1).for_each(|edge| signals.program.scatter(edge, signals));
        }
    }

    fn sweep(&self, part: std::ops::Range<usize>, signals: &Signals<'_, P>) {
        for &([left, right], edge) in &self.stored[part] {
            let other_id = self.edges[0].1 + right as usize;
            let (vertex, other) = (&self.vertices[left as usize], &self.vertices[other_id]);
            signals.program.scatter(EdgeView { vertex, other_id, other, edge }, signals);
        }
    }

    /// Returns the bytes of edges, and of vertices without what they have on the heap.
    pub fn bytes(&self) -> u64 {
        let inbox = self.inbox.len() * size_of::<Mutex<Option<P::Message>>>();
        self.edges.iter().map(|(csr, _)| csr.bytes()).sum::<u64>() + (size_of_val(&self.vertices[..]) + inbox) as u64
    }
}

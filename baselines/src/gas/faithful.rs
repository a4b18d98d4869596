//! Gather, apply, scatter as PowerGraph's synchronous engine and its toolkits do it.
//!
//! A superstep is for the vertices that were sent a message: each receives the sum of its messages, gathers over its edges into
//! sums that every edge allocates, applies, and scatters over its edges, where it may signal the other end. Messages for one vertex are
//! added under its lock. This is what published figures of GAS were measured with; [`super`] is what the model allows.
//!
//! In several processes mirrors gather and scatter over the edges that they have: messages and sums travel to the master, which is signalled
//! and applies, and the vertex travels back.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use megagrid_partition::parallel::lock;
use megagrid_partition::{EdgeList, Side};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::csr::Csr;
use super::cut::{Cut, Sent};
use crate::job::Cost;
use crate::processes::{put, take};
use crate::workers::{self, Spent, Threads};
use crate::{Error, Finish, Run};

/// A vertex program.
pub trait VertexProgram: Sync {
    /// What a vertex knows.
    type Vertex: Send + Sync + Serialize + DeserializeOwned;
    type Edge: Copy + Send + Sync;
    /// What is gathered.
    type Gather: Send + Serialize + DeserializeOwned;
    /// What vertices send each other.
    type Message: Send + Serialize + DeserializeOwned;
    /// Whether scatter goes over all edges as they are stored, seen from their left ends, instead of vertex by vertex.
    const SWEEPS: bool = false;

    /// Returns the bytes of a message.
    fn message_bytes(&self) -> u64 {
        0
    }

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
    /// By which the other end is signalled.
    pub other_id: usize,
    pub other: &'e P::Vertex,
    /// What the edge carries.
    pub edge: P::Edge,
}

/// What a superstep begins with.
struct Received<P: VertexProgram> {
    /// Replicas that are active, ascending.
    active: Vec<usize>,
    /// The message of each, where it is a master.
    messages: Vec<Option<P::Message>>,
    sent: Sent,
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
    /// Sends the other end of an edge a message, and so makes it active in the next superstep.
    pub fn signal(&self, id: usize, message: P::Message) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let slot = &mut *lock(&self.inbox[id]);
        match slot {
            Some(sum) => self.program.combine(sum, message),
            None => *slot = Some(message),
        }
    }
}

/// The part of a graph that is in this process, with its replicas of vertices and their messages.
pub struct Faithful<P: VertexProgram> {
    cut: Cut,
    /// Edges by either end, and where the other ends count from.
    edges: [(Csr<P::Edge>, usize); 2],
    /// Edges as they are stored, if they are swept.
    stored: Vec<([u32; 2], P::Edge)>,
    is_square: bool,
    num_left: usize,
    /// All replicas, left ones first.
    vertices: Vec<P::Vertex>,
    inbox: Inbox<P::Message>,
    threads: Threads,
}

impl<P: VertexProgram> Faithful<P> {
    /// Takes the edges of this process, and all vertices. Those of a square graph gather over edges that lead to them and scatter over
    /// those that lead from them.
    pub fn new<T: Clone>(
        own: &EdgeList<T>,
        data: impl Fn(usize) -> P::Edge,
        vertices: Vec<P::Vertex>,
        run: &Run,
    ) -> Result<Self, Error> {
        let cut = Cut::new(own, &run.processes)?;
        let list = &*cut.local(own);
        let first_right = if list.square { 0 } else { list.num_left };
        let edges = [(Csr::new(list, Side::Left, &data), first_right), (Csr::new(list, Side::Right, &data), 0)];
        let ends = list.left.iter().zip(&list.right).filter(|_| P::SWEEPS).enumerate();
        let stored = ends.map(|(edge, (&left, &right))| ([left, right], data(edge))).collect();
        let here = vertices.into_iter().enumerate().filter(|(vertex, _)| cut.replica(*vertex).is_some());
        let vertices: Vec<P::Vertex> = here.map(|(_, vertex)| vertex).collect();
        let inbox = vertices.iter().map(|_| Mutex::new(None)).collect();
        let (is_square, num_left) = (list.square, list.num_left);
        Ok(Self {
            edges,
            stored,
            is_square,
            num_left,
            vertices,
            inbox,
            threads: Threads::new(run.workers, run.level)?,
            cut,
        })
    }

    /// Returns which vertices are here.
    pub(crate) fn cut(&self) -> &Cut {
        &self.cut
    }

    /// Returns who works.
    pub(crate) fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Signals a vertex before a superstep, where its master is.
    pub fn signal(&mut self, vertex: usize, message: P::Message) {
        if let Some(id) = self.cut.replica(vertex).filter(|&id| self.cut.is_master(id)) {
            *self.inbox[id].get_mut().unwrap_or_else(PoisonError::into_inner) = Some(message);
        }
    }

    /// Returns a vertex, if there is a replica of it here.
    pub fn vertex(&self, vertex: usize) -> Option<&P::Vertex> {
        self.cut.replica(vertex).map(|id| &self.vertices[id])
    }

    /// Lists the masters here with their numbers.
    pub fn masters(&self) -> impl Iterator<Item = (usize, &P::Vertex)> {
        let all = self.vertices.iter().enumerate().filter(|(id, _)| self.cut.is_master(*id));
        all.map(|(id, vertex)| (self.cut.vertex(id), vertex))
    }

    /// Lists the masters here of a run of vertices, to be changed; mirrors hear of it by [`Self::refresh`].
    pub fn masters_mut(&mut self, vertices: Range<usize>) -> impl Iterator<Item = &mut P::Vertex> {
        let (cut, span) = (&self.cut, self.cut.span(vertices));
        let all = span.clone().zip(&mut self.vertices[span]).filter(|(id, _)| cut.is_master(*id));
        all.map(|(_, vertex)| vertex)
    }

    /// Visits all vertices with their numbers, which processes give each other.
    pub fn visit_all(&self, mut visit: impl FnMut(usize, &P::Vertex)) -> Result<(), Error> {
        if self.cut.is_whole() {
            self.vertices.iter().enumerate().for_each(|(id, vertex)| visit(id, vertex));
            return Ok(());
        }
        let mut mine = Vec::new();
        self.masters().try_for_each(|(id, vertex)| put(&(id as u64, vertex), &mut mine))?;
        for all in self.cut.processes().gather(mine)? {
            let mut front = &all[..];
            while !front.is_empty() {
                let (id, vertex): (u64, P::Vertex) = take(&mut front)?;
                visit(id as usize, &vertex);
            }
        }
        Ok(())
    }

    /// Gives mirrors of a run of vertices what their masters have.
    pub(crate) fn refresh(&mut self, vertices: Range<usize>) -> Result<Cost, Error> {
        let span = self.cut.span(vertices);
        let mut cost = Cost::of(vec![Spent::default(); self.threads.count()]);
        self.spread(span)?.add_to(&mut cost);
        Ok(cost)
    }

    fn spread(&mut self, ids: impl Iterator<Item = usize> + Clone) -> Result<Sent, Error> {
        let write = |vertices: &Vec<P::Vertex>, id: usize, out: &mut Vec<u8>| put(&vertices[id], out);
        self.cut.to_mirrors(ids, &mut self.vertices, write, |vertices, id, front| {
            vertices[id] = take(front)?;
            Ok(())
        })
    }

    /// Runs a superstep. Without other processes its messages are those along edges.
    pub(crate) fn superstep(&mut self, program: &P) -> Result<Cost, Error> {
        let Received { active, messages, mut sent } = self.receive(program)?;
        let signalled = AtomicU64::new(0);
        let parts = workers::parts(active.len(), self.threads.count(), |at| at as u64);
        let shared = &*self;
        let signals = |worker| Signals { program, worker, inbox: &shared.inbox, sent: &signalled };
        let (gathered, mut spent) = shared.threads.step(parts.clone(), |worker, part| {
            let signals = signals(worker);
            active[part].iter().map(|&id| shared.gather(program, id, &signals)).collect::<Vec<_>>()
        })?;
        let mut sums: Vec<Option<P::Gather>> = gathered.into_iter().flatten().collect();
        sent = sent.and(self.sum(program, &active, &mut sums)?);
        let begin = std::time::Instant::now();
        for ((&id, message), sum) in active.iter().zip(messages).zip(sums) {
            if let Some(message) = message {
                program.apply(self.cut.vertex(id), &mut self.vertices[id], sum, message);
            }
        }
        let applied = begin.elapsed();
        sent = sent.and(self.spread(active.iter().copied())?);
        let shared = &*self;
        let parts =
            if P::SWEEPS { workers::parts(self.stored.len(), self.threads.count(), |at| at as u64) } else { parts };
        let (_, more) = shared.threads.step(parts, |worker, part| {
            let signals = Signals { program, worker, inbox: &shared.inbox, sent: &signalled };
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
        let mut cost = Cost::of(spent);
        if self.cut.is_whole() {
            cost.messages = signalled.into_inner();
            cost.sent_bytes = cost.messages * program.message_bytes();
        }
        sent.add_to(&mut cost);
        Ok(cost)
    }

    /// Brings messages to masters, which make their mirrors active.
    fn receive(&mut self, program: &P) -> Result<Received<P>, Error> {
        let Self { cut, inbox, .. } = self;
        let take_out =
            |slot: &mut Mutex<Option<P::Message>>| slot.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if cut.is_whole() {
            let received = inbox.iter_mut().enumerate().filter_map(|(id, slot)| Some((Some(take_out(slot)?), id)));
            let (messages, active) = received.unzip();
            return Ok(Received { active, messages, sent: Sent::default() });
        }
        let mut messages: Vec<Option<P::Message>> = inbox.iter_mut().map(take_out).collect();
        let mut sent = cut.exchange(
            &mut messages,
            |messages, parts| {
                let with = messages.iter().enumerate().filter(|(id, _)| !cut.is_master(*id));
                with.filter_map(|(id, message)| Some((id, message.as_ref()?)))
                    .try_for_each(|(id, message)| put(&(cut.vertex(id) as u32, message), &mut parts[cut.master(id)]))
            },
            |messages, arrived| {
                for front in arrived {
                    while !front.is_empty() {
                        let (vertex, message): (u32, P::Message) = take(front)?;
                        let id = cut.here(vertex)?;
                        match &mut messages[id] {
                            Some(sum) => program.combine(sum, message),
                            none => *none = Some(message),
                        }
                    }
                }
                Ok(())
            },
        )?;
        let mut is_active: Vec<bool> =
            messages.iter().enumerate().map(|(id, message)| cut.is_master(id) && message.is_some()).collect();
        sent = sent.and(cut.exchange(
            &mut is_active,
            |is_active, parts| {
                for id in (0..is_active.len()).filter(|&id| is_active[id]) {
                    let vertex = (cut.vertex(id) as u32).to_le_bytes();
                    cut.mirrors(id).iter().for_each(|&to| parts[usize::from(to)].extend(vertex));
                }
                Ok(())
            },
            |is_active, arrived| {
                for front in arrived {
                    while !front.is_empty() {
                        is_active[cut.here(take(front)?)?] = true;
                    }
                }
                Ok(())
            },
        )?);
        let active: Vec<usize> = (0..is_active.len()).filter(|&id| is_active[id]).collect();
        let messages = active.iter().map(|&id| messages[id].take().filter(|_| cut.is_master(id))).collect();
        Ok(Received { active, messages, sent })
    }

    /// Adds what mirrors have gathered to what their masters have.
    fn sum(&self, program: &P, active: &[usize], sums: &mut [Option<P::Gather>]) -> Result<Sent, Error> {
        let ids = active.iter().copied();
        self.cut.to_masters(
            ids,
            &mut { sums },
            |sums, at, _, out| put(&sums[at], out),
            |sums, at, _, front| {
                match (&mut sums[at], take(front)?) {
                    (Some(sum), Some(part)) => program.add(sum, part),
                    (none @ None, part) => *none = part,
                    (Some(_), None) => {}
                }
                Ok(())
            },
        )
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
        let [gathers, _] = program.phases(self.cut.vertex(id));
        if !gathers {
            return None;
        }
        let mut parts = self.edges(id, 0).map(|edge| program.gather(edge, signals));
        let mut sum = parts.next()?;
        parts.for_each(|part| program.add(&mut sum, part));
        Some(sum)
    }

    fn scatter(&self, id: usize, signals: &Signals<'_, P>) {
        let [_, scatters] = signals.program.phases(self.cut.vertex(id));
        if scatters {
            self.edges(id, 1).for_each(|edge| signals.program.scatter(edge, signals));
        }
    }

    fn sweep(&self, part: Range<usize>, signals: &Signals<'_, P>) {
        for &([left, right], edge) in &self.stored[part] {
            let other_id = self.edges[0].1 + right as usize;
            let (vertex, other) = (&self.vertices[left as usize], &self.vertices[other_id]);
            signals.program.scatter(EdgeView { vertex, other_id, other, edge }, signals);
        }
    }

    /// Tells what is known at the end; vertices have `heap_bytes` each on the heap, and the program `own_bytes`.
    pub fn finish(&self, heap_bytes: usize, own_bytes: u64) -> Finish {
        let replica = size_of::<P::Vertex>() + heap_bytes + size_of::<Mutex<Option<P::Message>>>();
        let edges = self.edges.iter().map(|(csr, _)| csr.bytes()).sum::<u64>();
        let memory_bytes = edges + (self.vertices.len() * replica) as u64 + own_bytes;
        Finish { memory_bytes, replication_factor: self.cut.replication_factor(), ..Finish::default() }
    }
}

//! A graph that is cut over processes: each edge is in one, and a vertex has a replica wherever it has edges. One of them is its master,
//! the others are mirrors (Gonzalez et al. 2012, section 5).

use std::borrow::Cow;
use std::ops::{AddAssign, Range};
use std::time::{Duration, Instant};

use megagrid_partition::EdgeList;
use megagrid_partition::strategy::Strategy;
use megagrid_stages::Combine;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::job::Cost;
use crate::processes::{Processes, put, take};

/// Where a vertex is that has no replica here.
const ELSEWHERE: u32 = u32::MAX;

/// Picks the edges that a strategy places in this process, of all.
pub(crate) fn edges_here<'l, T: Copy>(
    list: &'l EdgeList<T>,
    strategy: &dyn Strategy,
    processes: &Processes,
) -> Cow<'l, EdgeList<T>> {
    if processes.count() == 1 {
        return Cow::Borrowed(list);
    }
    let mut own = EdgeList { left: Vec::new(), right: Vec::new(), data: Vec::new(), ..*list };
    let places = strategy.assign(list.ends(), processes.count());
    for (edge, _) in places.into_iter().enumerate().filter(|(_, place)| usize::from(*place) == processes.number()) {
        own.push(list.left[edge], list.right[edge], list.data[edge]);
    }
    Cow::Owned(own)
}

/// What a superstep sent to other processes, and how long it waited for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    bytes: u64,
    messages: u64,
    waited: Duration,
    packed: Duration,
}

impl Sent {
    /// Adds it to what a superstep cost.
    pub fn add_to(self, cost: &mut Cost) {
        cost.sent_bytes += self.bytes;
        cost.messages += self.messages;
        cost.wait(self.waited);
        cost.workers.iter_mut().for_each(|spent| spent.sync += self.packed);
    }

    /// Joins what two parts of a superstep sent.
    pub fn and(self, more: Self) -> Self {
        Self {
            bytes: self.bytes + more.bytes,
            messages: self.messages + more.messages,
            waited: self.waited + more.waited,
            packed: self.packed + more.packed,
        }
    }
}

/// The replicas of this process. They are numbered here in the order of all vertices, left ones first.
pub(crate) struct Cut {
    processes: Processes,
    is_whole: bool,
    /// The number of this process.
    here: u16,
    /// Left vertices of all processes; all vertices of a square graph.
    num_left: usize,
    num_vertices: usize,
    /// The vertex of each replica; empty in one process, where replicas are vertices.
    vertices: Vec<u32>,
    /// The replica of each vertex.
    replicas: Vec<u32>,
    /// The process of each replica's master.
    masters: Vec<u16>,
    /// Where the mirrors of each replica begin whose master is here; one more than replicas.
    offsets: Vec<u32>,
    /// Processes of these mirrors, ascending.
    mirrors: Vec<u16>,
    /// Replicas of all processes.
    num_replicas: usize,
}

impl Cut {
    /// Finds replicas by the edges that each process has. The master is where a vertex has most edges, of several such processes in the
    /// one that its number picks.
    pub fn new<T>(own: &EdgeList<T>, processes: &Processes) -> Result<Self, Error> {
        let num_right = if own.square { 0 } else { own.num_right };
        let num_vertices = own.num_left + num_right;
        let mut cut = Self {
            processes: processes.clone(),
            is_whole: processes.count() == 1,
            here: processes.number() as u16,
            num_left: own.num_left,
            num_vertices,
            vertices: Vec::new(),
            replicas: Vec::new(),
            masters: Vec::new(),
            offsets: vec![0],
            mirrors: Vec::new(),
            num_replicas: num_vertices,
        };
        if cut.is_whole() {
            return Ok(cut);
        }
        let first_right = num_vertices - own.num_right;
        let mut degrees = vec![0_u32; num_vertices];
        own.left.iter().for_each(|&id| degrees[id as usize] += 1);
        own.right.iter().for_each(|&id| degrees[first_right + id as usize] += 1);
        let degrees = processes.gather(degrees)?;
        if degrees.iter().any(|of_one| of_one.len() != num_vertices) {
            return Err(Error::Peers("another process has another number of vertices".to_owned()));
        }
        cut.num_replicas = 0;
        (0..num_vertices).for_each(|vertex| cut.place(vertex, &degrees));
        Ok(cut)
    }

    /// Adds the replica of the next vertex, if there is one here.
    fn place(&mut self, vertex: usize, degrees: &[Vec<u32>]) {
        let (count, here) = (degrees.len(), usize::from(self.here));
        let from = |turn: usize| (vertex + turn) % count;
        // The last of several that are as good.
        let master = (0..count).map(from).max_by_key(|&process| degrees[process][vertex]).unwrap_or(0);
        let has = |process: usize| process == master || degrees[process][vertex] > 0;
        self.num_replicas += (0..count).filter(|&process| has(process)).count();
        if !has(here) {
            self.replicas.push(ELSEWHERE);
            return;
        }
        self.replicas.push(self.vertices.len() as u32);
        self.vertices.push(vertex as u32);
        self.masters.push(master as u16);
        if master == here {
            self.mirrors.extend((0..count).filter(|&process| process != here && has(process)).map(|at| at as u16));
        }
        self.offsets.push(self.mirrors.len() as u32);
    }

    /// Tells whether there is one process, which has all.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Returns how many replicas are here.
    pub fn len(&self) -> usize {
        if self.is_whole { self.num_vertices } else { self.vertices.len() }
    }

    /// Returns how many vertices there are in all processes.
    pub fn num_vertices(&self) -> usize {
        self.num_vertices
    }

    /// Returns how many replicas of left vertices are here.
    pub fn num_left(&self) -> usize {
        self.span(0..self.num_left).len()
    }

    /// Returns replicas of a vertex, mean over all.
    pub fn replication_factor(&self) -> f64 {
        self.num_replicas as f64 / self.num_vertices.max(1) as f64
    }

    /// Returns the replica of a vertex, if it is here.
    #[inline(always)]
    pub fn replica(&self, vertex: usize) -> Option<usize> {
        if self.is_whole {
            return Some(vertex);
        }
        let replica = self.replicas[vertex];
        (replica != ELSEWHERE).then_some(replica as usize)
    }

    /// Returns the replica of a vertex that another process has named.
    pub fn here(&self, vertex: u32) -> Result<usize, Error> {
        let replica = self.replicas.get(vertex as usize).filter(|&&replica| replica != ELSEWHERE);
        replica
            .map(|&replica| replica as usize)
            .ok_or_else(|| Error::Peers("another process sent a vertex that is not here".to_owned()))
    }

    /// Returns the vertex of a replica.
    #[inline(always)]
    pub fn vertex(&self, replica: usize) -> usize {
        if self.is_whole { replica } else { self.vertices[replica] as usize }
    }

    /// Tells whether a replica is a master.
    #[inline(always)]
    pub fn is_master(&self, replica: usize) -> bool {
        self.is_whole || self.masters[replica] == self.here
    }

    /// Returns the replicas of a run of vertices.
    pub fn span(&self, vertices: Range<usize>) -> Range<usize> {
        if self.is_whole {
            return vertices;
        }
        let before = |vertex: usize| self.vertices.partition_point(|&one| (one as usize) < vertex);
        before(vertices.start)..before(vertices.end)
    }

    /// Returns edges of this process with their ends numbered as replicas, right ones from the first of them.
    pub fn local<'l, T: Clone>(&self, own: &'l EdgeList<T>) -> Cow<'l, EdgeList<T>> {
        if self.is_whole {
            return Cow::Borrowed(own);
        }
        let (first_right, num_left) = if own.square { (0, 0) } else { (self.num_left, self.num_left()) };
        let num_right = self.len() - num_left;
        let left = own.left.iter().map(|&id| self.replicas[id as usize]).collect();
        let right = own.right.iter().map(|&id| self.replicas[first_right + id as usize] - num_left as u32).collect();
        let num_left = self.num_left();
        Cow::Owned(EdgeList { num_left, num_right, square: own.square, left, right, data: own.data.clone() })
    }

    /// Sends what mirrors among some replicas have to their masters: `write` appends that of a mirror, and `read` takes that of one off
    /// the front for a master, mirror by mirror. All processes call it with the replicas of the same vertices, ascending.
    pub fn to_masters<S>(
        &self,
        replicas: impl Iterator<Item = usize> + Clone,
        state: &mut S,
        write: impl Fn(&S, usize, usize, &mut Vec<u8>) -> Result<(), Error>,
        read: impl Fn(&mut S, usize, usize, &mut &[u8]) -> Result<(), Error>,
    ) -> Result<Sent, Error> {
        self.exchange(
            state,
            |state, parts| {
                let mut mirrors = replicas.clone().enumerate().filter(|(_, replica)| !self.is_master(*replica));
                mirrors.try_for_each(|(at, replica)| write(state, at, replica, &mut parts[self.master(replica)]))
            },
            |state, arrived| {
                for (at, replica) in replicas.clone().enumerate() {
                    self.mirrors(replica)
                        .iter()
                        .try_for_each(|&from| read(state, at, replica, &mut arrived[usize::from(from)]))?;
                }
                Ok(())
            },
        )
    }

    /// Sends what masters among some replicas have to their mirrors, as [`Self::to_masters`] the other way.
    pub fn to_mirrors<S>(
        &self,
        replicas: impl Iterator<Item = usize> + Clone,
        state: &mut S,
        write: impl Fn(&S, usize, &mut Vec<u8>) -> Result<(), Error>,
        read: impl Fn(&mut S, usize, &mut &[u8]) -> Result<(), Error>,
    ) -> Result<Sent, Error> {
        self.exchange(
            state,
            |state, parts| {
                for replica in replicas.clone() {
                    self.mirrors(replica)
                        .iter()
                        .try_for_each(|&to| write(state, replica, &mut parts[usize::from(to)]))?;
                }
                Ok(())
            },
            |state, arrived| {
                let mut mirrors = replicas.clone().filter(|replica| !self.is_master(*replica));
                mirrors.try_for_each(|replica| read(state, replica, &mut arrived[self.master(replica)]))
            },
        )
    }

    /// Returns the processes that have mirrors of a master; none of a mirror.
    pub fn mirrors(&self, replica: usize) -> &[u16] {
        if self.is_whole {
            return &[];
        }
        &self.mirrors[self.offsets[replica] as usize..self.offsets[replica + 1] as usize]
    }

    /// Returns the process of a mirror's master.
    pub fn master(&self, mirror: usize) -> usize {
        usize::from(self.masters[mirror])
    }

    /// Joins the sums of all processes, in the order of their numbers, so that all find the same.
    pub fn combine<T: Combine>(&self, mine: T, cost: &mut Cost) -> Result<T, Error> {
        let mut joined = T::default();
        self.share(mine, cost)?.iter_mut().for_each(|part| joined.combine(part));
        Ok(joined)
    }

    /// Adds to numbers what the other processes have, likewise.
    pub fn add<T>(&self, mine: Vec<T>, cost: &mut Cost) -> Result<Vec<T>, Error>
    where
        T: AddAssign + Serialize + DeserializeOwned,
    {
        let mut all = self.share(mine, cost)?.into_iter();
        let mut sum = all.next().unwrap_or_default();
        all.for_each(|part| sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part));
        Ok(sum)
    }

    /// Gives every process what all have, in the order of their numbers.
    pub fn share<T: Serialize + DeserializeOwned>(&self, mine: T, cost: &mut Cost) -> Result<Vec<T>, Error> {
        let mut all = vec![mine];
        let own = self.processes.number();
        let sent = self.exchange(
            &mut all,
            |all, parts| {
                let mut others = parts.iter_mut().enumerate().filter(|(to, _)| *to != own);
                others.try_for_each(|(_, part)| put(&all[0], part))
            },
            |all, arrived| {
                for (from, front) in arrived.iter_mut().enumerate().filter(|(from, _)| *from != own) {
                    all.insert(from, take(front)?);
                }
                Ok(())
            },
        )?;
        sent.add_to(cost);
        Ok(all)
    }

    /// Sends parts that `write` fills, by process, and lets `read` take what has arrived, to the last byte.
    pub fn exchange<S>(
        &self,
        state: &mut S,
        write: impl FnOnce(&S, &mut [Vec<u8>]) -> Result<(), Error>,
        read: impl FnOnce(&mut S, &mut [&[u8]]) -> Result<(), Error>,
    ) -> Result<Sent, Error> {
        if self.is_whole {
            return Ok(Sent::default());
        }
        let begin = Instant::now();
        let mut parts = vec![Vec::new(); self.processes.count()];
        write(state, &mut parts)?;
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let messages = parts.iter().filter(|part| !part.is_empty()).count() as u64;
        let sending = Instant::now();
        let arrived = self.processes.exchange(parts)?;
        let waited = sending.elapsed();
        let mut arrived: Vec<&[u8]> = arrived.iter().map(Vec::as_slice).collect();
        read(state, &mut arrived)?;
        if arrived.iter().any(|rest| !rest.is_empty()) {
            return Err(Error::Peers("another process sent more than is known here".to_owned()));
        }
        Ok(Sent { bytes, messages, waited, packed: begin.elapsed().saturating_sub(waited) })
    }
}

/// Takes bytes off the front of what another process sent.
pub(super) fn take_bytes<'b>(front: &mut &'b [u8], bytes: usize) -> Result<&'b [u8], Error> {
    front.split_off(..bytes).ok_or_else(|| Error::Peers("another process sent less than is known here".to_owned()))
}

//! Gather, apply, scatter on one kind of vertex (Gonzalez et al. 2012), written for speed: what the model costs when its
//! implementation costs nothing extra.
//!
//! A vertex is a row of numbers, on either side of a graph. A superstep gathers over the edges of every active vertex, all of
//! which see the values from before the step, then applies what was gathered. A gather for both ends of an edge takes two passes over
//! the edges, each over edges grouped by the end that gathers: that is the model's price. Nothing is allocated for an edge or
//! a vertex. [`faithful`] is the other implementation.
//!
//! In several processes a superstep takes two messages for each mirror of an active vertex: its sum, and the vertex after it was applied.
//! As vertices have one kind, all of the vertex travels.

pub(crate) mod csr;
pub(crate) mod cut;
pub mod faithful;
mod program;

use std::borrow::Cow;
use std::ops::Range;

use bytemuck::Pod;
use megagrid_partition::{EdgeList, Side};
use megagrid_stages::Additive;
use megagrid_stages::simd::Kernel;

use crate::job::Cost;
use crate::rows::Rows;
use crate::workers::{self, Spent, Threads};
use crate::{Error, Finish, Run};
use csr::Csr;
use cut::{Cut, Sent, take_bytes};

pub use program::{Active, VertexProgram};

/// The part of a graph that is in this process, with rows of `I` for its replicas of vertices, edges that carry `E` and sums of `S`.
pub struct Gas<I, E, S> {
    cut: Cut,
    /// Edges by the end that gathers: replicas number 0 and up, and those after them.
    edges: Vec<Csr<E>>,
    /// Which replica a group of edges' other ends count from.
    others: Vec<usize>,
    /// Rows of replicas.
    rows: Rows<I>,
    sums: Rows<S>,
    threads: Threads,
}

impl<I: Pod + Send + Sync, E: Copy + Send + Sync, S: Pod + Additive + Send + Sync> Gas<I, E, S> {
    /// Takes the edges of this process; vertices have rows of `widths[0]` zeros and sums of `widths[1]`. Vertices of a square graph gather
    /// over edges that lead to them, those of a bipartite one over all theirs.
    pub fn new<T: Clone>(
        own: &EdgeList<T>,
        data: impl Fn(usize) -> E,
        widths: [usize; 2],
        run: &Run,
    ) -> Result<Self, Error> {
        let cut = Cut::new(own, &run.processes)?;
        let list = &*cut.local(own);
        let (edges, others) = if list.square {
            (vec![Csr::new(list, Side::Right, data)], vec![0])
        } else {
            let sides = [Side::Left, Side::Right].map(|side| Csr::new(list, side, &data));
            (Vec::from(sides), vec![list.num_left, 0])
        };
        let (rows, sums) = (Rows::zeros(cut.len(), widths[0]), Rows::zeros(cut.len(), widths[1]));
        Ok(Self { cut, edges, others, rows, sums, threads: Threads::new(run.workers, run.level)? })
    }

    /// Returns which vertices are here.
    pub(crate) fn cut(&self) -> &Cut {
        &self.cut
    }

    /// Returns who works.
    pub(crate) fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Returns the row of a vertex, if there is a replica of it here.
    pub fn row(&self, vertex: usize) -> Option<&[I]> {
        self.cut.replica(vertex).map(|replica| self.rows.row(replica))
    }

    /// Returns the row of a vertex to be changed, the same in all processes.
    pub fn row_mut(&mut self, vertex: usize) -> Option<&mut [I]> {
        self.cut.replica(vertex).map(|replica| self.rows.row_mut(replica))
    }

    /// Returns the rows of all vertices, which processes give each other.
    pub(crate) fn all_rows(&self) -> Result<Cow<'_, Rows<I>>, Error> {
        if self.cut.is_whole() {
            return Ok(Cow::Borrowed(&self.rows));
        }
        let masters = || (0..self.cut.len()).filter(|&replica| self.cut.is_master(replica));
        let vertices: Vec<u32> = masters().map(|replica| self.cut.vertex(replica) as u32).collect();
        let rows: Vec<I> = masters().flat_map(|replica| self.rows.row(replica)).copied().collect();
        let mut all = Rows::zeros(self.cut.num_vertices(), self.rows.width());
        for (vertices, bytes) in
            self.cut.processes().gather((vertices, bytemuck::cast_slice::<I, u8>(&rows).to_vec()))?
        {
            let mut bytes = &bytes[..];
            for vertex in vertices {
                read_row(all.row_mut(vertex as usize), &mut bytes)?;
            }
        }
        Ok(Cow::Owned(all))
    }

    /// Gathers for the active vertices and applies: one superstep. Returns the workers' totals, which are those of the masters here.
    pub(crate) fn superstep<P>(&mut self, program: &P, active: Active<'_>) -> Result<(Vec<P::Total>, Cost), Error>
    where
        P: VertexProgram<Item = I, Edge = E, Sum = S>,
    {
        let active = &active.here(&self.cut);
        let len = active.len(self.rows.len());
        let (parts, mut spent) = self.gather(program, active, len)?;
        let Self { cut, rows, sums, threads, .. } = self;
        let ids = (0..len).map(|at| active.get(at));
        let summed = cut.to_masters(
            ids.clone(),
            sums,
            |sums, at, _, out| write_row(sums.row(at), out),
            |sums, at, _, front| {
                let width = sums.width();
                let sums = sums.row_mut(at);
                let bytes = take_bytes(front, width * size_of::<S>())?.chunks_exact(size_of::<S>());
                sums.iter_mut().zip(bytes).for_each(|(sum, part)| sum.add(&bytemuck::pod_read_unaligned(part)));
                Ok(())
            },
        )?;

        let mut end = 0;
        let span = |part: &Range<usize>| {
            let first = if part.is_empty() { end } else { active.get(part.start) };
            end = if part.is_empty() { end } else { active.get(part.end - 1) + 1 };
            first..end
        };
        let spans: Vec<Range<usize>> = parts.iter().map(span).collect();
        let widths = [rows.width(), sums.width()];
        let applying = rows.split_mut(&spans).into_iter().zip(sums.split_mut(&parts)).collect();
        let (shared, level) = (&*cut, threads.level());
        let (totals, more) = threads.step(applying, |worker, (rows, sums): (&mut [P::Item], &mut [P::Sum])| {
            let (part, first) = (parts[worker].clone(), spans[worker].start);
            level.run(ApplyRows { program, cut: shared, active, part, first, widths, rows, sums })
        })?;
        for (spent, more) in spent.iter_mut().zip(more) {
            spent.sync += more.compute;
            spent.wait += more.wait;
        }
        let mut cost = Cost::of(spent);
        summed.and(refresh(cut, ids, rows)?).add_to(&mut cost);
        Ok((totals, cost))
    }

    /// Gathers over the edges here. Returns what of the active vertices each worker has, and the workers' times.
    fn gather<P>(
        &mut self,
        program: &P,
        active: &Active<'_>,
        len: usize,
    ) -> Result<(Vec<Range<usize>>, Vec<Spent>), Error>
    where
        P: VertexProgram<Item = I, Edge = E, Sum = S>,
    {
        let Self { edges, others, rows, sums, threads, .. } = self;
        let workers = threads.count();
        let parts = match active {
            Active::All => workers::parts(len, workers, |at| weight_before(edges, at)),
            Active::Span(first, _) => {
                let before = weight_before(edges, *first);
                workers::parts(len, workers, |at| weight_before(edges, first + at) - before)
            }
            Active::These(_) => workers::parts(len, workers, |at| at as u64),
        };
        let (shared, level) = (&*rows, threads.level());
        let gathering = sums.split_mut(&parts).into_iter().zip(parts.iter().cloned()).collect();
        let (_, spent) = threads.step(gathering, |_, (sums, part): (&mut [P::Sum], Range<usize>)| {
            level.run(Gather { program, edges, others, rows: shared, active, part, sums });
        })?;
        Ok((parts, spent))
    }

    /// Gives mirrors of a run of vertices what their masters have.
    pub(crate) fn refresh(&mut self, vertices: Range<usize>) -> Result<Cost, Error> {
        let replicas = self.cut.span(vertices);
        let mut cost = Cost::of(vec![Spent::default(); self.threads.count()]);
        refresh(&self.cut, replicas, &mut self.rows)?.add_to(&mut cost);
        Ok(cost)
    }

    /// Scatters over edges of left vertices, which have all their edges here: workers have runs of these, `left`, and copies of the right
    /// vertices here. What they change there the next gather brings together.
    pub(crate) fn scatter<W: Send, T: Send>(
        &mut self,
        left: &[Range<usize>],
        workers: Vec<W>,
        copies: &mut [Rows<I>],
        scatter: impl Fn(W, &mut [I], &mut Rows<I>) -> T + Sync,
    ) -> Result<(Vec<T>, Vec<Spent>), Error> {
        let width = self.rows.width();
        let num_left = self.edges[0].len() * width;
        let (lefts, rights) = self.rows.items_mut().split_at_mut(num_left);
        let rights = &*rights;
        let runs: Vec<Range<usize>> = left.iter().map(|run| self.cut.span(run.clone())).collect();
        let workers = workers.into_iter().zip(workers::cut(lefts, width, &runs)).zip(copies).collect();
        self.threads.step(workers, |_, ((worker, left), copy): ((W, &mut [I]), &mut Rows<I>)| {
            copy.items_mut().copy_from_slice(rights);
            scatter(worker, left, copy)
        })
    }

    /// Changes the masters of a run of vertices, each by itself; mirrors are as they were. Returns the workers' totals and times.
    pub(crate) fn transform<T: Default + Send>(
        &mut self,
        vertices: Range<usize>,
        change: impl Fn(&mut [I], &mut T) + Sync,
    ) -> Result<(Vec<T>, Vec<Spent>), Error> {
        let Self { cut, rows, threads, .. } = self;
        let (width, replicas) = (rows.width(), cut.span(vertices));
        let mut parts = workers::parts(replicas.len(), threads.count(), |at| at as u64);
        parts.iter_mut().for_each(|part| *part = replicas.start + part.start..replicas.start + part.end);
        let rows = rows.split_mut(&parts).into_iter().zip(parts.clone()).collect();
        let cut = &*cut;
        threads.step(rows, |_, (rows, part): (&mut [I], Range<usize>)| {
            let mut total = T::default();
            let masters = part.zip(rows.chunks_exact_mut(width)).filter(|(replica, _)| cut.is_master(*replica));
            masters.for_each(|(_, row)| change(row, &mut total));
            total
        })
    }

    /// Scatters over the edges of right vertices, whose other ends ascend, and which change these, all of which are masters: each worker
    /// changes a run of left vertices. Returns the workers' totals and times.
    pub(crate) fn push<T: Default + Send>(
        &mut self,
        active: &[u32],
        push: impl Fn(&[I], &mut [I], E, &mut T) + Sync,
    ) -> Result<(Vec<T>, Vec<Spent>), Error> {
        let Self { cut, edges, rows, threads, .. } = self;
        let (num_left, width) = (edges[0].len(), rows.width());
        let parts = workers::parts(num_left, threads.count(), |at| edges[0].offsets[at]);
        let (left, right) = rows.items_mut().split_at_mut(num_left * width);
        let active: Vec<usize> = active.iter().filter_map(|&id| cut.replica(id as usize)).collect();
        let (active, by_right, right) = (&active, &edges[1], &*right);
        let workers = parts.iter().cloned().zip(workers::cut(left, width, &parts)).collect();
        threads.step(workers, |_, (part, rows): (Range<usize>, &mut [I])| {
            let mut total = T::default();
            for id in active.iter().map(|id| id - num_left) {
                let from = &right[id * width..(id + 1) * width];
                let (ends, data) = by_right.of(id);
                let mine = within(ends, &part);
                for (&end, &edge) in ends[mine.clone()].iter().zip(&data[mine]) {
                    let at = (end as usize - part.start) * width;
                    push(from, &mut rows[at..at + width], edge, &mut total);
                }
            }
            total
        })
    }

    /// Tells what is known at the end, but for the `own_bytes` of a program.
    pub fn finish(&self, own_bytes: u64) -> Finish {
        let edges = self.edges.iter().map(Csr::bytes).sum::<u64>();
        let memory_bytes = self.rows.bytes() + self.sums.bytes() + edges + own_bytes;
        Finish { memory_bytes, replication_factor: self.cut.replication_factor(), ..Finish::default() }
    }
}

/// Returns which of some ascending ends are in a run.
fn within(ends: &[u32], run: &Range<usize>) -> Range<usize> {
    debug_assert!(ends.is_sorted(), "ends of an edge source ascend");
    let before = |bound: usize| ends.partition_point(|&end| (end as usize) < bound);
    before(run.start)..before(run.end)
}

/// Gives mirrors among some replicas what their masters have.
fn refresh<I: Pod>(
    cut: &Cut,
    replicas: impl Iterator<Item = usize> + Clone,
    rows: &mut Rows<I>,
) -> Result<Sent, Error> {
    let write = |rows: &Rows<I>, replica, out: &mut Vec<u8>| write_row(rows.row(replica), out);
    cut.to_mirrors(replicas, rows, write, |rows, replica, front| read_row(rows.row_mut(replica), front))
}

fn write_row<T: Pod>(row: &[T], out: &mut Vec<u8>) -> Result<(), Error> {
    out.extend_from_slice(bytemuck::cast_slice(row));
    Ok(())
}

/// Takes a row off the front of what another process sent.
fn read_row<T: Pod>(row: &mut [T], front: &mut &[u8]) -> Result<(), Error> {
    let bytes = take_bytes(front, size_of_val(row))?;
    bytemuck::cast_slice_mut(row).copy_from_slice(bytes);
    Ok(())
}

/// Returns the edges of the vertices before one, and a little for each of these.
fn weight_before<E: Copy>(edges: &[Csr<E>], vertex: usize) -> u64 {
    let mut first = 0;
    let of = |csr: &Csr<E>| {
        let weight = csr.offsets[vertex.saturating_sub(first).min(csr.len())];
        first += csr.len();
        weight
    };
    edges.iter().map(of).sum::<u64>() + vertex as u64
}

struct Gather<'g, P: VertexProgram> {
    program: &'g P,
    edges: &'g [Csr<P::Edge>],
    others: &'g [usize],
    rows: &'g Rows<P::Item>,
    active: &'g Active<'g>,
    part: Range<usize>,
    sums: &'g mut [P::Sum],
}

impl<P: VertexProgram> Kernel for Gather<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { program, edges, others, rows, active, part, sums } = self;
        sums.fill(bytemuck::Zeroable::zeroed());
        let (rows, width) = (rows.items(), rows.width());
        let row = |id: usize| &rows[id * width..(id + 1) * width];
        let left = edges[0].len();
        let sum_width = sums.len() / part.len().max(1);
        for (sum, at) in sums.chunks_exact_mut(sum_width.max(1)).zip(part) {
            let id = active.get(at);
            let (side, local) = if id < left { (0, id) } else { (1, id - left) };
            let (ends, data) = edges[side].of(local);
            let vertex = row(id);
            for (&end, &edge) in ends.iter().zip(data) {
                program.gather(vertex, row(others[side] + end as usize), edge, sum);
            }
        }
    }
}

struct ApplyRows<'g, P: VertexProgram> {
    program: &'g P,
    cut: &'g Cut,
    active: &'g Active<'g>,
    part: Range<usize>,
    first: usize,
    widths: [usize; 2],
    rows: &'g mut [P::Item],
    sums: &'g mut [P::Sum],
}

impl<P: VertexProgram> Kernel for ApplyRows<'_, P> {
    type Output = P::Total;

    #[inline(always)]
    fn run(self) -> P::Total {
        let Self { program, cut, active, part, first, widths: [width, sum_width], rows, sums } = self;
        let mut total = P::Total::default();
        for (sum, at) in sums.chunks_exact(sum_width).zip(part) {
            let id = active.get(at);
            if cut.is_master(id) {
                let row = &mut rows[(id - first) * width..(id - first + 1) * width];
                program.apply(cut.vertex(id), row, sum, &mut total);
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_finds_its_ends_of_a_vertex() {
        let ends = [0, 3, 3, 4, 9];
        let runs = [0..3, 3..4, 4..4, 4..10, 10..12];
        let found = runs.map(|run| within(&ends, &run));
        assert_eq!(found, [0..1, 1..3, 3..3, 3..5, 5..5]);
    }

    #[test]
    fn a_push_goes_over_each_edge_once_on_any_number_of_workers() {
        let (left, right) = (vec![0, 2, 4, 0, 1, 3, 4], vec![0, 0, 0, 1, 1, 1, 1]);
        let list = EdgeList { num_left: 5, num_right: 2, square: false, left, right, data: vec![(); 7] };
        for workers in 1..5 {
            let run = Run { workers, ..Run::default() };
            let mut gas = Gas::<f32, f32, f32>::new(&list, |edge| edge as f32, [1, 1], &run).unwrap();
            gas.row_mut(6).unwrap()[0] = 10.0;
            let count = |from: &[f32], to: &mut [f32], edge, edges: &mut u32| {
                to[0] += from[0] + edge;
                *edges += 1;
            };
            let (edges, _) = gas.push(&[5, 6], count).unwrap();
            assert_eq!(edges.iter().sum::<u32>(), 7, "{workers} workers");
            let rows: Vec<f32> = (0..5).map(|vertex| gas.row(vertex).unwrap()[0]).collect();
            assert_eq!(rows, [13.0, 14.0, 1.0, 15.0, 18.0], "{workers} workers");
        }
    }
}

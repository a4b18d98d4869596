//! Gather, apply, scatter on one kind of vertex (Gonzalez et al. 2012), written for speed: what the model costs when its
//! implementation costs nothing extra.
//!
//! A vertex is a row of numbers, on either side of a graph. A superstep gathers over the edges of every active vertex, all of
//! which see the values from before the step, then applies what was gathered. A gather for both ends of an edge takes two passes over
//! the edges, each over edges grouped by the end that gathers: that is the model's price. Nothing is allocated for an edge or
//! a vertex. [`faithful`] is the other implementation.

pub(crate) mod csr;
pub mod faithful;

use std::ops::Range;

use bytemuck::Pod;
use megagrid_partition::{EdgeList, Side};
use megagrid_stages::simd::{Kernel, Level};

use crate::Error;
use crate::crew::{self, Spent};
use crate::rows::Rows;
use csr::Csr;

/// A vertex program.
pub trait VertexProgram: Sync {
    /// What the rows of vertices are made of.
    type Item: Pod + Send + Sync;
    type Edge: Copy + Send + Sync;
    /// What sums are made of.
    type Sum: Pod + Send + Sync;
    /// What a worker adds up beside.
    type Total: Default + Send;

    /// Adds an edge's part to a vertex's sum.
    fn gather(&self, vertex: &[Self::Item], other: &[Self::Item], edge: Self::Edge, sum: &mut [Self::Sum]);

    /// Changes a vertex by its sum. Vertices are numbered over both sides, left ones first.
    fn apply(&self, id: usize, vertex: &mut [Self::Item], sum: &[Self::Sum], total: &mut Self::Total);
}

/// Which vertices a superstep is for.
#[derive(Clone, Copy)]
pub enum Active<'a> {
    /// All that gather.
    All,
    /// From one on, so many.
    Span(usize, usize),
    /// These, ascending.
    These(&'a [u32]),
}

impl Active<'_> {
    fn len(self, all: usize) -> usize {
        match self {
            Self::All => all,
            Self::Span(_, len) => len,
            Self::These(ids) => ids.len(),
        }
    }

    #[inline(always)]
    fn get(self, at: usize) -> usize {
        match self {
            Self::All => at,
            Self::Span(first, _) => first + at,
            Self::These(ids) => ids[at] as usize,
        }
    }
}

/// A graph with its vertices' rows of `I`, edges that carry `E` and sums of `S`.
pub struct Gas<I, E, S> {
    /// Edges by the end that gathers: vertices number 0 and up, and those after them.
    edges: Vec<Csr<E>>,
    /// Which vertex a group of edges' other ends count from.
    others: Vec<usize>,
    /// Rows of all vertices.
    pub vertices: Rows<I>,
    sums: Rows<S>,
    workers: usize,
    level: Level,
}

impl<I: Pod + Send + Sync, E: Copy + Send + Sync, S: Pod + Send + Sync> Gas<I, E, S> {
    /// Takes a graph; vertices have rows of `widths[0]` zeros and sums of `widths[1]`. Vertices of a square graph gather over edges that
    /// lead to them, those of a bipartite one over all theirs.
    pub fn new<T>(list: &EdgeList<T>, data: impl Fn(usize) -> E, widths: [usize; 2], workers: usize) -> Self {
        let (edges, others, len) = if list.square {
            (vec![Csr::new(list, Side::Right, data)], vec![0], list.num_left)
        } else {
            let sides = [Side::Left, Side::Right].map(|side| Csr::new(list, side, &data));
            (Vec::from(sides), vec![list.num_left, 0], list.num_left + list.num_right)
        };
        let (vertices, sums) = (Rows::zeros(len, widths[0]), Rows::zeros(len, widths[1]));
        Self { edges, others, vertices, sums, workers, level: Level::detect() }
    }

    /// Gathers for the active vertices and applies: one superstep. Returns the workers' totals and times.
    pub(crate) fn superstep<P>(&mut self, program: &P, active: Active<'_>) -> Result<(Vec<P::Total>, Vec<Spent>), Error>
    where
        P: VertexProgram<Item = I, Edge = E, Sum = S>,
    {
        let Self { edges, others, vertices, sums, workers, level } = self;
        let len = active.len(vertices.len());
        let parts = match active {
            Active::All => crew::parts(len, *workers, |at| weight_before(edges, at)),
            Active::Span(first, _) => {
                let before = weight_before(edges, first);
                crew::parts(len, *workers, |at| weight_before(edges, first + at) - before)
            }
            Active::These(_) => crew::parts(len, *workers, |at| at as u64),
        };
        let (shared, level) = (&*vertices, *level);
        let gathering = sums.split_mut(&parts).into_iter().zip(parts.iter().cloned()).collect();
        let ((), mut spent) = crew::step(gathering, |_, (sums, part): (&mut [P::Sum], Range<usize>)| {
            level.run(Gather { program, edges, others, vertices: shared, active, part, sums });
        })
        .map(|(_, spent)| ((), spent))?;

        let mut end = 0;
        let span = |part: &Range<usize>| {
            let first = if part.is_empty() { end } else { active.get(part.start) };
            end = if part.is_empty() { end } else { active.get(part.end - 1) + 1 };
            first..end
        };
        let ids: Vec<Range<usize>> = parts.iter().map(span).collect();
        let widths = [vertices.width(), sums.width()];
        let applying = vertices.split_mut(&ids).into_iter().zip(sums.split_mut(&parts)).collect();
        let (totals, more) = crew::step(applying, |worker, (rows, sums): (&mut [P::Item], &mut [P::Sum])| {
            let (part, first) = (parts[worker].clone(), ids[worker].start);
            level.run(ApplyRows { program, active, part, first, widths, rows, sums })
        })?;
        for (spent, more) in spent.iter_mut().zip(more) {
            spent.sync += more.compute;
            spent.wait += more.wait;
        }
        Ok((totals, spent))
    }

    /// Scatters over edges of left vertices, where workers have runs of these, `left`, and mirrors of all right vertices. What they
    /// change there the next gather brings together.
    pub(crate) fn scatter<W: Send, T: Send>(
        &mut self,
        left: &[Range<usize>],
        workers: Vec<W>,
        mirrors: &mut [Rows<I>],
        scatter: impl Fn(W, &mut [I], &mut Rows<I>) -> T + Sync,
    ) -> Result<(Vec<T>, Vec<Spent>), Error> {
        let width = self.vertices.width();
        let num_left = self.edges[0].len() * width;
        let (lefts, rights) = self.vertices.items_mut().split_at_mut(num_left);
        let rights = &*rights;
        let workers = workers.into_iter().zip(crew::cut(lefts, width, left)).zip(mirrors).collect();
        crew::step(workers, |_, ((worker, left), mirror): ((W, &mut [I]), &mut Rows<I>)| {
            mirror.items_mut().copy_from_slice(rights);
            scatter(worker, left, mirror)
        })
    }

    /// Changes vertices, a run of numbers, each by itself. Returns the workers' totals and times.
    pub(crate) fn transform<T: Default + Send>(
        &mut self,
        ids: Range<usize>,
        change: impl Fn(usize, &mut [I], &mut T) + Sync,
    ) -> Result<(Vec<T>, Vec<Spent>), Error> {
        let width = self.vertices.width();
        let mut parts = crew::parts(ids.len(), self.workers, |at| at as u64);
        parts.iter_mut().for_each(|part| *part = ids.start + part.start..ids.start + part.end);
        let rows = self.vertices.split_mut(&parts).into_iter().zip(parts.clone()).collect();
        crew::step(rows, |_, (rows, part): (&mut [I], Range<usize>)| {
            let mut total = T::default();
            part.zip(rows.chunks_exact_mut(width)).for_each(|(id, row)| change(id, row, &mut total));
            total
        })
    }

    /// Scatters over the edges of right vertices, which change the left ends of these: each worker changes a run of left vertices, and
    /// so looks at the edges of all. Returns the workers' totals and times.
    pub(crate) fn push<T: Default + Send>(
        &mut self,
        active: &[u32],
        push: impl Fn(&[I], &mut [I], E, &mut T) + Sync,
    ) -> Result<(Vec<T>, Vec<Spent>), Error> {
        let Self { edges, vertices, workers, .. } = self;
        let (num_left, width) = (edges[0].len(), vertices.width());
        let parts = crew::parts(num_left, *workers, |at| edges[0].offsets[at]);
        let (left, right) = vertices.items_mut().split_at_mut(num_left * width);
        let (by_right, right) = (&edges[1], &*right);
        let workers = parts.iter().cloned().zip(crew::cut(left, width, &parts)).collect();
        crew::step(workers, |_, (part, rows): (Range<usize>, &mut [I])| {
            let mut total = T::default();
            for id in active.iter().map(|&id| id as usize - num_left) {
                let from = &right[id * width..(id + 1) * width];
                let (ends, data) = by_right.of(id);
                for (&end, &edge) in ends.iter().zip(data) {
                    let end = end as usize;
                    if part.contains(&end) {
                        let at = (end - part.start) * width;
                        push(from, &mut rows[at..at + width], edge, &mut total);
                    }
                }
            }
            total
        })
    }

    /// Returns the bytes of rows, sums and edges.
    pub fn bytes(&self) -> u64 {
        self.vertices.bytes() + self.sums.bytes() + self.edges.iter().map(Csr::bytes).sum::<u64>()
    }
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
    vertices: &'g Rows<P::Item>,
    active: Active<'g>,
    part: Range<usize>,
    sums: &'g mut [P::Sum],
}

impl<P: VertexProgram> Kernel for Gather<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { program, edges, others, vertices, active, part, sums } = self;
        sums.fill(bytemuck::Zeroable::zeroed());
        let (rows, width) = (vertices.items(), vertices.width());
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
    active: Active<'g>,
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
        let Self { program, active, part, first, widths: [width, sum_width], rows, sums } = self;
        let mut total = P::Total::default();
        for (sum, at) in sums.chunks_exact(sum_width).zip(part) {
            let id = active.get(at);
            let row = &mut rows[(id - first) * width..(id - first + 1) * width];
            program.apply(id, row, sum, &mut total);
        }
        total
    }
}

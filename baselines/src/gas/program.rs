//! What a user of [`Gas`](super::Gas) writes, and for which vertices it runs.

use std::borrow::Cow;

use bytemuck::Pod;
use megagrid_stages::Additive;

use super::cut::Cut;

/// A vertex program.
pub trait VertexProgram: Sync {
    /// What the rows of vertices are made of.
    type Item: Pod + Send + Sync;
    type Edge: Copy + Send + Sync;
    /// What sums are made of.
    type Sum: Pod + Additive + Send + Sync;
    /// What a worker adds up beside.
    type Total: Default + Send;

    /// Adds an edge's part to a vertex's sum.
    fn gather(&self, vertex: &[Self::Item], other: &[Self::Item], edge: Self::Edge, sum: &mut [Self::Sum]);

    /// Changes a vertex by its sum. Vertices are numbered over both sides, left ones first.
    fn apply(&self, id: usize, vertex: &mut [Self::Item], sum: &[Self::Sum], total: &mut Self::Total);
}

/// Which vertices a superstep is for: the same in all processes, but for those that a process has no replica of.
#[derive(Clone)]
pub enum Active<'a> {
    /// All that gather.
    All,
    /// The first one, and how many from it on.
    Span(usize, usize),
    /// These, ascending.
    These(Cow<'a, [u32]>),
}

impl Active<'_> {
    /// Returns the replicas of these vertices.
    pub(super) fn here(self, cut: &Cut) -> Self {
        match self {
            _ if cut.is_whole() => self,
            Self::All => self,
            Self::Span(first, len) => {
                let span = cut.span(first..first + len);
                Self::Span(span.start, span.len())
            }
            Self::These(ids) => {
                let here = ids.iter().filter_map(|&id| cut.replica(id as usize)).map(|replica| replica as u32);
                Self::These(here.collect())
            }
        }
    }

    pub(super) fn len(&self, all: usize) -> usize {
        match self {
            Self::All => all,
            Self::Span(_, len) => *len,
            Self::These(ids) => ids.len(),
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> usize {
        match self {
            Self::All => at,
            Self::Span(first, _) => first + at,
            Self::These(ids) => ids[at] as usize,
        }
    }
}

//! Directed graphs to train on.

use std::sync::Arc;

use megagrid_datasets::{Dataset, Edges, Format, Names, Prepared, load_graph, load_graph_with};
use megagrid_partition::{EdgeSource, Side};

use crate::algorithm::{Data, Reading};

use crate::Error;
use crate::input::{Source, Stopwatch, digest, is_cache, no_edges, open, phases};
use crate::record::{InputSizes, Phases};

/// A directed graph.
#[derive(Debug)]
pub struct Graph {
    /// Links, grouped by their targets.
    pub edges: Edges<()>,
    /// Names of the vertices.
    pub names: Arc<Names>,
    sizes: InputSizes,
}

impl Graph {
    /// Takes a graph in memory.
    #[must_use]
    pub fn new(graph: Dataset<()>) -> Self {
        Self::of(Prepared::new(graph, &[Side::Right]))
    }

    /// Takes a graph that is prepared.
    #[must_use]
    pub fn of(prepared: Prepared<()>) -> Self {
        let Prepared { edges, names, .. } = prepared;
        let [left, right] = [Side::Left, Side::Right].map(|side| edges.num_vertices(side));
        let sizes = InputSizes { left, right, edges: edges.num_edges(), test_edges: 0 };
        Self { edges, names: Arc::new(names), sizes }
    }
}

impl Data for Graph {
    type Edge = ();
    type Origin = Source;

    fn read(origin: &mut Source, how: &Reading<'_>) -> Result<(Self, Phases), Error> {
        let mut clock = Stopwatch::start();
        let format = Some(origin.find(Format::Edges)?);
        let is_cache = is_cache(&origin.input, format)?;
        how.begin(is_cache, None)?;
        if is_cache {
            let graph = Self::of(open(&origin.input, how.readers)?);
            return Ok((graph, phases(clock.lap(), 0.0)));
        }
        let loaded = match how.readers {
            Some(readers) => load_graph_with(&origin.input, format, readers)?,
            None => load_graph(&origin.input, format)?,
        };
        let load = clock.lap();
        let graph = Self::of(loaded.prepare(Side::Right, how.degree_order)?);
        Ok((graph, phases(load, clock.lap())))
    }

    fn sizes(&self) -> InputSizes {
        self.sizes
    }

    fn checksum(&self) -> Result<u64, Error> {
        Ok(digest(&self.edges, |()| 0.0)?.checksum)
    }

    fn release(&mut self) {
        self.edges = no_edges();
    }
}

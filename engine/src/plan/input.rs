//! What a plan is made from.

use super::processes::Processes;
use super::strategy::Strategy;
use crate::machine::topology::Topology;

/// What a plan is made from, beside the outline.
pub struct Input<'i> {
    /// Degrees of the vertices of each side, in row order.
    pub degrees: [Box<dyn Fn(usize) -> u64 + 'i>; 2],
    /// Rows of each side.
    pub rows: [usize; 2],
    /// Edges.
    pub edges: u64,
    /// Bytes that a block touches for each row, left and right: the synced data and what is written.
    pub row_bytes: [usize; 2],
    /// Bytes of the data of all edges.
    pub edge_bytes: u64,
    /// Whether both sides index the same vertices.
    pub square: bool,
    /// Worker threads of all processes.
    pub workers: usize,
    /// The processes, which have equally many workers.
    pub processes: Processes,
    /// How edges are placed on them.
    pub strategy: Strategy,
    /// Bytes of an average vertex that can cross between processes, left and right: synced data, and deltas.
    pub crossing_bytes: [[u64; 2]; 2],
    /// Clocks that a worker may be ahead of the slowest; `None`: any number.
    pub slack: Option<u64>,
    /// Iterations from one look to the next, where they can flow into each other; `None`: as the slack suggests.
    pub look_every: Option<u64>,
    /// Iterations in a clock.
    pub passes_per_clock: u64,
    /// What the machine looks like.
    pub topology: &'i Topology,
    /// Whether the grid is on; off gives one shard per worker and batch, plain CSR.
    pub grid: bool,
    /// Whether what other processes need first is sent first.
    pub early: bool,
}

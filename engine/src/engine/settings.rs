//! How a program is to be run.

use std::ops::RangeInclusive;
use std::sync::Arc;

use megagrid_stages::simd::Level;

use crate::Error;
use crate::machine::topology::Topology;
use crate::plan::Strategy;
use crate::run::{Injection, Peers};

/// How a program is to be run. Every field has a sensible default.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Worker threads. Default: the cores of the machine.
    pub workers: usize,
    /// Clocks that a worker may be ahead of the slowest; `None`: any number. Default: 0.
    pub slack: Option<u64>,
    /// Iterations from one look to the next. Slack lets workers go on to the next iteration while others are in this one, where no
    /// stage needs them all ([`Plan::flows`](crate::plan::Plan::flows)); only at a look all have ended the same one. `None`, the
    /// default: as many iterations as have four times the clocks by which workers may be apart, or 1 where there is no bound.
    pub look_every: Option<u64>,
    /// Iterations in a clock: more send less, and staler data is read (A-BSP). For programs that change both ends of edges in place, in
    /// iterations that are one clock. Stages that gather from workers run once a clock. Default: 1.
    pub passes_per_clock: u64,
    /// With slack and several processes: whether masters' rows go to mirrors only when those would be too old (SSP), rather
    /// than after every clock (ESSP). Default: false.
    pub lazy: bool,
    /// The other processes of the run; `None`: there are none, which is the default. `workers` is then those of each.
    pub peers: Option<Arc<dyn Peers>>,
    /// How edges are placed on processes. Default: vertices of one side keep all their edges in one process.
    pub strategy: Strategy,
    /// Decides everything random. Default: 1.
    pub seed: u64,
    /// Items of a row. Default: 1.
    pub dims: usize,
    /// What hot loops are compiled for. Default: the widest level of the processor.
    pub level: Level,
    /// What the machine looks like. Default: detected.
    pub topology: Topology,
    /// What disturbs workers, as an experiment. Default: nothing.
    pub inject: Option<Injection>,
    /// Whether edges are cut into a grid of shards sized for the caches. Default: true; off for comparisons.
    pub grid: bool,
    /// Whether what other processes need first is sent first. Default: true; off for comparisons.
    pub early: bool,
}

/// Worker threads of a process, and items of a row: beyond, somebody meant something else.
const WORKERS: RangeInclusive<usize> = 1..=4096;
const DIMS: RangeInclusive<usize> = 1..=1 << 40;

impl Settings {
    /// Checks numbers that memory is laid out by.
    ///
    /// # Errors
    /// One that is out of range.
    pub(super) fn check(&self) -> Result<(), Error> {
        let refused = |name, found: usize, expected| Err(Error::Setting { name, found: found.to_string(), expected });
        match (self.workers, self.dims) {
            (workers, _) if !WORKERS.contains(&workers) => refused("workers", workers, "1 to 4096"),
            (_, dims) if !DIMS.contains(&dims) => refused("dims", dims, "1 to 1099511627776"),
            _ => Ok(()),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        let topology = Topology::detect();
        Self {
            workers: topology.num_cores(),
            slack: Some(0),
            look_every: None,
            passes_per_clock: 1,
            lazy: false,
            peers: None,
            strategy: Strategy::default(),
            seed: 1,
            dims: 1,
            level: Level::detect(),
            topology,
            inject: None,
            grid: true,
            early: true,
        }
    }
}

//! The machine as the plan sees it: nodes of memory, cores, caches; and the home of each worker.
//!
//! Facts come from hwloc (feature `numa`), else from the files of a Linux system, else from careful defaults, and are
//! confined to the processors that this process may use (affinity, control group, CPU quota). A [`Topology`] is a plain
//! value: a plan for two nodes can be made, printed and tested on a machine with one.

use std::fmt;

use serde::Serialize;

mod detect;
mod found;
#[cfg(feature = "numa")]
pub(super) mod hwloc;
mod quota;
mod sys;

pub(crate) use detect::most_threads;

/// Bytes of level-1 data cache where the system does not say.
pub const DEFAULT_L1D_BYTES: usize = 32 << 10;
/// Bytes of level-2 cache where the system does not say.
pub const DEFAULT_L2_BYTES: usize = 1 << 20;
/// Bytes of level-3 cache where the system does not say.
pub const DEFAULT_L3_BYTES: usize = 8 << 20;
/// Bytes of a cache line where the system does not say.
pub const DEFAULT_CACHE_LINE: usize = 64;

/// One node of memory and the cores beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The system's number of the node.
    pub id: usize,
    /// One logical processor of each core, by its number in the system, ascending.
    pub cores: Vec<usize>,
    /// The other hardware threads of those cores, ascending. They share the caches and units of their core.
    pub siblings: Vec<usize>,
    /// Memory of the node, in bytes; 0 where the system does not say.
    pub memory_bytes: u64,
}

impl Node {
    /// Returns the processors of one of this many workers on this node.
    fn share(&self, worker: usize, workers: usize) -> Vec<usize> {
        let cores = self.cores.len();
        if workers <= cores {
            return self.cores[worker * cores / workers..(worker + 1) * cores / workers].to_vec();
        }
        let all: Vec<usize> = self.cores.iter().chain(&self.siblings).copied().collect();
        if workers <= all.len() { vec![all[worker]] } else { all }
    }
}

/// Where a worker runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Home {
    /// The node's id.
    pub node: usize,
    /// Logical processors by their numbers in the system: nobody else's, unless there are more workers than processors.
    pub processors: Vec<usize>,
}

/// "node 0, processors 0-3".
impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.processors.len() == 1 { "" } else { "s" };
        write!(f, "node {}, processor{plural} {}", self.node, Ranges(&self.processors))
    }
}

/// The nodes, cores and caches that this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Nodes with at least one core, in ascending order of their ids. Never empty.
    pub nodes: Vec<Node>,
    /// The part of a level-1 data cache that one core has to itself, in bytes; the least of all cores.
    pub l1d_bytes: usize,
    /// The part of a level-2 cache that one core has to itself, in bytes; the least of all cores.
    pub l2_bytes: usize,
    /// One whole level-3 cache, in bytes, however many cores share it; the least of all cores.
    pub l3_bytes: usize,
    /// A cache line, in bytes.
    pub cache_line: usize,
    /// How many threads the system lets this process run at once (the quota of a container, say).
    pub max_threads: usize,
}

impl Topology {
    /// Returns how many workers run well at once: one for each core, and no more than [`Self::max_threads`].
    #[must_use]
    pub fn num_cores(&self) -> usize {
        self.nodes.iter().map(|node| node.cores.len()).sum::<usize>().min(self.max_threads)
    }

    /// Returns the home of a worker when there are `workers` of them.
    ///
    /// Each node gets workers in proportion to its cores, in contiguous runs, so that neighbours share a node, and shares its
    /// cores out among them. With more workers than cores each has one core or sibling thread, and with more than these the
    /// whole node.
    ///
    /// # Panics
    /// When `worker` is not below `workers`.
    #[must_use]
    pub fn home_of(&self, worker: usize, workers: usize) -> Home {
        assert!(worker < workers, "worker {worker} is one of {workers}");
        let total: usize = self.nodes.iter().map(|node| node.cores.len()).sum();
        // The first worker behind `cores` of all cores, rounded to the nearest; the last node ends at `workers`.
        let boundary = |cores: usize| (2 * workers * cores + total) / (2 * total);
        let (mut cores, mut first) = (0, 0);
        for node in &self.nodes {
            cores += node.cores.len();
            let end = boundary(cores);
            if worker < end {
                return Home { node: node.id, processors: node.share(worker - first, end - first) };
            }
            first = end;
        }
        unreachable!("the last node's run ends at the number of workers")
    }
}

/// One line for the caches, then one for each node.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [l1d, l2, l3] = [self.l1d_bytes, self.l2_bytes, self.l3_bytes].map(|bytes| Size(bytes as u64));
        write!(f, "caches: L1d {l1d} and L2 {l2} a core, L3 {l3}, lines of {} bytes", self.cache_line)?;
        for node in &self.nodes {
            let plural = if node.cores.len() == 1 { "" } else { "s" };
            write!(f, "\nnode {}: {} core{plural} ({})", node.id, node.cores.len(), Ranges(&node.cores))?;
            if !node.siblings.is_empty() {
                write!(f, " and sibling threads ({})", Ranges(&node.siblings))?;
            }
            if node.memory_bytes > 0 {
                write!(f, ", {} of memory", Size(node.memory_bytes))?;
            }
        }
        let processors: usize = self.nodes.iter().map(|node| node.cores.len() + node.siblings.len()).sum();
        if self.max_threads < processors {
            write!(f, "\nlimit: {} threads at once", self.max_threads)?;
        }
        Ok(())
    }
}

/// A number of bytes in the largest binary unit that leaves at least 1, one decimal where it is not whole.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, shift) = match self.0 {
            bytes if bytes >> 30 > 0 => ("GiB", 30),
            bytes if bytes >> 20 > 0 => ("MiB", 20),
            _ => ("KiB", 10),
        };
        let decimals = usize::from(self.0 & ((1 << shift) - 1) != 0);
        write!(f, "{:.decimals$} {unit}", self.0 as f64 / (1_u64 << shift) as f64)
    }
}

/// Ascending numbers as the system writes them: `0-3,8`.
struct Ranges<'n>(&'n [usize]);

impl fmt::Display for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, run) in self.0.chunk_by(|a, b| a + 1 == *b).enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                _ => write!(f, "{comma}{}-{}", run[0], run[run.len() - 1])?,
            }
        }
        Ok(())
    }
}

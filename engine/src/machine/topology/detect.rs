//! The topology of this machine, or of one that is made up.

use std::path::Path;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use super::found::Found;
#[cfg(feature = "numa")]
use super::hwloc;
use super::{Node, Topology, quota, sys};

/// Returns how many threads of this process the system runs at once: [`Topology::max_threads`] of this machine.
pub fn most_threads() -> usize {
    static THREADS: LazyLock<usize> = LazyLock::new(|| Topology::detect().max_threads);
    *THREADS
}

impl Topology {
    /// Asks the system.
    ///
    /// A quota of 1.5 processors is two threads: until it is used up, and again in the next period, both run.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(feature = "numa")]
        let found = hwloc::read().finish();
        #[cfg(not(feature = "numa"))]
        let found = None;
        let unknown = || Self::synthetic(1, available_parallelism().map_or(1, |threads| threads.get()));
        let mut topology = found.or_else(|| Self::read(Path::new("/"))).unwrap_or_else(unknown);
        let quota = quota::processors(Path::new("/")).map_or(usize::MAX, |quota| quota.ceil() as usize);
        topology.max_threads = topology.max_threads.min(quota);
        topology
    }

    /// Reads the files of a Linux system below `root` (`sys/devices/system`, `proc/self/status`); what they do not say
    /// gets its default. `None` when they name no processor that this process may use.
    #[must_use]
    pub fn read(root: &Path) -> Option<Self> {
        sys::read(root).finish()
    }

    /// Makes a machine of equal nodes with default caches, for plans and tests. Cores are numbered node by node.
    ///
    /// # Panics
    /// When either number is 0.
    #[must_use]
    pub fn synthetic(num_nodes: usize, cores_per_node: usize) -> Self {
        assert!(num_nodes > 0 && cores_per_node > 0, "a machine has at least one node and one core");
        let cores = |id| (id * cores_per_node..(id + 1) * cores_per_node).collect();
        let nodes = (0..num_nodes).map(|id| (id, Node { id, cores: cores(id), ..Node::default() })).collect();
        let found = Found { nodes, ..Found::default() };
        found.finish().expect("the nodes have cores")
    }
}

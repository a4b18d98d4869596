//! Threads near their memory, on machines with several NUMA nodes (IterStore, section 4.5).
//!
//! A page lies on the node of the thread that first writes to it. So a worker thread is bound to a node before it makes its
//! cache, and the threads of a partition of the keys when they begin; nothing else is needed.

use std::fs;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

const NODES: &str = "/sys/devices/system/node";

/// Returns the processors of each node that has some.
pub(in crate::server) fn nodes() -> Vec<Vec<usize>> {
    let Ok(entries) = fs::read_dir(NODES) else { return Vec::new() };
    let mut nodes: Vec<(usize, Vec<usize>)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            Some((number, processors(&fs::read_to_string(entry.path().join("cpulist")).ok()?)))
        })
        .filter(|(_, processors)| !processors.is_empty())
        .collect();
    nodes.sort_unstable();
    nodes.into_iter().map(|(_, processors)| processors).collect()
}

/// Binds the calling thread, one of `threads`, to a node, so that each node has as many; does nothing if there is one node.
pub(in crate::server) fn bind_thread(thread: usize, threads: usize) {
    let nodes = nodes();
    if nodes.len() < 2 {
        return;
    }
    let mut set = CpuSet::new();
    let bound = nodes[thread * nodes.len() / threads]
        .iter()
        .try_for_each(|&processor| set.set(processor))
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    if let Err(error) = bound {
        tracing::warn!(%error, thread, "a thread could not be bound to its NUMA node");
    }
}

/// Reads a list such as `0-3,8`.
fn processors(list: &str) -> Vec<usize> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::{nodes, processors};

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(processors("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(processors("5"), [5]);
        assert!(processors("\n").is_empty());
    }

    #[test]
    fn each_processor_is_on_one_node() {
        let mut all: Vec<usize> = nodes().concat();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}

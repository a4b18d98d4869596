//! Facts about a machine, from whatever source, before they become a topology.

use std::collections::BTreeMap;

use super::{DEFAULT_CACHE_LINE, DEFAULT_L1D_BYTES, DEFAULT_L2_BYTES, DEFAULT_L3_BYTES, Node, Topology};

/// What a source of facts could tell, before defaults fill the gaps.
#[derive(Default)]
pub(super) struct Found {
    pub nodes: BTreeMap<usize, Node>,
    pub l1d_bytes: Option<usize>,
    pub l2_bytes: Option<usize>,
    pub l3_bytes: Option<usize>,
    pub cache_line: Option<usize>,
}

impl Found {
    /// Adds a core of a node by the hardware threads that may be used, ascending.
    pub fn add_core(&mut self, node: usize, threads: &[usize]) {
        if let [first, siblings @ ..] = threads {
            let node = self.nodes.entry(node).or_insert(Node { id: node, ..Node::default() });
            node.cores.push(*first);
            node.siblings.extend(siblings);
        }
    }

    /// Adds a data or unified cache of a level, `sharers` cores of which share `bytes` bytes.
    pub fn add_cache(&mut self, level: usize, bytes: usize, sharers: usize, line: Option<usize>) {
        let (slot, bytes) = match level {
            1 => (&mut self.l1d_bytes, bytes / sharers.max(1)),
            2 => (&mut self.l2_bytes, bytes / sharers.max(1)),
            3 => (&mut self.l3_bytes, bytes),
            _ => return,
        };
        if bytes > 0 {
            *slot = Some(slot.map_or(bytes, |least| least.min(bytes)));
        }
        self.cache_line = self.cache_line.or(line.filter(|bytes| bytes.is_power_of_two()));
    }

    /// Fills the gaps; `None` when no core was found.
    pub fn finish(self) -> Option<Topology> {
        let mut nodes: Vec<Node> = self.nodes.into_values().filter(|node| !node.cores.is_empty()).collect();
        for node in &mut nodes {
            node.cores.sort_unstable();
            node.siblings.sort_unstable();
        }
        let max_threads = nodes.iter().map(|node| node.cores.len() + node.siblings.len()).sum();
        (max_threads > 0).then_some(Topology {
            nodes,
            l1d_bytes: self.l1d_bytes.unwrap_or(DEFAULT_L1D_BYTES),
            l2_bytes: self.l2_bytes.unwrap_or(DEFAULT_L2_BYTES),
            l3_bytes: self.l3_bytes.unwrap_or(DEFAULT_L3_BYTES),
            cache_line: self.cache_line.unwrap_or(DEFAULT_CACHE_LINE),
            max_threads,
        })
    }
}

//! The topology from hwloc.

use std::sync::LazyLock;

use hwlocality::bitmap::BitmapIndex;
use hwlocality::cpu::binding::CpuBindingFlags;
use hwlocality::memory::binding::{MemoryBindingFlags, MemoryBindingPolicy};
use hwlocality::memory::nodeset::NodeSet;
use hwlocality::object::TopologyObject;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::types::ObjectType;

use super::found::Found;

/// Discovery takes milliseconds and its result does not change: once is enough.
static MACHINE: LazyLock<Option<hwlocality::Topology>> = LazyLock::new(|| hwlocality::Topology::new().ok());

/// Returns what hwloc found; nothing when it fails.
pub(super) fn read() -> Found {
    MACHINE.as_ref().map_or_else(Found::default, read_machine)
}

/// Takes what the current thread writes first from a node's memory while there is some; returns whether the system agrees.
pub(in crate::machine) fn bind_memory_of_current_thread(node: usize) -> bool {
    let (Some(machine), Ok(node)) = (MACHINE.as_ref(), BitmapIndex::try_from(node)) else { return false };
    let mut nodes = NodeSet::new();
    nodes.set(node);
    machine.bind_memory(&nodes, MemoryBindingPolicy::Bind, MemoryBindingFlags::THREAD).is_ok()
}

fn read_machine(machine: &hwlocality::Topology) -> Found {
    let mut found = Found::default();
    // hwloc leaves out what control groups forbid, but not what affinity does.
    let allowed = machine.cpu_binding(CpuBindingFlags::PROCESS).unwrap_or_else(|_| machine.cpuset().clone_target());
    // Some systems show processors without cores.
    let unit =
        if machine.objects_with_type(ObjectType::Core).next().is_some() { ObjectType::Core } else { ObjectType::PU };
    for core in machine.objects_with_type(unit) {
        let Some(set) = core.cpuset() else { continue };
        let threads: Vec<usize> = set.iter_set().filter(|&i| allowed.is_set(i)).map(usize::from).collect();
        if threads.is_empty() {
            continue;
        }
        let node = core.nodeset().and_then(|nodes| nodes.first_set()).map_or(0, usize::from);
        found.add_core(node, &threads);
        for cache in core.ancestors() {
            add_cache(machine, unit, cache, &mut found);
        }
    }
    for object in machine.objects_with_type(ObjectType::NUMANode) {
        let node = object.os_index().and_then(|id| found.nodes.get_mut(&id));
        if let (Some(node), Some(ObjectAttributes::NUMANode(memory))) = (node, object.attributes()) {
            node.memory_bytes = memory.local_memory().map_or(0, |bytes| bytes.get());
        }
    }
    found
}

/// Adds an ancestor of a core when it is a cache of data.
fn add_cache(machine: &hwlocality::Topology, unit: ObjectType, object: &TopologyObject, found: &mut Found) {
    if !object.object_type().is_cpu_data_cache() {
        return;
    }
    let (Some(ObjectAttributes::Cache(cache)), Some(set)) = (object.attributes(), object.cpuset()) else { return };
    let bytes = cache.size().map_or(0, |bytes| usize::try_from(bytes.get()).unwrap_or(usize::MAX));
    let sharers = machine.objects_inside_cpuset_with_type(set, unit).count();
    found.add_cache(cache.depth(), bytes, sharers, cache.line_size().map(|bytes| bytes.get()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Node, Topology};

    /// In a thread of its own: the policy stays with it.
    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_taken_from_the_home_of_a_worker() {
        let of_a_thread = std::thread::spawn(|| {
            let machine = MACHINE.as_ref().expect("the machine is read");
            let node = Topology::detect().nodes[0].id;
            assert!(bind_memory_of_current_thread(node) && !bind_memory_of_current_thread(usize::MAX));
            let (nodes, policy) = machine.memory_binding::<NodeSet>(MemoryBindingFlags::THREAD).unwrap();
            (nodes.iter_set().map(usize::from).collect::<Vec<_>>(), policy, node)
        });
        let (nodes, policy, node) = of_a_thread.join().unwrap();
        assert_eq!((nodes, policy), (vec![node], Some(MemoryBindingPolicy::Bind)));
    }

    /// hwloc and the reader of the system's files tell the same.
    #[test]
    #[cfg(target_os = "linux")]
    fn hwloc_agrees_with_the_files() {
        let read = Topology::read(std::path::Path::new("/")).expect("Linux has files of its topology");
        let processors = |topology: &Topology| {
            topology.nodes.iter().map(|node| (node.id, node.cores.clone(), node.siblings.clone())).collect::<Vec<_>>()
        };
        assert_eq!(processors(&Topology::detect()), processors(&read));
    }

    #[test]
    fn two_nodes_of_hwloc_are_read() {
        let machine = "NUMANode:2(memory=1GiB) L3Cache:1(size=24MiB) L2Cache:1(size=2MiB) Core:2 PU:2";
        let machine = hwlocality::Topology::builder().from_synthetic(machine).unwrap().build().unwrap();
        let topology = read_machine(&machine).finish().unwrap();
        let node = |id, cores: [usize; 2], siblings: [usize; 2]| Node {
            id,
            cores: cores.into(),
            siblings: siblings.into(),
            memory_bytes: 1 << 30,
        };
        assert_eq!(topology.nodes, [node(0, [0, 2], [1, 3]), node(1, [4, 6], [5, 7])]);
        assert_eq!((topology.l2_bytes, topology.l3_bytes), (1 << 20, 24 << 20), "two cores share an L2");
    }
}

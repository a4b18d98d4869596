//! Topologies read from fake systems, and the homes that workers get on them.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use megagrid_engine::topology::{DEFAULT_L1D_BYTES, DEFAULT_L2_BYTES, DEFAULT_L3_BYTES, Home, Node, Topology};
use proptest::prelude::*;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Two nodes; each has two cores of two threads. Threads of node 0: (0, 4) (1, 5); of node 1: (2, 6) (3, 7).
/// Each core has its own L1, the two cores of a node share L2 and L3.
fn two_nodes(root: &Path) {
    write(root, "sys/devices/system/cpu/online", "0-7\n");
    for (id, processors) in ["0-1,4-5", "2-3,6-7"].into_iter().enumerate() {
        let node = format!("sys/devices/system/node/node{id}");
        write(root, &format!("{node}/cpulist"), processors);
        write(
            root,
            &format!("{node}/meminfo"),
            &format!("Node {id} MemTotal:  {} kB\nNode {id} MemFree: 1 kB\n", 4 << 20),
        );
        for cpu in [0, 1, 4, 5].map(|cpu| cpu + 2 * id) {
            let siblings = format!("{},{}", cpu % 4, cpu % 4 + 4);
            write(root, &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), &siblings);
            let caches = [("1", "Data", "32K", &*siblings), ("1", "Instruction", "1K", &siblings)];
            let caches =
                caches.into_iter().chain([("2", "Unified", "2M", processors), ("3", "Unified", "24M", processors)]);
            for (index, (level, kind, size, shared)) in caches.enumerate() {
                let cache = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                write(root, &format!("{cache}/level"), level);
                write(root, &format!("{cache}/type"), kind);
                write(root, &format!("{cache}/size"), size);
                write(root, &format!("{cache}/shared_cpu_list"), shared);
                write(root, &format!("{cache}/coherency_line_size"), "128");
            }
        }
    }
    // A node of memory without processors.
    write(root, "sys/devices/system/node/node2/cpulist", "\n");
    write(root, "sys/devices/system/node/possible", "0-2\n");
}

#[test]
fn two_nodes_with_sibling_threads() {
    let root = tempfile::tempdir().unwrap();
    two_nodes(root.path());
    let topology = Topology::read(root.path()).unwrap();
    let node = |id, cores: [usize; 2], siblings: [usize; 2]| Node {
        id,
        cores: cores.into(),
        siblings: siblings.into(),
        memory_bytes: 4 << 30,
    };
    assert_eq!(topology.nodes, [node(0, [0, 1], [4, 5]), node(1, [2, 3], [6, 7])]);
    assert_eq!((topology.l1d_bytes, topology.l3_bytes, topology.cache_line), (32 << 10, 24 << 20, 128));
    assert_eq!(topology.l2_bytes, 1 << 20, "two cores share 2 MiB");
    assert_eq!((topology.num_cores(), topology.max_threads), (4, 8));
    assert_eq!(
        topology.to_string(),
        "caches: L1d 32 KiB and L2 1 MiB a core, L3 24 MiB, lines of 128 bytes\n\
         node 0: 2 cores (0-1) and sibling threads (4-5), 4 GiB of memory\n\
         node 1: 2 cores (2-3) and sibling threads (6-7), 4 GiB of memory"
    );
}

#[test]
fn only_allowed_processors_count() {
    let root = tempfile::tempdir().unwrap();
    two_nodes(root.path());
    write(
        root.path(),
        "proc/self/status",
        "Name:\tx\nCpus_allowed:\tb4\nCpus_allowed_list:\t3,5,7\nMems_allowed_list:\t0\n",
    );
    let topology = Topology::read(root.path()).unwrap();
    let cores: Vec<_> = topology.nodes.iter().map(|node| (node.id, &*node.cores, &*node.siblings)).collect();
    assert_eq!(cores, [(0, &[5][..], &[][..]), (1, &[3], &[7])]);
    write(root.path(), "proc/self/status", "Cpus_allowed_list:\t6\n");
    let topology = Topology::read(root.path()).unwrap();
    assert_eq!((topology.nodes.len(), topology.nodes[0].id, &*topology.nodes[0].cores), (1, 1, &[6][..]));
    write(root.path(), "proc/self/status", "Cpus_allowed_list:\t100\n");
    assert_eq!(Topology::read(root.path()), None);
}

#[test]
fn missing_files_get_defaults() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(Topology::read(root.path()), None);
    write(root.path(), "sys/devices/system/cpu/online", "0,2-3");
    write(root.path(), "proc/meminfo", "MemTotal: 2048 kB\n");
    let topology = Topology::read(root.path()).unwrap();
    assert_eq!(topology.nodes, [Node { id: 0, cores: vec![0, 2, 3], siblings: vec![], memory_bytes: 2 << 20 }]);
    let caches = (topology.l1d_bytes, topology.l2_bytes, topology.l3_bytes, topology.cache_line);
    assert_eq!(caches, (DEFAULT_L1D_BYTES, DEFAULT_L2_BYTES, DEFAULT_L3_BYTES, 64));
    assert_eq!(topology.to_string().lines().nth(1), Some("node 0: 3 cores (0,2-3), 2 MiB of memory"));
}

#[test]
fn broken_files_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    two_nodes(root.path());
    write(root.path(), "sys/devices/system/node/node1/cpulist", "2-x");
    write(root.path(), "sys/devices/system/cpu/cpu0/cache/index2/size", "many");
    write(root.path(), "sys/devices/system/cpu/cpu1/cache/index3/size", "0K");
    write(root.path(), "sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "");
    let topology = Topology::read(root.path()).unwrap();
    assert_eq!(topology.nodes.len(), 1, "processors of no node are on the first");
    assert_eq!((topology.num_cores(), topology.l3_bytes), (4, 24 << 20));
}

#[test]
fn homes_on_two_nodes() {
    let topology = Topology::synthetic(2, 4);
    let homes = |workers| (0..workers).map(|worker| topology.home_of(worker, workers).to_string()).collect::<Vec<_>>();
    assert_eq!(homes(1), ["node 0, processors 0-3"]);
    assert_eq!(homes(2), ["node 0, processors 0-3", "node 1, processors 4-7"]);
    assert_eq!(homes(3), ["node 0, processors 0-1", "node 0, processors 2-3", "node 1, processors 4-7"]);
    assert_eq!(
        homes(8)[2..6],
        ["node 0, processor 2", "node 0, processor 3", "node 1, processor 4", "node 1, processor 5"]
    );
    let many = homes(10);
    assert_eq!(many[4], "node 0, processors 0-3", "more workers than processors share them all");
    assert_eq!(many[5], "node 1, processors 4-7");
}

#[test]
fn siblings_come_after_cores() {
    let root = tempfile::tempdir().unwrap();
    two_nodes(root.path());
    let topology = Topology::read(root.path()).unwrap();
    let of = |worker, workers| {
        let home = topology.home_of(worker, workers);
        (home.node, home.processors)
    };
    let one = |processor| (usize::from([2, 3, 6, 7].contains(&processor)), vec![processor]);
    assert_eq!((0..8).map(|worker| of(worker, 8)).collect::<Vec<_>>(), [0, 1, 4, 5, 2, 3, 6, 7].map(one));
    assert_eq!(of(5, 6), one(6));
}

#[test]
fn this_machine_has_a_core() {
    let topology = Topology::detect();
    assert!(topology.num_cores() >= 1);
    assert!(topology.max_threads <= std::thread::available_parallelism().unwrap().get());
    assert!(topology.l1d_bytes >= 1 << 10 && topology.l2_bytes >= 16 << 10 && topology.cache_line.is_power_of_two());
    eprintln!("{topology}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn homes_are_contiguous_balanced_and_distinct(sizes in prop::collection::vec(1..9_usize, 1..6), workers in 1..60_usize) {
        let mut topology = Topology::synthetic(sizes.len(), 8);
        for (node, size) in topology.nodes.iter_mut().zip(&sizes) {
            node.cores.truncate(*size);
        }
        let homes: Vec<_> = (0..workers).map(|worker| topology.home_of(worker, workers)).collect();
        prop_assert!(homes.is_sorted_by_key(|home| home.node), "runs are contiguous: {homes:?}");
        let total: usize = sizes.iter().sum();
        if workers <= total {
            let all: Vec<_> = homes.iter().flat_map(|home| &home.processors).collect();
            prop_assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "no core twice: {:?}", &homes);
        }
        let mut counts = BTreeMap::new();
        for Home { node, processors } in &homes {
            prop_assert!(!processors.is_empty() && processors.iter().all(|core| topology.nodes[*node].cores.contains(core)));
            *counts.entry(*node).or_insert(0_usize) += 1;
        }
        for (node, size) in sizes.iter().enumerate() {
            let (count, fair) = (counts.get(&node).copied().unwrap_or(0) as f64, (workers * size) as f64 / total as f64);
            prop_assert!((count - fair).abs() <= 1.0, "node {node} has {count} workers, {fair} would be fair");
        }
    }
}

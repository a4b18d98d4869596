//! The topology from the files of a Linux system, below a root that tests choose.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::found::Found;
use crate::machine::os::field;

/// Processors beyond this number are a broken file, not a machine.
const MAX_PROCESSORS: usize = 1 << 16;

/// Reads what is there; a missing or broken file leaves its facts out.
pub(super) fn read(root: &Path) -> Found {
    let mut found = Found::default();
    let system = root.join("sys/devices/system");
    let processors = usable_processors(root);
    let node_of = read_nodes(&system.join("node"), &mut found);
    for (first, threads) in cores(&system, &processors) {
        found.add_core(node_of.get(&first).copied().unwrap_or(0), &threads);
        read_caches(&system, first, &mut found);
    }
    // Without files for nodes all memory is one node's.
    if let (true, Some(node)) = (node_of.is_empty(), found.nodes.get_mut(&0)) {
        let text = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
        node.memory_bytes = field(&text, "MemTotal:").unwrap_or(0) << 10;
    }
    found
}

/// Returns the processors that are online and that affinity and control groups leave to this process.
fn usable_processors(root: &Path) -> Vec<usize> {
    let online = read_list(&root.join("sys/devices/system/cpu/online")).unwrap_or_default();
    let status = fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).and_then(parse_list);
    match allowed {
        Some(allowed) => online.into_iter().filter(|processor| allowed.binary_search(processor).is_ok()).collect(),
        None => online,
    }
}

/// Groups the usable processors by core: the first of each, and all of its threads.
fn cores(system: &Path, processors: &[usize]) -> Vec<(usize, Vec<usize>)> {
    let mut cores: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &processor in processors {
        let name = siblings_of(system, processor).first().copied().unwrap_or(processor);
        cores.entry(name).or_default().push(processor);
    }
    cores.into_values().map(|threads| (threads[0], threads)).collect()
}

/// Returns the hardware threads of the core of a processor, usable or not, itself among them.
fn siblings_of(system: &Path, processor: usize) -> Vec<usize> {
    let path = system.join(format!("cpu/cpu{processor}/topology/thread_siblings_list"));
    read_list(&path).filter(|threads| threads.contains(&processor)).unwrap_or_else(|| vec![processor])
}

/// Reads the memory of the nodes; returns the node of each processor.
fn read_nodes(folder: &Path, found: &mut Found) -> BTreeMap<usize, usize> {
    let mut node_of = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix("node")).and_then(|id| id.parse::<usize>().ok());
        let (Some(id), Some(processors)) = (id, read_list(&entry.path().join("cpulist"))) else { continue };
        node_of.extend(processors.into_iter().map(|processor| (processor, id)));
        let text = fs::read_to_string(entry.path().join("meminfo")).unwrap_or_default();
        // Each line begins with the node: `Node 0 MemTotal: 123 kB`.
        let total = text.split_once("MemTotal:").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
        let node = found.nodes.entry(id).or_default();
        (node.id, node.memory_bytes) = (id, total.unwrap_or(0_u64) << 10);
    }
    node_of
}

/// Reads the data and unified caches above a processor.
fn read_caches(system: &Path, processor: usize, found: &mut Found) {
    let threads = siblings_of(system, processor).len();
    // Indices are dense: the first that is missing ends them.
    for index in 0.. {
        let folder = system.join(format!("cpu/cpu{processor}/cache/index{index}"));
        let text = |name| fs::read_to_string(folder.join(name)).ok();
        let (Some(level), Some(size), Some(kind)) = (text("level"), text("size"), text("type")) else { break };
        let (Ok(level), Some(bytes)) = (level.trim().parse(), parse_size(&size)) else { continue };
        if kind.trim() == "Instruction" {
            continue;
        }
        let sharers = read_list(&folder.join("shared_cpu_list")).map_or(1, |sharers| sharers.len() / threads);
        let line = text("coherency_line_size").and_then(|line| line.trim().parse().ok());
        found.add_cache(level, bytes, sharers, line);
    }
}

fn read_list(path: &Path) -> Option<Vec<usize>> {
    parse_list(&fs::read_to_string(path).ok()?)
}

/// Parses the kernel's list of numbers, `0-3,8`, in ascending order; `None` when it is not one.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<usize>().ok()?, last.trim().parse::<usize>().ok()?);
        if last >= MAX_PROCESSORS {
            return None;
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

/// Parses a size as the kernel writes caches: `48K`, `2M` or plain bytes.
fn parse_size(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_or_refused() {
        assert_eq!(parse_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_list("\t5,1,1-2"), Some(vec![1, 2, 5]));
        assert_eq!(parse_list("\n"), Some(vec![]));
        for broken in ["a", "1-", "3-x", "0-99999999999", "-1"] {
            assert_eq!(parse_list(broken), None, "{broken}");
        }
    }

    #[test]
    fn sizes_are_parsed_or_refused() {
        assert_eq!(parse_size("48K\n"), Some(48 << 10));
        assert_eq!(parse_size("2M"), Some(2 << 20));
        assert_eq!(parse_size("512"), Some(512));
        for broken in ["", "K", "4G", "-1K", "99999999999999999999K", "é"] {
            assert_eq!(parse_size(broken), None, "{broken}");
        }
    }
}

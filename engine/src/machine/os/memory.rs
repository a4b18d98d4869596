//! Memory left and memory used, from the files of a Linux system.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::groups::{Version, groups};

/// Returns the bytes of memory that this process can still take without swapping; `None` where the system does not say.
///
/// The least of what the machine has available and what each control group around the process (version 1 or 2) leaves
/// below its limit, where cached file pages count as free because the kernel drops them first.
#[must_use]
pub fn available_memory_bytes() -> Option<u64> {
    available_memory_below(Path::new("/"))
}

/// [`available_memory_bytes`] from the system files below `root`.
fn available_memory_below(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let machine = field(&text, "MemAvailable:").map(|kib| kib << 10);
    machine.into_iter().chain(groups(root, "memory").into_iter().filter_map(room_of)).min()
}

/// Returns the bytes between a group's usage and its limit; `None` when it has no limit.
fn room_of((version, group): (Version, PathBuf)) -> Option<u64> {
    // Limit, usage, and which lines of `memory.stat` count cached file pages.
    let (limit, usage, cached) = match version {
        Version::First => {
            ("memory.limit_in_bytes", "memory.usage_in_bytes", ["total_active_file", "total_inactive_file"])
        }
        Version::Second => ("memory.max", "memory.current", ["active_file", "inactive_file"]),
    };
    let number = |name| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let (limit, usage) = (number(limit)?, number(usage)?);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cached: u64 = cached.iter().filter_map(|name| field(&stat, name)).sum();
    Some(limit.saturating_sub(usage.saturating_sub(cached)))
}

/// Returns the most memory that this process has ever had resident, in bytes.
#[must_use]
pub fn peak_rss_bytes() -> Option<u64> {
    Some(field(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")? << 10)
}

/// Returns the number after `name` in a file of names and numbers.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    let mut words = text.lines().map(str::split_whitespace).find(|words| words.clone().next() == Some(name))?;
    words.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    #[cfg_attr(miri, ignore = "writes files")]
    fn memory_left_is_the_least_of_machine_and_groups() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(available_memory_below(root), None);
        write(root, "proc/meminfo", "MemTotal:  9000 kB\nMemFree: 1 kB\nMemAvailable:    8000 kB\n");
        assert_eq!(available_memory_below(root), Some(8000 << 10));

        write(root, "proc/self/cgroup", "3:cpuset:/\n0::/outer/inner\n");
        write(root, "sys/fs/cgroup/outer/inner/memory.max", "max\n");
        write(root, "sys/fs/cgroup/outer/inner/memory.current", "1000\n");
        assert_eq!(available_memory_below(root), Some(8000 << 10), "a group without a limit");
        write(root, "sys/fs/cgroup/outer/memory.max", "5000\n");
        write(root, "sys/fs/cgroup/outer/memory.current", "4000\n");
        assert_eq!(available_memory_below(root), Some(1000), "the limit of an outer group");
        write(root, "sys/fs/cgroup/outer/memory.stat", "anon 1\nactive_file 300\ninactive_file 400\nactive_anon 9\n");
        assert_eq!(available_memory_below(root), Some(1700), "cached files count as free");
        write(root, "sys/fs/cgroup/outer/memory.current", "9999\n");
        assert_eq!(available_memory_below(root), Some(0), "more than allowed is in use");
    }

    #[test]
    #[cfg_attr(miri, ignore = "writes files")]
    fn groups_of_version_1_are_found_at_the_root_of_a_container() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "proc/self/cgroup", "4:hugetlb,memory:/docker/1234\nbroken line\n");
        write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n");
        write(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "2500\n");
        write(root, "sys/fs/cgroup/memory/memory.stat", "inactive_file 9\ntotal_inactive_file 500\n");
        assert_eq!(available_memory_below(root), Some(4000));
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn this_system_answers() {
        assert!(available_memory_bytes().unwrap() > 0);
        assert!(peak_rss_bytes().unwrap() > 1 << 20);
    }
}

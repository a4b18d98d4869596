//! The quota of processor time that control groups leave this process.

use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::groups::{Version, groups};

/// Returns the processors that the tightest quota around this process comes to, from the system files below `root`; `None`
/// where there is none.
pub fn processors(root: &Path) -> Option<f64> {
    let quota = |(version, group): (Version, PathBuf)| {
        let text = |name: &str| fs::read_to_string(group.join(name)).ok();
        match version {
            Version::First => ratio(&text("cpu.cfs_quota_us")?, &text("cpu.cfs_period_us")?),
            Version::Second => text("cpu.max")?.split_once(' ').and_then(|(quota, period)| ratio(quota, period)),
        }
    };
    groups(root, "cpu").into_iter().filter_map(quota).min_by(f64::total_cmp)
}

/// Divides two numbers of microseconds; "max" and −1 stand for no quota.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<i64>().ok().filter(|&number| number > 0);
    Some(number(quota)? as f64 / number(period)? as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "writes files")]
    fn the_tightest_quota_of_either_version_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(processors(root), None);
        write("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/old\n0::/outer/inner\n");
        write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
        assert_eq!(processors(root), None, "a group without a quota");
        write("sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
        assert_eq!(processors(root), Some(2.5), "the quota of an outer group");
        write("sys/fs/cgroup/cpu/old/cpu.cfs_quota_us", "-1\n");
        write("sys/fs/cgroup/cpu/old/cpu.cfs_period_us", "100000\n");
        assert_eq!(processors(root), Some(2.5));
        write("sys/fs/cgroup/cpu/old/cpu.cfs_quota_us", "150000\n");
        assert_eq!(processors(root), Some(1.5));
        write("sys/fs/cgroup/cpu/old/cpu.cfs_quota_us", "nonsense\n");
        assert_eq!(processors(root), Some(2.5));
    }
}

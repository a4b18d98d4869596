//! The quota of processor time that control groups leave this process.

use std::fs;
use std::path::Path;

/// Returns the processors that the tightest quota around this process comes to, from the system files below `root`; `None`
/// where there is none.
pub fn processors(root: &Path) -> Option<f64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut quotas = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let is_first_version = controllers.split(',').any(|name| name == "cpu");
        if !is_first_version && !controllers.is_empty() {
            continue;
        }
        let mount = root.join(if is_first_version { "sys/fs/cgroup/cpu" } else { "sys/fs/cgroup" });
        // A container often sees its own group as the root of the mount, whatever the path says: the last ancestor, "".
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let text = |name: &str| fs::read_to_string(mount.join(group).join(name)).ok();
            quotas.extend(if is_first_version {
                text("cpu.cfs_quota_us")
                    .zip(text("cpu.cfs_period_us"))
                    .and_then(|(quota, period)| ratio(&quota, &period))
            } else {
                text("cpu.max").and_then(|max| max.split_once(' ').and_then(|(quota, period)| ratio(quota, period)))
            });
        }
    }
    quotas.into_iter().min_by(f64::total_cmp)
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

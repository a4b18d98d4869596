//! The control groups of versions 1 and 2 around this process.

use std::fs;
use std::path::{Path, PathBuf};

/// Which version a group is of: their files have other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy for each controller.
    First,
    /// One hierarchy for all.
    Second,
}

/// Returns the folder of each group that confines this process by a controller, from the system files below `root`.
pub fn groups(root: &Path, controller: &str) -> Vec<(Version, PathBuf)> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mounts = root.join("sys/fs/cgroup");
    let mut groups = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (version, mount) = match controllers {
            "" => (Version::Second, mounts.clone()),
            _ if controllers.split(',').any(|name| name == controller) => (Version::First, mounts.join(controller)),
            _ => continue,
        };
        // A container often sees its own group as the root of the mount, whatever the path says: the last ancestor, "".
        let ancestors = Path::new(path.trim_start_matches('/')).ancestors();
        groups.extend(ancestors.map(|group| (version, mount.join(group))));
    }
    groups
}

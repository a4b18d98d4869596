//! What was warned of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use megagrid_partition::parallel::lock;

/// Tells whether users are warned of an input for the first time, of this matter: each of many virtual workers reads the same.
pub(crate) fn is_first(path: &Path, matter: &'static str) -> bool {
    static WARNED: Mutex<BTreeSet<(PathBuf, &str)>> = Mutex::new(BTreeSet::new());
    lock(&WARNED).insert((path.to_path_buf(), matter))
}

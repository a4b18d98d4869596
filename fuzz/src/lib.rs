//! What the targets have in common: seeds, and bytes as a file.

use std::path::Path;
use std::{env, fs, process};

/// Writes the inputs that a target begins with to the directory that `FUZZ_SEEDS` names, if it names one.
///
/// # Panics
/// Where they cannot be written.
pub fn seed<S: AsRef<[u8]>>(seeds: &[S]) {
    let Some(directory) = env::var_os("FUZZ_SEEDS") else { return };
    for (at, seed) in seeds.iter().enumerate() {
        fs::write(Path::new(&directory).join(format!("seed-{at}")), seed).expect("FUZZ_SEEDS is a directory");
    }
}

/// Calls `read` with a file that holds the bytes.
///
/// # Panics
/// Where it cannot be written.
pub fn in_file<R>(bytes: &[u8], ending: &str, read: impl FnOnce(&Path) -> R) -> R {
    let path = env::temp_dir().join(format!("megagrid-fuzz-{}.{ending}", process::id()));
    fs::write(&path, bytes).expect("the directory for temporary files can be written to");
    read(&path)
}

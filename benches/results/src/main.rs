//! Writes the tables of a results file into README.md and docs/benchmarks.md: `cargo benchmarks [FILE]`.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use megagrid_results::{Results, documents, newest};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = env::args_os().nth(1).map_or_else(|| newest(&root), |file| Ok(PathBuf::from(file)))?;
    for (path, text) in documents(&root, &Results::read(&file)?)? {
        fs::write(&path, text)?;
        println!("{}: tables of {}", path.display(), file.display());
    }
    Ok(())
}

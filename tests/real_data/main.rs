//! The project's real data sets: their counts as published, and what is trained on them, against independent computations
//! and published qualities. Where the data are absent the tests are reported as ignored.

#[path = "../command.rs"]
mod command;
mod formats;
mod models;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A test, given the folder of the data sets.
type Test = fn(&Path);

fn main() -> ExitCode {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data"));
    let is_absent = !data.is_dir();
    if is_absent {
        eprintln!("skipped: no data sets in {}", data.display());
    }
    let trial = |&(name, test): &(&str, Test)| {
        let data = data.clone();
        let run = move || {
            test(&data);
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(is_absent)
    };
    let tests = formats::TESTS.iter().chain(models::TESTS).map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

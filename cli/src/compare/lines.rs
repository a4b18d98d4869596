//! How many lines a user writes for an algorithm on each system.

use megagrid_baselines::System as Baseline;

use super::systems::System;

/// Returns the lines of code in the file that is the algorithm on a system, without comments, attributes, imports and tests. What
/// all systems share, parameters and objective say, is in other files, but for PageRank on Megagrid.
pub fn of(system: System, command: &str) -> Option<usize> {
    use Baseline::{Gas, GasFaithful, PsNaive};
    macro_rules! sources {
        ($megagrid:literal, $of:literal, $naive:literal) => {
            match system {
                System::Megagrid => include_str!(concat!("../../../algorithms/src/", $megagrid)),
                System::Baseline(Gas) => include_str!(concat!("../../../baselines/src/apps/", $of, "/gas.rs")),
                System::Baseline(GasFaithful) => {
                    include_str!(concat!("../../../baselines/src/apps/", $of, "/faithful.rs"))
                }
                System::Baseline(PsNaive) => include_str!(concat!("../../../baselines/src/apps/", $of, $naive)),
                System::Baseline(_) => include_str!(concat!("../../../baselines/src/apps/", $of, "/server.rs")),
            }
        };
    }
    Some(count(match command {
        "pagerank" => sources!("pagerank.rs", "pagerank", "/server.rs"),
        "mf" => sources!("mf/batch.rs", "mf", "/naive.rs"),
        "lda" => sources!("lda/dense.rs", "lda", "/server.rs"),
        "blockpg" => sources!("blockpg/mod.rs", "blockpg", "/server.rs"),
        _ => return None,
    }))
}

/// Counts the lines that hold code, up to the tests.
fn count(source: &str) -> usize {
    let code = source.split("#[cfg(test)]").next().unwrap_or(source);
    let mut in_import = false;
    let counts = |line: &&str| {
        let line = line.trim();
        in_import = in_import || line.starts_with("use ") || line.starts_with("pub use ");
        let counts = !(in_import || line.is_empty() || line.starts_with("//") || line.starts_with("#["));
        in_import = in_import && !line.ends_with(';');
        counts
    };
    code.lines().filter(counts).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_alone_counts() {
        let source = "//! Text.\nuse a::{\n    b,\n};\n\n/// Text.\n#[derive(Debug)]\nstruct A;\nfn f() {\n    g(); // g\n}\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(count(source), 4);
    }

    #[test]
    fn every_system_has_its_lines() {
        for command in ["pagerank", "mf", "lda", "blockpg"] {
            for system in System::all() {
                assert!(of(system, command).is_some_and(|lines| lines > 20), "{command} on {system}");
            }
        }
    }
}

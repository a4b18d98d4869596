//! How many lines a user writes for an algorithm on each system.

use megagrid_baselines::Algorithm;
use megagrid_baselines::apps::user_lines;

use super::systems::System;

/// Returns the lines; `None` where they are not counted.
pub fn of(system: System, command: &str) -> Option<usize> {
    let algorithm = match command {
        "pagerank" => Algorithm::PageRank,
        "mf" => Algorithm::Mf,
        "lda" => Algorithm::Lda,
        _ => Algorithm::BlockPg,
    };
    match system {
        System::Baseline(system) => user_lines(system, algorithm),
        System::Megagrid => None,
    }
}

//! The rows of the table "Published results and their commands" in docs/benchmarks.md.

/// A published result, and what re-enacts it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its number in the table.
    pub number: u32,
    /// What was published.
    pub published: &'static str,
    /// What runs, in turn.
    pub steps: &'static [Step],
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A program that writes its findings with `--json FILE`: words after `cargo`.
    Bench(&'static str),
    /// Tests, which hold or not: words after `cargo`.
    Tests(&'static str),
    /// A comparison with parameter servers.
    Compare {
        /// What is trained.
        algorithm: &'static str,
        /// The input, below `../shared/data`.
        input: &'static str,
        /// Its options.
        options: &'static str,
        /// What was published, in the words of a verdict.
        published: &'static str,
    },
}

impl Step {
    /// Returns the command as a reader types it.
    #[must_use]
    pub fn command(&self) -> String {
        match self {
            Self::Bench(words) | Self::Tests(words) => format!("cargo {words}"),
            Self::Compare { algorithm, input, options, .. } => {
                format!("megagrid compare {algorithm} ../shared/data/{input} --systems {SERVERS} {options}")
            }
        }
    }
}

/// Megagrid and the parameter servers.
const SERVERS: &str = "megagrid,ps-naive,lazytable,essp,iterstore";

use Step::{Bench, Compare, Tests};

const fn row(number: u32, published: &'static str, steps: &'static [Step]) -> Row {
    Row { number, published, steps }
}

/// All rows.
pub static ROWS: [Row; 26] = [
    row(1, "TuX² Figure 8, arrays against hash maps", &[Bench("reenact 1"), Bench("ablation")]),
    row(2, "TuX² Figure 9, heterogeneous data", &[Bench("heterogeneity")]),
    row(3, "TuX² Figures 10 to 12, slack and batch sizes", &[Bench("reenact 3")]),
    row(4, "TuX² Figure 13, MF against GAS", &[Bench("reenact 4")]),
    row(
        5,
        "TuX² Figure 14, against parameter servers",
        &[
            Bench("reenact 5"),
            Compare {
                algorithm: "lda",
                input: "uci-kos/docword.kos.txt.gz",
                options: "-k 20 --iterations 5 --repeat 5 -w 1",
                published: "1.27 to 1.61 times as fast as Petuum",
            },
            Compare {
                algorithm: "blockpg",
                input: "a9a/a9a.gz",
                options: "--iterations 10 --repeat 5 -w 1",
                published: "1.48 times as fast as the Parameter Server",
            },
        ],
    ),
    row(6, "TuX² Figure 15, BlockPG's imbalance", &[Bench("reenact 6")]),
    row(7, "TuX² Table 2, lines of code", &[Bench("reenact 7"), Tests("test -p megagrid-baselines lines")]),
    row(8, "LazyTable Figure 6, delays", &[Bench("reenact 8")]),
    row(9, "LazyTable Figure 7, disruptions", &[Bench("reenact 9")]),
    row(10, "LazyTable Figures 3 to 5, work per clock", &[Bench("reenact 10")]),
    row(11, "LazyTable Table 2, bytes at an equal bound", &[Bench("reenact 11")]),
    row(12, "ESSP Figure 2, staleness", &[Bench("reenact 12")]),
    row(13, "ESSP Figure 3, convergence", &[Bench("reenact 13")]),
    row(
        14,
        "IterStore Figures 4 to 6, each specialization, what preparing them takes, and a hundred iterations",
        &[Bench("reenact 14")],
    ),
    row(15, "IterStore Figure 7, static caches against LRU", &[Bench("reenact 15")]),
    row(16, "IterStore Figure 9, missing information", &[Bench("reenact 16")]),
    row(17, "IterStore Figure 8, early prefetch", &[Bench("reenact 17")]),
    row(18, "IterStore Table 2, against plain loops", &[Bench("ablation")]),
    row(19, "MLtuner against fixed settings, Spearmint and Hyperband", &[Bench("tuning")]),
    row(20, "GeePS Figures 4.6, 4.8a and 4.9 to 4.13", &[Bench("reenact 20")]),
    row(
        21,
        "DARLIN, correctness",
        &[Tests("test -p megagrid-engine blockpg"), Tests("test -p megagrid-algorithms blockpg")],
    ),
    row(
        22,
        "LDA, correctness",
        &[Tests("test -p megagrid-engine lda"), Tests("test -p megagrid-baselines agree::lda")],
    ),
    row(23, "MF, correctness", &[Tests("test -p megagrid-engine mf"), Tests("test -p megagrid-baselines agree::mf")]),
    row(
        24,
        "slack 0 is BSP, bounds on what is read",
        &[Tests("test -p megagrid-engine --test all -- traces processes"), Tests("test -p megagrid-baselines server")],
    ),
    row(25, "ESSP on VAP, a bound on values under way", &[Bench("reenact 25")]),
    row(26, "LazyTable Figures 8 and 9, processors for communication, and prefetch", &[Bench("reenact 26")]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::root;

    /// Returns the numbers and the cells of the document's rows.
    fn documented() -> Vec<(Vec<u32>, String)> {
        let text = std::fs::read_to_string(root().join("docs/benchmarks.md")).unwrap();
        let (_, section) = text.split_once("## Published results and their commands").unwrap();
        let cells = |line: &str| {
            let (number, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
            let numbers: Result<Vec<u32>, _> = number.split(", ").map(str::parse).collect();
            Some((numbers.ok()?, rest.to_owned()))
        };
        section.lines().filter_map(cells).collect()
    }

    #[test]
    fn rows_are_those_of_the_document() {
        let documented = documented();
        let numbers: Vec<u32> = documented.iter().flat_map(|(numbers, _)| numbers.clone()).collect();
        assert_eq!(numbers, ROWS.map(|row| row.number));
        for row in &ROWS {
            let (_, text) = documented.iter().find(|(numbers, _)| numbers.contains(&row.number)).unwrap();
            for step in row.steps {
                let command = match step {
                    Compare { .. } => "megagrid compare".to_owned(),
                    step => step.command(),
                };
                assert!(text.contains(&format!("`{command}")), "row {} of the document has no {command}", row.number);
            }
        }
    }
}

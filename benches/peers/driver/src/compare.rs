//! Megagrid beside its own baselines: what `megagrid compare` says of small real data sets.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::run_megagrid;
use crate::summary::Table;
use crate::{Options, Programs};

/// A comparison: the command's name, the file in the folder of data sets, and the options.
struct Case(&'static str, &'static str, &'static [&'static str]);

const CASES: [Case; 4] = [
    Case("mf", "movielens-100k/u.data.gz", &["--iterations", "10"]),
    Case("lda", "uci-kos/docword.kos.txt.gz", &["-k", "20", "--iterations", "10"]),
    Case("blockpg", "a9a/a9a.gz", &["--iterations", "10"]),
    Case("pagerank", "soc-Epinions1/soc-Epinions1.txt.gz", &["--iterations", "15", "--target", "2e-3"]),
];
const THREADS: [u32; 2] = [1, 2];
/// What a system's row says: its pointer in the record, the measure's name, and what its unit is.
const MEASURES: [(&str, &str, f64); 4] = [
    ("iteration_seconds", "ms per iteration", 1e-3),
    ("target_seconds", "ms to target", 1e-3),
    ("sent_bytes", "MB sent an iteration", 1e6),
    ("memory_bytes", "MB of data", 1e6),
];

/// Runs the comparisons that the options leave. Its rounds are those of the command itself.
pub fn measure(programs: &Programs, options: &Options) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for case in CASES.iter().filter(|case| options.wants(case.1)) {
        let input = programs.data.join(case.1);
        if input.exists() {
            tables.push(measure_case(programs, options, case, &input)?);
        } else {
            eprintln!("{} is not there: it is left out; --data names the folder", input.display());
        }
    }
    Ok(tables)
}

fn measure_case(programs: &Programs, options: &Options, case: &Case, input: &Path) -> Result<Table> {
    let Case(algorithm, file, arguments) = case;
    let shown = file.split_once('/').map_or(*file, |(_, name)| name);
    let command =
        format!("megagrid compare {algorithm} {shown} {} -w N --repeat {}", arguments.join(" "), options.rounds);
    let mut table = Table::of_medians(format!("compare {algorithm}, {shown}"), command, options.rounds);
    for threads in THREADS {
        eprintln!("compare {algorithm}, {threads} threads, {} rounds", options.rounds);
        let mut command = Command::new(&programs.megagrid);
        command.args(["compare", algorithm]).arg(input).args(*arguments);
        command.args(["-w", &threads.to_string(), "--repeat", &options.rounds.to_string()]);
        let comparison = run_megagrid(&mut command, &programs.work.join("compare.json"))?;
        for measured in comparison["systems"].as_array().context("the comparison has no systems")? {
            let system = measured["system"].as_str().context("a system has no name")?;
            for (field, name, unit) in MEASURES {
                let median = measured[field].get("median").and_then(Value::as_f64);
                table.add(system, threads, name, median.map(|median| median / unit));
            }
        }
    }
    Ok(table)
}

//! Published figures re-enacted: in real time (1, 4, 5, 14 to 16), by exact counters (6, 7, 11), in modelled time of exact shapes (20, but for accuracy), and
//! on the virtual cluster, which has real numbers and modelled time (the others).
//!
//!     cargo reenact ROW [PART…]   # 1, 3 to 17, 20, 25; "all"; "calibrate" measures what tasks cost. 14 to 16 have parts pr, cf and tm, 20 has 4.6 to 4.13,
//!                                # and trains on files of samples that are named, too
//!
//! Each row prints its figures, link and costs, writes a plot to `docs/reenact/`, and says what of the published shape holds.
//! A row of which something does not hold ends with exit code 1. Without `--bench` (as `cargo test` runs it) nothing is done.

mod calibrate;
mod fabric;
mod findings;
mod job;
mod rows {
    pub mod bytes;
    pub mod delays;
    pub mod disruptions;
    pub mod essp;
    pub mod geeps;
    pub mod imbalance;
    pub mod iterstore;
    pub mod layout;
    pub mod lines;
    pub mod prefetch;
    pub mod slack;
    pub mod staleness;
    pub mod systems;
    pub mod values;
    pub mod work;
}

use std::process::ExitCode;

use findings::{Findings, root};

type Row = (&'static str, &'static str, fn(&mut Findings));

const ROWS: [Row; 18] = [
    ("1", "TuX2 Figure 8: rows in arrays and in hash maps", rows::layout::run),
    ("3", "TuX2 Figures 10 to 12: slack and mini-batches", rows::slack::run),
    ("4", "TuX2 Figure 13: matrix factorization on GAS engines", rows::systems::gas),
    ("5", "TuX2 Figure 14: matrix factorization on parameter servers", rows::systems::servers),
    ("6", "TuX2 Figure 15: how evenly blocks of features are shared out", rows::imbalance::run),
    ("7", "TuX2 Table 2: lines of code", rows::lines::run),
    ("8", "LazyTable Figure 6: delayed workers", rows::delays::run),
    ("9", "LazyTable Figure 7: disrupted workers", rows::disruptions::run),
    ("10", "LazyTable Figures 3 and 5: work per clock and slack", rows::work::run),
    ("11", "LazyTable Table 2: bytes at an equal bound", rows::bytes::run),
    ("12", "ESSP Figure 2: staleness", rows::staleness::run),
    ("13", "ESSP Figure 3: ESSP against SSP", rows::essp::run),
    ("14", "IterStore Figures 4 and 6: each specialization", rows::iterstore::switches),
    ("15", "IterStore Figure 7: static thread caches and LRU", rows::iterstore::thread_caches),
    ("16", "IterStore Figure 9: inaccurate information", rows::iterstore::inaccurate),
    ("17", "IterStore Figure 8: rows that are read first requested first", rows::prefetch::run),
    (
        "20",
        "GeePS Figures 4.6, 4.8 to 4.13: scaling, memory, budgets, large networks, stalls, accuracy",
        rows::geeps::run,
    ),
    ("25", "ESSP on VAP: a bound on values under way", rows::values::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let mut named = arguments.iter().filter(|argument| !argument.starts_with("--"));
    let wanted = named.next().map_or("all", String::as_str);
    let parts: Vec<String> = named.cloned().collect();
    if wanted == "calibrate" {
        calibrate::calibrate();
        return ExitCode::SUCCESS;
    }
    let rows: Vec<&Row> = ROWS.iter().filter(|row| wanted == "all" || row.0 == wanted).collect();
    if rows.is_empty() {
        eprintln!("no row {wanted}; expected 1, 3 to 17, 20, 25, all or calibrate");
        return ExitCode::from(2);
    }
    let mut failed = false;
    for (number, title, run) in rows {
        println!("Row {number}. {title}");
        let mut findings = Findings { parts: parts.clone(), ..Findings::default() };
        run(&mut findings);
        for (what, holds) in &findings.checks {
            let verdict = match holds {
                Some(true) => "PASS",
                Some(false) => "FAIL",
                None => "n/a ",
            };
            println!("  {verdict}  {what}");
            failed |= *holds == Some(false);
        }
        for (name, plot) in &findings.plots {
            let directory = root().join("docs/reenact");
            let written = std::fs::create_dir_all(&directory)
                .and_then(|()| std::fs::write(directory.join(name).with_extension("svg"), plot.svg()));
            match written {
                Ok(()) => println!("  docs/reenact/{name}.svg"),
                Err(error) => eprintln!("  the plot could not be written: {error}"),
            }
        }
        println!();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

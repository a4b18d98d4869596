//! Published figures re-enacted: in real time (1, 4, 5, 14 to 16, 26), by exact counters (6, 7, 11), in modelled time of exact shapes (20, but for accuracy), and
//! on the virtual cluster, which has real numbers and modelled time (the others).
//!
//!     cargo reenact ROW [PART…] [--json FILE]   # 1, 3 to 17, 20, 25, 26; "all"; "calibrate" measures what tasks cost. 14 to 16 have parts
//!                                # pr, cf and tm, 20 has 4.6 to 4.13, and trains on files of samples that are named, too
//!
//! Each row prints its figures, link and costs, writes a plot to `docs/reenact/`, and says what of the published shape holds.
//! A row of which something does not hold ends with exit code 1. Without `--bench` (as `cargo test` runs it) nothing is done.

mod calibrate;
mod fabric;
mod job;
mod rows {
    pub mod bytes;
    pub mod communication;
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

use std::io;
use std::process::ExitCode;

use megagrid_benches::findings::{Findings, Verdicts};
use megagrid_results::published::Evidence::{self, Counted, Modelled, Real, Virtual};

/// Number, title, what it rests on, and what re-enacts it.
type Row = (u32, &'static str, Evidence, fn(&mut Findings));

const ROWS: [Row; 19] = [
    (1, "TuX2 Figure 8: rows in arrays and in hash maps", Real, rows::layout::run),
    (3, "TuX2 Figures 10 to 12: slack and mini-batches", Virtual, rows::slack::run),
    (4, "TuX2 Figure 13: matrix factorization on GAS engines", Real, rows::systems::gas),
    (5, "TuX2 Figure 14: matrix factorization on parameter servers", Real, rows::systems::servers),
    (6, "TuX2 Figure 15: how evenly blocks of features are shared out", Modelled, rows::imbalance::run),
    (7, "TuX2 Table 2: lines of code", Counted, rows::lines::run),
    (8, "LazyTable Figure 6: delayed workers", Virtual, rows::delays::run),
    (9, "LazyTable Figure 7: disrupted workers", Virtual, rows::disruptions::run),
    (10, "LazyTable Figures 3 to 5: work per clock and slack", Virtual, rows::work::run),
    (11, "LazyTable Table 2: bytes at an equal bound", Counted, rows::bytes::run),
    (12, "ESSP Figure 2: staleness", Virtual, rows::staleness::run),
    (13, "ESSP Figure 3: ESSP against SSP", Virtual, rows::essp::run),
    (
        14,
        "IterStore Figures 4 to 6: each specialization, what preparing them takes, and a hundred iterations",
        Real,
        rows::iterstore::switches,
    ),
    (15, "IterStore Figure 7: static thread caches and LRU", Real, rows::iterstore::thread_caches),
    (16, "IterStore Figure 9: inaccurate information", Real, rows::iterstore::inaccurate),
    (17, "IterStore Figure 8: rows that are read first requested first", Modelled, rows::prefetch::run),
    (
        20,
        "GeePS Figures 4.6, 4.8 to 4.13: scaling, memory, budgets, large networks, stalls, accuracy",
        Modelled,
        rows::geeps::run,
    ),
    (25, "ESSP on VAP: a bound on values under way", Virtual, rows::values::run),
    (26, "LazyTable Figures 8 and 9: processors for communication, and prefetch", Real, rows::communication::run),
];

fn main() -> io::Result<ExitCode> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.iter().any(|argument| argument == "--help") {
        println!("cargo reenact [ROW|all|calibrate] [PART...] [--json FILE]");
        ROWS.iter().for_each(|(number, title, ..)| println!("{number:>4}  {title}"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut verdicts = Verdicts::new(&mut arguments)?;
    let mut named = arguments.iter().filter(|argument| !argument.starts_with("--"));
    let wanted = named.next().map_or("all", String::as_str);
    let parts: Vec<String> = named.cloned().collect();
    if wanted == "calibrate" {
        calibrate::calibrate();
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<&Row> = ROWS.iter().filter(|row| wanted == "all" || wanted == row.0.to_string()).collect();
    if rows.is_empty() {
        eprintln!("no row {wanted}; expected 1, 3 to 17, 20, 25, 26, all or calibrate");
        return Ok(ExitCode::from(2));
    }
    for (number, title, evidence, run) in rows {
        println!("Row {number}. {title}");
        let mut findings = Findings::new(*evidence, &parts);
        run(&mut findings);
        verdicts.add(*number, title, findings)?;
        println!();
    }
    Ok(verdicts.exit_code())
}

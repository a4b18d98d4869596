//! What a comparison found: a row for each system.

use megagrid_baselines::lines::Lines;
use megagrid_engine::Traffic;
use serde::Serialize;

use super::conditions::{Conditions, Gathering};
use super::systems::System;
use crate::progress::{self, counted};
use crate::report::{Subject, Table, seconds};
use megagrid_training::record::{Iteration, Record, Spread, median};

/// A comparison, as it stands in `--json`.
#[derive(Debug, Serialize)]
pub struct Comparison {
    megagrid: &'static str,
    command: String,
    rounds: usize,
    #[serde(flatten)]
    conditions: Conditions,
    /// The objective whose time is measured.
    target: Option<f64>,
    maximizes: bool,
    /// What was measured of each system.
    pub systems: Vec<Measured>,
}

/// What was measured of a system. Spreads are over rounds.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// The system.
    pub system: System,
    /// Median seconds of an iteration; the mean where several are between two clocks.
    pub iteration_seconds: Option<Spread>,
    /// Seconds before the first iteration: plan and grid, or accesses recorded and tables built.
    pub setup_seconds: Option<Spread>,
    /// Of a parameter server that records accesses, what that takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gather: Option<Gathered>,
    /// Seconds of training until the target was reached; `None` if a run did not reach it.
    pub target_seconds: Option<Spread>,
    /// Iterations until then, median.
    pub target_iterations: Option<f64>,
    /// Shares of the workers' time.
    pub shares: Shares,
    /// Of several processes, what is of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<OfProcess>,
    /// Bytes sent in an iteration: the mean where only some send.
    pub sent_bytes: Option<Spread>,
    /// Messages in an iteration, likewise.
    pub messages: Option<Spread>,
    /// Bytes of data structures.
    pub memory_bytes: Option<Spread>,
    /// Peak memory of the process.
    pub peak_rss_bytes: Option<Spread>,
    /// Lines that a user writes for the algorithm.
    pub user_lines: Option<Lines>,
    /// The last objective.
    pub objective: Option<Spread>,
    /// The runs.
    pub runs: Vec<Record>,
}

/// What recording accesses, and placing and laying out rows by them, takes of a run.
#[derive(Debug, Serialize)]
pub struct Gathered {
    /// Seconds.
    pub seconds: Spread,
    /// Their share of setup and iterations, 0 to 1; median.
    pub share: f64,
}

impl Gathered {
    fn of(runs: &[Record]) -> Option<Self> {
        let seconds = || runs.iter().map(|run| run.phases.gather);
        let share = |run: &Record| run.phases.gather / (run.phases.plan + run.phases.train);
        let (seconds, share) =
            (Spread::of(seconds().collect::<Vec<_>>().into_iter())?, median(runs.iter().map(share))?);
        (seconds.max > 0.0).then_some(Self { seconds, share })
    }

    fn text(&self) -> String {
        format!("{}, {:.0} %", seconds(self.seconds.median), self.share * 100.0)
    }
}

/// What is of one process.
#[derive(Debug, Serialize)]
pub struct OfProcess {
    /// Shares of its workers' time.
    pub shares: Shares,
    /// Bytes in an iteration that it sent; of a parameter server's, that its client sent to the others' servers, or received from them.
    pub sent_bytes: Option<Spread>,
}

/// Shares of the workers' time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Shares {
    /// Of computing.
    pub compute: f64,
    /// Of waiting.
    pub wait: f64,
    /// Of bringing data to others, or taking it from them.
    pub sync: f64,
}

impl Comparison {
    /// Measures runs. Without a target it is the worst objective with which a run ends, so that all reach it.
    pub fn new(
        command: &str,
        conditions: Conditions,
        maximizes: bool,
        target: Option<f64>,
        runs: Vec<(System, Vec<Record>)>,
    ) -> Self {
        let worst = |a: f64, b: f64| if maximizes { a.min(b) } else { a.max(b) };
        let last = runs.iter().flat_map(|(_, records)| records).filter_map(|record| record.result.objective);
        let target = target.or_else(|| last.reduce(worst));
        let rounds = runs.first().map_or(0, |(_, records)| records.len());
        let of = (command, conditions.processes);
        let measure = |(system, records)| Measured::new(system, records, of, (target, maximizes));
        Self {
            megagrid: env!("CARGO_PKG_VERSION"),
            command: format!("compare {command}"),
            rounds,
            target,
            maximizes,
            systems: runs.into_iter().map(measure).collect(),
            conditions,
        }
    }

    /// Makes the table.
    pub fn table(&self) -> Table {
        let columns = [
            "system",
            "iteration",
            "to target",
            "iterations",
            "setup",
            "gather",
            "compute/wait/sync",
            "bytes",
            "messages",
            "data",
            "peak",
            "lines",
            "objective",
        ];
        let columns = columns.map(str::to_owned).to_vec();
        Table { columns, rows: self.systems.iter().map(Measured::cells).collect() }
    }

    /// Makes the table of what is of each process, where there are several.
    pub fn by_process(&self) -> Option<Table> {
        let columns = ["system", "process", "compute/wait/sync", "bytes"].map(str::to_owned).to_vec();
        let rows: Vec<_> = self.systems.iter().flat_map(Measured::process_cells).collect();
        (!rows.is_empty()).then_some(Table { columns, rows })
    }

    /// Says what the columns mean.
    pub fn notes(&self) -> Vec<String> {
        let target = self.target.map_or("none".to_owned(), shortened);
        let gathers = match self.conditions.gather {
            Some(Gathering::Virtual) => {
                "of iterstore a virtual iteration, in setup; of others the end of the first iteration"
            }
            Some(Gathering::First) | None => "the end of the first iteration",
        };
        let mut notes = vec![
            format!(
                "Medians over rounds, with the least and the largest. The target is the objective {target}; time to it is of \
                 training only, from the first iteration on. Setup is what comes before that and after reading: plan and \
                 grid, or tables and recorded accesses. Gather is what recording accesses and placing rows by them took, and its \
                 share of setup and training: {gathers}."
            ),
            "Compute, wait and sync are shares of the workers' time. Bytes and messages are of an iteration: between \
             processes, between servers and clients, or along edges, and a mean where only some iterations send. Data are the bytes of model, edges, caches and logs; peak \
             is the process with reading. Lines are what a user of the system writes for the algorithm: for this system only, \
             and functions that are the same on others."
                .to_owned(),
        ];
        notes.extend(self.conditions.notes());
        notes
    }

    /// Writes the table as a text.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}", self.command, counted(self.rounds, "round"));
        text.push_str(&self.conditions.text());
        if let Some(target) = self.target {
            text.push_str(&format!(", target {}", shortened(target)));
        }
        text.push('\n');
        text.push_str(&self.table().text());
        if let Some(table) = self.by_process() {
            text.push('\n');
            text.push_str(&table.text());
        }
        text
    }
}

impl Measured {
    fn new(
        system: System,
        runs: Vec<Record>,
        (command, processes): (&str, u16),
        (target, maximizes): (Option<f64>, bool),
    ) -> Self {
        let reached = |one: &&Iteration| match (one.objective, target) {
            (Some(objective), Some(target)) => {
                if maximizes {
                    objective >= target
                } else {
                    objective <= target
                }
            }
            _ => false,
        };
        let firsts: Vec<&Iteration> = runs.iter().filter_map(|run| run.iterations.iter().find(reached)).collect();
        let all_reach = firsts.len() == runs.len();
        let of_iterations = |of: fn(&Iteration) -> f64| {
            let of_each: Vec<f64> = runs.iter().filter_map(|run| of_iteration(run, of)).collect();
            Spread::of(of_each.into_iter())
        };
        let of_runs =
            |of: fn(&Record) -> Option<f64>| Spread::of(runs.iter().filter_map(of).collect::<Vec<_>>().into_iter());
        let messages = |one: &Iteration| Traffic::total(&one.sent).messages as f64;
        Self {
            system,
            iteration_seconds: of_iterations(|one| one.seconds),
            setup_seconds: of_runs(|run| Some(run.phases.plan)),
            gather: Gathered::of(&runs),
            target_seconds: Spread::of(firsts.iter().map(|one| one.train_seconds)).filter(|_| all_reach),
            target_iterations: median(firsts.iter().map(|one| one.iteration as f64)).filter(|_| all_reach),
            shares: Shares::of(runs.iter().flat_map(|run| &run.iterations).map(means)),
            processes: if processes > 1 { of_processes(&runs, usize::from(processes)) } else { Vec::new() },
            sent_bytes: of_iterations(|one| one.sent_bytes as f64),
            messages: of_iterations(messages),
            memory_bytes: of_runs(|run| Some(run.machine.memory_bytes as f64)),
            peak_rss_bytes: of_runs(|run| run.peak_rss_bytes.map(|peak| peak as f64)),
            user_lines: system.user_lines(command),
            objective: of_runs(|run| run.result.objective),
            runs,
        }
    }

    /// Returns what a page shows of it.
    pub fn subject(&self) -> Subject<'_> {
        Subject { name: self.system.name(), runs: self.runs.iter().collect() }
    }

    fn process_cells(&self) -> Vec<Vec<(String, String)>> {
        let row = |(number, of): (usize, &OfProcess)| {
            let bytes = of.sent_bytes.map_or("–".to_owned(), |spread| progress::bytes(spread.median as u64));
            let cells = [self.system.name().to_owned(), number.to_string(), of.shares.text(), bytes];
            cells.map(|text| (text, String::new())).to_vec()
        };
        self.processes.iter().enumerate().map(row).collect()
    }

    fn cells(&self) -> Vec<(String, String)> {
        let plain = |text: String| (text, String::new());
        let bytes = |number: f64| progress::bytes(number as u64);
        let count = |number: f64| if number < 1000.0 { format!("{number}") } else { progress::engineering(number) };
        let median_of = |spread: Option<Spread>, write: &dyn Fn(f64) -> String| {
            plain(spread.map_or("–".to_owned(), |spread| write(spread.median)))
        };
        vec![
            plain(self.system.name().to_owned()),
            ranged(self.iteration_seconds, &seconds, "–"),
            ranged(self.target_seconds, &seconds, "not reached"),
            plain(self.target_iterations.map_or("–".to_owned(), |iterations| format!("{iterations}"))),
            median_of(self.setup_seconds, &seconds),
            plain(self.gather.as_ref().map_or("–".to_owned(), Gathered::text)),
            plain(self.shares.text()),
            median_of(self.sent_bytes, &bytes),
            median_of(self.messages, &count),
            median_of(self.memory_bytes, &bytes),
            median_of(self.peak_rss_bytes, &bytes),
            plain(self.user_lines.map_or("–".to_owned(), |lines| lines.to_string())),
            median_of(self.objective, &|objective| format!("{objective:.6e}")),
        ]
    }
}

/// Returns what an iteration of a run has of something, which is never below 0: the median, but the mean where clocks are several
/// iterations apart, or where most iterations have nothing.
fn of_iteration(run: &Record, of: impl Fn(&Iteration) -> f64) -> Option<f64> {
    let all: Vec<f64> = run.iterations.iter().map(of).collect();
    if all.is_empty() {
        return None;
    }
    let work = run.config.get("work_per_clock").and_then(serde_json::Value::as_f64).unwrap_or(1.0);
    let with = all.iter().filter(|one| **one > 0.0).count();
    if work > 1.0 || 2 * with <= all.len() {
        return Some(all.iter().sum::<f64>() / all.len() as f64);
    }
    median(all.into_iter())
}

fn means(one: &Iteration) -> [f64; 3] {
    [one.compute_seconds, one.wait_seconds, one.sync_seconds]
}

/// Tells what is of each process: workers stand process by process, as many of each.
fn of_processes(runs: &[Record], processes: usize) -> Vec<OfProcess> {
    let iterations = || runs.iter().flat_map(|run| &run.iterations);
    let of = |process: usize| {
        let workers = iterations().flat_map(|one| {
            let each = one.workers.len() / processes;
            &one.workers[process * each..(process + 1) * each]
        });
        let sent = |one: &Iteration| one.process_bytes.get(process).map_or(0.0, |&bytes| bytes as f64);
        let bytes: Vec<f64> = runs.iter().filter_map(|run| of_iteration(run, sent)).collect();
        OfProcess {
            shares: Shares::of(workers.map(|worker| [worker.compute, worker.wait, worker.sync])),
            sent_bytes: Spread::of(bytes.into_iter()),
        }
    };
    (0..processes).map(of).collect()
}

/// Writes an objective with six significant digits at most.
fn shortened(objective: f64) -> String {
    let rounded: f64 = format!("{objective:.5e}").parse().unwrap_or(objective);
    if rounded == 0.0 || (1e-4..1e9).contains(&rounded.abs()) { format!("{rounded}") } else { format!("{rounded:e}") }
}

fn ranged(spread: Option<Spread>, write: &dyn Fn(f64) -> String, none: &str) -> (String, String) {
    match spread {
        None => (none.to_owned(), String::new()),
        Some(Spread { median, min, max }) if min == max => (write(median), String::new()),
        Some(Spread { median, min, max }) => (write(median), format!("{}–{}", write(min), write(max))),
    }
}

impl Shares {
    fn text(&self) -> String {
        format!("{:.0}/{:.0}/{:.0} %", self.compute * 100.0, self.wait * 100.0, self.sync * 100.0)
    }

    /// Takes seconds of computing, of waiting and of bringing data to others.
    fn of(parts: impl Iterator<Item = [f64; 3]>) -> Self {
        let add = |sum: [f64; 3], part: [f64; 3]| std::array::from_fn(|at| sum[at] + part[at]);
        let [compute, wait, sync] = parts.fold([0.0; 3], add);
        let whole = compute + wait + sync;
        if whole > 0.0 {
            Self { compute: compute / whole, wait: wait / whole, sync: sync / whole }
        } else {
            Self::default()
        }
    }
}

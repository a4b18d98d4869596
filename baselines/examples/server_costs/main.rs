//! What the parameter server costs, and what each of its specializations saves, on access patterns of three kinds:
//!
//!     cargo run --release -p megagrid-baselines --example server_costs -- units|switches-on|switches-off|caches|missing [pr|cf|tm] [--threads 2] [--rounds 5]
//!     [--clocks 5] [--seed 1]
//!
//! | pattern | rows                                      | each thread, in a clock                        |
//! |---------|-------------------------------------------|------------------------------------------------|
//! | `pr`    | 170,000 of one f32                        | 400,000 times: reads one, adds to another      |
//! | `cf`    | 5,000 of 50 f32                           | 150,000 times: reads one and updates it        |
//! | `tm`    | 5,000 of 100 i32, and one that sums them  | 100,000 times: reads one and the sum, updates both |
//!
//! Rows are chosen with Zipf's exponent 0.8, as items, words and pages are; with two threads a page is accessed 9.4 times a clock, as in
//! IterStore's graph on eight machines. There is no computation: times are the library's. One process, one server, loopback, slack 0;
//! medians over clocks, after the first, of runs that take turns. `switches-on` turns each specialization on alone, `switches-off` each
//! off alone (IterStore, figures 4 and 6), `caches` compares policies and capacities of thread caches (figure 7), `missing` leaves out part of the
//! accesses when they are gathered, or puts in others (figure 9), and `units` prints what a single access, clock and byte cost one thread.

mod pattern;
mod settings;
mod units;

use std::error::Error;
use std::time::Instant;

use megagrid_baselines::server::{
    Client, Element, Gather, Options, Preset, ServerOptions, Statistics, Table, Tables, TabletServer, Worker,
};

use pattern::{Pattern, accesses};
use settings::{Setting, caches, missing, switches_off, switches_on};

/// What threads do.
struct Job {
    pattern: Pattern,
    seed: u64,
    rounds: usize,
    clocks: usize,
    /// Of each thread, in a clock.
    accesses: Vec<Vec<u32>>,
}

/// What came out.
#[derive(Default)]
struct Outcome {
    /// Of each thread and clock but the first.
    seconds: Vec<f64>,
    /// Of each run, with gathering and all clocks.
    whole: Vec<f64>,
    statistics: Statistics,
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, otherwise: u64| match arguments.iter().position(|argument| argument == name) {
        Some(index) => {
            arguments.get(index + 1).and_then(|value| value.parse().ok()).ok_or(format!("{name} needs a number"))
        }
        None => Ok(otherwise),
    };
    if arguments.first().is_some_and(|mode| mode == "units") {
        return units::print();
    }
    let (threads, seed) = (number("--threads", 2)? as usize, number("--seed", 1)?);
    let (rounds, clocks) = (number("--rounds", 5)? as usize, number("--clocks", 5)? as usize);
    if threads == 0 || rounds == 0 || clocks < 2 {
        return Err("at least one thread, one round and two clocks".into());
    }
    let only = arguments.get(1).filter(|argument| !argument.starts_with("--"));
    for (pattern, name) in Pattern::ALL.into_iter().filter(|(_, name)| only.is_none_or(|only| only == name)) {
        let settings = match arguments.first().map(String::as_str) {
            Some("switches-on") => switches_on(),
            Some("switches-off") => switches_off(),
            Some("caches") => caches(pattern),
            Some("missing") => missing(),
            _ => return Err("say units, switches-on, switches-off, caches or missing".into()),
        };
        println!(
            "{name}, {threads} threads, seed {seed}: ms per clock (least, most) and of gathering and {clocks} clocks; per clock of all threads"
        );
        println!(
            "{:<34}{:>8}{:>17}{:>9}{:>9}{:>9}{:>10}{:>8}{:>9}{:>9}{:>8}",
            "", "ms", "", "whole ms", "wait ms", "locks", "contended", "hits %", "unknown", "messages", "kB"
        );
        let accesses = (0..threads as u64).map(|thread| accesses(pattern, seed + thread)).collect();
        compare(&Job { pattern, seed, rounds, clocks, accesses }, &settings)?;
        println!();
    }
    println!("NUMA placement: {}", Client::numa_nodes());
    Ok(())
}

/// Runs all settings in turn, and prints a line for each.
fn compare(job: &Job, settings: &[Setting]) -> Result<(), Box<dyn Error>> {
    let mut outcomes: Vec<Outcome> = settings.iter().map(|_| Outcome::default()).collect();
    for _ in 0..job.rounds {
        for (setting, outcome) in settings.iter().zip(&mut outcomes) {
            run(job, setting, outcome)?;
        }
    }
    for (setting, outcome) in settings.iter().zip(&mut outcomes) {
        let middle = median(&mut outcome.seconds) * 1e3;
        let (statistics, seconds) = (&outcome.statistics, &outcome.seconds);
        let per_clock = |count: u64| count as f64 / (job.rounds * (job.clocks - 1)) as f64;
        println!(
            "{:<34}{middle:>8.2} ({:>6.2}, {:>6.2}){:>9.0}{:>9.2}{:>9.0}{:>10.0}{:>8.1}{:>9.0}{:>9.0}{:>8.0}",
            setting.name,
            seconds[0] * 1e3,
            seconds[seconds.len() - 1] * 1e3,
            median(&mut outcome.whole) * 1e3,
            per_clock(statistics.wait.as_micros() as u64) / 1e3,
            per_clock(statistics.row_locks),
            per_clock(statistics.contended_row_locks),
            100.0 * statistics.thread_cache_hits as f64 / (statistics.reads + statistics.updates) as f64,
            per_clock(statistics.unreported),
            per_clock(statistics.sent_messages + statistics.received_messages),
            per_clock(statistics.sent_bytes + statistics.received_bytes) / 1e3,
        );
    }
    Ok(())
}

fn run(job: &Job, setting: &Setting, outcome: &mut Outcome) -> Result<(), Box<dyn Error>> {
    let (rows, row_len, _) = job.pattern.sizes();
    let mut tables = Tables::new();
    if job.pattern == Pattern::Topics {
        let table = tables.add::<i32>(row_len);
        return run_table(&tables, table, rows + 1, job, setting, outcome);
    }
    let table = tables.add::<f32>(row_len);
    run_table(&tables, table, rows, job, setting, outcome)
}

/// Runs one job and adds the times and counts of all clocks but the first to the outcome.
fn run_table<T: Element>(
    tables: &Tables,
    table: Table<T>,
    rows: u32,
    job: &Job,
    setting: &Setting,
    outcome: &mut Outcome,
) -> Result<(), Box<dyn Error>> {
    let (pattern, threads) = (job.pattern, job.accesses.len());
    let server = TabletServer::start("127.0.0.1:0", tables, ServerOptions::new(0, 1, 1))?;
    let mut options = Options::preset(Preset::IterStore, threads, 0);
    (options.prefetch, options.specializations) = (setting.prefetch, setting.specializations.clone());
    let client = Client::connect(&[server.address()], tables, options)?;
    let all: Vec<u32> = (0..rows).collect();
    client.store(table, &all, &vec![T::IDENTITY; all.len() * table.row_len()])?;
    let before = std::sync::Mutex::new(Statistics::default());
    let barrier = std::sync::Barrier::new(threads);
    let seconds = std::thread::scope(|scope| {
        let (client, before, barrier) = (&client, &before, &barrier);
        let threads = client.workers().into_iter().map(|mut worker| {
            scope.spawn(move || -> Result<(f64, Vec<f64>), megagrid_baselines::Error> {
                let accesses = &job.accesses[worker.index()];
                let reported = setting.reported.of(pattern, accesses, job.seed + worker.index() as u64);
                barrier.wait();
                let whole = Instant::now();
                if setting.gather == Some(Gather::Virtual) {
                    worker.start_gather(Gather::Virtual);
                    work(&mut worker, table, pattern, &reported)?;
                    worker.finish_gather()?;
                }
                let mut seconds = Vec::new();
                for clock in 0..job.clocks {
                    barrier.wait();
                    if clock == 1 && worker.thread() == 0 {
                        *before.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = client.statistics();
                    }
                    if clock == 0 && setting.gather == Some(Gather::Real) {
                        worker.start_gather(Gather::Real);
                    }
                    let begin = Instant::now();
                    work(&mut worker, table, pattern, accesses)?;
                    if clock == 0 {
                        worker.finish_gather()?;
                    } else {
                        seconds.push(begin.elapsed().as_secs_f64());
                    }
                }
                Ok((whole.elapsed().as_secs_f64(), seconds))
            })
        });
        let threads: Vec<_> = threads.collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })?;
    outcome.whole.push(seconds.iter().map(|thread| thread.0).fold(0.0, f64::max));
    outcome.seconds.extend(seconds.into_iter().flat_map(|thread| thread.1));
    let before = before.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    outcome.statistics.add(&difference(client.statistics(), &before));
    Ok(())
}

/// Counts since a moment.
fn difference(mut now: Statistics, before: &Statistics) -> Statistics {
    now.wait -= before.wait;
    now.row_locks -= before.row_locks;
    now.contended_row_locks -= before.contended_row_locks;
    now.thread_cache_hits -= before.thread_cache_hits;
    now.reads -= before.reads;
    now.updates -= before.updates;
    now.unreported -= before.unreported;
    now.sent_messages -= before.sent_messages;
    now.received_messages -= before.received_messages;
    now.sent_bytes -= before.sent_bytes;
    now.received_bytes -= before.received_bytes;
    now
}

/// Does the accesses of one thread in a clock, and ends the clock.
fn work<T: Element>(
    worker: &mut Worker,
    table: Table<T>,
    pattern: Pattern,
    accesses: &[u32],
) -> Result<(), megagrid_baselines::Error> {
    let mut delta = vec![T::IDENTITY; table.row_len()];
    let sums = pattern.sizes().0;
    for pair in accesses.chunks_exact(2) {
        delta[0] = worker.read(table, pair[0], 0)?[0];
        match pattern {
            Pattern::PageRank => worker.update(table, pair[1], &delta)?,
            Pattern::Factors => worker.update(table, pair[0], &delta)?,
            Pattern::Topics => {
                delta[0] = worker.read(table, sums, 0)?[0];
                worker.update(table, pair[0], &delta)?;
                worker.update(table, sums, &delta)?;
            }
        }
    }
    worker.clock()
}

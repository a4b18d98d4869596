//! What the parameter server costs, and what each of its specializations saves, on access patterns of three kinds:
//!
//!     cargo run --release -p megagrid-baselines --example server_costs -- units|switches|caches|missing [--threads 2] [--seed 1]
//!
//! | pattern | rows                                      | each thread, in a clock                        |
//! |---------|-------------------------------------------|------------------------------------------------|
//! | `pr`    | 20,000 of one f32                         | 400,000 times: reads one, adds to another      |
//! | `cf`    | 5,000 of 50 f32                           | 150,000 times: reads one and updates it        |
//! | `tm`    | 5,000 of 100 i32, and one that sums them  | 100,000 times: reads one and the sum, updates both |
//!
//! Rows are chosen with Zipf's exponent 0.8, as items, words and pages are. There is no computation: times are the
//! library's. One process, one server, loopback, slack 0; medians over clocks, after the first, of runs that take turns.
//! `switches` turns each specialization on alone and off alone (IterStore, figure 6), `caches` compares policies and
//! capacities of thread caches (figure 7), `missing` leaves out part of the accesses when they are gathered (figure 9), and
//! `units` prints what a single access, clock and byte cost one thread.

mod units;

use std::error::Error;
use std::time::Instant;

use megagrid_baselines::server::{
    CONTENTION_BOUND, Client, Gather, Options, Prefetch, Preset, ServerOptions, Specializations, Statistics, Table,
    Tables, TabletServer, ThreadCache, Worker,
};

const CLOCKS: usize = 5;
const REPETITIONS: usize = 3;

/// What threads do.
#[derive(Clone, Copy, PartialEq)]
enum Pattern {
    PageRank,
    Factors,
    Topics,
}

impl Pattern {
    const ALL: [(Self, &'static str); 3] = [(Self::PageRank, "pr"), (Self::Factors, "cf"), (Self::Topics, "tm")];

    /// Rows, their length, and accesses of a thread in a clock.
    fn sizes(self) -> (u32, usize, usize) {
        match self {
            Self::PageRank => (20_000, 1, 400_000),
            Self::Factors => (5_000, 50, 150_000),
            Self::Topics => (5_000, 100, 100_000),
        }
    }
}

/// One way to run a pattern.
#[derive(Clone)]
struct Setting {
    name: String,
    prefetch: Prefetch,
    specializations: Specializations,
    gather: Option<Gather>,
    /// The share of accesses that is left out when they are gathered.
    missing: f64,
}

/// What came out, of one thread and clock.
#[derive(Default)]
struct Outcome {
    seconds: Vec<f64>,
    statistics: Statistics,
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
    for (pattern, name) in Pattern::ALL {
        let settings = match arguments.first().map(String::as_str) {
            Some("switches") => switches(),
            Some("caches") => caches(pattern),
            Some("missing") => missing(),
            _ => return Err("say units, switches, caches or missing".into()),
        };
        println!("{name}, {threads} threads, seed {seed}: ms per clock (min, max), and per clock of all threads");
        println!(
            "{:<34}{:>8}{:>17}{:>9}{:>10}{:>10}{:>9}{:>9}",
            "", "ms", "", "wait ms", "locks", "contended", "hits %", "kB"
        );
        compare(pattern, &settings, threads, seed)?;
        println!();
    }
    println!("NUMA placement: {}", Client::numa_nodes());
    Ok(())
}

/// Runs all settings in turn, and prints a line for each.
fn compare(pattern: Pattern, settings: &[Setting], threads: usize, seed: u64) -> Result<(), Box<dyn Error>> {
    let mut outcomes: Vec<Outcome> = settings.iter().map(|_| Outcome::default()).collect();
    for _ in 0..REPETITIONS {
        for (setting, outcome) in settings.iter().zip(&mut outcomes) {
            run(pattern, setting, threads, seed, outcome)?;
        }
    }
    for (setting, outcome) in settings.iter().zip(&mut outcomes) {
        outcome.seconds.sort_by(f64::total_cmp);
        let ms = |index: usize| outcome.seconds[index] * 1e3;
        let (statistics, last) = (&outcome.statistics, outcome.seconds.len() - 1);
        let per_clock = |count: u64| count as f64 / (REPETITIONS * (CLOCKS - 1)) as f64;
        println!(
            "{:<34}{:>8.2} ({:>6.2}, {:>6.2}){:>9.2}{:>10.0}{:>10.0}{:>9.1}{:>9.0}",
            setting.name,
            ms(last / 2),
            ms(0),
            ms(last),
            per_clock(statistics.wait.as_micros() as u64) / 1e3,
            per_clock(statistics.row_locks),
            per_clock(statistics.contended_row_locks),
            100.0 * statistics.thread_cache_hits as f64 / (statistics.reads + statistics.updates) as f64,
            per_clock(statistics.sent_bytes + statistics.received_bytes) / 1e3,
        );
    }
    Ok(())
}

fn run(
    pattern: Pattern,
    setting: &Setting,
    threads: usize,
    seed: u64,
    outcome: &mut Outcome,
) -> Result<(), Box<dyn Error>> {
    let (rows, row_len, _) = pattern.sizes();
    let mut tables = Tables::new();
    match pattern {
        Pattern::Topics => {
            let table = tables.add::<i32>(row_len);
            run_table(&tables, table, rows + 1, pattern, setting, (threads, seed), outcome)
        }
        _ => {
            let table = tables.add::<f32>(row_len);
            run_table(&tables, table, rows, pattern, setting, (threads, seed), outcome)
        }
    }
}

/// Runs one job and adds the times and counts of all clocks but the first to the outcome.
fn run_table<T: megagrid_baselines::server::Element>(
    tables: &Tables,
    table: Table<T>,
    rows: u32,
    pattern: Pattern,
    setting: &Setting,
    (threads, seed): (usize, u64),
    outcome: &mut Outcome,
) -> Result<(), Box<dyn Error>> {
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
            scope.spawn(move || -> Result<Vec<f64>, megagrid_baselines::Error> {
                let accesses = accesses(pattern, seed + worker.index() as u64);
                if setting.gather == Some(Gather::Virtual) {
                    let reported = accesses.len() - (accesses.len() as f64 * setting.missing) as usize;
                    worker.start_gather(Gather::Virtual);
                    work(&mut worker, table, pattern, &accesses[..reported])?;
                    worker.finish_gather()?;
                }
                let mut seconds = Vec::new();
                for clock in 0..CLOCKS {
                    barrier.wait();
                    if clock == 1 && worker.thread() == 0 {
                        *before.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = client.statistics();
                    }
                    if clock == 0 && setting.gather == Some(Gather::Real) {
                        worker.start_gather(Gather::Real);
                    }
                    let begin = Instant::now();
                    work(&mut worker, table, pattern, &accesses)?;
                    if clock == 0 {
                        worker.finish_gather()?;
                    } else {
                        seconds.push(begin.elapsed().as_secs_f64());
                    }
                }
                Ok(seconds)
            })
        });
        let threads: Vec<_> = threads.collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })?;
    outcome.seconds.extend(seconds.into_iter().flatten());
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
    now.sent_bytes -= before.sent_bytes;
    now.received_bytes -= before.received_bytes;
    now
}

/// Does the accesses of one thread in a clock, and ends the clock.
fn work<T: megagrid_baselines::server::Element>(
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

/// Pairs of rows, by Zipf's law; where both differ, sorted by the second, as edges are.
fn accesses(pattern: Pattern, seed: u64) -> Vec<u32> {
    let (rows, _, count) = pattern.sizes();
    let mut cumulative: Vec<f64> = (1..=rows).map(|rank| f64::from(rank).powf(-0.8)).collect();
    for index in 1..cumulative.len() {
        cumulative[index] += cumulative[index - 1];
    }
    let total = cumulative[rows as usize - 1];
    let mut state = seed;
    let mut row = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let uniform = ((x ^ x >> 31) >> 11) as f64 / (1u64 << 53) as f64;
        let rank = cumulative.partition_point(|&sum| sum < uniform * total).min(rows as usize - 1) as u32;
        // Frequent rows do not lie together.
        (u64::from(rank) * 48_271 % u64::from(rows)) as u32
    };
    let mut pairs: Vec<[u32; 2]> = (0..count).map(|_| [row(), row()]).collect();
    pairs.sort_unstable_by_key(|pair| if pattern == Pattern::PageRank { pair[1] } else { 0 });
    pairs.into_iter().flatten().collect()
}

fn setting(name: &str, change: impl FnOnce(&mut Setting)) -> Setting {
    let mut setting = Setting {
        name: name.to_owned(),
        prefetch: Prefetch::Conservative,
        specializations: Specializations::all(usize::MAX),
        gather: Some(Gather::Virtual),
        missing: 0.0,
    };
    change(&mut setting);
    setting
}

fn none(name: &str, change: impl FnOnce(&mut Setting)) -> Setting {
    setting(name, |setting| {
        (setting.prefetch, setting.specializations) = (Prefetch::Off, Specializations::none());
        change(setting);
    })
}

/// One on, one off.
fn switches() -> Vec<Setting> {
    let all = Specializations::all(usize::MAX);
    vec![
        none("none", |_| {}),
        none("prefetch alone", |s| s.prefetch = Prefetch::Conservative),
        none("static structures alone", |s| s.specializations.static_structures = true),
        none("prefetch and static structures", |s| {
            (s.prefetch, s.specializations.static_structures) = (Prefetch::Conservative, true);
        }),
        none("thread cache alone", |s| s.specializations.thread_cache = all.thread_cache),
        none("placement alone", |s| s.specializations.placement = true),
        setting("all but prefetch", |s| s.prefetch = Prefetch::Off),
        setting("all but static structures", |s| s.specializations.static_structures = false),
        setting("all but thread cache", |s| s.specializations.thread_cache = ThreadCache::Off),
        setting("all but placement", |s| s.specializations.placement = false),
        setting("all, gathered in a real iteration", |s| s.gather = Some(Gather::Real)),
        setting("all", |_| {}),
    ]
}

/// Policies by capacity.
fn caches(pattern: Pattern) -> Vec<Setting> {
    let rows = pattern.sizes().0 as usize + 1;
    let mut settings = vec![setting("no thread cache", |s| s.specializations.thread_cache = ThreadCache::Off)];
    for capacity in [1, rows / 1000, rows / 100, rows / 10, rows / 3, rows] {
        let capacity = capacity.max(1);
        settings.push(setting(&format!("LRU of {capacity}"), |s| {
            s.specializations.thread_cache = ThreadCache::Lru { capacity };
        }));
        settings.push(setting(&format!("static of {capacity}"), |s| {
            s.specializations.thread_cache = ThreadCache::Static { capacity, contention_bound: CONTENTION_BOUND };
        }));
    }
    settings
}

/// Accesses left out.
fn missing() -> Vec<Setting> {
    let missing = |share: f64| setting(&format!("{} % missing", share * 100.0), |s| s.missing = share);
    let mut settings = [0.0, 0.01, 0.05, 0.1, 0.2, 0.5].map(missing).to_vec();
    settings.push(setting("nothing gathered", |s| s.gather = None));
    settings
}

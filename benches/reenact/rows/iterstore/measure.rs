//! Times and counts of a pattern on the parameter server under several settings, which take turns. There is no computation: times are the
//! library's. One process, one server, loopback, slack 0.

use std::hint::black_box;
use std::ops::RangeInclusive;
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Instant;

use megagrid_baselines::Error;
use megagrid_baselines::server::{
    Client, Element, Gather, Options, Preprocessing, Preset, ServerOptions, Statistics, Table, Tables, TabletServer,
    Worker,
};
use megagrid_partition::parallel::lock;

use super::pattern::{Kind, Pattern};
use super::settings::Setting;

const THREADS: usize = 2;
const SEED: u64 = 1;

#[derive(Default)]
pub struct Measured {
    pub name: String,
    /// Of each round: the quickest of its clocks but the first, which other work on the machine slowed down least.
    clocks: Vec<f64>,
    /// Of each round, with gathering and all clocks.
    wholes: Vec<f64>,
    /// Of all rounds, without the first clock.
    pub statistics: Statistics,
    /// Of a round.
    counted_clocks: usize,
}

/// How many times as long one setting takes as another, over rounds: the median, and where that of all rounds there could be is,
/// nine times in ten.
#[derive(Clone, Copy)]
pub struct Ratio {
    pub median: f64,
    interval: [f64; 2],
}

impl Ratio {
    /// Tells whether more rounds may bring the median to the other side of a bound.
    pub fn may_cross(self, bound: f64) -> bool {
        self.interval[0] < bound && bound < self.interval[1]
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ({:.2} to {:.2})", self.median, self.interval[0], self.interval[1])
    }
}

impl Measured {
    /// Compares clocks round by round.
    pub fn over(&self, other: &Self) -> Ratio {
        ratio(&self.clocks, &other.clocks)
    }

    /// Compares runs with gathering and all clocks.
    pub fn whole_over(&self, other: &Self) -> Ratio {
        ratio(&self.wholes, &other.wholes)
    }

    pub fn per_clock(&self, count: u64) -> f64 {
        count as f64 / (self.counted_clocks * self.clocks.len()) as f64
    }

    fn print(&self) {
        let (name, of, clocks) = (&self.name, &self.statistics, sorted(self.clocks.clone()));
        let whole = 1e3 * sorted(self.wholes.clone())[self.wholes.len() / 2];
        let [median, least, most] = [clocks.len() / 2, 0, clocks.len() - 1].map(|at| 1e3 * clocks[at]);
        print!("    {name:<34}{median:>8.2} ({least:>7.2}, {most:>7.2}){whole:>9.0}");
        let (messages, bytes) = (of.sent_messages + of.received_messages, of.sent_bytes + of.received_bytes);
        let counts = [of.wait.as_micros() as u64, of.row_locks, of.contended_row_locks, of.unreported, messages, bytes];
        let [wait, locks, contended, unknown, messages, bytes] = counts.map(|count| self.per_clock(count));
        let (wait, kilobytes) = (wait / 1e3, bytes / 1e3);
        let hits = 100.0 * of.thread_cache_hits as f64 / (of.reads + of.updates) as f64;
        print!("{wait:>9.2}{locks:>9.0}{contended:>10.0}{hits:>8.1}");
        println!("{unknown:>9.0}{messages:>9.0}{kilobytes:>8.0}");
    }
}

/// Prints what gathering and specializing took, part by part (Figure 6c): the longest of all rounds.
pub fn print_preprocessing(of: &Measured) {
    let Preprocessing { gather, merge, placement, static_structures, choice, thread_caches, whole } =
        of.statistics.preprocessing;
    let parts = [gather, merge, placement, static_structures, choice, thread_caches];
    let other = whole.saturating_sub(parts.iter().sum());
    let [gather, merge, placement, fixed, choice, caches, other] =
        [gather, merge, placement, static_structures, choice, thread_caches, other]
            .map(|part| 1e3 * part.as_secs_f64());
    println!(
        "    {}, preprocessing: gather {gather:.2} ms, merge {merge:.2}, cross-machine {placement:.2}, static structures \
         {fixed:.2}, thread caches {choice:.2} to choose and {caches:.2} to make, other {other:.2}",
        of.name
    );
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn ratio(of: &[f64], by: &[f64]) -> Ratio {
    let ratios = sorted(of.iter().zip(by).map(|(of, by)| of / by).collect());
    let last = ratios.len() - 1;
    // How many of n rounds are below the true median has a deviation of √n / 2.
    let rounds = ratios.len() as f64;
    let first = (rounds / 2.0 - NINE_IN_TEN * rounds.sqrt() / 2.0).max(1.0) as usize - 1;
    let median = f64::midpoint(ratios[last / 2], ratios[last - last / 2]);
    Ratio { median, interval: [ratios[first], ratios[last - first]] }
}

/// So many deviations to either side hold nine values in ten.
const NINE_IN_TEN: f64 = 1.64;

/// Runs all settings in turn, each round beginning with another, and prints a line for each. There are more rounds than the fewest
/// for as long as noise leaves a verdict open.
pub fn compare(
    pattern: Pattern,
    settings: &[Setting],
    rounds: RangeInclusive<usize>,
    clocks: usize,
    is_open: impl Fn(&[Measured]) -> bool,
) -> Vec<Measured> {
    let job = Job::new(pattern, clocks);
    let begin =
        |setting: &Setting| Measured { name: setting.name.clone(), counted_clocks: clocks - 1, ..Measured::default() };
    let mut measured: Vec<Measured> = settings.iter().map(begin).collect();
    let mut round = 0;
    while round < *rounds.start() || round < *rounds.end() && is_open(&measured) {
        for at in (0..settings.len()).map(|at| (at + round) % settings.len()) {
            let run = match pattern.kind {
                Kind::Topics => job.run::<i32>(&settings[at]),
                _ => job.run::<f32>(&settings[at]),
            };
            let run = run.expect("a run that ends");
            measured[at].clocks.push(run.clock);
            measured[at].wholes.push(run.whole);
            measured[at].statistics.add(&run.statistics);
        }
        round += 1;
    }
    let (name, Pattern { rows, row_len, .. }) = (pattern.name(), pattern);
    print!(
        "  {name}: {rows} rows of {row_len}, {THREADS} threads, medians of {round} rounds (least, most), each by the "
    );
    println!("quickest of {clocks} clocks; by clock, of all threads");
    println!(
        "    {:<34}{:>8}{:>19}{:>9}{:>9}{:>9}{:>10}{:>8}{:>9}{:>9}{:>8}",
        "", "ms", "", "whole ms", "wait ms", "locks", "contended", "hits %", "unknown", "messages", "kB"
    );
    measured.iter().for_each(Measured::print);
    measured
}

/// A row's element that counts updates.
trait Count: Element + From<bool> + Into<f64> {}
impl Count for f32 {}
impl Count for i32 {}

struct Job {
    pattern: Pattern,
    clocks: usize,
    /// Of each thread, in a clock.
    accesses: Vec<Vec<u32>>,
    /// Of all threads, of each row, in a clock.
    updates: Vec<u32>,
}

struct Timed {
    clock: f64,
    whole: f64,
    statistics: Statistics,
}

impl Job {
    fn new(pattern: Pattern, clocks: usize) -> Self {
        let accesses: Vec<Vec<u32>> = (0..THREADS as u64).map(|thread| pattern.accesses(SEED + thread)).collect();
        let mut updates = vec![0; pattern.rows as usize + usize::from(pattern.kind == Kind::Topics)];
        for pair in accesses.iter().flat_map(|accesses| accesses.chunks_exact(2)) {
            match pattern.kind {
                Kind::PageRank => updates[pair[1] as usize] += 1,
                Kind::Factors => updates[pair[0] as usize] += 1,
                Kind::Topics => {
                    updates[pair[0] as usize] += 1;
                    updates[pattern.rows as usize] += 1;
                }
            }
        }
        Self { pattern, clocks, accesses, updates }
    }

    /// Runs it under one setting. Whatever was reported, every row ends as the sum of its updates.
    fn run<T: Count>(&self, setting: &Setting) -> Result<Timed, Error> {
        let mut tables = Tables::new();
        let table = tables.add::<T>(self.pattern.row_len);
        let server = TabletServer::start("127.0.0.1:0", &tables, ServerOptions::new(0, 1, 1))?;
        let mut options = Options::preset(Preset::IterStore, THREADS, 0);
        (options.prefetch, options.specializations) = (setting.prefetch, setting.specializations.clone());
        let client = Client::connect(&[server.address()], &tables, options)?;
        let all: Vec<u32> = (0..self.updates.len() as u32).collect();
        client.store(table, &all, &vec![T::IDENTITY; all.len() * table.row_len()])?;
        let before = Mutex::new(Statistics::default());
        let barrier = Barrier::new(THREADS);
        let times = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for worker in client.workers() {
                let first_ended = || {
                    *lock(&before) = client.statistics();
                };
                let (barrier, table) = (&barrier, table);
                threads.push(scope.spawn(move || self.run_thread::<T>(worker, table, setting, barrier, first_ended)));
            }
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect::<Result<Vec<(f64, Vec<f64>)>, Error>>()
        })?;
        let statistics = difference(client.statistics(), &before.into_inner().unwrap_or_else(PoisonError::into_inner));
        let rows = client.read_table(table, self.clocks as u32)?;
        for (row, (values, &updates)) in rows.values.chunks_exact(table.row_len()).zip(&self.updates).enumerate() {
            assert_eq!(values[0].into(), f64::from(updates * self.clocks as u32), "row {row}, {}", setting.name);
        }
        let whole = times.iter().map(|(whole, _)| *whole).fold(0.0, f64::max);
        let last_of = |clock: usize| times.iter().map(|(_, clocks)| clocks[clock]).fold(0.0, f64::max);
        let clock = (0..self.clocks - 1).map(last_of).fold(f64::INFINITY, f64::min);
        Ok(Timed { clock, whole, statistics })
    }

    /// Returns the seconds of the whole run, and of all clocks but the first.
    fn run_thread<T: Count>(
        &self,
        mut worker: Worker,
        table: Table<T>,
        setting: &Setting,
        barrier: &Barrier,
        first_ended: impl Fn(),
    ) -> Result<(f64, Vec<f64>), Error> {
        let accesses = &self.accesses[worker.index()];
        let reported = setting.reported.of(self.pattern, accesses, SEED + worker.index() as u64);
        barrier.wait();
        let whole = Instant::now();
        if setting.gather == Some(Gather::Virtual) {
            worker.start_gather(Gather::Virtual);
            self.work(&mut worker, table, &reported)?;
            worker.finish_gather()?;
        }
        let mut seconds = Vec::new();
        for clock in 0..self.clocks {
            barrier.wait();
            if clock == 1 && worker.thread() == 0 {
                first_ended();
            }
            if clock == 0 && setting.gather == Some(Gather::Real) {
                worker.start_gather(Gather::Real);
            }
            let begin = Instant::now();
            self.work(&mut worker, table, accesses)?;
            if clock == 0 {
                worker.finish_gather()?;
            } else {
                seconds.push(begin.elapsed().as_secs_f64());
            }
        }
        Ok((whole.elapsed().as_secs_f64(), seconds))
    }

    /// Does the accesses of one thread in a clock, and ends the clock.
    fn work<T: Count>(&self, worker: &mut Worker, table: Table<T>, accesses: &[u32]) -> Result<(), Error> {
        let mut delta = vec![T::IDENTITY; table.row_len()];
        delta[0] = true.into();
        let sums = self.pattern.rows;
        for pair in accesses.chunks_exact(2) {
            black_box(worker.read(table, pair[0], 0)?[0]);
            match self.pattern.kind {
                Kind::PageRank => worker.update(table, pair[1], &delta)?,
                Kind::Factors => worker.update(table, pair[0], &delta)?,
                Kind::Topics => {
                    black_box(worker.read(table, sums, 0)?[0]);
                    worker.update(table, pair[0], &delta)?;
                    worker.update(table, sums, &delta)?;
                }
            }
        }
        worker.clock()
    }
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

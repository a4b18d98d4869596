//! IterStore, Figure 8: rows that are read first are requested first, over a slow network.
//!
//! Modelled: a link of 1 Gbit/s for each of eight machines, and the messages of this workspace's parameter server, whose bytes are compared
//! with what eight clients and servers of it count. Computing takes as long as a real pass of the same job with one thread.

use std::ops::ControlFlow;

use megagrid_algorithms::pagerank::Damping;
use megagrid_algorithms::{lda, mf};
use megagrid_baselines::apps;
use megagrid_baselines::server::{
    Client, Gather, Options, Preset, ServerOptions, Specializations, Tables, TabletServer, Worker,
};
use megagrid_baselines::{Epoch, Error, Finish, Report, Run, System};
use megagrid_benches::inputs::{self, Order};
use megagrid_benches::measure::mean_and_deviation;
use megagrid_datasets::synthetic::CorpusSettings;
use megagrid_engine::virtual_cluster::Link;

use crate::fabric::{self, Setting, Work};
use megagrid_benches::findings::Findings;
use megagrid_results::published::Evidence;

const MACHINES: usize = 8;
const RATIOS: [f64; 7] = [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5];
const SEEDS: u64 = 10;
const SETTING: Setting = Setting {
    row_bytes: 0,
    early_ratio: 0.0,
    link: Link { bytes_per_second: 125e6, latency_seconds: 100e-6, message_seconds: 5e-6 },
    jitter: 0.05,
    clocks: 12,
    seed: 1,
};

/// What the machines do in a clock, which is a pass.
struct Job {
    name: &'static str,
    row_len: usize,
    works: Vec<Work>,
}

/// Deals accesses to machines, by the left ends of edges, each with its share of a pass that took so long.
fn deal(left: &[u32], reads: &[u32], updates: &[u32], seconds: f64) -> Vec<Work> {
    let mut works: Vec<Work> =
        (0..MACHINES).map(|_| Work { reads: Vec::new(), updates: Vec::new(), seconds: 0.0 }).collect();
    for ((&left, &read), &update) in left.iter().zip(reads).zip(updates) {
        let work = &mut works[left as usize % MACHINES];
        work.reads.push(read);
        work.updates.push(update);
    }
    for work in &mut works {
        work.seconds = seconds * work.reads.len() as f64 / reads.len() as f64;
        work.updates.sort_unstable();
        work.updates.dedup();
    }
    works
}

/// Returns the least seconds that one worker of the parameter server computes in an iteration of a job, after the first.
fn computes(job: impl FnOnce(&Run, Report<'_>) -> Result<Finish, Error>) -> f64 {
    let mut least = f64::INFINITY;
    let mut report = |epoch: &Epoch| {
        least = if epoch.iteration > 1 { least.min(epoch.compute_seconds) } else { least };
        ControlFlow::Continue(())
    };
    job(&Run { iterations: 4, ..Run::default() }, &mut report).expect("a run that ends");
    least
}

fn factors() -> Job {
    let dims = 100;
    let ratings = inputs::ratings(60_000, 10_000, 2_000_000);
    let config = mf::Config { dims, biases: false, optimizer: mf::Optimizer::Sgd, step: 0.01, ..mf::Config::default() };
    let job = apps::mf::Job { ratings: &ratings, config, form: apps::mf::Form::InPlace };
    let seconds = computes(|run, report| apps::mf::run(System::IterStore, &job, run, report));
    let works = deal(&ratings.left, &ratings.right, &ratings.right, seconds);
    Job { name: "factors", row_len: dims, works }
}

fn topics() -> Job {
    let num_topics = 100;
    let settings = CorpusSettings { num_documents: 10_000, num_words: 10_000, ..CorpusSettings::default() };
    let corpus = settings.generate().expect("a small corpus").corpus.data.edges;
    let config = lda::Config { clocks: 1, ..lda::Config::new(num_topics) };
    let job = apps::lda::Job { corpus: &corpus, config, tell: None };
    let seconds = computes(|run, report| apps::lda::run(System::IterStore, &job, run, report));
    Job { name: "topics", row_len: num_topics, works: deal(&corpus.left, &corpus.right, &corpus.right, seconds) }
}

fn pages() -> Job {
    let graph = inputs::graph(17, Order::Shuffled);
    let job = apps::pagerank::Job { graph: &graph, damping: Damping::DEFAULT };
    let seconds = computes(|run, report| apps::pagerank::run(System::IterStore, &job, run, report));
    Job { name: "pages", row_len: 1, works: deal(&graph.right, &graph.left, &graph.right, seconds) }
}

/// Returns the bytes that a machine's client and server really send to others in a clock: from when the rows of one have all been read to
/// when those of a later one have.
fn counted(job: &Job) -> f64 {
    const FROM: u32 = 1;
    const TO: u32 = 5;
    let mut tables = Tables::new();
    let table = tables.add::<f32>(job.row_len);
    let start = |at| TabletServer::start("127.0.0.1:0", &tables, ServerOptions::new(at, MACHINES, MACHINES));
    let servers: Vec<TabletServer> = (0..MACHINES).map(|at| start(at).expect("a free port")).collect();
    let addresses: Vec<_> = servers.iter().map(TabletServer::address).collect();
    let client = |at| {
        let specializations = Specializations { placement: false, ..Specializations::all(0) };
        let preset = Options::preset(Preset::IterStore, 1, 0);
        let options = Options { client: at, clients: MACHINES, own_server: at, specializations, ..preset };
        Client::connect(&addresses, &tables, options).expect("servers that run")
    };
    let clients: Vec<Client> = (0..MACHINES).map(client).collect();
    let crossed = |client: &Client| {
        let statistics = client.statistics();
        statistics.sent_bytes + statistics.received_bytes - statistics.own_server_bytes
    };
    let work = |client: &Client, work: &Work| -> Result<u64, Error> {
        let mut worker = client.worker(0)?;
        let read = |worker: &mut Worker| work.reads.iter().try_for_each(|&row| worker.read(table, row, 0).map(drop));
        let delta = vec![1.0; job.row_len];
        let update = |worker: &mut Worker| {
            work.updates.iter().try_for_each(|&row| worker.update(table, row, &delta))?;
            worker.clock()
        };
        worker.start_gather(Gather::Virtual);
        read(&mut worker)?;
        update(&mut worker)?;
        worker.finish_gather()?;
        let mut before = 0;
        for clock in 0..TO {
            read(&mut worker)?;
            if clock == FROM {
                before = crossed(client);
            }
            update(&mut worker)?;
        }
        read(&mut worker)?;
        Ok(crossed(client) - before)
    };
    let bytes = std::thread::scope(|scope| {
        let machines = clients.iter().zip(&job.works).map(|(client, of)| scope.spawn(move || work(client, of)));
        let machines: Vec<_> = machines.collect();
        machines.into_iter().map(|machine| machine.join().expect("no panic").expect("a run that ends")).sum::<u64>()
    });
    bytes as f64 / (f64::from(TO - FROM) * MACHINES as f64)
}

pub fn run(findings: &mut Findings) {
    let Setting { link, jitter, clocks, .. } = SETTING;
    print!("  {MACHINES} machines, a worker and a server each; link {link}; jitter {jitter}; ");
    println!("{SEEDS} seeds of {clocks} clocks");
    let mut lines = Vec::new();
    for job in [factors(), topics(), pages()] {
        let setting = Setting { row_bytes: 4 * job.row_len, ..SETTING };
        let modelled = fabric::run(&job.works, &setting).bytes;
        let off = modelled / counted(&job) - 1.0;
        let (name, megabytes, percent) = (job.name, modelled / 1e6, 100.0 * off);
        let what = format!("{megabytes:.2} MB a machine and clock, within 1 % of what is counted: {percent:+.2} %");
        findings.check_by(Evidence::Counted, format!("{name}: {what}"), off.abs() <= 0.01);
        let compute = 1e3 * job.works.iter().map(|work| work.seconds).sum::<f64>() / MACHINES as f64;
        println!("  {name}: {compute:.1} ms of computing a clock; ms of waiting and of a clock by early ratio");
        println!("  (deviation between clocks, between seeds)");
        let (mut points, mut without, mut worst) = (Vec::new(), Vec::new(), f64::NEG_INFINITY);
        for early_ratio in RATIOS {
            let ran: Vec<_> =
                (1..=SEEDS).map(|seed| fabric::run(&job.works, &Setting { early_ratio, seed, ..setting })).collect();
            let waits: Vec<f64> = ran.iter().flat_map(|ran| ran.waits.iter().copied()).collect();
            let seconds: Vec<f64> = ran.iter().flat_map(|ran| ran.seconds.iter().copied()).collect();
            let by_seed: Vec<f64> = ran.iter().map(|ran| mean_and_deviation(&ran.waits).0).collect();
            let (wait, of_clocks) = mean_and_deviation(&waits);
            let (of_seeds, clock) = (mean_and_deviation(&by_seed).1, mean_and_deviation(&seconds).0);
            let [wait, of_clocks, of_seeds, clock] = [wait, of_clocks, of_seeds, clock].map(|seconds| 1e3 * seconds);
            println!("    {early_ratio:>4.2}  {wait:>7.2} ({of_clocks:.2}, {of_seeds:.2})  {clock:>7.2}");
            points.push((100.0 * early_ratio, wait));
            if without.is_empty() {
                without = by_seed;
                continue;
            }
            // Seeds are compared one by one: the same computing in both.
            let more: Vec<f64> = by_seed.iter().zip(&without).map(|(with, without)| with - without).collect();
            let (mean, deviation) = mean_and_deviation(&more);
            worst = worst.max(mean - deviation / (SEEDS as f64).sqrt());
        }
        let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let found = format!("{:.2} ms without, at best {least:.2}", points[0].1);
        let what = "no ratio waits longer than none by more than a standard error";
        findings.check(format!("{name}: {what}: {found}"), worst <= 0.0);
        lines.push((name.to_owned(), points));
    }
    let title = "Rows that are read first requested first (IterStore, Figure 8)";
    findings.plot("row-17-prefetch", title, ["early ratio, %", "ms of waiting a clock"], lines);
}

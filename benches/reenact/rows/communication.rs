//! LazyTable, Figures 8 and 9: what communication takes of processors, and what requesting rows beforehand saves. Real time: one process with
//! one worker, and the threads of its client and its server.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use megagrid_algorithms::pagerank::Damping;
use megagrid_algorithms::{lda, mf};
use megagrid_baselines::apps;
use megagrid_baselines::server::{Client, Options, Preset, ServerOptions, Tables, TabletServer};
use megagrid_baselines::{Epoch, Error, Finish, Report, Run, System::LazyTable};
use megagrid_benches::inputs::{self, Order};
use megagrid_benches::measure::median;
use megagrid_datasets::synthetic::CorpusSettings;
use megagrid_partition::EdgeList;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use megagrid_benches::findings::Findings;

const ROUNDS: usize = 9;
/// The same where a run takes seconds.
const FEW_ROUNDS: usize = 5;
/// Iterations of a run; the first is not counted.
const ITERATIONS: u64 = 5;

/// Seconds of an iteration, means over those of a run that count.
#[derive(Clone, Copy, Default)]
struct Spent {
    whole: f64,
    compute: f64,
    wait: f64,
}

/// Runs a job under LazyTable, with a slack of 1, and prefetch or not.
fn spent(prefetch: bool, job: impl FnOnce(&Run, Report<'_>) -> Result<Finish, Error>) -> Spent {
    let mut sum = Spent::default();
    let mut report = |epoch: &Epoch| {
        if epoch.iteration > 1 {
            sum.whole += epoch.seconds;
            sum.compute += epoch.compute_seconds;
            sum.wait += epoch.wait_seconds;
        }
        ControlFlow::Continue(())
    };
    job(&Run { iterations: ITERATIONS, slack: 1, prefetch, ..Run::default() }, &mut report).expect("a run that ends");
    let mean = |sum: f64| sum / (ITERATIONS - 1) as f64;
    Spent { whole: mean(sum.whole), compute: mean(sum.compute), wait: mean(sum.wait) }
}

/// Runs all in turn, and returns what each round took of each.
fn rounds<const N: usize>(rounds: usize, run: impl Fn(usize) -> Spent) -> [Vec<Spent>; N] {
    let mut all = [const { Vec::new() }; N];
    for _ in 0..rounds {
        all.iter_mut().enumerate().for_each(|(at, runs)| runs.push(run(at)));
    }
    all
}

/// Returns the median of how many times as long one takes as another, round by round.
fn times(of: &[Spent], by: &[Spent]) -> f64 {
    median(of.iter().zip(by).map(|(of, by)| of.whole / by.whole).collect())
}

fn show(name: &str, of: &[Spent]) {
    let [whole, compute, wait] = [|s: &Spent| s.whole, |s: &Spent| s.compute, |s: &Spent| s.wait]
        .map(|part: fn(&Spent) -> f64| 1e3 * median(of.iter().map(part).collect()));
    println!("    {name:<26} {whole:>8.1} ms: {compute:>7.1} computing, {wait:>7.1} waiting");
}

fn corpus(num_documents: usize, num_words: usize) -> EdgeList<u32> {
    let settings = CorpusSettings { num_documents, num_words, ..CorpusSettings::default() };
    settings.generate().expect("a small corpus").corpus.data.edges
}

pub fn run(findings: &mut Findings) {
    println!("  one process, one worker, loopback; medians of {ROUNDS} rounds (Figure 9: {FEW_ROUNDS})");
    if findings.is_wanted("8") {
        processors(findings);
    }
    if findings.is_wanted("9") {
        prefetch(findings);
    }
}

/// Keeps this thread, and those that it starts, on the first of its processors for as long as it lives.
struct OnOne(CpuSet);

impl OnOne {
    /// Nothing where there are no two.
    fn new() -> Option<Self> {
        let all = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let mut ours = (0..CpuSet::count()).filter(|&at| all.is_set(at).unwrap_or(false));
        let (first, _) = (ours.next()?, ours.next()?);
        let mut one = CpuSet::new();
        one.set(first).ok()?;
        sched_setaffinity(Pid::from_raw(0), &one).ok()?;
        Some(Self(all))
    }
}

impl Drop for OnOne {
    fn drop(&mut self) {
        sched_setaffinity(Pid::from_raw(0), &self.0).expect("the processors that it had before");
    }
}

/// Units of work of a run of Figure 8, each of which is half a clock or one.
const UNITS: u32 = 24;
/// Values of a row there.
const TOPICS: usize = 100;

/// Returns what a unit of work takes that reads and changes the rows of words in the order of a corpus, as topic modelling does, under a clock of
/// `work` units and a slack.
fn unit(words: &[u32], num_words: u32, (work, slack): (u32, u32)) -> Result<Spent, Error> {
    let mut tables = Tables::new();
    let table = tables.add::<f32>(TOPICS);
    let server = TabletServer::start("127.0.0.1:0", &tables, ServerOptions::new(0, 1, 1))?;
    let client = Client::connect(&[server.address()], &tables, Options::preset(Preset::LazyTable, 1, slack))?;
    let all: Vec<u32> = (0..num_words).collect();
    client.store(table, &all, &vec![1.0; all.len() * TOPICS])?;
    let mut worker = client.worker(0)?;
    let (mut begin, mut waited, mut delta) = (Instant::now(), Duration::ZERO, vec![0.0; TOPICS]);
    for at in 0..UNITS {
        if at == UNITS / 4 {
            (begin, waited) = (Instant::now(), client.statistics().wait);
        }
        for &word in words {
            let row = worker.read(table, word, slack)?;
            let mut sum = 0.0;
            let drawn = row.iter().position(|&count| {
                sum += count.abs();
                sum > TOPICS as f32 / 2.0
            });
            delta[drawn.unwrap_or(0)] = 1e-3;
            worker.update(table, word, &delta)?;
            delta[drawn.unwrap_or(0)] = 0.0;
        }
        if (at + 1) % work == 0 {
            worker.clock()?;
        }
    }
    let of_unit = |all: Duration| all.as_secs_f64() / f64::from(UNITS - UNITS / 4);
    let (whole, wait) = (of_unit(begin.elapsed()), of_unit(client.statistics().wait - waited));
    Ok(Spent { whole, compute: whole - wait, wait })
}

/// Figure 8: at an equal bound, slack costs more communication than work per clock does, and a processor more takes that over.
fn processors(findings: &mut Findings) {
    let Some(one) = OnOne::new() else {
        return findings.cannot("Figure 8: there is one processor only");
    };
    drop(one);
    // A unit reads most rows a few times only: computing does not hide what is sent.
    let corpus = corpus(1000, 20_000);
    let settings = [("A-BSP {2,0}", (2, 0)), ("SSP {1,1}", (1, 1))];
    let [bsp_one, bsp_all, ssp_one, ssp_all] = rounds(ROUNDS, |at| {
        let _one = (at % 2 == 0).then(OnOne::new);
        unit(&corpus.right, corpus.num_right as u32, settings[at / 2].1).expect("a run that ends")
    });
    for ((name, _), [one, all]) in settings.into_iter().zip([[&bsp_one, &bsp_all], [&ssp_one, &ssp_all]]) {
        show(&format!("{name}, one processor"), one);
        show(&format!("{name}, all"), all);
    }
    let (bsp, ssp) = (times(&bsp_one, &bsp_all), times(&ssp_one, &ssp_all));
    let what = format!("on one processor SSP takes {ssp:.2} times as long as with another one, A-BSP {bsp:.2}");
    findings.check(format!("Figure 8: {what}"), ssp > bsp);
    let (on_one, on_all) = (times(&ssp_one, &bsp_one), times(&ssp_all, &bsp_all));
    let what = format!("SSP takes {on_one:.2} times as long as A-BSP on one processor, {on_all:.2} with another one");
    findings.check(format!("Figure 8: {what}"), on_one > on_all);
}

/// Figure 9: rows that are requested beforehand shorten waiting.
fn prefetch(findings: &mut Findings) {
    let (corpus, graph) = (corpus(3000, 5000), inputs::graph(14, Order::Shuffled));
    let ratings = inputs::ratings(20_000, 2_000, 300_000);
    let config = mf::Config {
        dims: 50,
        optimizer: mf::Optimizer::Sgd,
        step: 1e-3,
        decay: 0.0,
        biases: false,
        ..mf::Config::default()
    };
    let topics =
        apps::lda::Job { corpus: &corpus, config: lda::Config { clocks: 1, ..lda::Config::new(50) }, tell: None };
    let factors = apps::mf::Job { ratings: &ratings, config, form: apps::mf::Form::InPlace };
    let pages = apps::pagerank::Job { graph: &graph, damping: Damping::DEFAULT };
    let jobs: [(&str, &dyn Fn(bool) -> Spent); 3] = [
        ("topics", &|prefetch| spent(prefetch, |run, report| apps::lda::run(LazyTable, &topics, run, report))),
        ("factors", &|prefetch| spent(prefetch, |run, report| apps::mf::run(LazyTable, &factors, run, report))),
        ("pages", &|prefetch| spent(prefetch, |run, report| apps::pagerank::run(LazyTable, &pages, run, report))),
    ];
    for (name, job) in jobs {
        let [with, without] = rounds(FEW_ROUNDS, |at| job(at == 0));
        show(&format!("{name}, prefetch"), &with);
        show(&format!("{name}, none"), &without);
        let less = |part: fn(&Spent) -> f64| {
            median(without.iter().zip(&with).map(|(without, with)| part(without) / part(with)).collect())
        };
        let [wait, whole] = [less(|spent| spent.wait), less(|spent| spent.whole)];
        let what =
            format!("without prefetch a worker waits {wait:.1} times as long, an iteration takes {whole:.1} times");
        findings.check(format!("Figure 9, {name}: {what}"), wait > 1.0 && whole > 1.0);
    }
    println!("    Asking for a row counts as computing: without prefetch each is asked for by itself.");
}

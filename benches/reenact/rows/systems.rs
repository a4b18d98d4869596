//! TuX², Figures 13 and 14: matrix factorization on Megagrid and on what it is compared with. Real time, one thread.

use std::ops::ControlFlow;

use megagrid_algorithms::mf::batch::{self, MfBatch};
use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_algorithms::mf::{Config, Optimizer, Sums};
use megagrid_baselines::apps::mf::{self, Form, Job};
use megagrid_baselines::{Epoch, Run, System};
use megagrid_benches::inputs;
use megagrid_benches::measure::iterate;
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side};
use megagrid_stages::{Left, Program, Right, Sequence, Stages, Vertex};

use megagrid_benches::findings::Findings;

const ROUNDS: usize = 5;
/// Iterations of a run; the first is not counted.
const ITERATIONS: u64 = 3;

fn config() -> Config {
    Config { dims: 50, optimizer: Optimizer::Sgd, step: 1e-5, decay: 0.0, biases: false, ..Config::default() }
}

/// Users and ratings, with few and with many items.
#[derive(Clone, Copy)]
struct Size {
    users: usize,
    ratings: usize,
    items: [usize; 2],
}

const LARGE: Size = Size { users: 100_000, ratings: 3_000_000, items: [5_000, 200_000] };
/// A naive server takes minutes for what the others do in seconds.
const SMALL: Size = Size { users: 20_000, ratings: 300_000, items: [2_000, 20_000] };

/// What a run cost: the least seconds of an iteration, and what was sent in one.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    bytes: u64,
    messages: u64,
}

fn megagrid<P, S>(edges: &GroupedEdges<f32>, config: &Config, sequence: Sequence<P, S>) -> Cost
where
    P: Program<Edge = f32, Worker = Sums, Global = Sums>,
    P::Left: Vertex<Sync = [f32]>,
    P::Right: Vertex<Sync = [f32]>,
    S: Stages<P>,
{
    let settings = Settings { workers: 1, dims: config.row_dims(), ..Settings::default() };
    let mut engine = Engine::<P>::new(edges, sequence, &settings).expect("a job that fits");
    engine.init(Left, |user, first| config.init_user(1, user, first.sync));
    engine.init(Right, |item, first| config.init_item(1, item, first.sync));
    let later = iterate(&mut engine, ITERATIONS).into_iter().skip(1);
    let seconds = later.map(|report| report.seconds).fold(f64::INFINITY, f64::min);
    Cost { seconds, bytes: 0, messages: 0 }
}

fn other(system: System, ratings: &EdgeList<f32>, config: Config, form: Form) -> Cost {
    let mut cost = Cost { seconds: f64::INFINITY, bytes: 0, messages: 0 };
    let run = Run { iterations: ITERATIONS, ..Run::default() };
    let mut take = |epoch: &Epoch| {
        if epoch.iteration > 1 {
            let seconds = cost.seconds.min(epoch.seconds);
            cost = Cost { seconds, bytes: epoch.sent_bytes, messages: epoch.messages };
        }
        ControlFlow::Continue(())
    };
    mf::run(system, &Job { ratings, config, form }, &run, &mut take).expect("a run that ends");
    cost
}

/// Orders ratings by user, as all systems are given them.
fn by_user(size: Size, items: usize) -> EdgeList<f32> {
    let edges = inputs::ratings(size.users, items, size.ratings);
    megagrid_baselines::list_by(&GroupedEdges::new(edges, &[Side::Left]), Side::Left, |rating| *rating)
        .expect("edges in memory")
}

/// Runs all in turn, and returns each one's medians, Megagrid first, having shown them.
fn compared((size, items): (Size, usize), form: Form, systems: &[System]) -> Vec<Cost> {
    let (ratings, config) = (by_user(size, items), config());
    let edges = GroupedEdges::new(ratings.clone(), &[Side::Right]);
    let own = || match form {
        Form::Batch => megagrid::<MfBatch, _>(&edges, &config, batch::sequence(config, size.ratings as u64)),
        Form::InPlace => megagrid::<Mf, _>(&edges, &config, in_place::sequence(config, size.ratings as u64)),
    };
    let mut samples = vec![Vec::new(); systems.len() + 1];
    for _ in 0..ROUNDS {
        samples[0].push(own());
        for (at, system) in systems.iter().enumerate() {
            samples[at + 1].push(other(*system, &ratings, config, form));
        }
    }
    let medians: Vec<Cost> = samples
        .into_iter()
        .map(|mut samples| {
            samples.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
            samples[ROUNDS / 2]
        })
        .collect();
    let names = std::iter::once("megagrid").chain(systems.iter().map(|system| system.name()));
    for (name, cost) in names.zip(&medians) {
        let Cost { seconds, bytes, messages } = *cost;
        let (times, megabytes) = (seconds / medians[0].seconds, 1e-6 * bytes as f64);
        println!(
            "    {items:>7} items  {name:<13} {seconds:>8.3} s  {times:>6.2}  {megabytes:>9.1} MB  {messages:>10} messages"
        );
    }
    medians
}

fn show(Size { users, ratings, .. }: Size, form: &str) {
    println!(
        "  k = 50, {users} users, {ratings} ratings, one thread, {form}; seconds of an iteration, medians of {ROUNDS} rounds"
    );
}

/// Figure 13: gather-apply-scatter.
pub fn gas(findings: &mut Findings) {
    show(LARGE, "gradients of all ratings");
    for items in LARGE.items {
        let costs = compared((LARGE, items), Form::Batch, &[System::Gas, System::GasFaithful]);
        let [gas, faithful] = [1, 2].map(|at: usize| costs[at].seconds / costs[0].seconds);
        let what = "at least 10 times as fast as gas-faithful";
        findings.check(format!("{items} items: {what}: {faithful:.2}"), faithful >= 10.0);
        findings.check(format!("{items} items: not slower than gas, whose rows are arrays: {gas:.2}"), gas >= 1.0);
    }
    findings.cannot("servers of 16 threads: one thread here; `benches/links/run` has processes and workers");
}

/// Figure 14: parameter servers.
pub fn servers(findings: &mut Findings) {
    show(SMALL, "rating by rating");
    for items in SMALL.items {
        let systems = [System::PsNaive, System::LazyTable, System::Essp, System::IterStore];
        let costs = compared((SMALL, items), Form::InPlace, &systems);
        let times = |at: usize| costs[at].seconds / costs[0].seconds;
        let tuned = times(2).min(times(3)).min(times(4));
        let naive = times(1);
        findings.check(format!("{items} items: at least 100 times as fast as ps-naive: {naive:.1}"), naive >= 100.0);
        findings.check(format!("{items} items: over 1.5 times as fast as the best server: {tuned:.2}"), tuned > 1.5);
    }
}

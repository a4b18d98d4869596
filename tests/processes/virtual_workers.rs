//! Virtual workers against processes in earnest, and against themselves.

use std::sync::Arc;

use megagrid_algorithms::lda::{Config, Dense, Sparse};
use megagrid_algorithms::mf::{self, batch, in_place};
use megagrid_engine::plan;
use megagrid_engine::virtual_cluster::{Calibration, Costs, Link, Model, VirtualCluster};
use megagrid_engine::{Engine, Injection, Peers, Settings};
use megagrid_partition::GroupedEdges;
use megagrid_stages::Program;
use proptest::prelude::*;

use super::{BSP, Trained, config, guarantee, lda, links, rank_as, rank_of, ratings, settings, train, train_as};
use crate::made::{factorization, page_rank, topics, watch};

pub fn model(costs: Costs) -> Model {
    Model { link: Link::default(), costs, jitter: 0.1, seed: 4 }
}

pub fn first<T: Send>(workers: usize, model: Model, work: impl Fn(Option<Arc<dyn Peers>>) -> T + Sync) -> T {
    VirtualCluster::new(workers, model).run(|peers| work(Some(peers))).swap_remove(0)
}

/// Factorizes in place with slack, in 50 clocks.
fn factorize(peers: Option<Arc<dyn Peers>>, edges: &GroupedEdges<f32>, slack: u64, lazy: bool) -> Trained {
    let settings = Settings { slack: Some(slack), lazy, ..settings(peers, 1, config().row_dims()) };
    train_as(edges, config(), &settings, in_place::sequence(config(), 180))
}

/// Factorizes without slack in mini-batches.
fn step(peers: Option<Arc<dyn Peers>>, edges: &GroupedEdges<f32>) -> Trained {
    let settings = settings(peers, 1, config().row_dims());
    train_as(edges, config(), &settings, in_place::sequence(config(), 900))
}

#[test]
fn virtual_workers_rank_like_processes() {
    let edges = links(700, 9000);
    for (workers, strategy) in
        [(2, plan::Strategy::BiCut), (4, plan::Strategy::BiCut), (4, plan::Strategy::Grid), (4, plan::Strategy::Hybrid)]
    {
        let rank_here = |peers| rank_as(&edges, &Settings { strategy, ..settings(peers, 1, 1) });
        let found = first(workers, model(Costs::Measured), rank_here);
        assert_eq!(found, rank_of(&edges, (workers, 1), strategy), "{workers} workers, {strategy}");
    }
}

#[test]
fn virtual_workers_factorize_like_processes() {
    let edges = ratings(9000);
    for workers in [2, 4] {
        let (objectives, rows, _) = first(workers, model(Costs::Measured), |peers| step(peers, &edges));
        let in_place = || in_place::sequence(config(), 900);
        assert_eq!((objectives, rows), train(&edges, (workers, 1), config(), BSP, in_place), "{workers} workers");
        let batch = || batch::sequence(config(), 3000);
        let (objectives, rows, _) = first(workers, model(Costs::Clock(1.0)), |peers| {
            train_as(&edges, config(), &settings(peers, 1, config().row_dims()), batch())
        });
        assert_eq!((objectives, rows), train(&edges, (workers, 1), config(), BSP, batch), "{workers} workers");
    }
}

/// Measures what tasks of a factorization with slack cost.
fn calibrate(edges: &GroupedEdges<f32>) -> Calibration {
    let cluster = VirtualCluster::new(4, model(Costs::Measured));
    cluster.run(|peers| factorize(Some(peers), edges, 2, true));
    cluster.calibration()
}

#[test]
fn a_run_is_reproduced_with_its_times() {
    let edges = ratings(9000);
    let calibration = calibrate(&edges);
    assert!(calibration.stages.values().all(|cost| cost.seconds(100) > 0.0), "{calibration:?}");
    for lazy in [false, true] {
        let run = || {
            let model = model(Costs::Calibrated(calibration.clone()));
            let (objectives, rows, reports) = first(7, model, |peers| factorize(peers, &edges, 3, lazy));
            (objectives, rows, format!("{reports:?}"))
        };
        let (one, other) = (run(), run());
        assert_eq!(one.2, other.2, "times, bytes, staleness");
        assert!(one.0 == other.0 && one.1 == other.1, "numbers");
    }
}

#[test]
fn a_calibration_of_another_program_is_refused() {
    let edges = ratings(900);
    let mut calibration = calibrate(&edges);
    calibration.stages.remove("SendChanges");
    let cluster = VirtualCluster::new(2, model(Costs::Calibrated(calibration)));
    let run = std::panic::AssertUnwindSafe(|| cluster.run(|peers| factorize(Some(peers), &edges, 1, false)));
    assert!(std::panic::catch_unwind(run).is_err());
}

#[test]
fn fresh_rows_are_pushed_and_stale_ones_used_up() {
    let edges = ratings(9000);
    let staleness = |slack, lazy| {
        let model = Model { jitter: 0.03, ..model(Costs::Clock(0.1)) };
        let (_, _, reports) = first(8, model, |peers| factorize(peers, &edges, slack, lazy));
        let mut all = std::collections::BTreeMap::new();
        reports.iter().flat_map(|report| &report.staleness).for_each(|(age, n)| *all.entry(*age).or_insert(0) += n);
        all
    };
    let (pushed, pulled) = (staleness(4, false), staleness(4, true));
    let mean = |all: &std::collections::BTreeMap<i64, u64>| {
        all.iter().map(|(age, n)| *age as f64 * *n as f64).sum::<f64>() / all.values().sum::<u64>() as f64
    };
    assert!(mean(&pushed) > mean(&pulled) + 0.5, "{pushed:?} {pulled:?}");
    for all in [pushed, pulled] {
        assert!(all.keys().all(|age| (-5..=-1).contains(age)), "{all:?}");
    }
}

/// Returns the mean seconds of a unit of work, of which a clock has `work`, where each of 8 workers in turn is delayed.
fn delayed(edges: &GroupedEdges<f32>, (work, slack): (u64, u64), delay: f64) -> f64 {
    let config = mf::Config { dims: 1, ..config() };
    let units = 150;
    let model = Model { jitter: 0.0, ..model(Costs::Clock(4.2 * work as f64)) };
    let (_, _, reports) = first(8, model, |peers| {
        let inject = Some(Injection::Delay { seconds: delay, turns: work });
        let settings = Settings { slack: Some(slack), lazy: true, inject, ..settings(peers, 1, config.row_dims()) };
        train_as(edges, config, &settings, in_place::sequence(config, 9000 * work / units))
    });
    reports[0].seconds / units as f64
}

/// LazyTable, Figure 6: clocks of two units make every delay felt by half; slack hides delays up to a length.
#[test]
fn slack_hides_delays() {
    let edges = ratings(9000);
    for (delay, bulk, stale) in [(0.0, 4.2, 4.2), (4.0, 6.2, 4.7), (8.0, 8.2, 6.1), (12.0, 10.2, 8.1)] {
        let found = (delayed(&edges, (2, 0), delay), delayed(&edges, (1, 1), delay));
        assert!((found.0 - bulk).abs() < 0.1 && (found.1 - stale).abs() < 0.1, "{delay}: {found:?}");
    }
}

/// Returns the mean seconds of an iteration of one clock, where each of 8 workers in turn is delayed for so long.
fn iteration<P: Program>(make: &(impl Fn(&Settings) -> Engine<P> + Sync), slack: u64, delay: f64) -> f64 {
    const ITERATIONS: u64 = 64;
    let model = Model { jitter: 0.0, ..model(Costs::Clock(4.0)) };
    let seconds: f64 = first(8, model, |peers| {
        let inject = Some(Injection::Delay { seconds: delay, turns: 1 });
        let settings = Settings { slack: Some(slack), look_every: Some(ITERATIONS), inject, ..settings(peers, 1, 1) };
        let mut engine = make(&settings);
        assert_eq!((engine.plan().clocks(), engine.plan().flows), (1, slack > 0));
        let (mut seconds, mut oldest) = (0.0, -1);
        watch(&mut engine, ITERATIONS, |engine, _| {
            seconds += engine.reports().iter().map(|report| report.seconds).sum::<f64>();
            let ages = engine.reports().iter().flat_map(|report| report.staleness.keys().copied());
            oldest = ages.fold(oldest, i64::min);
        });
        if delay > 4.0 {
            // Meanwhile others go on by the clocks that fit into a delay, as far as they may.
            let slack = slack as i64;
            assert!((-1 - slack..=-1 - slack.min(2)).contains(&oldest), "slack {slack}: {oldest}");
        }
        seconds
    });
    seconds / ITERATIONS as f64
}

/// LazyTable, Figure 6, at one clock an iteration: each delay is felt by all without slack, and by the delayed worker only within it.
fn check_delays<P: Program>(name: &str, make: impl Fn(&Settings) -> Engine<P> + Sync) {
    for delay in [0.0, 8.0] {
        let [bulk, stale] = [0, 3].map(|slack| iteration(&make, slack, delay));
        println!("{name}: an iteration of 4 s, delay {delay} s: bsp {bulk:.2} s, slack 3 {stale:.2} s");
        // The stage that ends an iteration may begin the clock of the next.
        assert!((bulk - 4.0 - delay).abs() < 0.2, "{name}, delay {delay}: {bulk}");
        assert!((stale - 4.0 - delay / 8.0).abs() < 0.2, "{name}, delay {delay}: {stale}");
    }
}

#[test]
fn slack_hides_delays_over_iterations_of_one_clock() {
    let (links, ratings, tokens) = (links(700, 9000), ratings(9000), lda::corpus());
    check_delays("pagerank", |settings| page_rank(&links, &[], settings));
    let config = mf::Config { dims: 1, ..config() };
    let of_mf = |settings: &Settings| Settings { dims: config.row_dims(), ..settings.clone() };
    check_delays("mf", |settings| factorization(&ratings, config, in_place::sequence(config, 9000), &of_mf(settings)));
    check_delays("mf by batch", |settings| {
        factorization(&ratings, config, batch::sequence(config, 9000), &of_mf(settings))
    });
    let config = Config { clocks: 1, ..Config::new(8) };
    check_delays("lda dense", |settings| topics::<Dense>(&tokens, &config, settings));
    check_delays("lda sparse", |settings| topics::<Sparse>(&tokens, &config, settings));
}

/// Returns the seconds of all iterations, where values under way are bounded, and the last objective.
fn bounded(edges: &GroupedEdges<f32>, first_bound: f64) -> (f64, f64) {
    // Changes are long under way, half a clock to the master and half a clock back.
    let link = Link { latency_seconds: 0.05, ..Link::default() };
    let model = Model { link, ..model(Costs::Clock(0.1)) };
    let mut ran = VirtualCluster::with_bounded_values(4, model, first_bound).run(|peers| {
        let settings = Settings { slack: None, ..settings(Some(peers), 1, config().row_dims()) };
        train_as(edges, config(), &settings, in_place::sequence(config(), 900))
    });
    let (objectives, _, reports) = ran.swap_remove(0);
    (reports.iter().map(|report| report.seconds).sum(), objectives[objectives.len() - 1])
}

/// VAP: with a tight bound workers wait in each clock until all have its changes; none of them for ever.
#[test]
fn a_bound_on_values_makes_workers_wait() {
    let edges = ratings(9000);
    let [tight, some, loose] = [1e-9, 1.0, 1e9].map(|bound| bounded(&edges, bound));
    assert_eq!(some, bounded(&edges, 1.0), "a second run");
    assert!(tight.0 > 1.5 * loose.0 && (loose.0..=tight.0).contains(&some.0), "{tight:?} {some:?} {loose:?}");
    let is_refused = |slack: Option<u64>| {
        VirtualCluster::with_bounded_values(2, model(Costs::Clock(1.0)), 1.0).run(|peers| {
            let settings = Settings { slack, ..settings(Some(peers), 1, config().row_dims()) };
            Engine::<in_place::Mf>::new(&edges, in_place::sequence(config(), 900), &settings).is_err()
        })
    };
    assert_eq!((is_refused(Some(1)), is_refused(None)), (vec![true; 2], vec![false; 2]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_virtual_worker_sees_what_the_slack_promises(
        slack in 0_u64..5,
        lazy: bool,
        look_every in 1_u64..6,
        workers in 2_usize..9,
        seed: u64,
    ) {
        let edges = guarantee::edges();
        let model = Model { jitter: 0.6, seed, ..model(Costs::Clock(1e-3)) };
        let with_slack = guarantee::with_slack(slack, lazy, look_every);
        let (stale, ahead) =
            first(workers, model, |peers| guarantee::run_as(&edges, &Settings { peers, ..with_slack.clone() }, 0));
        prop_assert_eq!(stale, 0, "changes of clock t - 1 - s that were not seen");
        prop_assert_eq!(ahead, 0, "changes of workers more than s clocks ahead");
    }
}

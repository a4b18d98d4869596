//! Checkpoints of several processes: written in one shape, continued in another.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use megagrid_algorithms::lda::counts::TopicCounts;
use megagrid_algorithms::lda::{self, Dense, Lda, Mh, Sampler, Sparse};
use megagrid_algorithms::mf::{self, in_place};
use megagrid_engine::checkpoint::{check_target, load, save};
use megagrid_engine::plan::Strategy;
use megagrid_engine::{Engine, Error, Peers, Settings};
use megagrid_partition::{EdgeSource, GroupedEdges};
use megagrid_stages::{Program, Right};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::tempdir;

use super::lda::TOPICS;
use super::{config, local, ratings, ratings_of_many_items, settings};
use crate::made::{self, Counted, factors, likelihood, links, page_rank, scores, topics};

type Shape = (usize, usize);

/// Shapes to begin in and to go on in: each once.
pub const CHANGES: [(Shape, Shape); 4] = [((1, 1), (2, 1)), ((2, 1), (2, 2)), ((2, 2), (4, 1)), ((4, 1), (1, 1))];

/// Goes on from the checkpoint in `dir`, if there is one, runs up to iteration `last`, and saves.
pub fn go_on<P: Program<Global: Serialize + DeserializeOwned>>(engine: &mut Engine<P>, dir: Option<&Path>, last: u64) {
    if let Some(dir) = dir.filter(|dir| dir.read_dir().unwrap().next().is_some()) {
        load(engine, dir).unwrap();
    }
    made::run(engine, last);
    if let Some(dir) = dir {
        save(engine, dir).unwrap();
    }
    engine.collect().unwrap();
}

/// Runs half of the iterations in one shape and the rest in another.
pub fn in_two_shapes<T>(begin: Shape, end: Shape, last: u64, run: impl Fn(Shape, Option<&Path>, u64) -> T) -> T {
    let dir = tempdir().unwrap();
    run(begin, Some(dir.path()), last / 2);
    run(end, Some(dir.path()), last)
}

fn rank(
    edges: &GroupedEdges<()>,
    (processes, workers): Shape,
    strategy: Strategy,
    (dir, last): (Option<&Path>, u64),
) -> Vec<f32> {
    local::run(processes, |peers| {
        let mut engine = page_rank(edges, &[], &Settings { strategy, ..settings(peers, workers, 1) });
        go_on(&mut engine, dir, last);
        scores(&engine)
    })
}

#[test]
fn page_rank_goes_on_in_another_shape_under_another_strategy() {
    let edges = links(500, 6000);
    let expected = rank(&edges, (1, 1), Strategy::BiCut, (None, 12));
    for strategy in [Strategy::BiCut, Strategy::Grid, Strategy::Hybrid] {
        for (begin, end) in CHANGES {
            let dir = tempdir().unwrap();
            rank(&edges, begin, strategy, (Some(dir.path()), 6));
            let other = if strategy == Strategy::Grid { Strategy::Mixed } else { Strategy::BiCut };
            let found = rank(&edges, end, other, (Some(dir.path()), 12));
            let distance: f32 = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).sum();
            assert!(distance < 1e-6, "{strategy}, {begin:?}, then {end:?}: {distance}");
        }
    }
}

fn factorization(edges: &GroupedEdges<f32>, peers: Option<Arc<dyn Peers>>, workers: usize) -> Engine<in_place::Mf> {
    let sequence = in_place::sequence(config(), edges.num_edges() as u64);
    made::factorization(edges, config(), sequence, &settings(peers, workers, config().row_dims()))
}

/// The objective and the factors.
fn factorize(
    edges: &GroupedEdges<f32>,
    (processes, workers): Shape,
    dir: Option<&Path>,
    last: u64,
) -> (f64, Vec<Vec<f32>>) {
    local::run(processes, |peers| {
        let mut engine = factorization(edges, peers, workers);
        go_on(&mut engine, dir, last);
        let sums = engine.total(mf::SquaredErrors(config())).unwrap();
        (mf::Objective::new(sums, config().lambda).value, factors(&engine))
    })
}

#[test]
fn factorization_goes_on_in_another_shape_and_bit_by_bit_in_the_same() {
    for edges in [ratings(7000), ratings_of_many_items(7000)] {
        let (expected, _) = factorize(&edges, (1, 1), None, 20);
        let run = |shape: Shape, dir: Option<&Path>, last: u64| factorize(&edges, shape, dir, last);
        for (begin, end) in CHANGES {
            let (found, _) = in_two_shapes(begin, end, 20, run);
            assert!((found / expected - 1.0).abs() < 0.01, "{begin:?}, then {end:?}: {found}, expected {expected}");
            let same = in_two_shapes(begin, begin, 10, run);
            assert_eq!(same, run(begin, None, 10), "{begin:?}");
        }
    }
}

/// Topics, and the counts of every word.
type Topics = (f64, Vec<Vec<u32>>);

fn sample<S: Counted>(mut engine: Engine<Lda<S>>, (dir, last): (Option<&Path>, u64)) -> Topics {
    go_on(&mut engine, dir, last);
    S::count(&mut engine);
    engine.collect().unwrap();
    let right = engine.on(Right);
    let counts = |word: usize| {
        let mut counts = vec![0; TOPICS];
        right.sync(word).each(TOPICS, |topic, n| counts[topic] += n);
        counts
    };
    let table: Vec<_> = (0..right.len()).map(counts).collect();
    if engine.plan().processes.this > 0 {
        return (0.0, table);
    }
    // Topics that came back to other edges than they were of would take counts below zero, or change these sums.
    let sums = |topic: usize| table.iter().map(|counts| i64::from(counts[topic])).sum::<i64>();
    assert_eq!((0..TOPICS).map(sums).collect::<Vec<_>>(), engine.global().totals);
    (likelihood(&engine), table)
}

#[test]
fn topic_models_go_on_in_another_shape_and_bit_by_bit_in_the_same() {
    let edges = super::lda::corpus();
    let config = lda::Config { alpha: 0.1, ..lda::Config::new(TOPICS) };
    let run = |sampler: Sampler, seed: u64, (processes, workers): Shape, dir: Option<&Path>, last: u64| {
        local::run(processes, |peers| {
            let settings = Settings { seed, ..settings(peers, workers, TOPICS) };
            match sampler {
                Sampler::Dense => sample(topics::<Dense>(&edges, &config, &settings), (dir, last)),
                Sampler::Sparse => sample(topics::<Sparse>(&edges, &config, &settings), (dir, last)),
                Sampler::Mh => sample(topics::<Mh>(&edges, &config, &settings), (dir, last)),
            }
        })
    };
    let mean = |run: &dyn Fn(u64) -> f64| (1..=3).map(run).sum::<f64>() / 3.0;
    for sampler in [Sampler::Dense, Sampler::Sparse, Sampler::Mh] {
        let expected = mean(&|seed| run(sampler, seed, (1, 1), None, 20).0);
        for (begin, end) in CHANGES {
            let found =
                mean(&|seed| in_two_shapes(begin, end, 20, |shape, dir, last| run(sampler, seed, shape, dir, last)).0);
            assert!((found / expected - 1.0).abs() < 0.01, "{begin:?}, then {end:?}: {found}, expected {expected}");
            let same = in_two_shapes(begin, begin, 4, |shape, dir, last| run(sampler, 1, shape, dir, last));
            assert_eq!(same, run(sampler, 1, begin, None, 4), "{begin:?}");
        }
    }
}

/// What each of two processes says, which go through the same.
fn both(
    edges: &GroupedEdges<f32>,
    work: impl Fn(&mut Engine<in_place::Mf>) -> Result<(), Error> + Sync,
) -> [String; 2] {
    let said = Mutex::new([String::new(), String::new()]);
    local::run(2, |peers| {
        let mut engine = factorization(edges, peers, 1);
        let result = work(&mut engine);
        said.lock().unwrap()[engine.plan().processes.this] =
            result.map_or_else(|error| error.to_string(), |()| "done".into());
    });
    said.into_inner().unwrap()
}

#[test]
fn what_fails_in_the_first_process_fails_in_all() {
    let edges = ratings(3000);
    let dir = tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for said in [both(&edges, |engine| save(engine, &file)), both(&edges, |engine| check_target(engine, &file))] {
        assert!(said[0].starts_with(file.to_str().unwrap()), "{said:?}");
        assert_eq!(said[1], format!("process 0 stopped: {}", said[0]));
    }
    let none = dir.path().join("none");
    let said = both(&edges, |engine| load(engine, &none).map(drop));
    assert!(said[0].contains("none: No such file"), "{said:?}");
    assert_eq!(said[1], format!("process 0 stopped: {}", said[0]));

    let saved = dir.path().join("saved");
    assert_eq!(both(&edges, |engine| save(engine, &saved)), ["done", "done"]);
    let said = both(&ratings(2999), |engine| load(engine, &saved).map(drop));
    assert!(said[0].contains("edges 3000 found, 2999 expected"), "{said:?}");
    let items = saved.join("iteration-00000/right-sync.bin.00001");
    let mut bytes = fs::read(&items).unwrap();
    bytes[77] ^= 4;
    fs::write(&items, &bytes).unwrap();
    let said = both(&edges, |engine| load(engine, &saved).map(drop));
    assert!(said[0].contains("right-sync.bin.00001: checksum"), "{said:?}");
    assert_eq!(said[1], format!("process 0 stopped: {}", said[0]));
    fs::write(&items, &bytes[..70]).unwrap();
    let said = both(&edges, |engine| load(engine, &saved).map(drop));
    assert!(said[0].contains("right-sync.bin.00001: 70 bytes found"), "{said:?}");
}

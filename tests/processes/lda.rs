//! Topic models in several processes.

use megagrid_algorithms::lda::counts::TopicCounts;
use megagrid_algorithms::lda::{Config, Dense, Mh, Sampler, Sparse, Tokens};
use megagrid_engine::Settings;
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{Left, Right};

use super::{SHAPES, local, settings};
use crate::made::{Counted, likelihood, topics, watch};

const DOCUMENTS: usize = 1200;
const WORDS: usize = 160;
const PLANTED: usize = 8;
/// More than planted, so that none has to share: then all runs end at about the same likelihood.
pub const TOPICS: usize = 14;
const SEEDS: u64 = 3;
/// Seeds of chains with slack. How stale their counts are depends on what else the machine does, and one that has not converged yet is some
/// per cent below the others: the middle one counts.
const SEEDS_WITH_SLACK: u64 = 5;
/// What the middle ones differ by.
const NOISE: f64 = 0.02;

pub fn corpus() -> GroupedEdges<u32> {
    documents(DOCUMENTS)
}

/// Documents of two of the planted topics, whose words lie side by side.
fn documents(documents: usize) -> GroupedEdges<u32> {
    let mut random = SplitMix::new(17, 0);
    let mut list = EdgeList { num_left: documents, num_right: WORDS, ..EdgeList::default() };
    for document in 0..documents {
        let topics: [u64; 2] = std::array::from_fn(|_| random.below(PLANTED as u64));
        let size = (WORDS / PLANTED) as u64;
        let mut counts = std::collections::BTreeMap::new();
        for token in 0..40 {
            *counts.entry(topics[token % 2] * size + random.below(size)).or_insert(0) += 1;
        }
        for (word, count) in counts {
            list.push(document as u32, word as u32, count);
        }
    }
    GroupedEdges::new(list, &[Side::Right])
}

/// The log likelihood after the last iteration; looks at every total after each.
fn run<S: Counted>(edges: &GroupedEdges<u32>, config: &Config, settings: &Settings) -> f64 {
    let (mut last, tokens) = (0.0, Tokens::count(edges).unwrap().total);
    watch(&mut topics::<S>(edges, config, settings), 20, |engine, _| {
        S::count(engine);
        engine.collect().unwrap();
        let (left, right, global) = (engine.on(Left), engine.on(Right), engine.global());
        assert_eq!(global.totals.iter().sum::<i64>(), tokens as i64, "topics hold all tokens");
        if engine.plan().processes.this == 0 {
            let num_topics = global.totals.len();
            let mut sums = vec![0_i64; num_topics];
            (0..WORDS).for_each(|id| right.sync(id).each(num_topics, |topic, n| sums[topic] += i64::from(n)));
            assert_eq!(sums, global.totals, "words hold all tokens");
            let mut sum = 0;
            (0..left.len()).for_each(|id| left.sync(id).each(num_topics, |_, n| sum += u64::from(n)));
            assert_eq!(sum, tokens, "documents hold all tokens");
            last = likelihood(engine);
        }
    });
    last
}

/// The log likelihood after clocks of several iterations.
pub fn train_in_passes<S: Counted>(
    edges: &GroupedEdges<u32>,
    (processes, workers): (usize, usize),
    passes: u64,
) -> f64 {
    let config = Config { alpha: 0.1, clocks: 1, passes_per_clock: passes, ..Config::new(TOPICS) };
    local::run(processes, |peers| {
        let settings = Settings { passes_per_clock: passes, ..settings(peers, workers, TOPICS) };
        run::<S>(edges, &config, &settings)
    })
}

/// How stale counts may be: the slack, and whether rows go to replicas only when they have to.
type Consistency = (Option<u64>, bool);

const BSP: Consistency = (Some(0), false);

fn train(
    edges: &GroupedEdges<u32>,
    (sampler, num_topics): (Sampler, usize),
    (processes, workers): (usize, usize),
    seed: u64,
    (slack, lazy): Consistency,
) -> f64 {
    let config = Config { alpha: 0.1, ..Config::new(num_topics) };
    local::run(processes, |peers| {
        let settings = Settings { seed, slack, lazy, ..settings(peers, workers, num_topics) };
        match sampler {
            Sampler::Dense => run::<Dense>(edges, &config, &settings),
            Sampler::Sparse => run::<Sparse>(edges, &config, &settings),
            Sampler::Mh => run::<Mh>(edges, &config, &settings),
        }
    })
}

#[test]
fn topic_models_end_at_the_same_likelihood_in_every_shape() {
    let edges = corpus();
    for sampler in [Sampler::Dense, Sampler::Sparse, Sampler::Mh] {
        let run = |shape, seed| train(&edges, (sampler, TOPICS), shape, seed, BSP);
        let of_seeds = |shape| -> Vec<f64> { (0..SEEDS).map(|seed| run(shape, seed)).collect() };
        let mean = |all: &[f64]| all.iter().sum::<f64>() / SEEDS as f64;
        let one = of_seeds((1, 1));
        let expected = mean(&one);
        assert_eq!(one[1].to_bits(), run((1, 1), 1).to_bits(), "{sampler:?}: a second run");
        for &shape in &SHAPES[1..] {
            let all = of_seeds(shape);
            let found = mean(&all);
            assert!((found / expected - 1.0).abs() < 0.01, "{sampler:?}, {shape:?}: {found}, expected {expected}");
            assert_eq!(all[1].to_bits(), run(shape, 1).to_bits(), "{sampler:?}, {shape:?}: a second run");
        }
    }
}

#[test]
fn topic_models_with_slack_end_near_the_likelihood_without() {
    let edges = corpus();
    for sampler in [Sampler::Dense, Sampler::Sparse] {
        let middle = |shape, consistency| {
            let train = |seed| train(&edges, (sampler, TOPICS), shape, seed, consistency);
            let mut all: Vec<f64> = (0..SEEDS_WITH_SLACK).map(train).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let expected = middle((1, 1), BSP);
        let lazy = (Some(1), true);
        let cases =
            [(lazy, (2, 1)), (lazy, (2, 2)), (lazy, (4, 1)), ((Some(2), false), (2, 2)), ((None, false), (2, 1))];
        for (consistency, shape) in cases {
            let found = middle(shape, consistency);
            let ratio = found / expected;
            assert!(
                (ratio - 1.0).abs() < NOISE,
                "{sampler:?}, {shape:?}, {consistency:?}: {found}, expected {expected}"
            );
        }
    }
}

/// Words of fewer tokens than there are topics keep packed counts.
#[test]
fn packed_counts_of_replicas_hold_all_tokens() {
    let edges = documents(150);
    let expected = train(&edges, (Sampler::Sparse, 60), (1, 1), 1, BSP);
    for consistency in [(Some(1), true), (None, false)] {
        let found = train(&edges, (Sampler::Sparse, 60), (3, 1), 1, consistency);
        assert!((found / expected - 1.0).abs() < 0.05, "{consistency:?}: {found}, expected {expected}");
    }
}

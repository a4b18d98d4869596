//! Topic models on the engine: against enumeration, naive sums and each other.

use std::collections::BTreeMap;

use megagrid_algorithms::lda::{
    Config, Dense, FoldIn, Lda, Mh, Model, Prior, Sampler, Sparse, SparseCounts, Vertices, ln_gamma, merge_topics,
};
use megagrid_engine::{Engine, IterationReport, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::simd::Level;
use megagrid_stages::{Left, Right};

use crate::made::{self, Counted, likelihood, model, topics};

pub const SAMPLERS: [Sampler; 3] = [Sampler::Dense, Sampler::Sparse, Sampler::Mh];

/// What a test looks at between iterations.
pub struct State {
    pub model: Model,
    pub log_likelihood: f64,
}

/// Makes it, where a test does look: it takes longer than the iteration.
pub type Look<'l> = &'l mut dyn FnMut() -> State;

pub fn settings(workers: usize) -> Settings {
    made::settings(workers, 1)
}

/// Trains, and lets the test look after each iteration; gives topics up after half of them until as many as wanted are left.
pub fn train(
    edges: &EdgeList<u32>,
    sampler: Sampler,
    config: &Config,
    wanted: Option<usize>,
    settings: &Settings,
    iterations: u64,
    mut see: impl FnMut(u64, Look<'_>),
) {
    let (iterations, see) = ((iterations, wanted), &mut see);
    let source = GroupedEdges::new(edges.clone(), &[Side::Right]);
    match sampler {
        Sampler::Dense => run::<Dense>(&source, config, settings, iterations, see),
        Sampler::Sparse => run::<Sparse>(&source, config, settings, iterations, see),
        Sampler::Mh => run::<Mh>(&source, config, settings, iterations, see),
    }
}

fn run<S: Counted>(
    source: &GroupedEdges<u32>,
    config: &Config,
    settings: &Settings,
    (iterations, wanted): (u64, Option<usize>),
    see: &mut dyn FnMut(u64, Look<'_>),
) {
    let mut engine = topics::<S>(source, config, settings);
    let mut between = |engine: &mut Engine<Lda<S>>, report: &IterationReport| {
        see(report.iteration, &mut || State { model: model(engine), log_likelihood: likelihood(engine) });
        Ok(false)
    };
    if let Some(topics) = wanted {
        engine.run_until(iterations / 2, &mut between).unwrap();
        S::count(&mut engine);
        let merged = {
            let (left, right) = (engine.on(Left), engine.on(Right));
            let documents = Vertices { len: left.len(), counts: &|id| left.sync(id) };
            let words = Vertices { len: right.len(), counts: &|id| right.sync(id) };
            merge_topics(&engine.global(), &documents, &words, topics)
        };
        engine.set_global(merged);
    }
    engine.run_until(iterations, between).unwrap();
}

pub fn last(edges: &EdgeList<u32>, sampler: Sampler, config: &Config, settings: &Settings, iterations: u64) -> State {
    let mut found = None;
    train(edges, sampler, config, None, settings, iterations, |iteration, look| {
        if iteration == iterations {
            found = Some(look());
        }
    });
    found.unwrap()
}

pub const PLANTED: usize = 10;
/// A few more than planted, so that none has to share.
pub const FITTED: usize = 14;
pub const WORDS: usize = 300;

/// Documents of one to three of ten topics, each of which has 30 words of its own, some more frequent, and shares 10 with the next.
pub fn planted(documents: usize, seed: u64) -> EdgeList<u32> {
    let mut edges = EdgeList { num_left: documents, num_right: WORDS, ..EdgeList::default() };
    for document in 0..documents {
        let mut random = SplitMix::new(seed, document as u64);
        let mixture: Vec<u64> = (0..1 + random.below(3)).map(|_| random.below(PLANTED as u64)).collect();
        let mut counts = BTreeMap::new();
        for _ in 0..60 + random.below(60) {
            let topic = mixture[random.below(mixture.len() as u64) as usize];
            let rank = random.below(40).min(random.below(40));
            *counts.entry((topic * 30 + rank) % WORDS as u64).or_insert(0) += 1;
        }
        for (word, count) in counts {
            edges.push(document as u32, word as u32, count);
        }
    }
    edges
}

pub fn planted_chance(topic: usize, word: usize) -> f64 {
    let rank = (word + WORDS - topic * 30) % WORDS;
    if rank < 40 { (2 * (40 - rank) - 1) as f64 / 1600.0 } else { 0.0 }
}

pub fn config(num_topics: usize) -> Config {
    Config { alpha: 0.1, ..Config::new(num_topics) }
}

fn add_topics(table: &SparseCounts, of_topics: &mut [i64]) {
    let entries = table.topics.iter().zip(&table.counts);
    entries.for_each(|(&topic, &count)| of_topics[usize::from(topic)] += i64::from(count));
}

#[test]
fn tables_sum_to_the_tokens_after_every_iteration() {
    let edges = planted(200, 1);
    let tokens: u64 = edges.data.iter().map(|&count| u64::from(count)).sum();
    for sampler in SAMPLERS {
        for workers in 1..=3 {
            for slack in [Some(0), Some(2), None] {
                for num_topics in [7, 100] {
                    let settings = Settings { slack, ..settings(workers) };
                    train(&edges, sampler, &config(num_topics), None, &settings, 4, |iteration, look| {
                        let what = format!("{sampler:?}, {workers} workers, slack {slack:?}, iteration {iteration}");
                        let Model { topics, words, documents } = &look().model;
                        let mut of_topics = vec![0; num_topics];
                        add_topics(words, &mut of_topics);
                        assert_eq!(of_topics, topics.totals, "{what}");
                        assert_eq!(of_topics.iter().sum::<i64>(), tokens as i64, "{what}");
                        let mut of_documents = vec![0_i64; num_topics];
                        add_topics(documents, &mut of_documents);
                        assert_eq!(of_documents, of_topics, "{what}");
                        let mut expected = [vec![0; edges.num_left], vec![0; edges.num_right]];
                        for edge in 0..edges.data.len() {
                            expected[0][edges.left[edge] as usize] += edges.data[edge];
                            expected[1][edges.right[edge] as usize] += edges.data[edge];
                        }
                        for (table, expected) in [documents, words].into_iter().zip(&expected) {
                            let found: Vec<u32> =
                                (0..table.len()).map(|row| table.row(row).map(|entry| entry.1).sum()).collect();
                            assert_eq!(&found, expected, "{what}");
                        }
                    });
                }
            }
        }
    }
}

#[test]
fn runs_of_one_seed_and_shape_are_identical_and_seeds_differ() {
    let edges = planted(100, 2);
    for sampler in SAMPLERS {
        for workers in 1..=3 {
            let run = |seed| last(&edges, sampler, &config(20), &Settings { seed, ..settings(workers) }, 5).model;
            assert_eq!(run(1), run(1), "{sampler:?} {workers}");
            assert_ne!(run(1), run(2), "{sampler:?} {workers}");
        }
    }
}

#[test]
fn the_likelihood_equals_a_naive_sum() {
    let edges = planted(50, 3);
    for sampler in SAMPLERS {
        let state = last(&edges, sampler, &config(9), &settings(2), 3);
        let Model { topics, words, documents } = &state.model;
        let (alpha, beta, words_len) = (f64::from(0.1_f32), f64::from(topics.beta), words.len() as f64);
        let dense = |table: &SparseCounts, row: usize| {
            let mut counts = [0.0; 9];
            table.row(row).for_each(|(topic, count)| counts[usize::from(topic)] = f64::from(count));
            counts
        };
        let mut expected = 0.0;
        for document in 0..documents.len() {
            let counts = dense(documents, document);
            expected += ln_gamma(9.0 * alpha) - ln_gamma(counts.iter().sum::<f64>() + 9.0 * alpha);
            expected += counts.iter().map(|n| ln_gamma(n + alpha) - ln_gamma(alpha)).sum::<f64>();
        }
        for topic in 0..9 {
            expected += ln_gamma(words_len * beta) - ln_gamma(topics.totals[topic] as f64 + words_len * beta);
            for word in 0..words.len() {
                expected += ln_gamma(dense(words, word)[topic] + beta) - ln_gamma(beta);
            }
        }
        assert!((state.log_likelihood / expected - 1.0).abs() < 1e-12, "{} {expected}", state.log_likelihood);
    }
}

/// A corpus that is small enough to list all assignments of topics: three documents of distinct words.
fn tiny() -> EdgeList<u32> {
    EdgeList {
        num_left: 3,
        num_right: 4,
        square: false,
        left: vec![0, 0, 0, 1, 1, 2, 2],
        right: vec![0, 1, 2, 0, 1, 2, 3],
        data: vec![1; 7],
    }
}

/// What is compared: tokens of topic 0 in the documents, of words 0 and 2, the largest topic.
type Statistic = (Vec<u32>, u32, u32, i64);

fn statistic(model: &Model) -> Statistic {
    let zero = |table: &SparseCounts, row: usize| table.row(row).find(|entry| entry.0 == 0).map_or(0, |entry| entry.1);
    let documents = (0..3).map(|document| zero(&model.documents, document)).collect();
    let largest = model.topics.totals.iter().max().copied().unwrap_or(0);
    (documents, zero(&model.words, 0), zero(&model.words, 2), largest)
}

/// Chances of each statistic by enumeration of all assignments, from the collapsed joint.
fn enumerated(num_topics: usize, alpha: f64, beta: f64) -> BTreeMap<Statistic, f64> {
    let edges = tiny();
    let mut chances = BTreeMap::new();
    for code in 0..num_topics.pow(7) {
        let topic = |edge: usize| code / num_topics.pow(edge as u32) % num_topics;
        let (mut d, mut w, mut totals) = (vec![[0; 3]; num_topics], vec![[0; 4]; num_topics], vec![0; num_topics]);
        for edge in 0..7 {
            d[topic(edge)][edges.left[edge] as usize] += 1;
            w[topic(edge)][edges.right[edge] as usize] += 1;
            totals[topic(edge)] += 1;
        }
        let mut log = 0.0;
        for k in 0..num_topics {
            log += d[k].iter().map(|&n| ln_gamma(f64::from(n) + alpha)).sum::<f64>();
            log += w[k].iter().map(|&n| ln_gamma(f64::from(n) + beta)).sum::<f64>();
            log -= ln_gamma(totals[k] as f64 + 4.0 * beta);
        }
        let statistic = (d[0].to_vec(), w[0][0], w[0][2], totals.iter().max().copied().unwrap_or(0));
        *chances.entry(statistic).or_insert(0.0) += f64::exp(log);
    }
    let total: f64 = chances.values().sum();
    chances.values_mut().for_each(|chance| *chance /= total);
    chances
}

#[test]
fn states_are_visited_as_often_as_enumeration_says() {
    let (iterations, num_topics) = (2_000_u32, 3);
    let expected = enumerated(num_topics, 0.5, f64::from(0.3_f32));
    // The mean of half the sum of |found - expected| where visits are independent: visits of a chain are nearly.
    let by_chance: f64 =
        expected.values().map(|p| (p / (2.0 * std::f64::consts::PI * f64::from(iterations))).sqrt()).sum();
    for sampler in SAMPLERS {
        for level in Level::available() {
            let config = Config { alpha: 0.5, beta: 0.3, clocks: 7, ..Config::new(num_topics) };
            let mut found: BTreeMap<Statistic, f64> = BTreeMap::new();
            let settings = Settings { level, ..settings(1) };
            train(&tiny(), sampler, &config, None, &settings, iterations.into(), |_, look| {
                *found.entry(statistic(&look().model)).or_insert(0.0) += 1.0 / f64::from(iterations);
            });
            assert!(found.keys().all(|statistic| expected.contains_key(statistic)));
            let difference: f64 = expected
                .iter()
                .map(|(statistic, chance)| (chance - found.get(statistic).copied().unwrap_or(0.0)).abs() / 2.0)
                .sum();
            // Metropolis-Hastings proposes from counts half an iteration old, which of words of two tokens says little: another
            // program that does the same has 0.154 over 20,000 iterations, and 0.345 where it accepts every proposal.
            let most = if sampler == Sampler::Mh { 0.2 } else { 1.4 * by_chance };
            assert!(difference < most, "{sampler:?} {level}: variation distance {difference}, {by_chance}");
        }
    }
}

/// Chains end in one of several modes, whose likelihoods differ by a per cent or two: means over runs are compared.
#[test]
fn samplers_levels_and_workers_agree_within_one_per_cent_once_converged() {
    let edges = planted(400, 5);
    let config = Config { alpha: 0.5, beta: 0.2, ..Config::new(20) };
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for sampler in SAMPLERS {
        for level in Level::available() {
            for (workers, slack) in [(1, Some(0)), (3, Some(0)), (2, Some(2)), (3, None)] {
                let settings = Settings { level, slack, ..settings(workers) };
                // Proposals that come from one side at a time mix more slowly.
                let iterations = if sampler == Sampler::Mh { 240 } else { 60 };
                let value = last(&edges, sampler, &config, &settings, iterations).log_likelihood;
                for group in ["all".into(), format!("{sampler:?}"), format!("{level}"), format!("{workers} {slack:?}")]
                {
                    found.entry(group).or_default().push(value);
                }
            }
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let expected = mean(&found["all"]);
    for (group, values) in &found {
        assert!((mean(values) / expected - 1.0).abs() < 0.01, "{group}: {}, expected {expected}", mean(values));
    }
}

#[test]
fn a_fitted_prior_makes_the_tokens_likelier() {
    let edges = planted(400, 6);
    for sampler in SAMPLERS {
        let with = |prior| {
            let config = Config { prior, alpha: 1.0, ..config(20) };
            last(&edges, sampler, &config, &settings(2), 60)
        };
        let (fixed, symmetric, asymmetric) = (with(Prior::Fixed), with(Prior::Symmetric), with(Prior::Asymmetric));
        assert!(symmetric.log_likelihood > fixed.log_likelihood, "{sampler:?}");
        assert!(asymmetric.log_likelihood > fixed.log_likelihood, "{sampler:?}");
        let alpha = |state: &State| state.model.topics.alpha[..20].to_vec();
        assert!(alpha(&symmetric).windows(2).all(|pair| pair[0] == pair[1]));
        assert!(alpha(&asymmetric).windows(2).any(|pair| pair[0] != pair[1]));
        assert_eq!(alpha(&fixed), [1.0; 20]);
    }
}

#[test]
fn odd_corpora_and_settings() {
    // A document without words, a word that never occurs, more topics than tokens.
    let mut edges = tiny();
    (edges.num_left, edges.num_right) = (5, 6);
    for sampler in SAMPLERS {
        let state = last(&edges, sampler, &config(40), &settings(3), 10);
        assert!(state.log_likelihood.is_finite());
        assert_eq!(state.model.documents.row(4).len(), 0, "no words, no topics");
        let chances = FoldIn::default().chances(&state.model, &[]);
        assert!(chances.iter().all(|&chance| (chance - 1.0 / 40.0).abs() < 1e-6), "no words: the prior");
        assert_eq!(last(&edges, sampler, &config(1), &settings(1), 2).model.topics.totals, [7]);
    }
    for broken in [
        Config::new(65_536),
        Config { num_topics: 0, ..Config::new(2) },
        Config { alpha: 0.0, ..Config::new(2) },
        Config { beta: f32::NAN, ..Config::new(2) },
        Config { clocks: 0, ..Config::new(2) },
        Config { uniform_share: 1.5, ..Config::new(2) },
        Config { annealed_from: 0.5, ..Config::new(2) },
    ] {
        assert!(broken.check().is_err(), "{broken:?}");
    }
    assert!(Config::new(65_535).check().is_ok());
}

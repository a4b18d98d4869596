//! Topic models on the engine: against enumeration, naive sums, planted topics and each other.

use std::collections::BTreeMap;

use megagrid_algorithms::lda::counts::TopicCounts;
use megagrid_algorithms::lda::mh::{CountTopics, Mh};
use megagrid_algorithms::lda::{
    Config, FoldIn, Lda, Model, Occurrences, Prior, Sampler, SparseCounts, Tokens, Topics, Vertices, edge_len,
    fill_edge, ln_gamma, log_likelihood, merge_topics,
};
use megagrid_datasets::synthetic::{CorpusSettings, SyntheticCorpus};
use megagrid_engine::{Engine, IterationReport, Settings, Source, Topology};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};
use megagrid_stages::simd::Level;
use megagrid_stages::{Item, Left, Right, Sequence, Stages};

const SAMPLERS: [Sampler; 3] = [Sampler::Dense, Sampler::Sparse, Sampler::Mh];

/// What a test looks at between iterations.
struct State {
    model: Model,
    log_likelihood: f64,
}

fn settings(workers: usize) -> Settings {
    let topology = Topology { l2_bytes: 16 << 10, ..Topology::synthetic(1, workers) };
    Settings { workers, topology, ..Settings::default() }
}

/// Trains, and shows the state after each iteration.
fn train(
    edges: &EdgeList<u32>,
    sampler: Sampler,
    config: &Config,
    settings: &Settings,
    iterations: u64,
    see: impl FnMut(u64, &State),
) {
    train_to(edges, sampler, config, None, settings, iterations, see);
}

/// Trains, and gives topics up after half of the iterations until as many as wanted are left.
fn train_to(
    edges: &EdgeList<u32>,
    sampler: Sampler,
    config: &Config,
    wanted: Option<usize>,
    settings: &Settings,
    iterations: u64,
    see: impl FnMut(u64, &State),
) {
    let iterations = (iterations, wanted);
    let source = GroupedEdges::new(edges.clone(), &[Side::Right]);
    let tokens = Tokens::count(&source).unwrap();
    tokens.check(sampler, config.num_topics).unwrap();
    let capacities = tokens.capacities(config.num_topics);
    match sampler {
        Sampler::Dense => {
            run(&source, config.dense(&tokens), config, None, settings, iterations, |_| {}, see);
        }
        Sampler::Sparse => {
            run(&source, config.sparse(&tokens), config, Some(capacities), settings, iterations, |_| {}, see);
        }
        Sampler::Mh => {
            let count = |engine: &mut Engine<Mh>| {
                engine.visit(Left, CountTopics);
                engine.visit(Right, CountTopics);
            };
            run(&source, config.mh(), config, Some(capacities), settings, iterations, count, see);
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "what a run is made from, once for each sampler")]
fn run<D: TopicCounts + ?Sized, W: TopicCounts + ?Sized, E: Item, S: Stages<Lda<D, W, E>>>(
    source: &GroupedEdges<u32>,
    sequence: Sequence<Lda<D, W, E>, S>,
    config: &Config,
    capacities: Option<[Vec<u32>; 2]>,
    settings: &Settings,
    (iterations, wanted): (u64, Option<usize>),
    count: impl Fn(&mut Engine<Lda<D, W, E>>),
    mut see: impl FnMut(u64, &State),
) {
    let of = |side: usize| capacities.as_ref().map(|both| both[side].as_slice());
    let input = Source::slices(source, edge_len, fill_edge).capacities(of(0), of(1));
    let settings = Settings { dims: config.num_topics, ..settings.clone() };
    let mut engine = Engine::new(input, sequence, &settings).unwrap();
    engine.set_global(config.topics(source.num_vertices(Side::Right)));
    let mut between = |engine: &mut Engine<Lda<D, W, E>>, report: &IterationReport| {
        count(engine);
        let (left, right, global) = (engine.on(Left), engine.on(Right), engine.global());
        let documents = Vertices { len: left.len(), counts: |id| left.sync(id) };
        let words = Vertices { len: right.len(), counts: |id| right.sync(id) };
        let state = State {
            model: Model::new(&global, &documents, &words),
            log_likelihood: log_likelihood(&global, &documents, &words, 2),
        };
        see(report.iteration, &state);
        Ok(false)
    };
    if let Some(topics) = wanted {
        engine.run_until(iterations / 2, &mut between).unwrap();
        let merged = {
            let (left, right) = (engine.on(Left), engine.on(Right));
            let documents = Vertices { len: left.len(), counts: |id| left.sync(id) };
            let words = Vertices { len: right.len(), counts: |id| right.sync(id) };
            merge_topics(&engine.global(), &documents, &words, topics)
        };
        engine.set_global(merged);
    }
    engine.run_until(iterations, between).unwrap();
}

fn last(edges: &EdgeList<u32>, sampler: Sampler, config: &Config, settings: &Settings, iterations: u64) -> State {
    let mut found = None;
    train(edges, sampler, config, settings, iterations, |iteration, state| {
        if iteration == iterations {
            found = Some(State { model: state.model.clone(), log_likelihood: state.log_likelihood });
        }
    });
    found.unwrap()
}

const PLANTED: usize = 10;
/// A few more than planted, so that none has to share.
const FITTED: usize = 14;
const WORDS: usize = 300;

/// Documents of one to three of ten topics, each of which has 30 words of its own, some more frequent, and shares 10 with the next.
fn planted(documents: usize, seed: u64) -> EdgeList<u32> {
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
            edges.left.push(document as u32);
            edges.right.push(word as u32);
            edges.data.push(count);
        }
    }
    edges
}

/// The chance of a word in a topic as planted.
fn planted_chance(topic: usize, word: usize) -> f64 {
    let rank = (word + WORDS - topic * 30) % WORDS;
    if rank < 40 { (2 * (40 - rank) - 1) as f64 / 1600.0 } else { 0.0 }
}

fn config(num_topics: usize) -> Config {
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
                    train(&edges, sampler, &config(num_topics), &settings, 4, |iteration, state| {
                        let what = format!("{sampler:?}, {workers} workers, slack {slack:?}, iteration {iteration}");
                        let Model { topics, words, documents } = &state.model;
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
    let (iterations, num_topics) = (4_000_u32, 3);
    let expected = enumerated(num_topics, 0.5, f64::from(0.3_f32));
    // The mean of half the sum of |found - expected| where visits are independent: visits of a chain are nearly.
    let by_chance: f64 =
        expected.values().map(|p| (p / (2.0 * std::f64::consts::PI * f64::from(iterations))).sqrt()).sum();
    for sampler in SAMPLERS {
        for level in Level::available() {
            let config = Config { alpha: 0.5, beta: 0.3, clocks: 7, ..Config::new(num_topics) };
            let mut found: BTreeMap<Statistic, f64> = BTreeMap::new();
            train(&tiny(), sampler, &config, &Settings { level, ..settings(1) }, iterations.into(), |_, state| {
                *found.entry(statistic(&state.model)).or_insert(0.0) += 1.0 / f64::from(iterations);
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

#[test]
fn planted_topics_are_found_by_every_sampler_at_every_level() {
    let edges = planted(1500, 4);
    for sampler in SAMPLERS {
        for (level, workers) in Level::available().into_iter().zip([1, 2, 3]) {
            let settings = Settings { level, ..settings(workers) };
            let model = last(&edges, sampler, &config(FITTED), &settings, 80).model;
            assert_eq!(recovered(&model, PLANTED, planted_chance), PLANTED, "{sampler:?} {level}");
        }
    }
}

/// Corpora as the model has them, where Gibbs sampling may stay with two planted topics in one and another in halves: with
/// a fifth more topics than planted it seldom does.
#[test]
fn topics_of_generated_corpora_are_recovered() {
    let (mut found, mut all) = (Vec::new(), 0);
    for seed in 1..=2 {
        let made = CorpusSettings { seed, ..CorpusSettings::default() }.generate().unwrap();
        for sampler in SAMPLERS {
            let config = config(made.truth.num_topics * 6 / 5);
            let model = last(&made.corpus.data.edges, sampler, &config, &settings(2), 120).model;
            found.push(recovered_of(&made, &model));
            all += made.truth.num_topics;
        }
    }
    assert!(found.iter().sum::<usize>() * 100 >= all * 95, "{found:?} of {all} topics");
}

/// Fits half as many more topics than planted and gives these up after half of the iterations; what it finds.
fn recovered_with_as_many_topics(corpus: CorpusSettings, sampler: Sampler, iterations: u64) -> usize {
    let made = corpus.generate().unwrap();
    let planted = made.truth.num_topics;
    let config = Config { prior: Prior::Symmetric, ..config(planted) }.with_extra_topics(planted / 2, iterations);
    let mut found = 0;
    let edges = &made.corpus.data.edges;
    train_to(edges, sampler, &config, Some(planted), &settings(2), iterations, |iteration, state| {
        let topics = if iteration > iterations / 2 { planted } else { config.num_topics };
        let Model { topics: Topics { totals, .. }, documents, .. } = &state.model;
        assert_eq!(totals.len(), topics);
        // Rounding may leave a token with a topic that was given up.
        assert!(totals.iter().sum::<i64>() + 2 >= made.corpus.num_tokens as i64);
        assert!(documents.topics.iter().all(|&topic| usize::from(topic) < topics));
        assert!(state.log_likelihood.is_finite());
        if iteration == iterations {
            found = recovered_of(&made, &state.model);
        }
    });
    found
}

#[test]
fn nearly_all_of_twenty_topics_are_recovered_with_twenty() {
    for sampler in [Sampler::Dense, Sampler::Sparse] {
        let corpus = CorpusSettings { num_documents: 2000, num_topics: 20, ..CorpusSettings::default() };
        let found = recovered_with_as_many_topics(corpus, sampler, 120);
        assert!(found >= 19, "{sampler:?}: {found} of 20 topics");
    }
}

/// Fifty topics, five corpora: `cargo test -p megagrid-engine --test lda fifty -- --ignored --nocapture`
#[test]
#[ignore = "minutes"]
fn nearly_all_of_fifty_topics_are_recovered_with_fifty() {
    for sampler in [Sampler::Dense, Sampler::Sparse] {
        for seed in 1..=5 {
            let corpus = CorpusSettings { num_documents: 5000, num_topics: 50, seed, ..CorpusSettings::default() };
            let found = recovered_with_as_many_topics(corpus, sampler, 200);
            println!("{sampler:?}, corpus {seed}: {found} of 50 topics");
            assert!(found >= 48, "{sampler:?}, corpus {seed}: {found} of 50 topics");
        }
    }
}

fn recovered_of(made: &SyntheticCorpus, model: &Model) -> usize {
    let num_words = made.corpus.data.edges.num_right;
    let chance = |topic: usize, word: usize| f64::from(made.truth.topics[topic * num_words + word]);
    recovered(model, made.truth.num_topics, chance)
}

/// Counts the planted topics that a trained topic has a cosine above 0.9 with.
fn recovered(model: &Model, planted: usize, chance: impl Fn(usize, usize) -> f64) -> usize {
    let num_words = model.words.len();
    let mut rows = vec![vec![0.0; num_words]; model.topics.num_topics()];
    let counts = (0..num_words).flat_map(|word| model.words.row(word).map(move |entry| (word, entry)));
    counts.for_each(|(word, (topic, count))| rows[usize::from(topic)][word] = f64::from(count));
    let is_recovered = |&topic: &usize| {
        let truth: Vec<f64> = (0..num_words).map(|word| chance(topic, word)).collect();
        rows.iter().any(|row| cosine(row, &truth) > 0.9)
    };
    (0..planted).filter(is_recovered).count()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
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
                let iterations = if sampler == Sampler::Mh { 320 } else { 80 };
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
fn new_documents_are_given_their_topics_and_words_are_foreseen() {
    let model = last(&planted(1000, 7), Sampler::Dense, &config(FITTED), &settings(2), 60).model;
    let of_topic = |topic: usize| (0..20).map(|rank| ((topic * 30 + rank) as u32, 2)).collect::<Vec<_>>();
    for topic in 0..PLANTED {
        let chances = FoldIn::default().chances(&model, topic as u64, &of_topic(topic));
        assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let row = |fitted: usize| -> Vec<f64> {
            let count =
                |word| model.words.row(word).find(|e| usize::from(e.0) == fitted).map_or(0.0, |e| f64::from(e.1));
            (0..WORDS).map(count).collect()
        };
        // A planted topic may have been found twice, there are more to fit than planted.
        let truth: Vec<f64> = (0..WORDS).map(|word| planted_chance(topic, word)).collect();
        let found = (0..FITTED).filter(|&fitted| cosine(&row(fitted), &truth) > 0.8);
        assert!(found.map(|fitted| chances[fitted]).sum::<f64>() > 0.6, "{topic}: {chances:?}");
    }
    // A document without words, or with unknown words alone, has the prior.
    for words in [&[][..], &[(WORDS as u32 + 5, 3)][..]] {
        assert!(
            FoldIn::default()
                .chances(&model, 0, words)
                .iter()
                .all(|&chance| (chance - 1.0 / FITTED as f64).abs() < 1e-9)
        );
    }
    let test = by_document(&planted(200, 8));
    let perplexity = FoldIn::default().perplexity(&model, &test, 2);
    assert_eq!(perplexity, FoldIn::default().perplexity(&model, &test, 1));
    // A topic has an entropy of about exp(3.5) words, two topics in the mean; the vocabulary 300.
    assert!((30.0..90.0).contains(&perplexity), "{perplexity}");
}

fn by_document(edges: &EdgeList<u32>) -> Vec<Vec<(u32, u32)>> {
    let mut documents = vec![Vec::new(); edges.num_left];
    for edge in 0..edges.data.len() {
        documents[edges.left[edge] as usize].push((edges.right[edge], edges.data[edge]));
    }
    documents
}

#[test]
fn top_words_of_found_topics_are_coherent() {
    let edges = planted(1000, 9);
    let model = last(&edges, Sampler::Sparse, &config(PLANTED), &settings(2), 60).model;
    let top: Vec<Vec<u32>> =
        model.top_words(10).into_iter().map(|list| list.into_iter().map(|(word, _)| word).collect()).collect();
    let source = GroupedEdges::new(edges, &[Side::Right]);
    let mut occurrences = Occurrences::new(1000);
    for word in 0..source.num_vertices(Side::Right) {
        source.visit_rows(Side::Right, word..word + 1, &mut |documents, _| occurrences.push(documents)).unwrap();
    }
    let mean =
        |lists: &[Vec<u32>]| lists.iter().map(|words| occurrences.coherence(words)).sum::<f64>() / lists.len() as f64;
    let mixed: Vec<Vec<u32>> = (0..10).map(|n| top.iter().map(|list| list[n]).collect()).collect();
    assert!(mean(&top) > 0.3 && mean(&top) > mean(&mixed) + 0.3, "{} {}", mean(&top), mean(&mixed));
}

#[test]
fn odd_corpora_and_settings() {
    // A document without words, a word that never occurs, more topics than tokens.
    let mut edges = tiny();
    (edges.num_left, edges.num_right) = (5, 6);
    for sampler in SAMPLERS {
        let state = last(&edges, sampler, &config(40), &settings(3), 10);
        assert!(state.log_likelihood.is_finite());
        let chances = state.model.document_chances(4);
        assert!(chances.iter().all(|&chance| (chance - 1.0 / 40.0).abs() < 1e-9), "no words: the prior");
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

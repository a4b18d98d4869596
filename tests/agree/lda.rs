//! Latent Dirichlet allocation.

use megagrid_algorithms::lda::{Config, Dense, Lda, Sampling, Tokens, Vertices, edge_len, fill_edge, log_likelihood};
use megagrid_baselines::System;
use megagrid_baselines::apps::lda::{Job, run};
use megagrid_engine::{Engine, Settings, Source, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{Left, Right, row_width};

use super::order::visited;
use super::{assert_systems_agree, skewed};

const ITERATIONS: u64 = 40;
const TOPICS: usize = 3;
/// Words of a planted topic, which no other has.
const TOPIC_WORDS: usize = 50;

/// Documents that are mostly about one of the planted topics, whose words are drawn as skewed as those of texts are.
fn corpus() -> EdgeList<u32> {
    let (documents, words) = (150, TOPICS * TOPIC_WORDS);
    let mut random = SplitMix::new(3, 0);
    let mut list = EdgeList { num_left: documents, num_right: words, ..EdgeList::default() };
    for document in 0..documents {
        let mut counts = vec![0; words];
        for _ in 0..60 {
            let other = random.below(5) == 0;
            let topic = if other { random.below(TOPICS as u64) as usize } else { document % TOPICS };
            counts[topic * TOPIC_WORDS + skewed(&mut random, TOPIC_WORDS) as usize] += 1;
        }
        for (word, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            list.left.push(document as u32);
            list.right.push(word as u32);
            list.data.push(count);
        }
    }
    list
}

/// Returns the likelihood if all tokens of a word have one topic.
fn likelihood_where(list: &EdgeList<u32>, config: &Config, topic_of: impl Fn(usize) -> usize) -> f64 {
    let width = row_width(TOPICS);
    let (mut documents, mut words) = (vec![0.0; list.num_left * width], vec![0.0; list.num_right * width]);
    let mut topics = config.topics(list.num_right);
    for ((&document, &word), &count) in list.left.iter().zip(&list.right).zip(&list.data) {
        let topic = topic_of(word as usize);
        documents[document as usize * width + topic] += count as f32;
        words[word as usize * width + topic] += count as f32;
        topics.totals[topic] += i64::from(count);
    }
    let documents = Vertices { len: list.num_left, counts: |id: usize| &documents[id * width..][..width] };
    let words = Vertices { len: list.num_right, counts: |id: usize| &words[id * width..][..width] };
    log_likelihood(&topics, &documents, &words, 1)
}

fn settings(config: &Config) -> Settings {
    let topology = Topology { l2_bytes: 16 << 10, ..Topology::synthetic(1, 1) };
    Settings { workers: 1, dims: config.num_topics, topology, ..Settings::default() }
}

fn megagrid(list: &EdgeList<u32>, config: &Config) -> Vec<f64> {
    let source = GroupedEdges::new(list.clone(), &[Side::Left, Side::Right]);
    let sequence = Dense::sequence(config, &Tokens::count(&source).unwrap());
    let mut engine = Engine::new(Source::slices(&source, edge_len, fill_edge), sequence, &settings(config)).unwrap();
    engine.set_global(config.topics(list.num_right));
    let mut found = Vec::new();
    let between = |engine: &mut Engine<Lda<Dense>>, _: &_| {
        let (left, right) = (engine.on(Left), engine.on(Right));
        let documents = Vertices { len: left.len(), counts: |id| left.sync(id) };
        let words = Vertices { len: right.len(), counts: |id| right.sync(id) };
        found.push(log_likelihood(&engine.global(), &documents, &words, 1));
        Ok(false)
    };
    engine.run_until(ITERATIONS, between).unwrap();
    found
}

/// With one worker the same draws from the same counts: likelihoods agree to rounding of their sums, far closer than another visiting
/// order would. At the end all have found the planted topics; with two of them merged the likelihood would be several per cent lower.
#[test]
fn likelihoods_agree_on_all_systems() {
    let corpus = corpus();
    // In one clock: a clock ends where Megagrid's blocks end, and then both seed their numbers anew.
    let config = Config { alpha: 0.5, beta: 0.1, annealing: 15, uniform_share: 1.0, clocks: 1, ..Config::new(TOPICS) };
    let megagrid = megagrid(&corpus, &config);
    let planted = likelihood_where(&corpus, &config, |word| word / TOPIC_WORDS);
    let merged = likelihood_where(&corpus, &config, |word| (word / TOPIC_WORDS).max(1));
    let found = megagrid[39];
    assert!((found / planted - 1.0).abs() < 0.02, "the planted topics are found: {megagrid:?}, planted {planted}");
    assert!(megagrid[0] < 1.04 * found && merged < 1.04 * found, "1 % means something: {merged}, {megagrid:?}");
    let visits = visited::<(), _>(&corpus, &settings(&config), |count| *count as f32);
    let data = visits.data.iter().map(|&count| count as u32).collect();
    let visits = EdgeList { data, left: visits.left, right: visits.right, ..corpus };
    assert_systems_agree((&System::ALL, ""), &megagrid, 1e-10, |system, of, report| {
        let is_gas = matches!(system, System::Gas | System::GasFaithful);
        let clocks = if is_gas || of.workers == 1 { 1 } else { 16 };
        run(system, &Job { corpus: &visits, config: Config { clocks, ..config } }, of, report)
    });
}

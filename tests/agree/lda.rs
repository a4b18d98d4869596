//! Latent Dirichlet allocation.
//!
//! One worker that visits tokens in Megagrid's order has its counts, on every system. Several workers do not, on any two systems: an iteration reads
//! and changes the same rows, and systems differ in what a worker then sees of the others. Megagrid hands a word's row from worker to worker, with all draws
//! before; workers of a parameter server draw from rows of the clock before, and of this one from as much as has come; those of GAS from rows of the
//! iteration before. What all have is that no token is lost or counted twice.

use std::sync::{Arc, Mutex};

use megagrid_algorithms::lda::{
    Config, Dense, Lda, Sampling, Tokens, Topics, Vertices, edge_len, fill_edge, log_likelihood,
};
use megagrid_baselines::apps::lda::{Job, Tell, run};
use megagrid_baselines::{Run, System};
use megagrid_engine::{Engine, Settings, Source, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{Left, Right, row_width};

use super::order::visited;
use super::{across, assert_systems_agree, objectives, skewed};

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
    let documents = Vertices { len: list.num_left, counts: &|id| &documents[id * width..][..width] };
    let words = Vertices { len: list.num_right, counts: &|id| &words[id * width..][..width] };
    log_likelihood(&topics, &documents, &words, 1)
}

fn settings(config: &Config) -> Settings {
    let topology = Topology { l2_bytes: 16 << 10, ..Topology::synthetic(1, 1) };
    Settings { workers: 1, dims: config.num_topics, topology, ..Settings::default() }
}

/// Tokens of each topic, and of each word by topic, after an iteration.
#[derive(Debug, PartialEq)]
struct Counts {
    topics: Vec<i64>,
    words: Vec<Vec<f32>>,
}

impl Counts {
    fn new<'r>(topics: &[i64], words: impl Iterator<Item = &'r [f32]>) -> Self {
        Self { topics: topics.to_vec(), words: words.map(|row| row[..TOPICS].to_vec()).collect() }
    }

    /// Checks that each token of a corpus is counted once, for its word and for its topic.
    fn assert_conserves(&self, list: &EdgeList<u32>, who: &str) {
        let (mut tokens, mut topics) = (vec![0; list.num_right], vec![0; TOPICS]);
        list.right.iter().zip(&list.data).for_each(|(&word, &count)| tokens[word as usize] += count);
        for (word, row) in self.words.iter().enumerate() {
            assert!(row.iter().all(|&count| count >= 0.0), "{who}: word {word}: {row:?}");
            assert_eq!(row.iter().sum::<f32>(), tokens[word] as f32, "{who}: tokens of word {word}");
            topics.iter_mut().zip(row).for_each(|(topic, &count)| *topic += count as i64);
        }
        assert_eq!(self.topics, topics, "{who}: tokens of topics");
    }
}

/// Measures the likelihood, and keeps the counts.
fn measured(topics: &Topics, documents: &Vertices<'_, [f32]>, words: &Vertices<'_, [f32]>) -> (f64, Counts) {
    let counts = Counts::new(&topics.totals, (0..words.len).map(words.counts));
    (log_likelihood(topics, documents, words, 1), counts)
}

/// Trains with Megagrid; returns what is measured after each iteration.
fn megagrid(list: &EdgeList<u32>, config: &Config) -> Vec<(f64, Counts)> {
    let source = GroupedEdges::new(list.clone(), &[Side::Left, Side::Right]);
    let sequence = Dense::sequence(config, &Tokens::count(&source).unwrap());
    let mut engine = Engine::new(Source::slices(&source, edge_len, fill_edge), sequence, &settings(config)).unwrap();
    engine.set_global(config.topics(list.num_right));
    let mut found = Vec::new();
    let between = |engine: &mut Engine<Lda<Dense>>, _: &_| {
        let (left, right) = (engine.on(Left), engine.on(Right));
        let documents = Vertices { len: left.len(), counts: &|id| left.sync(id) };
        let words = Vertices { len: right.len(), counts: &|id| right.sync(id) };
        found.push(measured(&engine.global(), &documents, &words));
        Ok(false)
    };
    engine.run_until(ITERATIONS, between).unwrap();
    found
}

/// Returns the corpus in the order in which Megagrid visits it.
fn in_order(corpus: EdgeList<u32>, config: &Config) -> EdgeList<u32> {
    let visits = visited::<(), _>(&corpus, &settings(config), |count| *count as f32);
    let data = visits.data.iter().map(|&count| count as u32).collect();
    EdgeList { data, left: visits.left, right: visits.right, ..corpus }
}

/// Runs a system; returns its counts after each iteration.
fn counts(system: System, (corpus, config): (&EdgeList<u32>, Config), of: Run, likelihoods: &[f64]) -> Vec<Counts> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&told);
    let tell: Tell = Arc::new(move |topics: &[i64], words: &[&[f32]]| {
        into.lock().unwrap().push(Counts::new(topics, words.iter().copied()));
    });
    let job = Job { corpus, config, tell: Some(&tell) };
    objectives((system, "counts"), likelihoods, of, |system, of, report| run(system, &job, of, report));
    std::mem::take(&mut told.lock().unwrap())
}

/// In one clock: a clock ends where Megagrid's blocks end, and then both seed their numbers anew.
fn config() -> Config {
    Config { alpha: 0.5, beta: 0.1, annealing: 15, uniform_share: 1.0, clocks: 1, ..Config::new(TOPICS) }
}

/// With one worker the same draws from the same counts: likelihoods agree to rounding of their sums, far closer than another visiting
/// order would. At the end all have found the planted topics; with two of them merged the likelihood would be several per cent lower.
#[test]
fn likelihoods_agree_on_all_systems() {
    let corpus = corpus();
    let config = config();
    let megagrid: Vec<f64> = megagrid(&corpus, &config).into_iter().map(|(likelihood, _)| likelihood).collect();
    let planted = likelihood_where(&corpus, &config, |word| word / TOPIC_WORDS);
    let merged = likelihood_where(&corpus, &config, |word| (word / TOPIC_WORDS).max(1));
    let found = megagrid[39];
    assert!((found / planted - 1.0).abs() < 0.02, "the planted topics are found: {megagrid:?}, planted {planted}");
    assert!(megagrid[0] < 1.04 * found && merged < 1.04 * found, "1 % means something: {merged}, {megagrid:?}");
    let visits = in_order(corpus, &config);
    assert_systems_agree((&System::ALL, ""), &megagrid, 1e-10, |system, of, report| {
        let is_gas = matches!(system, System::Gas | System::GasFaithful);
        let clocks = if is_gas || of.workers == 1 { 1 } else { 16 };
        run(system, &Job { corpus: &visits, config: Config { clocks, ..config }, tell: None }, of, report)
    });
}

#[test]
fn one_worker_has_the_counts_of_megagrid_on_all_systems() {
    let (corpus, config) = (corpus(), config());
    let (likelihoods, expected): (Vec<f64>, Vec<Counts>) = megagrid(&corpus, &config).into_iter().unzip();
    expected.iter().for_each(|counts| counts.assert_conserves(&corpus, "megagrid"));
    let visits = in_order(corpus, &config);
    for system in System::ALL {
        let found = counts(system, (&visits, config), Run::default(), &likelihoods);
        assert_eq!(found.len(), expected.len(), "{system}");
        for (iteration, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!(found == expected, "{system}, iteration {}: {found:?}, megagrid {expected:?}", iteration + 1);
        }
    }
}

#[test]
fn several_processes_count_each_token_once() {
    let corpus = corpus();
    let config = Config { clocks: 16, ..config() };
    let some = [0.0; 5];
    for system in System::ALL {
        for processes in [1, 2, 4] {
            let of = |processes| Run { workers: 2, processes, ..Run::default() };
            let all = across(processes, |processes| counts(system, (&corpus, config), of(processes), &some));
            assert_eq!(all.iter().map(Vec::len).sum::<usize>(), some.len(), "the first process tells");
            let who = format!("{system} in {processes} processes");
            all.iter().flatten().for_each(|counts| counts.assert_conserves(&corpus, &who));
        }
    }
}

/// Workers of GAS draw from rows of the iteration before, wherever the others are.
#[test]
fn gas_has_the_same_counts_in_any_number_of_processes() {
    let (corpus, config) = (corpus(), config());
    let some = [0.0; 5];
    let one = counts(System::Gas, (&corpus, config), Run { workers: 4, ..Run::default() }, &some);
    for (processes, workers) in [(2, 2), (4, 1)] {
        let of = |processes| Run { workers, processes, ..Run::default() };
        let all = across(processes, |processes| counts(System::Gas, (&corpus, config), of(processes), &some));
        assert!(all[0] == one, "{processes} processes: {:?}, one: {one:?}", all[0]);
    }
}

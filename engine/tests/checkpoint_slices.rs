//! Checkpoints of programs that keep slices on their edges: topic models go on as if they had not stopped.

use megagrid_algorithms::lda::counts::TopicCounts;
use megagrid_algorithms::lda::mh::{CountTopics, Mh};
use megagrid_algorithms::lda::{Config, Lda, Model, Prior, Tokens, Vertices, edge_len, fill_edge};
use megagrid_engine::checkpoint::{load, save};
use megagrid_engine::{Engine, Settings, Source, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{Item, Left, Program, Right, Sequence, Stages};
use tempfile::tempdir;

const TOPICS: usize = 6;
const DOCUMENTS: usize = 60;
const WORDS: usize = 50;

/// Pairs of a document and a word, some of them repeated with the same and with other counts.
fn documents(seed: u64) -> GroupedEdges<u32> {
    let mut random = SplitMix::new(seed, 0);
    let mut list = EdgeList { num_left: DOCUMENTS, num_right: WORDS, ..EdgeList::default() };
    for _ in 0..1500 {
        list.left.push(random.below(DOCUMENTS as u64) as u32);
        list.right.push((random.unit() * random.unit() * WORDS as f64) as u32);
        list.data.push(1 + random.below(3) as u32);
    }
    GroupedEdges::new(list, &[Side::Right])
}

fn build<D: TopicCounts + ?Sized, W: TopicCounts + ?Sized, E: Item, S: Stages<Lda<D, W, E>>>(
    source: &GroupedEdges<u32>,
    sequence: Sequence<Lda<D, W, E>, S>,
    config: &Config,
    capacities: Option<&[Vec<u32>; 2]>,
    workers: usize,
) -> Engine<Lda<D, W, E>> {
    // Small caches, so that small graphs have many shards.
    let topology = Topology { l2_bytes: 4096, ..Topology::synthetic(1, workers) };
    let settings = Settings { workers, topology, dims: TOPICS, ..Settings::default() };
    let of = |side: usize| capacities.map(|both| both[side].as_slice());
    let source = Source::slices(source, edge_len, fill_edge).capacities(of(0), of(1));
    let mut engine = Engine::new(source, sequence, &settings).unwrap();
    engine.set_global(config.topics(WORDS));
    engine
}

fn run<P: Program>(engine: &mut Engine<P>, last: u64) {
    engine.run_until(last, |_, _| Ok(false)).unwrap();
}

fn model<D: TopicCounts + ?Sized, W: TopicCounts + ?Sized, E: Item>(engine: &Engine<Lda<D, W, E>>) -> Model {
    let (left, right) = (engine.on(Left), engine.on(Right));
    let documents = Vertices { len: left.len(), counts: |id| left.sync(id) };
    let words = Vertices { len: right.len(), counts: |id| right.sync(id) };
    Model::new(&engine.global(), &documents, &words)
}

/// `count` brings the counts up to date.
fn goes_on<D: TopicCounts + ?Sized, W: TopicCounts + ?Sized, E: Item>(
    build: impl Fn(usize) -> Engine<Lda<D, W, E>>,
    count: impl Fn(&mut Engine<Lda<D, W, E>>),
    tokens: i64,
) {
    let model = |engine: &mut _| {
        count(engine);
        model(engine)
    };
    for workers in 1..=3 {
        let mut straight = build(workers);
        run(&mut straight, 6);
        let dir = tempdir().unwrap();
        let mut first = build(workers);
        run(&mut first, 3);
        save(&mut first, dir.path()).unwrap();
        let mut second = build(workers);
        assert_eq!(load(&mut second, dir.path()).unwrap(), 3);
        assert_eq!(model(&mut second), model(&mut first));
        run(&mut second, 6);
        assert_eq!(model(&mut second), model(&mut straight), "{workers} workers");

        let mut other = build(workers % 3 + 1);
        load(&mut other, dir.path()).unwrap();
        assert_eq!(model(&mut other), model(&mut first));
        // Tokens whose topics were of other edges would take counts below zero.
        run(&mut other, 9);
        let Model { topics, words, documents } = model(&mut other);
        assert_eq!(topics.totals.iter().sum::<i64>(), tokens);
        for table in [words, documents] {
            assert_eq!(table.counts.iter().map(|&count| i64::from(count)).sum::<i64>(), tokens);
        }
        save(&mut other, dir.path()).unwrap();
    }
}

#[test]
fn topic_models_go_on_bit_by_bit_and_on_other_numbers_of_workers() {
    let source = documents(1);
    let tokens = Tokens::count(&source).unwrap();
    let config = Config { clocks: 3, ..Config::new(TOPICS) };
    goes_on(|workers| build(&source, config.dense(&tokens), &config, None, workers), |_| {}, tokens.total as i64);
    let capacities = tokens.capacities(TOPICS);
    goes_on(
        |workers| build(&source, config.sparse(&tokens), &config, Some(&capacities), workers),
        |_| {},
        tokens.total as i64,
    );
    let config = Config { prior: Prior::Symmetric, ..config };
    let count = |engine: &mut Engine<Mh>| {
        engine.visit(Left, CountTopics);
        engine.visit(Right, CountTopics);
    };
    goes_on(|workers| build(&source, config.mh(), &config, Some(&capacities), workers), count, tokens.total as i64);
}

#[test]
fn another_corpus_of_the_same_size_is_refused() {
    let (one, other) = (documents(1), documents(2));
    let config = Config::new(TOPICS);
    let of = |source: &GroupedEdges<u32>| {
        let tokens = Tokens::count(source).unwrap();
        build(source, config.dense(&tokens), &config, None, 1)
    };
    let dir = tempdir().unwrap();
    save(&mut of(&one), dir.path()).unwrap();
    let error = load(&mut of(&other), dir.path()).unwrap_err().to_string();
    assert!(error.contains("edge data digest"), "{error}");
}

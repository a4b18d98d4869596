//! Graphs, and engines for them, that several tests run.

use bytemuck::TransparentWrapper;
use megagrid_algorithms::lda::mh::CountTopics;
use megagrid_algorithms::lda::{
    self, Dense, Lda, Mh, Model, Sampler, Sampling, Sparse, Tokens, Vertices, edge_len, fill_edge, log_likelihood,
};
use megagrid_algorithms::mf;
use megagrid_algorithms::pagerank::{self, Damping, Follow, PageRank, Ranks, Restart, Start, Weighted};
use megagrid_engine::{Engine, IterationReport, Settings, Source, Topology};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};
use megagrid_stages::{Exchange, Item, Left, Program, Right, Sequence, Shape, Stages, Store, Vertex};

/// Small caches, so that small graphs have many shards.
pub fn settings(workers: usize, dims: usize) -> Settings {
    let topology = Topology { l2_bytes: 4096, ..Topology::synthetic(1, workers) };
    Settings { workers, dims, topology, ..Settings::default() }
}

pub fn run<P: Program>(engine: &mut Engine<P>, last: u64) {
    watch(engine, last, |_, _| {});
}

/// Runs on, and shows the engine and its report after each iteration.
pub fn watch<P: Program>(engine: &mut Engine<P>, last: u64, mut see: impl FnMut(&mut Engine<P>, &IterationReport)) {
    let between = |engine: &mut Engine<P>, report: &IterationReport| {
        see(engine, report);
        Ok(false)
    };
    engine.run_until(last, between).unwrap();
}

/// A square graph; a few pages have most links.
pub fn links(pages: usize, links: usize) -> GroupedEdges<()> {
    let mut random = SplitMix::new(5, 0);
    let mut page = || (random.unit().powi(3) * pages as f64) as u32;
    let mut list = EdgeList { num_left: pages, num_right: pages, square: true, ..EdgeList::default() };
    (0..links).for_each(|_| list.push(page(), page(), ()));
    GroupedEdges::new(list, &[Side::Right])
}

/// The same links, whose weights are from 0 to 3.75.
pub fn weighted_links(pages: usize, number: usize) -> GroupedEdges<f32> {
    let (mut random, plain) = (SplitMix::new(6, 0), links(pages, number));
    let mut list = EdgeList { num_left: pages, num_right: pages, square: true, ..EdgeList::default() };
    let offsets = plain.offsets(Side::Right);
    let mut add = |left: &[u32], _: &[()]| {
        for page in 0..pages {
            let from = &left[offsets[page] as usize..offsets[page + 1] as usize];
            from.iter().for_each(|&from| list.push(from, page as u32, random.below(16) as f32 / 4.0));
        }
    };
    plain.visit_rows(Side::Right, 0..pages, &mut add).unwrap();
    GroupedEdges::new(list, &[Side::Right])
}

/// PageRank that restarts at `sources`, or anywhere.
pub fn page_rank(edges: &GroupedEdges<()>, sources: &[usize], settings: &Settings) -> Engine<PageRank> {
    let weights: Vec<(usize, f64)> = sources.iter().map(|&page| (page, 1.0)).collect();
    rank_engine(edges, &weights, |&()| 1.0, settings)
}

/// PageRank by weights of links, which restarts at pages by weights, or anywhere.
pub fn weighted_rank(edges: &GroupedEdges<f32>, restart: &[(usize, f64)], settings: &Settings) -> Engine<Weighted> {
    rank_engine(edges, restart, |&weight| f64::from(weight), settings)
}

fn rank_engine<T: Item, P: Ranks + Program<Edge = T>>(
    edges: &GroupedEdges<T>,
    restart: &[(usize, f64)],
    weight: impl Fn(&T) -> f64,
    settings: &Settings,
) -> Engine<P>
where
    Follow: Exchange<P>,
{
    let pages = edges.num_vertices(Side::Left);
    let mut out_weights = vec![0.0; pages];
    let mut add = |left: &[u32], data: &[T]| {
        left.iter().zip(data).for_each(|(&from, data)| out_weights[from as usize] += weight(data));
    };
    edges.visit_rows(Side::Right, 0..pages, &mut add).unwrap();
    let restart = (!restart.is_empty()).then(|| Restart::new(pages, restart).unwrap());
    let out_weight = |page: usize| out_weights[page];
    let start = Start::new(Damping::DEFAULT, pages, restart.as_ref(), &out_weight);
    let sequence = pagerank::sequence(Damping::DEFAULT, edges.num_edges() as u64);
    let mut engine = Engine::new(edges, sequence, settings).unwrap();
    engine.set_global(start.state());
    engine.init(Right, |page, first| (*first.master, *first.sync) = start.page(page));
    engine
}

pub fn scores<P: Ranks>(engine: &Engine<P>) -> Vec<f32> {
    let view = engine.on(Right);
    pagerank::scores((0..view.len()).map(|page| *view.master(page)))
}

/// Everything that PageRank knows; the text of a number tells it exactly.
pub fn page_rank_state(engine: &Engine<PageRank>) -> Vec<String> {
    let view = engine.on(Right);
    let pages = (0..view.len()).map(|page| format!("{:?} {:?}", view.master(page), view.sync(page)));
    pages.chain([format!("{:?}", engine.global())]).collect()
}

/// 6000 ratings by 200 users of 90 items, from which there is nothing to learn.
pub fn noise(seed: u64) -> GroupedEdges<f32> {
    let mut random = SplitMix::new(seed, 0);
    let mut list = EdgeList { num_left: 200, num_right: 90, ..EdgeList::default() };
    for _ in 0..6000 {
        let (user, item) = (random.below(200) as u32, random.below(90) as u32);
        list.push(user, item, (1.0 + 4.0 * random.unit()) as f32);
    }
    GroupedEdges::new(list, &[Side::Right])
}

/// A factorization with its first values.
pub fn factorization<P, S: Stages<P>>(
    edges: &GroupedEdges<f32>,
    config: mf::Config,
    sequence: Sequence<P, S>,
    settings: &Settings,
) -> Engine<P>
where
    P: Program<Edge = f32, Left: Vertex<Sync = [f32]>, Right: Vertex<Sync = [f32]>>,
{
    let remembered = config.optimizer.remembered(config.row_dims()) as u32;
    let capacities = [Side::Left, Side::Right].map(|side| vec![remembered; edges.num_vertices(side)]);
    let source = Source::map(edges, |rating| *rating).capacities(Some(&capacities[0]), Some(&capacities[1]));
    let mut engine = Engine::new(source, sequence, settings).unwrap();
    engine.init(Left, |user, first| config.init_user(1, user, first.sync));
    engine.init(Right, |item, first| config.init_item(1, item, first.sync));
    engine
}

/// The factors of users and items.
pub fn factors<P>(engine: &Engine<P>) -> Vec<Vec<f32>>
where
    P: Program<Left: Vertex<Sync = [f32]>, Right: Vertex<Sync = [f32]>>,
{
    let (left, right) = (engine.on(Left), engine.on(Right));
    left.iter().chain(right.iter()).map(<[f32]>::to_vec).collect()
}

/// All that a factorization in place learns: the factors, and the states of their steps.
pub fn learned(engine: &Engine<mf::in_place::Mf>) -> Vec<u32> {
    let (left, right) = (engine.on(Left), engine.on(Right));
    let steps = (0..left.len()).map(|user| *left.mirror(user)).chain((0..right.len()).map(|item| *right.mirror(item)));
    factors(engine).into_iter().flatten().chain(steps).map(f32::to_bits).collect()
}

/// Counts of three things, and room.
#[derive(TransparentWrapper)]
#[repr(transparent)]
pub struct Counts(pub [u32]);

impl Store for Counts {
    type Item = u32;
    const SHAPE: Shape = Shape::Entries;

    fn view(items: &[u32]) -> &Self {
        Self::wrap_ref(items)
    }

    fn view_mut(items: &mut [u32]) -> &mut Self {
        Self::wrap_mut(items)
    }
}

/// Words of which each of 60 documents has a quarter.
pub fn few_documents() -> GroupedEdges<u32> {
    let mut random = SplitMix::new(5, 0);
    let mut list = EdgeList { num_left: 60, num_right: 80, ..EdgeList::default() };
    for (document, word) in (0..60).flat_map(|document| (0..80).map(move |word| (document, word))) {
        if random.below(4) == 0 {
            list.push(document, word, 1 + random.below(3) as u32);
        }
    }
    GroupedEdges::new(list, &[Side::Right])
}

/// A sampler, of whose counts a model can be made.
pub trait Counted: Sampling {
    /// Brings the counts of documents and words up to date.
    fn count(_: &mut Engine<Lda<Self>>) {}
}

impl Counted for Dense {}
impl Counted for Sparse {}
impl Counted for Mh {
    fn count(engine: &mut Engine<Lda<Self>>) {
        engine.visit(Left, CountTopics);
        engine.visit(Right, CountTopics);
    }
}

/// A topic model with its first state.
pub fn topics<S: Sampling>(edges: &GroupedEdges<u32>, config: &lda::Config, settings: &Settings) -> Engine<Lda<S>> {
    let tokens = Tokens::count(edges).unwrap();
    tokens.check(S::SAMPLER, config.num_topics).unwrap();
    let capacities = (S::SAMPLER != Sampler::Dense).then(|| tokens.capacities(config.num_topics));
    let [left, right] = [0, 1].map(|side| capacities.as_ref().map(|both| both[side].as_slice()));
    let source = Source::slices(edges, edge_len, fill_edge).capacities(left, right);
    let settings = Settings { dims: config.num_topics, ..settings.clone() };
    let mut engine = Engine::new(source, S::sequence(config, &tokens), &settings).unwrap();
    engine.set_global(config.topics(edges.num_vertices(Side::Right)));
    engine
}

pub fn model<S: Counted>(engine: &mut Engine<Lda<S>>) -> Model {
    S::count(engine);
    let (left, right) = (engine.on(Left), engine.on(Right));
    let documents = Vertices { len: left.len(), counts: &|id| left.sync(id) };
    let words = Vertices { len: right.len(), counts: &|id| right.sync(id) };
    Model::new(&engine.global(), &documents, &words)
}

/// Of counts that are up to date.
pub fn likelihood<S: Sampling>(engine: &Engine<Lda<S>>) -> f64 {
    let (left, right) = (engine.on(Left), engine.on(Right));
    let documents = Vertices { len: left.len(), counts: &|id| left.sync(id) };
    let words = Vertices { len: right.len(), counts: &|id| right.sync(id) };
    log_likelihood(&engine.global(), &documents, &words, 2)
}

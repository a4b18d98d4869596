//! Latent Dirichlet allocation.

use std::ops::ControlFlow;

use megagrid_algorithms::lda::dense::Dense;
use megagrid_algorithms::lda::{Config, Tokens, Vertices, edge_len, fill_edge, log_likelihood};
use megagrid_baselines::apps::lda::{Job, run};
use megagrid_baselines::{Run, System};
use megagrid_engine::{EdgeInput, Engine, Input, Settings, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::Row;

use crate::order::visited;
use crate::{assert_agree, assert_ends_near, objectives};

const ITERATIONS: u64 = 40;

/// Documents of two topics, each of which prefers its own words a little: chains that stay with different topics end at nearly the same
/// likelihood, so that at the end it tells whether counts are right, not which topics were found.
fn corpus() -> EdgeList<u32> {
    let (documents, words) = (150, 120);
    let mut random = SplitMix::new(3, 0);
    let mut list = EdgeList { num_left: documents, num_right: words, ..EdgeList::default() };
    for document in 0..documents as u32 {
        let mut counts = vec![0; words];
        for _ in 0..60 {
            let topic = (document as usize + random.below(5) as usize / 4) % 2;
            let drawn = (random.unit() * random.unit() * 60.0) as usize;
            counts[if random.unit() < 0.5 { topic * 60 + drawn } else { 2 * drawn }] += 1;
        }
        for (word, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            list.left.push(document);
            list.right.push(word as u32);
            list.data.push(count);
        }
    }
    list
}

fn settings(config: &Config) -> Settings {
    let topology = Topology { l2_bytes: 16 << 10, ..Topology::synthetic(1, 1) };
    Settings { workers: 1, dims: [config.num_topics; 2], topology, ..Settings::default() }
}

fn megagrid(list: &EdgeList<u32>, config: &Config) -> Vec<f64> {
    let source = GroupedEdges::new(list.clone(), &[Side::Left, Side::Right]);
    let tokens = Tokens::count(&source).unwrap();
    let sequence = config.dense(&tokens).unwrap();
    let edge = EdgeInput { len: &edge_len, fill: &fill_edge };
    let input = Input { source: &source, edge, capacities: [None, None] };
    let topics = config.topics(list.num_right);
    let mut engine = Engine::<Dense>::bipartite(&input, &sequence, topics, &settings(config)).unwrap();
    let mut found = Vec::new();
    let between = |_: &_, engine: &Engine<Dense>| {
        let (left, right) = (engine.left(), engine.right());
        let documents = Vertices { len: left.len(), counts: |id| left.sync(id) };
        let words = Vertices { len: right.len(), counts: |id| right.sync(id) };
        found.push(log_likelihood::<Row<f32>, Row<f32>>(&engine.global(), &documents, &words, 1));
        ControlFlow::Continue(())
    };
    engine.run(ITERATIONS, between).unwrap();
    found
}

/// The same draws from the same counts: likelihoods agree to rounding of their sums, far closer than another visiting order would.
#[test]
fn likelihoods_agree_on_all_systems() {
    let corpus = corpus();
    // In one clock: a clock ends where Megagrid's blocks end, and then both seed their numbers anew.
    let config = Config { alpha: 0.5, beta: 0.1, annealing: 15, uniform_share: 1.0, clocks: 1, ..Config::new(2) };
    let megagrid = megagrid(&corpus, &config);
    assert!(megagrid[39] > megagrid[0], "likelihoods rise: {megagrid:?}");
    let visits = visited::<(), _>(&corpus, &settings(&config), |count| *count as f32);
    let data = visits.data.iter().map(|&count| count as u32).collect();
    let visits = EdgeList { data, left: visits.left, right: visits.right, ..corpus };
    for system in System::ALL {
        let at = |workers, config| {
            let of = Run { workers, iterations: ITERATIONS, ..Run::default() };
            objectives(|report| run(system, &Job { corpus: &visits, config }, &of, report))
        };
        assert_agree(system.name(), &at(1, config), &megagrid, 1e-10);
        let clocks = if matches!(system, System::Gas | System::GasFaithful) { 1 } else { 16 };
        assert_ends_near(system.name(), &at(2, Config { clocks, ..config }), &megagrid);
    }
}

//! Sparse logistic regression.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use megagrid_algorithms::blockpg::{
    BlockPg, Config, Derivatives, Margin, Parabola, Region, Weight, log_loss, sequence,
};
use megagrid_baselines::apps::blockpg::{Job, run};
use megagrid_baselines::{Run, System};
use megagrid_engine::{Batches, Engine, Settings, Topology};
use megagrid_partition::strategy::NAMES;
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};
use megagrid_stages::{
    Add, Apply, BatchOrder, BatchSize, Combine, Context, Exchange, GlobalSync, Left, Master, MiniBatch, Program, Read,
    Right, Sequence, mode, vertex,
};
use serde::{Deserialize, Serialize};

use super::{assert_processes_agree, assert_systems_agree};

const ITERATIONS: u64 = 8;
const BLOCK_VALUES: u64 = 300;

/// Samples with a few of the features each, of which a third count, and an intercept.
fn signed() -> (GroupedEdges<f32>, usize) {
    let (samples, features) = (300, 60);
    let mut random = SplitMix::new(4, 0);
    let planted: Vec<f64> = (0..features).map(|j| if j % 3 == 0 { 4.0 * random.unit() - 2.0 } else { 0.0 }).collect();
    let mut list = EdgeList { num_left: samples, num_right: features + 1, ..EdgeList::default() };
    for sample in 0..samples {
        let mut values = Vec::new();
        for feature in 0..features {
            values.extend((random.unit() < 0.2).then(|| (feature, 2.0 * random.unit() - 0.7)));
        }
        let score: f64 = 0.5 + values.iter().map(|(j, x)| x * planted[*j]).sum::<f64>();
        let label = if random.unit() < 1.0 / (1.0 + (-score).exp()) { 1.0 } else { -1.0 };
        for (feature, x) in values.into_iter().chain([(features, 1.0)]) {
            list.left.push(sample as u32);
            list.right.push(feature as u32);
            list.data.push((x * label) as f32);
        }
    }
    (GroupedEdges::new(list, &[Side::Left, Side::Right]), features)
}

fn settings() -> Settings {
    let topology = Topology { l2_bytes: 4 << 10, ..Topology::synthetic(1, 1) };
    Settings { workers: 1, topology, ..Settings::default() }
}

/// Trains with Megagrid; returns the objectives.
fn megagrid(signed: &GroupedEdges<f32>, intercept: usize, config: &Config) -> Vec<f64> {
    let sequence = sequence(BLOCK_VALUES);
    let mut engine = Engine::<BlockPg>::new(signed, sequence, &settings()).unwrap();
    engine.set_global(config.state());
    engine.init(Left, |_, first| {
        *first.master = Margin::new(0.0, 1.0, 1.0);
        *first.sync = first.master.parabola();
    });
    let mut reaches = vec![0.0_f32; intercept + 1];
    for (feature, reach) in reaches.iter_mut().enumerate() {
        let largest = &mut |_: &[u32], values: &[f32]| *reach = values.iter().fold(*reach, |most, x| most.max(x.abs()));
        signed.visit_rows(Side::Right, feature..feature + 1, largest).unwrap();
    }
    engine.init(Right, |feature, first| {
        *first.master = Region::new(reaches[feature]);
        *first.sync = first.master.weight(0.0, feature == intercept);
    });
    let mut found = Vec::new();
    let between = |engine: &mut Engine<BlockPg>, _: &_| {
        let (samples, features) = (engine.on(Left), engine.on(Right));
        let loss: f64 = (0..samples.len()).map(|sample| log_loss(samples.master(sample).margin)).sum();
        let weights = (0..features.len()).filter(|&j| j != intercept).map(|feature| features.sync(feature).value);
        found.push(loss + config.penalty(weights));
        Ok(false)
    };
    engine.run_until(ITERATIONS, between).unwrap();
    found
}

/// Writes down the blocks of each iteration: same stores and the same mini-batches as the program that trains.
struct Blocks;

vertex! { struct Sample { sync: Parabola, master: Margin } }

vertex! {
    /// A feature whose weight is its number.
    struct Feature { sync: Weight, delta: Derivatives, master: Region, mirror: f64 }
}

#[derive(Default, Serialize, Deserialize)]
struct Seen(Vec<u32>);
impl Combine for Seen {
    fn combine(&mut self, from: &mut Self) {
        self.0.append(&mut from.0);
    }
}

impl Program for Blocks {
    type Left = Sample;
    type Right = Feature;
    type Edge = f32;
    type Worker = Seen;
    type Global = Vec<Vec<u32>>;
}

struct Look;
impl Exchange<Blocks> for Look {
    type Left = mode::Read;
    type Right = mode::Add;
    const GROUPED: bool = true;
    fn exchange(&self, _: Read<'_, Sample>, _: Add<'_, Feature>, _: &mut f32, _: &mut Context<'_, Blocks>) {}
}

struct Note;
impl Apply<Blocks, Feature> for Note {
    fn apply(&self, feature: Master<'_, Feature>, cx: &mut Context<'_, Blocks>) {
        cx.worker.0.push(feature.sync.value as u32);
    }
}

struct EndBlock;
impl GlobalSync<Blocks> for EndBlock {
    fn apply(&self, total: Seen, global: &mut Vec<Vec<u32>>) {
        global.push(total.0);
    }
}

/// Returns Megagrid's blocks by iteration.
fn blocks(signed: &GroupedEdges<f32>) -> BTreeMap<u64, Vec<Vec<u32>>> {
    let batch = MiniBatch { size: BatchSize::EdgesOf(Side::Right, BLOCK_VALUES), order: BatchOrder::RandomBlocks };
    let sequence = Sequence::new().mini_batch(batch, |b| b.exchange(Look).apply(Right, Note).global_sync(EndBlock));
    let mut engine = Engine::<Blocks>::new(signed, sequence, &settings()).unwrap();
    engine.init(Right, |feature, first| first.sync.value = feature as f64);
    let mut found = BTreeMap::new();
    let mut before = 0;
    let between = |engine: &mut Engine<Blocks>, report: &megagrid_engine::IterationReport| {
        let all = engine.global();
        found.insert(report.iteration, all[before..].to_vec());
        before = all.len();
        Ok(false)
    };
    engine.run_until(ITERATIONS, between).unwrap();
    found
}

#[test]
fn objectives_agree_on_all_systems() {
    let (signed, intercept) = signed();
    let config = Config { l1: 1.0, l2: 0.1 };
    let megagrid = megagrid(&signed, intercept, &config);
    assert!(megagrid[7] < 0.98 * megagrid[0], "it learns: {megagrid:?}");
    let blocks = blocks(&signed);
    assert!(blocks[&1].len() > 5 && blocks[&1] != blocks[&2], "blocks take turns at random");
    let of_iteration = |iteration: u64| blocks[&iteration].clone();
    let planned = Batches::new(&signed, &sequence(BLOCK_VALUES), &settings(), Side::Right).unwrap();
    for (&iteration, seen) in &blocks {
        let sorted = |mut block: Vec<u32>| {
            block.sort_unstable();
            block
        };
        let [planned, seen] = [planned.of_iteration(iteration), seen.clone()].map(|all| all.into_iter().map(sorted));
        assert!(planned.eq(seen), "blocks that are planned are those that ran, iteration {iteration}");
    }
    let job = Job {
        // Values that carry labels have samples of label 1.
        values: &signed,
        labels: &vec![1.0; signed.num_vertices(Side::Left)],
        sample_weights: &[],
        intercept: Some(intercept),
        config,
        block_values: BLOCK_VALUES,
        blocks: Some(&of_iteration),
    };
    assert_systems_agree((&System::ALL, ""), &megagrid, 1e-5, |system, of, report| {
        let blocks = job.blocks.filter(|_| of.workers == 1);
        run(system, &Job { blocks, ..job }, of, report)
    });
    assert_processes_agree("", &megagrid, [&["bicut"], &NAMES], |system, of, report| run(system, &job, of, report));
}

#[test]
fn samples_are_not_cut_on_gas() {
    let (signed, _) = signed();
    let labels = vec![1.0; signed.num_vertices(Side::Left)];
    let config = Config { l1: 1.0, l2: 0.1 };
    let job = Job {
        values: &signed,
        labels: &labels,
        sample_weights: &[],
        intercept: None,
        config,
        block_values: BLOCK_VALUES,
        blocks: None,
    };
    let of = Run { cut: Some("grid"), ..Run::default() };
    let refused = run(System::Gas, &job, &of, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(refused.contains("take bicut"), "{refused}");
}

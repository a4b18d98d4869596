//! Sparse logistic regression in several processes.

use megagrid_algorithms::blockpg::{BlockPg, Config, Margin, Region, sequence};
use megagrid_engine::Engine;
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{Left, Right};

use super::{SHAPES, local, settings};
use crate::made::watch;

const SAMPLES: usize = 400;
const FEATURES: usize = 60;

/// Values y x of samples of which each has a third of the features.
pub fn samples() -> GroupedEdges<f32> {
    let mut random = SplitMix::new(11, 0);
    let mut list = EdgeList { num_left: SAMPLES, num_right: FEATURES, ..EdgeList::default() };
    for sample in 0..SAMPLES {
        let mut values = Vec::new();
        for feature in 0..FEATURES {
            if random.unit() < 0.3 {
                values.push((feature, 2.0 * random.unit() - 0.7));
            }
        }
        let score: f64 = values.iter().map(|(j, x)| if j % 4 == 0 { 2.0 * x } else { 0.0 }).sum();
        let label = if random.unit() < 1.0 / (1.0 + (-score).exp()) { 1.0 } else { -1.0 };
        for (feature, x) in values {
            list.push(sample as u32, feature as u32, (x * label) as f32);
        }
    }
    GroupedEdges::new(list, &[Side::Right])
}

/// The objective after each iteration, from the margins and weights that the engine keeps.
fn train(edges: &GroupedEdges<f32>, (processes, workers): (usize, usize)) -> Vec<f64> {
    let config = Config { l1: 2.0, l2: 0.0 };
    local::run(processes, |peers| {
        let mut engine = Engine::<BlockPg>::new(edges, sequence(900), &settings(peers, workers, 1)).unwrap();
        engine.set_global(config.state());
        engine.init(Left, |_, first| {
            *first.master = Margin::new(0.0, 1.0, 1.0);
            *first.sync = first.master.parabola();
        });
        engine.init(Right, |_, first| {
            *first.master = Region::new(1.3);
            *first.sync = first.master.weight(0.0, false);
        });
        let mut objectives = Vec::new();
        watch(&mut engine, 20, |engine, _| {
            engine.collect().unwrap();
            let (left, right) = (engine.on(Left), engine.on(Right));
            let loss: f64 = (0..SAMPLES).map(|sample| (-left.master(sample).margin).exp().ln_1p()).sum();
            let size: f64 = (0..FEATURES).map(|feature| right.sync(feature).value.abs()).sum();
            objectives.push(loss + config.l1 * size);
        });
        objectives
    })
}

#[test]
fn block_proximal_gradient_has_the_same_objectives_in_every_shape() {
    let edges = samples();
    let expected = train(&edges, (1, 1));
    for shape in SHAPES {
        let objectives = train(&edges, shape);
        for (iteration, (found, expected)) in objectives.iter().zip(&expected).enumerate() {
            assert!((found / expected - 1.0).abs() < 1e-5, "{shape:?}, {iteration}: {found}, expected {expected}");
        }
        assert_eq!(objectives, train(&edges, shape), "{shape:?}: a second run");
    }
}

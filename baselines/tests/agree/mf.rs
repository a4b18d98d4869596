//! Matrix factorization.

use std::ops::ControlFlow;

use megagrid_algorithms::mf::batch::{self, MfBatch};
use megagrid_algorithms::mf::{Config, Objective, SquaredErrors};
use megagrid_baselines::apps::mf::{Form, Job, run};
use megagrid_baselines::{Run, System};
use megagrid_engine::{EdgeInput, Engine, Input, Settings, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};

use crate::{assert_agree, assert_ends_near, objectives, skewed};

const ITERATIONS: u64 = 10;

/// Ratings of skewed users and items around a product of two planted numbers.
fn ratings() -> EdgeList<f32> {
    let (users, items) = (200, 90);
    let mut random = SplitMix::new(5, 0);
    let mut list = EdgeList { num_left: users, num_right: items, ..EdgeList::default() };
    for _ in 0..4000 {
        let (user, item) = (skewed(&mut random, users), skewed(&mut random, items));
        let planted = (f64::from(user) / 30.0).sin() * (f64::from(item) / 20.0).cos();
        list.left.push(user);
        list.right.push(item);
        list.data.push((planted + 0.2 * (random.unit() - 0.5)) as f32);
    }
    list
}

fn settings(workers: usize, config: &Config) -> Settings {
    let topology = Topology { l2_bytes: 16 << 10, ..Topology::synthetic(1, workers) };
    Settings { workers, dims: [config.row_dims(); 2], topology, ..Settings::default() }
}

fn megagrid_batch(list: &EdgeList<f32>, config: Config) -> Vec<f64> {
    let source = GroupedEdges::new(list.clone(), &[Side::Right]);
    let sequence = batch::sequence(config, list.data.len() as u64).unwrap();
    let edge = EdgeInput { len: &|_| 1, fill: &|rating: &f32, items: &mut [f32]| items[0] = *rating };
    let input = Input { source: &source, edge, capacities: [None, None] };
    let mut engine = Engine::<MfBatch>::bipartite(&input, &sequence, (), &settings(1, &config)).unwrap();
    engine.init_left(|user, first| config.init_user(1, user, first.sync));
    engine.init_right(|item, first| config.init_item(1, item, first.sync));
    let mut found = Vec::new();
    let between = |_: &_, engine: &Engine<MfBatch>| {
        found.push(Objective::new(engine.measure(&SquaredErrors(config)).unwrap(), config.lambda).value);
        ControlFlow::Continue(())
    };
    engine.run(ITERATIONS, between).unwrap();
    found
}

#[test]
fn batch_gradients_agree_on_all_systems() {
    let ratings = ratings();
    for (adaptive, biases) in [(true, true), (false, false)] {
        let step = if adaptive { 0.5 } else { 0.005 };
        let config = Config { dims: 8, step, adaptive, biases, init_std: 0.3, ..Config::default() };
        let megagrid = megagrid_batch(&ratings, config);
        assert!(megagrid[9] < 0.9 * megagrid[0], "it learns: {megagrid:?}");
        for system in [System::Gas, System::GasFaithful] {
            let job = Job { ratings: &ratings, config, form: Form::Batch };
            let at = |workers| {
                let of = Run { workers, iterations: ITERATIONS, ..Run::default() };
                objectives(|report| run(system, &job, &of, report))
            };
            let name = format!("{system}, adaptive {adaptive}");
            assert_agree(&name, &at(1), &megagrid, 1e-5);
            assert_ends_near(&name, &at(2), &megagrid);
        }
    }
}

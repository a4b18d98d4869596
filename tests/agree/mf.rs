//! Matrix factorization.

use megagrid_algorithms::mf::batch::{self, MfBatch};
use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_algorithms::mf::{Config, Objective, Optimizer, SquaredErrors, Sums};
use megagrid_baselines::apps::mf::{Form, Job, run};
use megagrid_baselines::{Report, Run, System};
use megagrid_engine::{Engine, Settings, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};

use megagrid_stages::{Left, Program, Right, Sequence, Stages, Vertex};

use super::order::visited;
use super::{assert_processes_agree, assert_systems_agree, skewed};

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
    Settings { workers, dims: config.row_dims(), topology, ..Settings::default() }
}

/// Trains with Megagrid; returns the objectives.
fn megagrid<P, U, I, S>(list: &EdgeList<f32>, config: Config, sequence: Sequence<P, S>, iterations: u64) -> Vec<f64>
where
    P: Program<Left = U, Right = I, Edge = f32, Worker = Sums, Global = Sums>,
    U: Vertex<Sync = [f32]>,
    I: Vertex<Sync = [f32]>,
    S: Stages<P>,
{
    let source = GroupedEdges::new(list.clone(), &[Side::Right]);
    let mut engine = Engine::<P>::new(&source, sequence, &settings(1, &config)).unwrap();
    engine.init(Left, |user, first| config.init_user(1, user, first.sync));
    engine.init(Right, |item, first| config.init_item(1, item, first.sync));
    let mut found = Vec::new();
    let between = |engine: &mut Engine<P>, _: &_| {
        found.push(Objective::new(engine.total(SquaredErrors(config)).unwrap(), config.lambda).value);
        Ok(false)
    };
    engine.run_until(iterations, between).unwrap();
    found
}

#[test]
fn batch_gradients_agree_on_all_systems() {
    let ratings = ratings();
    for (optimizer, step, biases) in [(Optimizer::AdaGrad, 0.5, true), (Optimizer::Sgd, 0.005, false)] {
        let config = Config { dims: 8, step, optimizer, biases, init_std: 0.3, ..Config::default() };
        let sequence = batch::sequence(config, ratings.data.len() as u64);
        let megagrid = megagrid::<MfBatch, _, _, _>(&ratings, config, sequence, 10);
        let job = Job { ratings: &ratings, config, form: Form::Batch };
        assert!(megagrid[9] < 0.9 * megagrid[0], "it learns: {megagrid:?}");
        let what = format!("{optimizer:?}");
        let of = |system, of: &Run, report: Report<'_>| run(system, &job, of, report);
        assert_systems_agree((&System::ALL, &what), &megagrid, 1e-5, of);
        assert_processes_agree(&what, &megagrid, [&["random"], &["random"]], of);
    }
}

/// How fast two workers get to the end depends on how late each hears of the other, most of all with adaptive steps; so the end is where
/// an iteration changes next to nothing.
#[test]
fn steps_in_place_agree_on_all_servers() {
    let ratings = ratings();
    for (optimizer, step) in [(Optimizer::AdaGrad, 0.5), (Optimizer::Sgd, 0.1)] {
        let config = Config { dims: 8, step, optimizer, init_std: 0.3, ..Config::default() };
        let sequence = in_place::sequence(config, ratings.data.len() as u64);
        let megagrid = megagrid::<Mf, _, _, _>(&ratings, config, sequence, 80);
        let (before, end) = (megagrid[megagrid.len() - 2], megagrid[megagrid.len() - 1]);
        assert!((end / before - 1.0).abs() < 1e-3, "it has converged: {megagrid:?}");
        let visits = visited::<f32, _>(&ratings, &settings(1, &config), |rating| *rating);
        let job = Job { ratings: &visits, config, form: Form::InPlace };
        assert!(megagrid[9] < 0.9 * megagrid[0], "it learns: {megagrid:?}");
        let what = format!("in place, {optimizer:?}");
        let of = |system, of: &Run, report: Report<'_>| run(system, &job, of, report);
        assert_systems_agree((&System::ALL[2..], &what), &megagrid, 1e-5, of);
    }
}

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
/// an iteration changes next to nothing, and there is hardly more than one for factors that a large λ holds back.
#[test]
fn steps_in_place_agree_on_all_servers() {
    let ratings = ratings();
    for (optimizer, step) in [(Optimizer::AdaGrad, 0.5), (Optimizer::Sgd, 0.1)] {
        let config = Config { dims: 8, lambda: 0.15, step, optimizer, init_std: 0.3, ..Config::default() };
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

/// A parameter that is stepped by AdaptiveRevision, in double precision: McMahan and Streeter 2014, algorithm 1.
#[derive(Clone, Copy)]
struct Revised {
    value: f64,
    gradients: f64,
    squares: f64,
    largest: f64,
}

impl Revised {
    /// Steps along a gradient, computed when the sum of gradients was this.
    fn step(&mut self, rate: f64, gradient: f64, gradients_then: f64) {
        let (between, before) = (self.gradients - gradients_then, rate / self.largest.sqrt());
        self.squares += gradient * gradient + 2.0 * gradient * between;
        self.largest = self.largest.max(self.squares);
        let step = rate / self.largest.sqrt();
        self.value += (before - step) * between - step * gradient;
        self.gradients += gradient;
    }
}

/// Trains in a plain loop, one clock after the other, at whose end items are stepped once along all gradients of the clock; meanwhile
/// ratings are of items that each of them has stepped. Returns the objectives.
fn revised_in_a_loop(list: &EdgeList<f32>, config: &Config, iterations: usize) -> Vec<f64> {
    let (dims, rate, lambda) = (config.row_dims(), f64::from(config.step), f64::from(config.lambda));
    let first = |len: usize, init: &dyn Fn(usize, &mut [f32])| -> Vec<Vec<Revised>> {
        let row = |id| {
            let mut values = vec![0.0; dims];
            init(id, &mut values);
            let of = |&value: &f32| Revised { value: f64::from(value), gradients: 0.0, squares: 1.0, largest: 1.0 };
            values.iter().map(of).collect()
        };
        (0..len).map(row).collect()
    };
    let mut users = first(list.num_left, &|id, row| config.init_user(1, id, row));
    let mut items = first(list.num_right, &|id, row| config.init_item(1, id, row));
    let ratings: Vec<(usize, usize, f64)> = list
        .left
        .iter()
        .zip(&list.right)
        .zip(&list.data)
        .map(|((&user, &item), &rating)| (user as usize, item as usize, f64::from(rating)))
        .collect();
    let product = |p: &[Revised], q: &[Revised]| -> f64 { p.iter().zip(q).map(|(p, q)| p.value * q.value).sum() };
    let mut objectives = Vec::new();
    for _ in 0..iterations {
        for clock in 0..16 {
            let (mut read, mut sums) = (items.clone(), vec![vec![0.0; dims]; items.len()]);
            for &(user, item, rating) in &ratings[ratings.len() * clock / 16..ratings.len() * (clock + 1) / 16] {
                let (p, q) = (&mut users[user], &mut read[item]);
                let error = rating - product(p, q);
                for (at, (p, q)) in p.iter_mut().zip(q).enumerate() {
                    let of_user = lambda * p.value - error * q.value;
                    let of_item = lambda * q.value - error * p.value;
                    if at != config.dims + 1 {
                        p.step(rate, of_user, p.gradients);
                    }
                    if at != config.dims {
                        q.step(rate, of_item, q.gradients);
                        sums[item][at] += of_item;
                    }
                }
            }
            for (q, sum) in items.iter_mut().flatten().zip(sums.iter().flatten()) {
                q.step(rate, *sum, q.gradients);
            }
        }
        let mut sums = Sums { ratings: ratings.len() as u64, ..Sums::default() };
        for &(user, item, rating) in &ratings {
            let (p, q) = (&users[user], &items[item]);
            sums.squared_errors += (rating - product(p, q)).powi(2);
            sums.squared_norms += p.iter().chain(q).map(|one| one.value.powi(2)).sum::<f64>() - 2.0;
        }
        objectives.push(Objective::new(sums, config.lambda).value);
    }
    objectives
}

#[test]
fn steps_by_servers_agree_with_a_plain_loop() {
    let ratings = ratings();
    let config = Config { dims: 8, step: 0.5, init_std: 0.3, ..Config::default() };
    let expected = revised_in_a_loop(&ratings, &config, 60);
    assert!(expected[59] < 0.9 * expected[0], "it learns: {expected:?}");
    let job = Job { ratings: &ratings, config, form: Form::InPlace };
    let of =
        |system, of: &Run, report: Report<'_>| run(system, &job, &Run { server_steps: true, ..of.clone() }, report);
    assert_systems_agree((&System::ALL[2..], "steps by servers"), &expected, 1e-4, of);
    let refused = |system, form, optimizer| {
        let job = Job { config: Config { optimizer, ..config }, form, ..job };
        let of = Run { server_steps: true, ..Run::default() };
        run(system, &job, &of, &mut |_| std::ops::ControlFlow::Continue(())).unwrap_err().to_string()
    };
    assert!(refused(System::Gas, Form::InPlace, Optimizer::AdaGrad).contains("it has no servers"));
    assert!(refused(System::Essp, Form::InPlace, Optimizer::Sgd).contains("take steps in place, with AdaGrad"));
    assert!(refused(System::PsNaive, Form::Batch, Optimizer::AdaGrad).contains("take steps in place, with AdaGrad"));
}

//! Click factors: the gradient, and what is reached on planted clicks.

use megagrid::engine::Topology;
use megagrid::prelude::*;
use megagrid_examples::click_factors::{ClickFactors, Descend, chance, log_loss, mean_loss, sequence};

/// Runs iterations on a graph from given factors, and returns the factors and the mean loss.
fn train(
    clicks: &Edges<f32>,
    first: impl Fn(u64) -> [f32; 16] + Sync,
    descend: Descend,
    iterations: u64,
    workers: usize,
) -> (Vec<Vec<f32>>, Vec<Vec<f32>>, f64) {
    let topology = Topology { l2_bytes: 16 << 10, ..Topology::synthetic(1, workers) };
    let settings = Settings { workers, dims: 16, topology, ..Settings::default() };
    let mut engine = Engine::<ClickFactors>::new(clicks, sequence(descend), &settings).unwrap();
    engine.init(Left, |id, user| user.sync.copy_from_slice(&first(2 * id as u64)));
    engine.init(Right, |id, item| item.sync.copy_from_slice(&first(2 * id as u64 + 1)));
    engine.iterate(iterations).unwrap();
    let loss = mean_loss(&mut engine).unwrap();
    let users = engine.on(Left).iter().map(<[f32]>::to_vec).collect();
    (users, engine.on(Right).iter().map(<[f32]>::to_vec).collect(), loss)
}

fn random_row(stream: u64, width: f32) -> [f32; 16] {
    let mut random = Random::new(9, stream);
    std::array::from_fn(|_| width * (random.unit() as f32 - 0.5))
}

/// One edge, one small step: the change of either row is the step times the loss's slope, by central differences.
#[test]
fn a_step_goes_down_the_slope() {
    for clicked in [0.0, 1.0] {
        let one = Edges::bipartite(1, 1, [(0, 0, clicked)]).unwrap();
        let first = |stream| random_row(stream, 2.0);
        let (step, lambda) = (1e-3, 0.1);
        let (users, items, _) = train(&one, first, Descend { step, lambda }, 1, 1);
        let (p, q) = (first(0).map(f64::from), first(1).map(f64::from));
        let loss = |p: &[f64; 16], q: &[f64; 16]| {
            let z: f64 = p.iter().zip(q).map(|(p, q)| p * q).sum();
            let squares: f64 = p.iter().chain(q).map(|x| x * x).sum();
            log_loss(z, f64::from(clicked)) + f64::from(lambda) / 2.0 * squares
        };
        for at in 0..16 {
            let (mut up, mut down) = (p, p);
            up[at] += 1e-5;
            down[at] -= 1e-5;
            let slope = (loss(&up, &q) - loss(&down, &q)) / 2e-5;
            assert!((f64::from(users[0][at]) - (p[at] - f64::from(step) * slope)).abs() < 1e-6);
            let (mut up, mut down) = (q, q);
            up[at] += 1e-5;
            down[at] -= 1e-5;
            let slope = (loss(&p, &up) - loss(&p, &down)) / 2e-5;
            assert!((f64::from(items[0][at]) - (q[at] - f64::from(step) * slope)).abs() < 1e-6);
        }
    }
}

#[test]
fn training_learns_what_was_planted() {
    let (users, items) = (300_u64, 100_u64);
    let mut clicks = Vec::new();
    let mut planted = 0.0;
    for user in 0..users {
        let mut random = Random::new(10, user);
        for item in 0..items {
            let (p, q) = (random_row(1 << 20 | user, 6.0), random_row(2 << 20 | item, 6.0));
            // Two planted dimensions.
            let z = p[0] * q[0] + p[1] * q[1];
            let clicked = if random.unit() < f64::from(chance(z)) { 1.0 } else { 0.0 };
            planted += log_loss(f64::from(z), f64::from(clicked)) / (users * items) as f64;
            clicks.push((user as u32, item as u32, clicked));
        }
    }
    let clicks = Edges::bipartite(users as usize, items as usize, clicks).unwrap();
    for workers in 1..=3 {
        let descend = Descend { step: 0.1, lambda: 0.02 };
        let (.., loss) = train(&clicks, |stream| random_row(stream, 0.3), descend, 30, workers);
        // More dimensions than planted fit the training clicks a little better than the truth.
        assert!(loss < 1.1 * planted, "{workers} workers: {loss}, planted {planted}");
    }
}

//! Factorizes ratings by stochastic gradient descent, and watches the error come down to the noise.
//!
//!     cargo run --release -p megagrid-examples --example factors

use megagrid::kernels::{descend, dot};
use megagrid::prelude::*;

vertex! { struct User { sync: [f32] } }
vertex! { struct Item { sync: [f32] } }
program! { struct Factors { left: User, right: Item, edge: f32, worker: (f64, u64) } }

edge_stage! {
    /// Steps both factors along the gradient of one rating.
    struct Descend { step: f32, lambda: f32 }
    fn exchange(&self, user: Update<User>, item: Update<Item>, rating: &f32) in Factors {
        let error = *rating - dot(user.sync, item.sync);
        descend(user.sync, item.sync, error, self.lambda, self.step, self.step);
    }
}

fn square(user: Read<User>, item: Read<Item>, rating: &f32, cx: &mut Context<Factors>) {
    cx.worker.0 += f64::from(*rating - dot(user.sync, item.sync)).powi(2);
    cx.worker.1 += 1;
}

/// Returns the root of the mean squared error after each iteration.
fn factorize(ratings: &Edges<f32>, dims: usize, iterations: u64) -> Result<Vec<f64>, Error> {
    let sgd = Sequence::new().exchange(Descend { step: 0.05, lambda: 0.01 });
    let mut engine = Engine::<Factors>::new(ratings, sgd, &Settings { dims, ..Settings::default() })?;
    let small = |stream: usize, row: &mut [f32]| {
        let mut random = Random::new(1, stream as u64);
        row[..dims].fill_with(|| random.unit() as f32 - 0.5);
    };
    engine.init(Left, |id, user| small(2 * id, user.sync));
    engine.init(Right, |id, item| small(2 * id + 1, item.sync));
    let mut errors = Vec::new();
    engine.run_until(iterations, |engine, report| {
        let (squares, ratings) = engine.total(square)?;
        errors.push((squares / ratings as f64).sqrt());
        println!("iteration {:>2}: RMSE {:.4}", report.iteration, errors[errors.len() - 1]);
        Ok(false)
    })?;
    Ok(errors)
}

/// Ratings of two tastes, without noise.
fn main() -> Result<(), Error> {
    let taste = |side: u64, id: u32| [0, 1].map(|at| Random::new(side + at, u64::from(id)).unit() as f32 - 0.5);
    let mut random = Random::new(9, 0);
    let drawn = (0..50_000).map(|_| {
        let (user, item) = (random.below(1000) as u32, random.below(200) as u32);
        let (p, q) = (taste(1, user), taste(3, item));
        (user, item, 4.0 * (p[0] * q[0] + p[1] * q[1]))
    });
    let errors = factorize(&Edges::bipartite(1000, 200, drawn)?, 8, 20)?;
    assert!(errors[19] < 0.05 && errors[19] < errors[0] / 5.0, "{errors:?}");
    Ok(())
}

#[test]
fn it_learns() {
    main().expect("the ratings are good");
}

//! Learns which items users click from generated clicks, and compares the log loss with that of the planted chances.
//!
//!     cargo run --release -p megagrid-examples --example click_factors

use megagrid::prelude::*;
use megagrid_examples::click_factors::{ClickFactors, Descend, chance, log_loss, mean_loss, sequence};

const USERS: usize = 4000;
const ITEMS: usize = 1000;
const SHOWN_TO_EACH: usize = 250;
const PLANTED_DIMS: usize = 4;

fn main() -> Result<(), Error> {
    let (clicks, planted_loss) = clicks();
    let clicked = clicks.iter().filter(|(.., clicked)| *clicked == 1.0).count();
    println!("{USERS} users, {ITEMS} items, {} shown, {clicked} clicked", clicks.len());
    println!("mean log loss of the planted chances: {planted_loss:.4}; of a coin: {:.4}\n", 2_f64.ln());

    let clicks = Edges::bipartite(USERS, ITEMS, clicks)?;
    let stages = sequence(Descend { step: 0.05, lambda: 0.02 });
    let mut engine = Engine::<ClickFactors>::new(&clicks, stages, &Settings { dims: 16, ..Settings::default() })?;
    engine.init(Left, |id, first| small(2 * id as u64, first.sync));
    engine.init(Right, |id, first| small(2 * id as u64 + 1, first.sync));
    println!("iteration  log loss  million edges/s");
    engine.run_until(20, |engine, report| {
        let loss = mean_loss(engine)?;
        let speed = report.updates as f64 / report.seconds / 1e6;
        println!("{:>9}  {loss:>8.4}  {speed:>15.1}", report.iteration);
        Ok(false)
    })?;
    Ok(())
}

fn small(stream: u64, row: &mut [f32]) {
    let mut random = Random::new(3, stream);
    row.iter_mut().for_each(|value| *value = 0.2 * (random.unit() as f32 - 0.5));
}

/// Draws clicks by planted chances, and returns the mean loss of those chances.
fn clicks() -> (Vec<(u32, u32, f32)>, f64) {
    let planted = |stream: u64| -> [f32; PLANTED_DIMS] {
        let mut random = Random::new(4, stream);
        std::array::from_fn(|_| 4.0 * (random.unit() as f32 - 0.5))
    };
    let items: Vec<_> = (0..ITEMS as u64).map(|item| planted(2 * item + 1)).collect();
    let mut edges = Vec::with_capacity(USERS * SHOWN_TO_EACH);
    let mut loss = 0.0;
    for user in 0..USERS {
        let factor = planted(2 * user as u64);
        let mut random = Random::new(5, user as u64);
        for _ in 0..SHOWN_TO_EACH {
            let item = random.below(ITEMS as u64) as usize;
            let z: f32 = factor.iter().zip(&items[item]).map(|(p, q)| p * q).sum();
            let clicked = if random.unit() < f64::from(chance(z)) { 1.0 } else { 0.0 };
            loss += log_loss(f64::from(z), f64::from(clicked));
            edges.push((user as u32, item as u32, clicked));
        }
    }
    let mean = loss / edges.len() as f64;
    (edges, mean)
}

//! How much better than the average is each item, and how generous is each user? Explained in docs/book/src/own-algorithm.md.

use megagrid::prelude::*;

vertex! { struct User { sync: f32, delta: f32, master: f32 } }
vertex! { struct Item { sync: f32, delta: f32, master: f32 } }

program! { struct Biases { left: User, right: Item, edge: f32, worker: f64, global: f64 } }

fn tell_item(user: Read<User>, item: Add<Item>, rating: &f32) {
    *item.delta += *rating - *user.sync;
}

fn tell_user(user: Add<User>, item: Read<Item>, rating: &f32) {
    *user.delta += *rating - *item.sync;
}

fn settle<V>(vertex: Master<V>, cx: &mut Context<Biases>)
where
    V: Vertex<Sync = f32, Delta = f32, Master = f32>,
{
    let settled = *vertex.delta / *vertex.master;
    *cx.worker += f64::from(settled - *vertex.sync).powi(2);
    *vertex.sync = settled;
}

fn sequence() -> Sequence<Biases, impl Stages<Biases>> {
    Sequence::new()
        .exchange(tell_item)
        .apply(Right, settle::<Item>)
        .exchange(tell_user)
        .apply(Left, settle::<User>)
        .global_sync(|total: f64, changed: &mut f64| *changed = total.sqrt())
}

const LAMBDA: f32 = 5.0;
const TOLERANCE: f64 = 1e-4;

/// Returns the biases of users and of items.
fn fit(ratings: &Edges<f32>, mean: f32, workers: usize) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let settings = Settings { workers, ..Settings::default() };
    let centred = Source::map(ratings, |rating| rating - mean);
    let mut engine = Engine::<Biases>::new(centred, sequence(), &settings)?;

    let divisor = |side, id: usize| {
        let offsets = ratings.offsets(side);
        LAMBDA + (offsets[id + 1] - offsets[id]) as f32
    };
    engine.init(Left, |id, user| *user.master = divisor(Side::Left, id));
    engine.init(Right, |id, item| *item.master = divisor(Side::Right, id));
    engine.run_until(100, |engine, report| {
        let changed = *engine.global();
        println!("iteration {:>2}: biases changed by {changed:.5}", report.iteration);
        Ok(changed < TOLERANCE)
    })?;
    Ok((engine.on(Left).iter().copied().collect(), engine.on(Right).iter().copied().collect()))
}

const USERS: usize = 2000;
const ITEMS: usize = 100;

fn planted(item: usize) -> f32 {
    2.0 * item as f32 / (ITEMS - 1) as f32 - 1.0
}

fn ratings() -> Vec<(u32, u32, f32)> {
    let mut ratings = Vec::new();
    for user in 0..USERS {
        let mut random = Random::new(1, user as u64);
        let generosity = random.unit() as f32 - 0.5;
        for _ in 0..20 {
            let item = random.below(ITEMS as u64) as usize;
            let noise = random.unit() as f32 - 0.5;
            ratings.push((user as u32, item as u32, 3.0 + generosity + planted(item) + noise));
        }
    }
    ratings
}

/// Fits the ratings above.
fn fit_planted(workers: usize) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let ratings = ratings();
    let mean = ratings.iter().map(|rating| rating.2).sum::<f32>() / ratings.len() as f32;
    fit(&Edges::bipartite(USERS, ITEMS, ratings)?, mean, workers)
}

fn main() -> Result<(), Error> {
    let (_, items) = fit_planted(2)?;
    for item in [0, ITEMS / 2, ITEMS - 1] {
        println!("item {item:>2}: bias {:+.2}, planted {:+.2}", items[item], planted(item));
    }
    Ok(())
}

#[test]
fn planted_biases_are_found_with_any_number_of_workers() {
    for workers in 1..=3 {
        let (_, items) = fit_planted(workers).expect("the ratings are good");
        for (item, bias) in items.iter().enumerate() {
            // 400 ratings an item, and noise of deviation 0.4: this is five deviations.
            assert!((bias - planted(item)).abs() < 0.1, "{workers} workers, item {item}: {bias}");
        }
    }
}

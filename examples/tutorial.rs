//! How much better than the average is each item, and how generous is each user? Explained in docs/book/src/own-algorithm.md.

use std::ops::ControlFlow;

use megagrid_engine::{EdgeInput, Engine, Input, Settings};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};
use megagrid_stages::{
    Add, AddView, Apply, Context, Exchange, GlobalSync, MasterView, Program, Read, ReadView, Sequence, Stages, Value,
    Vertex,
};

struct User;

impl Vertex for User {
    type Sync = Value<f32>;
    type Delta = Value<f32>;
    type Master = Value<f32>;
    type Mirror = ();
}

struct Item;

impl Vertex for Item {
    type Sync = Value<f32>;
    type Delta = Value<f32>;
    type Master = Value<f32>;
    type Mirror = ();
}

struct Biases;

impl Program for Biases {
    type Left = User;
    type Right = Item;
    type Edge = f32;
    type Worker = f64;
    type Global = f64;
}

struct TellItem;

impl Exchange<Biases> for TellItem {
    type Left = Read;
    type Right = Add;

    #[inline(always)]
    fn exchange(
        &self,
        user: ReadView<'_, User>,
        item: AddView<'_, Item>,
        rating: &mut f32,
        _: &mut Context<'_, Biases>,
    ) {
        *item.delta += *rating - *user.sync;
    }
}

struct TellUser;

impl Exchange<Biases> for TellUser {
    type Left = Add;
    type Right = Read;

    #[inline(always)]
    fn exchange(
        &self,
        user: AddView<'_, User>,
        item: ReadView<'_, Item>,
        rating: &mut f32,
        _: &mut Context<'_, Biases>,
    ) {
        *user.delta += *rating - *item.sync;
    }
}

struct Settle;

impl Settle {
    #[inline(always)]
    fn settle(bias: &mut f32, divisor: f32, sum: f32, changes: &mut f64) {
        let settled = sum / divisor;
        *changes += f64::from(settled - *bias).powi(2);
        *bias = settled;
    }
}

impl Apply<Biases, User> for Settle {
    #[inline(always)]
    fn apply(&self, user: MasterView<'_, User>, cx: &mut Context<'_, Biases>) {
        Self::settle(user.sync, *user.master, *user.delta, cx.worker);
    }
}

impl Apply<Biases, Item> for Settle {
    #[inline(always)]
    fn apply(&self, item: MasterView<'_, Item>, cx: &mut Context<'_, Biases>) {
        Self::settle(item.sync, *item.master, *item.delta, cx.worker);
    }
}

struct Measure;

impl GlobalSync<Biases> for Measure {
    fn apply(&self, total: f64, changed: &mut f64) {
        *changed = total.sqrt();
    }
}

fn sequence() -> Result<Sequence<Biases, impl Stages<Biases>>, megagrid_stages::Error> {
    Sequence::new()
        .exchange(TellItem)
        .apply_right(Settle)
        .exchange(TellUser)
        .apply_left(Settle)
        .global_sync(Measure)
        .build()
}

const LAMBDA: f32 = 5.0;
const TOLERANCE: f64 = 1e-4;

/// Returns the biases of users and of items.
fn fit(
    ratings: EdgeList<f32>,
    workers: usize,
) -> Result<(Vec<f32>, Vec<f32>), Box<dyn std::error::Error + Send + Sync>> {
    let mean = ratings.data.iter().sum::<f32>() / ratings.num_edges() as f32;
    let source = GroupedEdges::new(ratings, &[Side::Right]);
    let edge = EdgeInput { len: &|_: &f32| 1, fill: &|rating: &f32, items: &mut [f32]| items[0] = *rating - mean };
    let input = Input { source: &source, edge, capacities: [None, None] };
    let settings = Settings { workers, ..Settings::default() };
    let mut engine = Engine::<Biases>::bipartite(&input, &sequence()?, f64::INFINITY, &settings)?;

    let divisor = |side, id: usize| {
        let offsets = source.offsets(side);
        LAMBDA + (offsets[id + 1] - offsets[id]) as f32
    };
    engine.init_left(|id, user| *user.master = divisor(Side::Left, id));
    engine.init_right(|id, item| *item.master = divisor(Side::Right, id));
    engine.run(100, |report, engine| {
        let changed = *engine.global();
        println!("iteration {:>2}: biases changed by {changed:.5}", report.iteration);
        if changed < TOLERANCE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;

    let (users, items) = (engine.left(), engine.right());
    let of_users = (0..users.len()).map(|id| *users.sync(id)).collect();
    Ok((of_users, (0..items.len()).map(|id| *items.sync(id)).collect()))
}

const USERS: usize = 2000;
const ITEMS: usize = 100;

fn planted(item: usize) -> f32 {
    2.0 * item as f32 / (ITEMS - 1) as f32 - 1.0
}

fn ratings() -> EdgeList<f32> {
    let mut ratings = EdgeList { num_left: USERS, num_right: ITEMS, ..EdgeList::default() };
    for user in 0..USERS {
        let mut random = SplitMix::new(1, user as u64);
        let generosity = random.unit() as f32 - 0.5;
        for _ in 0..20 {
            let item = random.below(ITEMS as u64) as usize;
            let noise = random.unit() as f32 - 0.5;
            ratings.left.push(user as u32);
            ratings.right.push(item as u32);
            ratings.data.push(3.0 + generosity + planted(item) + noise);
        }
    }
    ratings
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (_, items) = fit(ratings(), 2)?;
    for item in [0, ITEMS / 2, ITEMS - 1] {
        println!("item {item:>2}: bias {:+.2}, planted {:+.2}", items[item], planted(item));
    }
    Ok(())
}

#[test]
fn planted_biases_are_found_with_any_number_of_workers() {
    for workers in 1..=3 {
        let (_, items) = fit(ratings(), workers).expect("the ratings are good");
        for (item, bias) in items.iter().enumerate() {
            // 400 ratings an item, and noise of deviation 0.4: this is five deviations.
            assert!((bias - planted(item)).abs() < 0.1, "{workers} workers, item {item}: {bias}");
        }
    }
}

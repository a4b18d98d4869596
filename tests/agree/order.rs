//! Megagrid's visiting order, written down by a program with the same access modes and rows as one that trains.

use std::marker::PhantomData;

use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeList, GroupedEdges, Side};
use megagrid_stages::{
    BatchSize, Combine, Context, Exchange, GlobalSync, Left, Program, Right, Sequence, Store, Update, Vertex, mode,
};
use serde::{Deserialize, Serialize};

/// A vertex whose row begins with its number.
struct Numbered<M, const SIDE: u8>(PhantomData<M>);

impl<M: Store, const SIDE: u8> Vertex for Numbered<M, SIDE> {
    type Sync = [f32];
    type Delta = ();
    type Master = ();
    type Mirror = M;
}

/// Visits of edges in order, by the numbers of their ends; `M` is what vertices have beside their rows.
struct Order<M>(PhantomData<M>);

#[derive(Default, Serialize, Deserialize)]
struct Visits(Vec<(u32, u32, f32)>);

impl Combine for Visits {
    fn combine(&mut self, from: &mut Self) {
        self.0.append(&mut from.0);
    }
}

impl<M: Store> Program for Order<M> {
    type Left = Numbered<M, 0>;
    type Right = Numbered<M, 1>;
    type Edge = f32;
    type Worker = Visits;
    type Global = Vec<(u32, u32, f32)>;
}

struct Visit;

impl<M: Store> Exchange<Order<M>> for Visit {
    type Left = mode::Update;
    type Right = mode::Update;

    fn exchange(
        &self,
        left: Update<'_, Numbered<M, 0>>,
        right: Update<'_, Numbered<M, 1>>,
        data: &mut f32,
        cx: &mut Context<'_, Order<M>>,
    ) {
        cx.worker.0.push((left.sync[0] as u32, right.sync[0] as u32, *data));
    }
}

struct Keep;

impl<M: Store> GlobalSync<Order<M>> for Keep {
    fn apply(&self, total: Visits, global: &mut Vec<(u32, u32, f32)>) {
        *global = total.0;
    }
}

/// Returns the edges in the order in which one worker of Megagrid visits them, the same in each iteration, where both ends are updated in
/// place and an iteration is one batch.
pub fn visited<M: Store, T: Copy + Default + Send + Sync>(
    list: &EdgeList<T>,
    settings: &Settings,
    data: impl Fn(&T) -> f32 + Send + Sync,
) -> EdgeList<f32> {
    let batch = BatchSize::Edges(list.data.len() as u64);
    let sequence = Sequence::new().mini_batch(batch, |b| b.exchange(Visit)).global_sync(Keep);
    let source = GroupedEdges::new(list.clone(), &[Side::Right]);
    let mut engine = Engine::<Order<M>>::new(Source::map(&source, data), sequence, settings).unwrap();
    engine.init(Left, |id, first| first.sync[0] = id as f32);
    engine.init(Right, |id, first| first.sync[0] = id as f32);
    let mut orders = Vec::new();
    let between = |engine: &mut Engine<Order<M>>, _: &_| {
        orders.push((*engine.global()).clone());
        Ok(false)
    };
    engine.run_until(3, between).unwrap();
    assert!(orders[0].len() == list.data.len() && orders.iter().all(|order| *order == orders[0]));
    let mut visited = EdgeList { num_left: list.num_left, num_right: list.num_right, ..EdgeList::default() };
    for &(left, right, data) in &orders[0] {
        visited.left.push(left);
        visited.right.push(right);
        visited.data.push(data);
    }
    visited
}

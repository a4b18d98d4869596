//! Random plans.

use std::sync::Arc;

use megagrid_engine::plan::{self, Cut, Input, Outline, Plan, Processes, StageInfo, StageKind};
use megagrid_engine::{Error, Topology};
use megagrid_partition::Side;
use megagrid_stages::BatchOrder;
use megagrid_stages::mode::Mode;
use proptest::prelude::*;

/// What a plan is made from.
#[derive(Clone, Debug)]
pub struct Case {
    pub kinds: Vec<StageKind>,
    pub body: Vec<Outline>,
    pub degrees: [Vec<u64>; 2],
    pub square: bool,
    pub row_bytes: usize,
    pub grid: bool,
    pub strategy: plan::Strategy,
    /// Whether an Apply may be given parts of sums.
    pub additive: bool,
}

impl Case {
    pub fn plan(&self, workers: usize, slack: Option<u64>) -> Arc<Plan> {
        Arc::new(self.plan_of(Processes::default(), workers, slack).unwrap())
    }

    /// Makes the plan of several processes with `threads` workers each, on machines with one node of memory.
    pub fn plan_of(&self, processes: Processes, threads: usize, slack: Option<u64>) -> Result<Plan, Error> {
        self.plan_on(&Topology::synthetic(1, processes.count * threads), processes, threads, slack)
    }

    /// As [`Self::plan_of`], with the machine of a process.
    pub fn plan_on(
        &self,
        topology: &Topology,
        processes: Processes,
        threads: usize,
        slack: Option<u64>,
    ) -> Result<Plan, Error> {
        let workers = processes.count * threads;
        let degree = |side: usize| Box::new(move |row: usize| self.degrees[side][row]) as Box<dyn Fn(usize) -> u64>;
        let input = Input {
            degrees: [degree(0), degree(1)],
            rows: [self.degrees[0].len(), self.degrees[1].len()],
            edges: self.degrees[0].iter().sum(),
            row_bytes: [self.row_bytes; 2],
            edge_bytes: 4 * self.degrees[0].iter().sum::<u64>(),
            square: self.square,
            workers,
            processes,
            strategy: self.strategy,
            crossing_bytes: [[4, 4]; 2],
            slack,
            look_every: None,
            passes_per_clock: 1,
            topology,
            grid: self.grid,
            early: true,
        };
        let stage = |kind: &StageKind| StageInfo { additive: self.additive, ..StageInfo::new("", *kind) };
        Plan::make(self.kinds.iter().map(stage).collect(), &self.body, &input)
    }
}

fn kind(square: bool) -> impl Strategy<Value = StageKind> {
    use Mode::{Add, Read, Update};
    let exchange = move |left, right| match square {
        // The two sides of a square graph are the same rows: one of them at most is written.
        true if left != Read && right != Read || left == Update || right == Update => StageKind::Exchange(Read, Add),
        _ => StageKind::Exchange(left, right),
    };
    let mode = || prop::sample::select(vec![Read, Add, Update]);
    let side = prop::sample::select(if square { vec![Side::Right] } else { vec![Side::Left, Side::Right] });
    prop_oneof![
        3 => (mode(), mode()).prop_map(move |(left, right)| exchange(left, right)),
        1 => side.clone().prop_map(StageKind::Incident),
        1 => side.clone().prop_map(StageKind::Apply),
        1 => prop::option::of(side).prop_map(StageKind::GlobalSync),
    ]
}

/// Puts the stages from the `n`th on into a mini-batch.
fn batch(rest: &mut Vec<Outline>, n: usize, side: Side, size: u64, form: u8, order: BatchOrder, edges: u64) {
    let inner = rest.split_off(n % rest.len());
    rest.push(match form {
        0 => Outline::Vertices(side, Cut::Vertices(size), order, inner),
        1 => Outline::Vertices(side, Cut::Edges(10 * size), order, inner),
        _ => Outline::Edges(edges.div_ceil(size % 3 + 1).max(1), order, inner),
    });
}

pub fn case() -> impl Strategy<Value = Case> {
    let degrees = || prop::collection::vec(prop_oneof![9 => 0..8_u64, 1 => 0..200_u64], 0..40);
    let order = prop::sample::select(vec![BatchOrder::Fixed, BatchOrder::RandomBlocks]);
    let side = prop::sample::select(vec![Side::Left, Side::Right]);
    let batches = prop::collection::vec((0..4_usize, side, 5..40_u64, 0..3_u8, order), 0..3);
    let kinds = any::<bool>().prop_flat_map(|square| (Just(square), prop::collection::vec(kind(square), 1..5)));
    (kinds, degrees(), degrees(), batches, prop::sample::select(vec![4, 4096, 1 << 16]), any::<[bool; 2]>()).prop_map(
        |((square, kinds), left, right, batches, row_bytes, [grid, additive])| {
            let right = if square { left.clone() } else { right };
            let mut body = (0..kinds.len()).map(Outline::Stage).collect();
            let mut of_edges = false;
            for (n, side, size, form, order) in batches {
                // Mini-batches of edges are not nested.
                let form = if of_edges { form % 2 } else { form };
                of_edges |= form == 2;
                batch(&mut body, n, side, size, form, order, left.iter().sum());
            }
            let strategy = plan::Strategy::default();
            Case { kinds, body, degrees: [left, right], square, row_bytes, grid, strategy, additive }
        },
    )
}

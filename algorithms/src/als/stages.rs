//! The stages of an iteration, and what workers and all know of Gramians.

use std::marker::PhantomData;

use megagrid_stages::{
    Combine, Context, Gather, GlobalSync, Left, Neighbors, On, ROW_ALIGN, Right, Sequence, Side, Stages, Update,
    Vertex, program, row_width, vertex,
};
use serde::{Deserialize, Serialize};

use super::Config;
use super::gramian::{GramianOf, gramian, mirror, tiled};
use crate::least_squares::{Known, Neighbor, Solver, Weights};

vertex! {
    /// A user: the factor.
    pub struct User { sync: [f32] }
}

vertex! {
    /// An item, likewise.
    pub struct Item { sync: [f32] }
}

program! {
    /// Matrix factorization of implicit feedback, which edges carry.
    pub struct Als { left: User, right: Item, edge: f32, worker: Worker, global: Gramians }
}

/// What a worker adds up on a side, and the room that it solves in.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Worker {
    /// Σ p pᵀ, the upper triangle, `[width, width]`; empty before the first vertex.
    gramian: Vec<f64>,
    /// Σ ρ |p|².
    norms: f64,
    /// The loss on feedback, less what pairs without would lose.
    loss: f64,
    #[serde(skip)]
    solver: Solver,
    #[serde(skip)]
    rows: GramianOf,
}

impl Combine for Worker {
    fn combine(&mut self, from: &mut Self) {
        from.rows.flush(&mut from.gramian);
        if self.gramian.is_empty() {
            self.gramian = std::mem::take(&mut from.gramian);
        } else {
            self.gramian.iter_mut().zip(&from.gramian).for_each(|(sum, part)| *sum += part);
            from.gramian.fill(0.0);
        }
        self.norms += std::mem::take(&mut from.norms);
        self.loss += std::mem::take(&mut from.loss);
    }

    fn sized(dims: usize) -> Self {
        Self { gramian: vec![0.0; row_width(dims).pow(2)], ..Self::default() }
    }
}

/// What all workers know of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OfSide {
    /// Σ p pᵀ, `[width, width]`.
    pub gramian: Vec<f64>,
    /// The same times α₀, as [`Weights`] have it.
    scaled: Vec<[f32; ROW_ALIGN]>,
    /// Σ ρ |p|².
    pub norms: f64,
}

/// What all workers know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gramians {
    /// Of users, and of items.
    pub sides: [OfSide; 2],
    /// The loss on feedback, less what pairs without would lose, when the items were solved for last.
    pub loss: f64,
}

impl OfSide {
    /// Takes Σ p pᵀ, of which the upper triangle counts, and Σ ρ |p|².
    #[must_use]
    pub fn new(mut gramian: Vec<f64>, norms: f64, config: &Config) -> Self {
        let width = row_width(config.dims);
        mirror(&mut gramian, width);
        let scaled = tiled(|row, column| (gramian[row * width + column] / f64::from(config.alpha)) as f32, width);
        Self { gramian, scaled, norms }
    }

    /// Returns what the equations of a vertex of the other side depend on, whose regularizer has the weight ρ.
    #[must_use]
    pub fn weights(&self, config: &Config, rho: f32) -> Weights<'_> {
        Weights { gramian: &self.scaled, unseen: 1.0 / config.alpha, rho }
    }
}

impl Gramians {
    /// Returns what all workers know before the first iteration: of the first values of this many items, which `init` sets.
    #[must_use]
    pub fn new(config: &Config, items: usize, init: impl Fn(usize, &mut [f32])) -> Self {
        let of_items = gramian(config.dims, items, init);
        Self { sides: [OfSide::default(), OfSide::new(of_items, 0.0, config)], loss: 0.0 }
    }

    /// Returns the objective after an iteration. The sum over all pairs is that of the products of both Gramians.
    #[must_use]
    pub fn objective(&self, config: &Config) -> f64 {
        let [users, items] = &self.sides;
        let all: f64 = users.gramian.iter().zip(&items.gramian).map(|(a, b)| a * b).sum();
        self.loss + all / f64::from(config.alpha) + users.norms + items.norms
    }
}

/// The edges of a vertex that carry feedback.
struct Feedback<'n, N, O> {
    neighbors: &'n N,
    unseen: f32,
    side: PhantomData<O>,
}

impl<'n, O: On<Als>, N: Neighbors<Als, O>> Known<'n> for Feedback<'n, N, O>
where
    <O::Other as On<Als>>::Vertex: Vertex<Sync = [f32]>,
{
    #[inline(always)]
    fn neighbor(&self, edge: usize) -> Option<Neighbor<'n>> {
        let (&feedback, row): (&f32, &[f32]) = (self.neighbors.edge(edge), self.neighbors.sync(edge));
        (feedback > 0.0).then(|| Neighbor::of_feedback(row, feedback, self.unseen))
    }
}

/// Solves for the factor of a vertex, given those of its neighbours.
pub struct Solve {
    config: Config,
    /// Vertices of the other side.
    others: usize,
}

impl<O: On<Als>> Gather<Als, O> for Solve
where
    O::Vertex: Vertex<Sync = [f32]>,
    <O::Other as On<Als>>::Vertex: Vertex<Sync = [f32]>,
{
    #[inline(always)]
    fn gather<N: Neighbors<Als, O>>(&self, vertex: Update<'_, O::Vertex>, neighbors: &N, cx: &mut Context<'_, Als>) {
        let (own, edges, unseen): (&mut [f32], _, _) = (vertex.sync, neighbors.len(), 1.0 / self.config.alpha);
        let Worker { solver, rows, gramian, norms, loss } = cx.worker;
        let known = solver.take_in(own, edges, &Feedback { neighbors, unseen, side: PhantomData::<O> });
        if known == 0 {
            own.fill(0.0);
            return;
        }
        let rho = self.config.rho(known, self.others);
        let of_others = &cx.global.sides[O::SIDE.other() as usize];
        solver.solve(own, self.config.block_width(), of_others.weights(&self.config, rho));
        *norms += f64::from(rho) * own.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>();
        rows.push(own, gramian);
        if O::SIDE == Side::Right {
            *loss += solver.loss(unseen);
        }
    }
}

/// Makes the Gramian of a side of those of the workers.
pub struct Fold {
    config: Config,
    side: Side,
}

impl GlobalSync<Als> for Fold {
    fn apply(&self, total: Worker, global: &mut Gramians) {
        let width = row_width(self.config.dims);
        let mut gramian = total.gramian;
        gramian.resize(width * width, 0.0);
        global.sides[self.side as usize] = OfSide::new(gramian, total.norms, &self.config);
        if self.side == Side::Right {
            global.loss = total.loss;
        }
    }
}

/// Returns the stages of an iteration on this many users and items.
pub fn sequence(config: Config, [users, items]: [usize; 2]) -> Sequence<Als, impl Stages<Als>> {
    Sequence::new()
        .gather(Left, Solve { config, others: items })
        .global_sync(Fold { config, side: Side::Left })
        .gather(Right, Solve { config, others: users })
        .global_sync(Fold { config, side: Side::Right })
}

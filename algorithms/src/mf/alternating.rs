//! Matrix factorization by alternating least squares (Zhou, Wilkinson, Schreiber and Pan 2008, "Large-scale parallel collaborative
//! filtering for the Netflix prize"): given the items, the row of a user that minimises the objective is that of a ridge regression
//! on his ratings; and the other way round. There is no step to choose, and the objective never rises.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Solve`], each user | q of the user's items, r_ui | p_u |
//! | [`Solve`], each item | p of the item's users, r_ui | q_i, the worker's squared errors |
//! | [`Tally`], each iteration | the workers' squared errors | their sum |
//!
//! A row is solved for some dimensions at a time, as in [`als`](crate::als), the bias among them.

use megagrid_stages::{
    Combine, Context, Gather, Left, Neighbors, On, ROW_ALIGN, Right, Sequence, Side, Stages, Update, Vertex, program,
};
use serde::{Deserialize, Serialize};

use super::{Config, Sums, Tally};
use crate::als::{Item, User};
use crate::least_squares::{Known, LEAST_LAMBDA, Neighbor, Solver, Weights};

program! {
    /// Matrix factorization by alternating least squares.
    pub struct MfAlternating { left: User, right: Item, edge: f32, worker: Worker, global: Sums }
}

/// What a worker adds up, and the room that it solves in.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Worker {
    sums: Sums,
    #[serde(skip)]
    solver: Solver,
}

impl AsMut<Sums> for Worker {
    fn as_mut(&mut self) -> &mut Sums {
        &mut self.sums
    }
}

impl Combine for Worker {
    fn combine(&mut self, from: &mut Self) {
        self.sums.combine(&mut from.sums);
    }
}

/// The ratings of a vertex.
struct Rated<'n, N, O> {
    neighbors: &'n N,
    side: std::marker::PhantomData<O>,
}

impl<'n, O: On<MfAlternating>, N: Neighbors<MfAlternating, O>> Known<'n> for Rated<'n, N, O>
where
    <O::Other as On<MfAlternating>>::Vertex: Vertex<Sync = [f32]>,
{
    #[inline(always)]
    fn neighbor(&self, edge: usize) -> Option<Neighbor<'n>> {
        Some(Neighbor { row: self.neighbors.sync(edge), root: 1.0, target: *self.neighbors.edge(edge) })
    }
}

/// Solves for the row of a vertex, given those of its neighbours.
pub struct Solve {
    config: Config,
    /// The constant of the row, which stays.
    one: Option<usize>,
}

impl<O: On<MfAlternating>> Gather<MfAlternating, O> for Solve
where
    O::Vertex: Vertex<Sync = [f32]>,
    <O::Other as On<MfAlternating>>::Vertex: Vertex<Sync = [f32]>,
{
    #[inline(always)]
    fn gather<N: Neighbors<MfAlternating, O>>(
        &self,
        vertex: Update<'_, O::Vertex>,
        neighbors: &N,
        cx: &mut Context<'_, MfAlternating>,
    ) {
        let (own, ratings): (&mut [f32], _) = (vertex.sync, neighbors.len());
        if ratings == 0 {
            return;
        }
        let Worker { sums, solver } = cx.worker;
        solver.take_in(own, ratings, &Rated { neighbors, side: std::marker::PhantomData::<O> });
        self.one.into_iter().for_each(|one| solver.leave_out(one));
        let rho = self.config.lambda.max(LEAST_LAMBDA) * ratings as f32;
        solver.solve(own, BLOCK, Weights { gramian: &[], unseen: 0.0, rho });
        self.one.into_iter().for_each(|one| own[one] = 1.0);
        if O::SIDE == Side::Right {
            sums.squared_errors += solver.loss(0.0);
        }
    }
}

/// Returns the stages of an iteration.
pub fn sequence(config: Config) -> Sequence<MfAlternating, impl Stages<MfAlternating>> {
    let solve = |one| Solve { config, one };
    let (users, items) = (solve(config.user_one()), solve(config.item_one()));
    Sequence::new().gather(Left, users).gather(Right, items).global_sync(Tally)
}

/// Dimensions that are solved for at once.
const BLOCK: usize = ROW_ALIGN;

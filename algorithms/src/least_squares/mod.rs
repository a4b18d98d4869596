//! Least squares of one vertex: the row that fits what its neighbours say best, given theirs. [`als`](crate::als),
//! [`mf::alternating`](crate::mf::alternating) and [`fold_in`](crate::fold_in) are made of it.

mod solver;
pub mod tiles;

pub use solver::{Known, LEAST_LAMBDA, Neighbor, Solver, Weights};

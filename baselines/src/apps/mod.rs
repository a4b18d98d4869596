//! The algorithms on the systems.
//!
//! Each has a module with its job and a `run`, and beside it one file for each way of writing it: what a user of the system
//! writes, which is what [`user_lines`] counts.

pub mod blockpg;
pub mod lda;
pub mod mf;
pub mod pagerank;
mod servers;

use crate::{Algorithm, System};

/// Returns how many lines a user of a system writes for an algorithm: those that hold code, without comments, attributes and
/// tests.
#[must_use]
pub fn user_lines(_system: System, _algorithm: Algorithm) -> Option<usize> {
    None
}

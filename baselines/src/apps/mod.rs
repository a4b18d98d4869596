//! The algorithms on the systems.
//!
//! Each has a module with its job and a `run`, and beside it one file for each way of writing it: what a user of the system
//! writes. The parameter servers share one program, written against
//! `store::Client`; but the naive one has a program of its own for matrix factorization, with users in the server
//! too.

pub mod als;
pub mod blockpg;
pub mod lda;
pub mod mf;
pub mod pagerank;
mod servers;

//! Algorithms as stage functions: what they compute, not how it is run.
#![forbid(unsafe_code)]

pub mod als;
pub mod blockpg;
mod error;
pub mod fold_in;
pub mod hits;
pub mod lda;
pub mod least_squares;
pub mod mf;
pub mod newton;
pub mod pagerank;
pub mod ranking;
mod scaling;
pub mod search;

pub use error::Error;

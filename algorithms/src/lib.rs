//! Algorithms as stage functions: what they compute, not how it is run.
#![forbid(unsafe_code)]

mod error;
pub mod mf;
pub mod pagerank;

pub use error::Error;

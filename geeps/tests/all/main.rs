//! The crate's tests.

mod data;
mod faults;
mod kernels;
mod modelled;
mod oracles;
mod placement;
mod staleness;
mod training;

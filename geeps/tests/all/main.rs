//! The crate's tests.

mod data;
mod faults;
#[cfg(feature = "gpu")]
mod gpu;
mod kernels;
mod modelled;
mod oracles;
mod placement;
mod staleness;
mod states;
mod together;
mod training;

//! What Megagrid is compared with: parameter servers as their papers describe them, and a gather-apply-scatter engine, with
//! the same algorithms written against each. Same initial values, kernels and objective code as in
//! [`megagrid_algorithms`], so that only the system differs.
#![forbid(unsafe_code)]

pub mod apps;
mod error;
mod gas;
mod job;
pub mod lines;
mod naive;
mod processes;
mod rows;
pub mod server;
mod store;
mod workers;

pub use error::Error;
pub use job::{Epoch, Finish, KEEPS_LEFT, Report, Run, System, list_by};
pub use processes::{Peers, Processes};
pub use workers::Spent;

//! What Megagrid is compared with: parameter servers as their papers describe them, and a gather-apply-scatter engine, with
//! the same four algorithms written against each. Same initial values, kernels and objective code as in
//! [`megagrid_algorithms`], so that only the system differs.
#![forbid(unsafe_code)]

mod error;
pub mod server;

pub use error::Error;

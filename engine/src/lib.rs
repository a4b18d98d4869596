//! The grid engine: what a sequence of stages and a graph become.
//!
//! A program (`megagrid-stages`) and its edges (`megagrid-partition`) become a [`Plan`](plan::Plan), a grid of shards and
//! blocks, and workers that walk the plan. See [`Engine`].

pub mod board;
mod branch;
mod branches;
pub mod checkpoint;
pub mod cluster;
mod driver;
mod engine;
mod error;
mod globals;
pub mod grid;
mod inject;
mod memory;
mod metrics;
pub mod os;
pub mod plan;
mod shim;
mod stage;
mod stopwatch;
mod sync;
pub mod topology;
pub mod virtual_cluster;
pub mod worker;

pub use branch::Branch;
pub use branches::Branches;
pub use engine::{Engine, Settings, Vertices, plan};
pub use error::Error;
pub use grid::Source;
pub use inject::{Injection, NoInjection};
pub use metrics::{IterationReport, WorkerReport, WorkerSeconds};
pub use sync::{Amount, Peers, Traffic};
pub use topology::Topology;

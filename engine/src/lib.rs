//! The grid engine: what a sequence of stages and a graph become.
//!
//! A program (`megagrid-stages`) and its edges (`megagrid-partition`) become a [`Plan`](plan::Plan), a grid of shards and
//! blocks, and workers that walk the plan. See [`Engine`].
//!
//! Modules are floors: each uses only those before it in this list, but for [`Error`], which names the reasons of all.

// The ground: processes that know each other, and one machine.
pub mod cluster;
mod error;
mod machine;
// What is decided, the memory that it needs, and what crosses between processes.
pub mod grid;
pub mod plan;
mod sync;
// Stage functions on that memory, and workers that run them, in earnest or in modelled time.
mod run;
mod stages;
pub mod virtual_cluster;
// What a program sees of it all.
mod engine;
// The state of a run on disk.
pub mod checkpoint;

pub use engine::{Batches, Branch, Branches, Engine, MEMORY, Settings, Vertices, plan};
pub use error::Error;
pub use grid::Source;
pub use machine::topology::Topology;
pub use machine::{os, topology};
pub use plan::{Amount, Traffic};
pub use run::{
    Injection, IterationReport, NoInjection, Peers, TIMELINE, WorkerReport, WorkerSeconds, board, timeline_origin,
    worker,
};

//! The engine's tests. They are one program, since each program that is linked with the engine compiles it for its types again.
#![cfg(not(loom))]

mod alternating;
mod append;
mod append_kept;
mod blockpg;
mod branches;
mod checkpoint;
mod checkpoint_roles;
mod checkpoint_slices;
mod cluster;
mod grouped;
mod incident;
mod lda;
mod lda_topics;
mod made;
mod memory;
mod mf;
mod nodes;
mod optimizers;
#[path = "../../../tests/agree/order.rs"]
mod order;
mod pagerank;
mod placement;
mod plans;
#[path = "../../../tests/processes/mod.rs"]
mod processes;
mod resting;
mod surface;
mod threads;
mod topology;
mod traces;
mod world;

//! The baselines' tests.

mod checkpoints;
mod lines;
mod processes;
mod server;

//! The baselines' tests.

mod blocks;
mod checkpoints;
mod lines;
mod processes;
mod server;

//! The baselines' tests.

mod agree;
mod lines;
mod processes;
mod server;

//! The baselines' tests.

mod lines;
mod processes;
mod server;

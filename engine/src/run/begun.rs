//! A run that has begun: what the workers of a process and their coordinator have in common.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use megagrid_stages::Program;

use super::board::Board;
use super::coordinator::Notice;
use super::runner::Runner;
use super::state::Run;
use super::worker::Worker;
use crate::plan::Plan;

/// A run that has begun.
#[derive(Clone)]
pub struct Begun {
    pub board: Arc<Board>,
    pub coordinator: Sender<Notice>,
    /// Iterations done before.
    pub done: u64,
}

impl Begun {
    /// Begins after `done` iterations. Returns where the coordinator hears of the workers, too.
    pub fn new(plan: &Plan, done: u64) -> (Self, Receiver<Notice>) {
        let board = Arc::new(Board::new(plan.threads(), plan.right.num_shards()));
        let (coordinator, notices) = channel();
        (Self { board, coordinator, done }, notices)
    }

    /// Makes a worker, and what runs its tasks from now on.
    pub fn worker<P: Program>(&self, id: usize, run: &Arc<Run<P>>, now: Instant) -> (Worker, Runner<P>) {
        let worker = Worker::new(id, Arc::clone(&run.plan), Arc::clone(&self.board), run.seed, self.done);
        (worker, Runner::new(id, run, (&self.board, self.done), self.coordinator.clone(), now))
    }
}

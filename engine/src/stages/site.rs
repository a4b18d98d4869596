//! A stage at work: what a task is given, and what it does.

use megagrid_stages::{Context, Program};

use super::globals::Globals;
use crate::grid::Grid;
use crate::plan::{Plan, Task};
use crate::sync::{Malformed, Message, Outbox, Replicas, Replication, Served};

/// What a task works on.
pub struct Site<'s, P: Program> {
    pub plan: &'s Plan,
    pub grid: &'s Grid<P>,
    pub globals: &'s Globals<P>,
    pub worker: usize,
    pub clock: u64,
    pub stage: usize,
    pub dims: usize,
    /// What is known of other processes, and where what is sent to them is put.
    pub sync: Option<&'s Replication>,
    pub replicas: Option<&'s Replicas<P::Right>>,
    pub served: Option<&'s Served>,
    pub outbox: &'s Outbox,
}

/// A stage with its function, ready to run tasks.
pub trait RunStage<P: Program>: Send + Sync {
    /// Runs a task and returns the edges, or vertices, that it ran on; `None`: a hold was refused and nothing was changed.
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64>;

    /// Takes in what another process's worker sent for this stage.
    fn receive(&self, _: &Globals<P>, _: &Message) -> Result<(), Malformed> {
        Err(Malformed)
    }

    /// Applies deltas that another process sent, and returns on how many rows it ran; `None`: a hold was refused and nothing was changed.
    fn serve(&self, _: &Site<'_, P>, _: &Message, _: &mut Context<'_, P>) -> Result<Option<u64>, Malformed> {
        Err(Malformed)
    }
}

/// Returns the name of a stage: of its type, of its function, or of the function that a closure is in.
pub fn name<T>() -> String {
    let full = std::any::type_name::<T>();
    let full = full.rsplit_once("::Function<").map_or(full, |(_, function)| function);
    let path = full.split(['<', ',']).next().unwrap_or(full);
    match path.strip_suffix("::{{closure}}") {
        Some(within) => format!("closure in {}", last(within)),
        None => last(path).to_owned(),
    }
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

//! A run: what its workers share.

use std::sync::Arc;

use megagrid_stages::Program;

use super::injection::Injection;
use super::peers::Peers;
use crate::grid::Grid;
use crate::plan::Plan;
use crate::stages::{Globals, RunStage};
use crate::sync::{Replicas, Replication, Served};

/// What the workers of a run share.
pub struct Run<P: Program> {
    pub plan: Arc<Plan>,
    pub grid: Grid<P>,
    pub globals: Globals<P>,
    pub stages: Vec<Arc<dyn RunStage<P>>>,
    pub seed: u64,
    pub inject: Option<Injection>,
    /// Items of a row.
    pub dims: usize,
    /// The other processes; `None`: there are none. What they use of rows is then known, and with slack replicas of them, or
    /// what is served.
    pub peers: Option<Arc<dyn Peers>>,
    pub sync: Option<Replication>,
    pub replicas: Option<Replicas<P::Right>>,
    pub served: Option<Served>,
}

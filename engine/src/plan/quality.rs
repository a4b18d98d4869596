//! How good a placement is: what processes copy, and how evenly they share the work.

use serde::{Deserialize, Serialize};

/// Figures of a placement over processes. All are at least 1, and better the smaller; 1 with one process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Masters and mirrors over vertices: how many processes use a vertex, on average.
    pub replication_factor: f64,
    /// Edges of the process with most of them, over the mean.
    pub edge_balance: f64,
    /// Edges of the worker with most of them, over the mean.
    pub worker_balance: f64,
    /// Masters of the process with most of them, over the mean.
    pub master_balance: f64,
}

impl Default for Quality {
    fn default() -> Self {
        Self { replication_factor: 1.0, edge_balance: 1.0, worker_balance: 1.0, master_balance: 1.0 }
    }
}

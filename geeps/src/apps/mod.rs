//! Applications: what is trained on a parameter server in device memory.

pub mod factorization;
pub mod network;
mod samples;
pub mod shapes;

use std::collections::BTreeMap;

pub use factorization::{Factorization, Ratings};
pub use network::Network;
pub use samples::Samples;
pub use shapes::Shapes;

use crate::Error;
use crate::session::Session;
use crate::table::Tables;
use crate::virtual_iteration::VirtualIteration;

/// What is trained by mini-batches of several workers.
pub trait Application: Sync {
    /// What a worker keeps: the numbers of its lists and local data.
    type Worker: Send;

    /// Returns the tables, which all workers share.
    fn tables(&self) -> Tables;

    /// Returns the first values of the tables.
    ///
    /// # Errors
    /// Tables that this machine has no memory for.
    fn first_values(&self) -> Result<Vec<Vec<f32>>, Error>;

    /// Returns the iterations of an epoch, the same for all workers.
    fn iterations(&self) -> u64;

    /// Declares the lists and local data of a worker.
    ///
    /// # Errors
    /// Keys that a table does not have.
    fn declare(&self, worker: usize, session: &mut VirtualIteration) -> Result<Self::Worker, Error>;

    /// Goes through an iteration of an epoch, both from 0; returns the sum of losses over its samples, before its
    /// updates.
    ///
    /// # Errors
    /// Those of the session.
    fn iterate(&self, worker: &mut Self::Worker, place: Place, session: &mut impl Session) -> Result<f64, Error>;

    /// Returns how many samples a worker has in an iteration.
    fn samples(&self, worker: usize) -> u64;

    /// Measures parameters, by a plain loop on the host.
    fn measure(&self, values: &[Vec<f32>]) -> Measured;
}

/// Where a worker is, all counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The epoch.
    pub epoch: u64,
    /// The iteration of the epoch.
    pub iteration: u64,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// What is minimized.
    pub objective: f64,
    /// Other values, by the names of run records.
    pub metrics: BTreeMap<&'static str, f64>,
}

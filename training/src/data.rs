//! What is trained on, and how it is read.

use std::sync::Arc;

use megagrid_datasets::Readers;
use megagrid_engine::cluster::Cluster;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::input::Source;
use crate::model::Manifest;
use crate::record::{InputSizes, Phases};

/// How an input is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'r> {
    /// The command, in which processes that read together have to agree.
    pub command: &'static str,
    /// Decides what is kept for testing.
    pub seed: u64,
    /// Whether vertices are put in order of degree (text input only).
    pub degree_order: bool,
    /// Other processes.
    pub cluster: Option<&'r Arc<Cluster>>,
    /// Those that read the input together; `None`: each reads all of it.
    pub readers: Option<&'r Arc<dyn Readers>>,
}

impl Reading<'_> {
    /// Returns how many processes read a part each.
    pub(crate) fn parts(&self) -> usize {
        self.readers.map_or(1, |readers| readers.processes())
    }

    /// Finds that all processes are about to read the same way: what they then do, they do in the same order.
    ///
    /// # Errors
    /// What differs; a lost process.
    pub fn begin(&self, is_cache: bool, holdout: Option<f64>) -> Result<(), Error> {
        self.agree(is_cache, ("holdout", holdout.map_or("unset".to_owned(), |part| part.to_string())))
    }

    /// As [`begin`](Self::begin), with another option that decides how they read.
    pub(crate) fn agree(&self, is_cache: bool, option: (&'static str, String)) -> Result<(), Error> {
        let Some(cluster) = self.cluster else { return Ok(()) };
        let input = if is_cache { "a cache" } else { "no cache" };
        let facts = [("command", self.command.to_owned()), option, ("as input", input.to_owned())];
        Ok(cluster.agree(&facts)?)
    }
}

/// What is trained on: edges, and what is kept to test on.
pub trait Data: Sized + Send + Sync + 'static {
    /// How it is read: part of the record.
    type Options: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// Those that a run which is continued must have.
    const FIXED: &'static [&'static str] = &[];

    /// Reads it, and says in the source what is found of it on the way: the format.
    ///
    /// # Errors
    /// Options out of range; input that cannot be read.
    fn read(source: &mut Source, options: &Self::Options, reading: &Reading<'_>) -> Result<(Self, Phases), Error>;

    /// Returns the numbers of vertices and edges.
    fn sizes(&self) -> InputSizes;

    /// Returns a checksum of all that training depends on, in which processes have to agree.
    ///
    /// # Errors
    /// Edges that cannot be read.
    fn checksum(&self) -> Result<u64, Error>;

    /// Returns a digest of what training depends on beside edges and options, and what that is: a run that is continued must have
    /// the same. The engine compares edges.
    fn beside_edges(&self) -> Option<(&'static str, u64)> {
        None
    }

    /// Finds that what stands in further files, and is not to change, is as a model was trained with it. Else says what is not.
    ///
    /// # Errors
    /// As said.
    fn check_beside(&self, _before: &Manifest) -> Result<(), String> {
        Ok(())
    }

    /// Returns how data that arrive are read, where they are a part of all.
    fn of_part(options: Self::Options) -> Self::Options {
        options
    }

    /// Gives up the edges, where only the grid needs them from now on.
    fn release(&mut self) {}
}

/// No options.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, clap::Args)]
pub struct NoOptions {}

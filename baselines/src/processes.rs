//! The processes that run a job together, each with workers of its own.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bincode::Options as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

const LOOPBACK: &str = "127.0.0.1";

/// Other processes of a job, as one of them reaches them. All call the same in the same order.
pub trait Peers: Send + Sync {
    /// Returns the number of this process, from 0.
    fn process(&self) -> usize;

    /// Returns how many processes there are.
    fn processes(&self) -> usize;

    /// Returns the host by which the others reach this process: they connect to servers that it starts.
    fn host(&self) -> String {
        LOOPBACK.to_owned()
    }

    /// Gives every process the bytes of all, in the order of their numbers.
    ///
    /// # Errors
    /// Why the job ends: a process that is lost, say.
    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, String>;

    /// Gives every process, by number, its part of `parts`; returns what all have for this one, in the order of their numbers.
    ///
    /// Without links of their own processes are given all parts, and each takes those that are for it.
    ///
    /// # Errors
    /// Why the job ends.
    fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        let mine = bincode::serialize(&parts).map_err(|error| error.to_string())?;
        let pick = |all: Vec<u8>| {
            let mut parts: Vec<Vec<u8>> = bincode::deserialize(&all).map_err(|error| error.to_string())?;
            let own = parts.get_mut(self.process()).ok_or("another process has no part for this one")?;
            Ok(std::mem::take(own))
        };
        self.all_gather(mine)?.into_iter().map(pick).collect()
    }
}

/// The processes of a job, seen from one of them; by default it is the only one.
#[derive(Clone, Default)]
pub struct Processes(Option<Arc<dyn Peers>>);

impl Processes {
    /// Takes part with others.
    pub fn new(peers: Arc<dyn Peers>) -> Self {
        Self(Some(peers))
    }

    /// Returns the number of this process, from 0.
    pub fn number(&self) -> usize {
        self.0.as_ref().map_or(0, |peers| peers.process())
    }

    /// Returns how many processes there are.
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(1, |peers| peers.processes())
    }

    /// Returns what falls to this process of `len` things.
    pub(crate) fn part(&self, len: usize) -> Range<usize> {
        len * self.number() / self.count()..len * (self.number() + 1) / self.count()
    }

    /// Returns the host by which others reach this process.
    pub(crate) fn host(&self) -> String {
        self.0.as_ref().map_or_else(|| LOOPBACK.to_owned(), |peers| peers.host())
    }

    /// Gives every process what all have, in the order of their numbers.
    pub(crate) fn gather<T: Serialize + DeserializeOwned>(&self, mine: T) -> Result<Vec<T>, Error> {
        let Some(peers) = &self.0 else { return Ok(vec![mine]) };
        let mut bytes = Vec::new();
        put(&mine, &mut bytes)?;
        let all = peers.all_gather(bytes).map_err(Error::Peers)?;
        all.iter().map(|bytes| take(&mut &bytes[..])).collect()
    }

    /// Gives every process its part; returns what all have for this one.
    pub(crate) fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
        let Some(peers) = &self.0 else { return Ok(parts) };
        let arrived = peers.exchange(parts).map_err(Error::Peers)?;
        if arrived.len() == self.count() { Ok(arrived) } else { Err(Error::Peers("a part is missing".to_owned())) }
    }

    /// Adds what all processes have, in the order of their numbers, so that all find the same.
    pub(crate) fn sum(&self, mine: f64) -> Result<f64, Error> {
        Ok(self.gather(mine)?.into_iter().sum())
    }
}

/// Writes something for another process.
pub(crate) fn put(what: &impl Serialize, out: &mut Vec<u8>) -> Result<(), Error> {
    bincode::serialize_into(out, what).map_err(|error| Error::Peers(format!("a message to another process: {error}")))
}

/// Takes something off the front of what another process sent, which cannot be longer than that.
pub(crate) fn take<T: DeserializeOwned>(front: &mut &[u8]) -> Result<T, Error> {
    let format = bincode::options().with_fixint_encoding().allow_trailing_bytes().with_limit(front.len() as u64);
    let read = format.deserialize_from(front);
    read.map_err(|error| Error::Peers(format!("a message of another process: {error}")))
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of {}", self.number(), self.count())
    }
}

/// The workers of this process among those of all, which count on from process to process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Crew {
    /// Workers of all processes.
    pub all: usize,
    /// Those of this one.
    pub own: Range<usize>,
}

impl Crew {
    pub fn new(processes: &Processes, workers: usize) -> Self {
        let first = processes.number() * workers;
        Self { all: processes.count() * workers, own: first..first + workers }
    }

    /// Picks what falls to this process's workers of what all workers have, one each; with their numbers.
    pub fn pick<T>(&self, of_all: impl IntoIterator<Item = T>) -> impl Iterator<Item = (usize, T)> {
        of_all.into_iter().enumerate().skip(self.own.start).take(self.own.len())
    }
}

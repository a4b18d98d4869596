//! The processes that train together, and what they have to agree in.

use std::sync::Arc;

use megagrid_datasets::Readers;
use megagrid_engine::cluster::Cluster;
use megagrid_engine::{Peers, Settings};
use serde_json::Value;

use crate::Error;

/// The processes of a run, seen from one of them; by default it is the only one. [`Processes::from`] takes a [`Cluster`] that was joined.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// Other processes in earnest; then `peers` are the same.
    pub cluster: Option<Arc<Cluster>>,
    /// The same, or other workers of a virtual cluster.
    pub peers: Option<Arc<dyn Peers>>,
    /// Those that read the input together; `None`: each reads all of it.
    pub readers: Option<Arc<dyn Readers>>,
}

/// Options that may differ between processes: files of one machine, and what the slowest machine has.
const OF_ONE: [&str; 6] = ["input", "test", "checkpoint", "resume", "from", "vector"];

/// Each process reads all of the input.
impl From<Arc<Cluster>> for Processes {
    fn from(cluster: Arc<Cluster>) -> Self {
        Self { peers: Some(Arc::clone(&cluster) as Arc<dyn Peers>), cluster: Some(cluster), readers: None }
    }
}

impl Processes {
    /// Tells whether this is the process that measures, decides and writes: the first, or the only one.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.peers.as_ref().is_none_or(|peers| peers.process() == 0)
    }

    /// Makes the settings of all processes the same where machines differ: the least vector level and cache.
    ///
    /// # Errors
    /// A lost process.
    pub fn settle(&self, settings: &mut Settings) -> Result<(), Error> {
        let Some(peers) = &self.peers else { return Ok(()) };
        let mine = (settings.level.name().to_owned(), settings.topology.l2_bytes);
        for bytes in peers.all_gather(encoded(&mine)?)? {
            let (level, l2_bytes): (String, usize) = decoded(&bytes)?;
            settings.level = settings.level.min(level.parse().map_err(Error::Missing)?);
            settings.topology.l2_bytes = settings.topology.l2_bytes.min(l2_bytes);
        }
        settings.peers = Some(Arc::clone(peers));
        Ok(())
    }

    /// Finds that all processes have the same options and data.
    ///
    /// # Errors
    /// What differs; a lost process.
    pub fn agree(&self, command: &str, config: &Value, checksum: u64) -> Result<(), Error> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let mut facts = vec![("command", command.to_owned())];
        let options = config.as_object().into_iter().flatten().filter(|(name, _)| !OF_ONE.contains(&name.as_str()));
        facts.extend(options.map(|(name, value)| (name.as_str(), value.to_string())));
        // A directory may have other names elsewhere.
        for name in ["checkpoint", "resume", "from"] {
            let is_set = config.get(name).is_some_and(|value| !value.is_null());
            facts.push((name, if is_set { "set" } else { "unset" }.to_owned()));
        }
        facts.push(("data with the checksum", format!("{checksum:016x}")));
        Ok(cluster.agree(&facts)?)
    }

    /// Tells of several things whether they hold in any process. All of them ask. What fails in one fails in all.
    ///
    /// # Errors
    /// The failure, in other processes where it happened and why; a lost process.
    pub fn any<const N: usize>(&self, here: Result<[bool; N], Error>) -> Result<[bool; N], Error> {
        let Some(peers) = &self.peers else { return here };
        let mine: Result<Vec<bool>, String> = match &here {
            Ok(here) => Ok(here.to_vec()),
            Err(error) => Err(error.to_string()),
        };
        let mut found = [false; N];
        let mut failed = None;
        for (process, bytes) in peers.all_gather(encoded(&mine)?)?.iter().enumerate() {
            match decoded::<Result<Vec<bool>, String>>(bytes)? {
                Ok(there) => found.iter_mut().zip(there).for_each(|(found, there)| *found |= there),
                Err(message) => drop(failed.get_or_insert((process, message))),
            }
        }
        here?;
        match failed {
            Some((process, message)) => Err(megagrid_engine::Error::Elsewhere { process, message }.into()),
            None => Ok(found),
        }
    }

    /// Does something in the first process, and fails in all if that failed. All of them call it.
    ///
    /// # Errors
    /// As [`any`](Self::any).
    pub fn first(&self, act: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let outcome = if self.is_first() { act() } else { Ok(()) };
        self.any(outcome.map(|()| [])).map(|[]| ())
    }

    /// Returns how many bytes of the input each process has read, if they read it together.
    ///
    /// # Errors
    /// A lost process.
    pub fn read_bytes(&self) -> Result<Vec<u64>, Error> {
        let (Some(readers), Some(peers)) = (&self.readers, &self.peers) else { return Ok(Vec::new()) };
        peers.all_gather(encoded(&readers.read_bytes())?)?.iter().map(|bytes| decoded(bytes)).collect()
    }

    /// Gives every process what the first one has.
    ///
    /// # Errors
    /// A lost process.
    pub fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>, Error> {
        match &self.cluster {
            Some(cluster) => Ok(cluster.broadcast(mine)?),
            None => Ok(mine),
        }
    }
}

pub(crate) fn encoded(of: &impl serde::Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(of).map_err(Error::json("a message to other processes"))
}

pub(crate) fn decoded<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(Error::json("a message of another process"))
}

//! The processes that train together, and what they have to agree in.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use megagrid_datasets::{Readers, files};
use megagrid_engine::cluster::{Cluster, ClusterError};
use megagrid_engine::{Peers, Settings};
use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use crate::{Error, model};

/// The processes of a run, seen from one of them; by default it is the only one. [`Processes::from`] takes a [`Cluster`] that was joined.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    /// Other processes in earnest; then `peers` are the same.
    pub cluster: Option<Arc<Cluster>>,
    /// The same, or other workers of a virtual cluster.
    pub peers: Option<Arc<dyn Peers>>,
    /// Those that read the input together; `None`: each reads all of it.
    pub readers: Option<Arc<dyn Readers>>,
    /// Whether this process was asked for a timeline, which all write together.
    pub traces: bool,
    /// Whether this process was asked for a model, a record and a report, which the first one writes.
    pub outputs: [bool; OUTPUTS.len()],
}

/// Options that name what the first process writes.
pub const OUTPUTS: [&str; 3] = ["--model", "--json", "--report"];

/// Options that may differ between processes: files of one machine, whose contents are compared where it matters, and what the
/// slowest machine has.
const OF_ONE: [&str; 6] = ["input", "test", "checkpoint", "resume", "from", "vector"];

/// Each process reads all of the input.
impl From<Arc<Cluster>> for Processes {
    fn from(cluster: Arc<Cluster>) -> Self {
        Self { peers: Some(Arc::clone(&cluster) as Arc<dyn Peers>), cluster: Some(cluster), ..Self::default() }
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

    /// Finds that all processes have the same options and data, and that the first is to write all that any was asked for.
    ///
    /// # Errors
    /// What differs; files that cannot be read; a lost process.
    pub fn agree(&self, command: &str, config: &Value, checksum: u64) -> Result<(), Error> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let mut facts = vec![("command", command.to_owned())];
        let options = config.as_object().into_iter().flatten().filter(|(name, _)| !OF_ONE.contains(&name.as_str()));
        // Numbers may follow from options that are words.
        let (words, numbers): (Vec<_>, Vec<_>) = options.partition(|(_, value)| value.is_string());
        facts.extend(words.into_iter().chain(numbers).map(|(name, value)| (name.as_str(), shown(value))));
        let is_set = |name: &str| config.get(name).is_some_and(|value| !value.is_null());
        // A directory may have other names elsewhere.
        let named = ["checkpoint", "resume", "from"].map(|name| (name, is_set(name)));
        for (name, is_set) in named.into_iter().chain([("trace", self.traces)]) {
            facts.push((name, if is_set { "set" } else { UNSET }.to_owned()));
        }
        let path = |name: &str| config.get(name).and_then(Value::as_str).map(Path::new);
        facts.push(("from with the checksum", checksum_text(path("from"), files_of_model)?));
        facts.push(("test with the checksum", checksum_text(path("test"), |input| Ok(files(input)?))?));
        facts.push(("data with the checksum", format!("{checksum:016x}")));
        cluster.agree(&facts)?;
        let asked = self.any(Ok(self.outputs))?;
        let written: [bool; OUTPUTS.len()] = decoded(&self.broadcast(encoded(&self.outputs)?)?)?;
        match (0..OUTPUTS.len()).find(|&at| asked[at] && !written[at]) {
            Some(at) => {
                let problem =
                    format!("{} is given to another process and not to process 0, which writes it", OUTPUTS[at]);
                Err(ClusterError::Differs(problem).into())
            }
            None => Ok(()),
        }
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

/// What a process has that a fact is of, where it has not.
const UNSET: &str = "unset";

/// Writes the value of an option.
pub(crate) fn shown(value: &Value) -> String {
    if value.is_null() { UNSET.to_owned() } else { value.to_string() }
}

/// Returns a checksum of what is read, in its order, from the files of a path. What cannot be read again, a pipe or a name that is no
/// Unicode, has none.
fn checksum_text(path: Option<&Path>, list: fn(&Path) -> Result<Vec<PathBuf>, Error>) -> Result<String, Error> {
    let Some(path) = path else { return Ok(UNSET.to_owned()) };
    let (mut hash, mut buffer) = (Xxh3::new(), vec![0; 1 << 20]);
    for path in list(path).unwrap_or_default() {
        let mut file = File::open(&path).map_err(Error::io(&path))?;
        loop {
            match file.read(&mut buffer).map_err(Error::io(&path))? {
                0 => break,
                bytes => hash.update(&buffer[..bytes]),
            }
        }
    }
    Ok(format!("{:016x}", hash.digest()))
}

fn files_of_model(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let manifest = model::manifest(directory)?;
    let entries = fs::read_dir(directory).map_err(Error::io(directory))?;
    let is_of_model =
        |path: &PathBuf| path.file_name().and_then(OsStr::to_str).is_some_and(|name| manifest.has_file(name));
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_of_model).collect();
    files.sort_unstable();
    Ok(files)
}

pub(crate) fn encoded(of: &impl serde::Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(of).map_err(Error::json("a message to other processes"))
}

pub(crate) fn decoded<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(Error::json("a message of another process"))
}

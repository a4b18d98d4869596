//! Models that are served, each whole in memory, and swapped whole when their directory changes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use megagrid_training::als::Recommender;
use megagrid_training::blockpg::Linear;
use megagrid_training::hits::Authorities;
use megagrid_training::lda::TopicModel;
use megagrid_training::mf::Factors;
use megagrid_training::model::{self, Manifest, Model, load};
use megagrid_training::pagerank::Ranks;
use serde_json::{Value, json};

use crate::Error;
use crate::factors::OfFactors;
use crate::linear::OfFeatures;
use crate::questions::Answers;
use crate::ranks::OfVertices;
use crate::topics::OfTopics;

/// A model in memory.
pub struct Loaded {
    /// Its answers.
    pub answers: Box<dyn Answers>,
    /// What it says about itself.
    pub manifest: Manifest,
    /// How often the server has loaded it, from 1.
    pub version: u64,
    stamp: Stamp,
}

/// How often a model is read that is replaced while it is read. After a change there is the time until the next one.
const ATTEMPTS: usize = 3;

/// Tells one writing of a directory from another: when its manifest was written, and its number in the file system.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    written: SystemTime,
    file: u64,
}

impl Stamp {
    fn of(directory: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(model::manifest_path(directory)).ok()?;
        #[cfg(unix)]
        let file = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let file = metadata.len();
        Some(Self { written: metadata.modified().ok()?, file })
    }
}

impl Loaded {
    /// Reads a model, and again where it is replaced meanwhile: what was read may then be parts of two.
    fn read(directory: &Path, version: u64) -> Result<Self, Error> {
        for _ in 0..ATTEMPTS {
            let stamp = Stamp::of(directory);
            let read = Self::parts(directory);
            if Stamp::of(directory) == stamp {
                let stamp = stamp.unwrap_or(Stamp { written: SystemTime::UNIX_EPOCH, file: 0 });
                return read.map(|(answers, manifest)| Self { answers, manifest, version, stamp });
            }
        }
        let problem = format!("was replaced {ATTEMPTS} times while it was read; write it less often");
        Err(megagrid_training::Error::invalid(directory, problem).into())
    }

    fn parts(directory: &Path) -> Result<(Box<dyn Answers>, Manifest), Error> {
        let kind = model::manifest(directory)?.kind;
        Ok(match kind.as_str() {
            Factors::KIND => {
                let (factors, manifest) = load::<Factors>(directory)?;
                (Box::new(OfFactors::new(factors, &manifest)?), manifest)
            }
            Recommender::KIND => {
                let (Recommender(factors), manifest) = load(directory)?;
                (Box::new(OfFactors::new(factors, &manifest)?), manifest)
            }
            Linear::KIND => {
                let (linear, manifest) = load::<Linear>(directory)?;
                (Box::new(OfFeatures::new(linear)), manifest)
            }
            TopicModel::KIND => {
                let (topics, manifest) = load::<TopicModel>(directory)?;
                (Box::new(OfTopics::new(topics, model::name(directory))?), manifest)
            }
            Ranks::KIND => {
                let (Ranks(ranked), manifest) = load(directory)?;
                (Box::new(OfVertices::new(ranked, None)), manifest)
            }
            Authorities::KIND => {
                let (Authorities { hubs, authorities }, manifest) = load(directory)?;
                (Box::new(OfVertices::new(authorities, Some(hubs))), manifest)
            }
            other => {
                let kinds = "mf, als, blockpg, lda, pagerank or hits";
                let problem = format!("a model of kind {other}, expected one of {kinds}");
                return Err(megagrid_training::Error::invalid(directory, problem).into());
            }
        })
    }

    /// Returns the seconds since it was written.
    #[must_use]
    pub fn age_seconds(&self) -> f64 {
        self.stamp.written.elapsed().map_or(0.0, |age| age.as_secs_f64())
    }
}

/// A model that is served: where it is read from, and what was read last.
pub struct Served {
    /// The last part of its directory, or of that of a training, which requests call it by.
    pub name: String,
    /// Where it is read from.
    pub directory: PathBuf,
    /// How old it may be.
    max_age: Option<Duration>,
    loaded: RwLock<Arc<Loaded>>,
    /// Held while it is read again, by one at a time; what went wrong last.
    reloading: Mutex<Option<String>>,
}

impl Served {
    /// Reads a model. One that is older than `max_age` is served too, as stale.
    ///
    /// # Errors
    /// One that cannot be read, or is of a kind that has no answers.
    pub fn read(name: String, directory: PathBuf, max_age: Option<Duration>) -> Result<Self, Error> {
        let loaded = RwLock::new(Arc::new(Loaded::read(&directory, 1)?));
        Ok(Self { name, directory, max_age, loaded, reloading: Mutex::default() })
    }

    /// Tells whether what it has loaded is older than it may be.
    #[must_use]
    pub fn is_stale(&self, loaded: &Loaded) -> bool {
        self.max_age.is_some_and(|most| loaded.age_seconds() > most.as_secs_f64())
    }

    /// Returns what answers now. Whoever has it keeps it, whatever is loaded meanwhile.
    #[must_use]
    pub fn current(&self) -> Arc<Loaded> {
        Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the model again, and puts it in the place of the one before. Requests go on with that until then, and where it fails.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn reload(&self) -> Result<Arc<Loaded>, Error> {
        let mut problem = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        self.read_again(&mut problem)
    }

    /// Reads the model again if its directory is another. Returns what went wrong, once.
    pub fn reload_if_changed(&self) -> Option<Result<Arc<Loaded>, Error>> {
        let mut problem = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        if Stamp::of(&self.directory)? == self.current().stamp {
            return None;
        }
        let before = problem.clone();
        let outcome = self.read_again(&mut problem);
        (outcome.is_ok() || *problem != before).then_some(outcome)
    }

    fn read_again(&self, problem: &mut Option<String>) -> Result<Arc<Loaded>, Error> {
        let loaded = Loaded::read(&self.directory, self.current().version + 1).map(Arc::new);
        *problem = loaded.as_ref().err().map(ToString::to_string);
        let loaded = loaded?;
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&loaded);
        Ok(loaded)
    }

    /// Describes the model.
    #[must_use]
    pub fn described(&self) -> Value {
        let loaded = self.current();
        let Manifest { kind, data, metrics, .. } = &loaded.manifest;
        json!({
            "name": self.name, "kind": kind, "questions": loaded.answers.questions(), "version": loaded.version,
            "age_seconds": loaded.age_seconds(), "max_age_seconds": self.max_age.map(|most| most.as_secs_f64()),
            "stale": self.is_stale(&loaded), "trained_on": data, "metrics": metrics,
        })
    }
}

//! Models that are served, each whole in memory, and swapped whole when their directory changes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use megagrid_partition::parallel::lock;
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
    at: Instant,
}

/// How often a model is read that is replaced while it is read, before a look at it ends. After a change there is the time until the next
/// one.
const ATTEMPTS: usize = 3;
/// What is said of one that is written too fast.
const REPLACED: &str = "was replaced each time that it was read; write it less often";

/// That of a thread which runs where no other would (`setpriority(2)`).
#[cfg(target_os = "linux")]
const LOWEST_PRIORITY: i32 = 19;
/// How long a directory that could not be read is left alone while it stays as it is; twice as long after each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest of these pauses: what was wrong with the system, not with the files, may be over.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long an answer is waited for before the model that it needs is left to it.
const LONGEST_ANSWER: Duration = Duration::from_secs(1);

/// Tells one writing of a directory from another, also where files are copied into it one by one.
#[derive(Clone, PartialEq, Eq)]
struct Stamp {
    /// When the manifest was written.
    written: SystemTime,
    /// Of each file its name, when it was written, its bytes and its number in the file system.
    files: Vec<(OsString, SystemTime, u64, u64)>,
}

impl Stamp {
    fn of(directory: &Path) -> Result<Self, megagrid_training::Error> {
        let metadata = |path: &Path| {
            let metadata = std::fs::metadata(path).and_then(|metadata| Ok((metadata.modified()?, metadata)));
            metadata.map_err(megagrid_training::Error::io(path))
        };
        let (written, _) = metadata(&model::manifest_path(directory))?;
        let mut files = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(megagrid_training::Error::io(directory))? {
            let entry = entry.map_err(megagrid_training::Error::io(directory))?;
            let (modified, metadata) = metadata(&entry.path())?;
            #[cfg(unix)]
            let number = std::os::unix::fs::MetadataExt::ino(&metadata);
            #[cfg(not(unix))]
            let number = 0;
            files.push((entry.file_name(), modified, metadata.len(), number));
        }
        files.sort_unstable();
        Ok(Self { written, files })
    }
}

/// Reads something, and again where its stamp is another afterwards: what was read may then be parts of two. `None`: it was another after
/// each of [`ATTEMPTS`].
fn whole<S: PartialEq, T>(stamp: impl Fn() -> S, read: impl Fn() -> T) -> Option<(S, T)> {
    (0..ATTEMPTS).find_map(|_| {
        let (before, read) = (stamp(), read());
        (stamp() == before).then_some((before, read))
    })
}

/// Makes of a model in memory what answers, which may take longer than to read it: indexes are built.
type Build = Box<dyn FnOnce(&Manifest) -> Result<Box<dyn Answers>, Error>>;

impl Loaded {
    /// Reads a model, of a kind if that is said. `None`: it was replaced each time that it was read.
    fn read(directory: &Path, version: u64, kind: Option<&str>) -> Result<Option<Self>, Error> {
        // Nothing is read any more when indexes are built.
        let Some((stamp, read)) = whole(|| Stamp::of(directory).ok(), || Self::files(directory, kind)) else {
            return Ok(None);
        };
        let (build, manifest) = read?;
        let answers = build(&manifest)?;
        let stamp = stamp.unwrap_or(Stamp { written: SystemTime::UNIX_EPOCH, files: Vec::new() });
        Ok(Some(Self { answers, manifest, version, stamp, at: Instant::now() }))
    }

    fn files(directory: &Path, expected: Option<&str>) -> Result<(Build, Manifest), Error> {
        let kind = model::manifest(directory)?.kind;
        if let Some(expected) = expected.filter(|expected| *expected != kind) {
            let problem =
                format!("it is a model of {kind} now, and one of {expected} is served; start the server anew");
            return Err(megagrid_training::Error::invalid(directory, problem).into());
        }
        Ok(match kind.as_str() {
            Factors::KIND => {
                let (factors, manifest) = load::<Factors>(directory)?;
                (Box::new(|manifest| Ok(Box::new(OfFactors::new(factors, manifest)?))), manifest)
            }
            Recommender::KIND => {
                let (Recommender(factors), manifest) = load(directory)?;
                (Box::new(|manifest| Ok(Box::new(OfFactors::new(factors, manifest)?))), manifest)
            }
            Linear::KIND => {
                let (linear, manifest) = load::<Linear>(directory)?;
                (Box::new(|manifest| Ok(Box::new(OfFeatures::new(linear, manifest)))), manifest)
            }
            TopicModel::KIND => {
                let (topics, manifest) = load::<TopicModel>(directory)?;
                let name = model::name(directory);
                (Box::new(|_| Ok(Box::new(OfTopics::new(topics, name)?))), manifest)
            }
            Ranks::KIND => {
                let (Ranks { ranked, sets }, manifest) = load(directory)?;
                (Box::new(|_| Ok(Box::new(OfVertices::new(ranked, None, sets)))), manifest)
            }
            Authorities::KIND => {
                let (Authorities { hubs, authorities }, manifest) = load(directory)?;
                (Box::new(|_| Ok(Box::new(OfVertices::new(authorities, Some(hubs), Vec::new())))), manifest)
            }
            other => {
                let kinds = "mf, als, blockpg, lda, pagerank or hits";
                let problem = format!("a model of kind {other}, expected one of {kinds}");
                return Err(megagrid_training::Error::invalid(directory, problem).into());
            }
        })
    }

    /// Returns the seconds since it was written, or since it was loaded where those are more: the clock that it was written by may be
    /// ahead of the one here.
    #[must_use]
    pub fn age_seconds(&self) -> f64 {
        self.stamp.written.elapsed().unwrap_or_default().max(self.at.elapsed()).as_secs_f64()
    }
}

/// Runs something on a thread that gets what of the cores answers leave over: to build the indexes of a model takes seconds.
fn behind_answers<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    let work = || {
        // Elsewhere a priority is that of all threads of a process. One that cannot be lowered costs answers time, and nothing else.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
        work()
    };
    std::thread::scope(|scope| {
        let loading = std::thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, work)?;
        loading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Gives back a model that is no longer served, once no answer needs it. Whoever has it last waits until its memory is returned, so that is
/// not left to an answer.
fn give_back(loaded: Arc<Loaded>) {
    let begin = Instant::now();
    while Arc::strong_count(&loaded) > 1 && begin.elapsed() < LONGEST_ANSWER {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A reading that went wrong.
struct Failure {
    /// What was told.
    problem: String,
    /// The directory before it was read.
    stamp: Option<Stamp>,
    at: Instant,
    /// How long it is not read again if it stays as it was.
    pause: Duration,
}

impl Failure {
    /// Takes down a failure after another one: all of a large model is read before its fault is found.
    fn after(before: Option<&Self>, problem: String, stamp: Option<Stamp>) -> Self {
        let before = before.filter(|before| before.stamp == stamp);
        let pause = before.map_or(FIRST_PAUSE, |before| before.pause.saturating_mul(2).min(LONGEST_PAUSE));
        Self { problem, stamp, at: Instant::now(), pause }
    }

    /// Tells whether to read such a directory, at this time, would most likely fail again.
    fn holds(&self, stamp: &Stamp, now: Instant) -> bool {
        self.stamp.as_ref() == Some(stamp) && now.duration_since(self.at) < self.pause
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
    reloading: Mutex<Option<Failure>>,
    /// How many looks at its directory have told nothing since the last one that did.
    vain_looks: AtomicUsize,
}

impl Served {
    /// Reads a model, as often as it is replaced meanwhile. One that is older than `max_age` is served too, as stale.
    ///
    /// # Errors
    /// One that cannot be read, or is of a kind that has no answers.
    pub fn read(name: String, directory: PathBuf, max_age: Option<Duration>) -> Result<Self, Error> {
        let loaded = loop {
            if let Some(loaded) = Loaded::read(&directory, 1, None)? {
                break RwLock::new(Arc::new(loaded));
            }
            tracing::warn!("{}: {REPLACED}; reading it again", directory.display());
        };
        Ok(Self { name, directory, max_age, loaded, reloading: Mutex::default(), vain_looks: AtomicUsize::default() })
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
        let mut failure = lock(&self.reloading);
        self.read_again(&mut failure)
    }

    /// Reads the model again if its directory is another, also than one that could not be read lately. Tells too whether that is news: it
    /// went well, or wrong in another way than the time before. A directory that cannot be looked at has failed too: once, at the second
    /// look.
    pub fn reload_if_changed(&self) -> Option<(Result<Arc<Loaded>, Error>, bool)> {
        let mut failure = lock(&self.reloading);
        let stamp = match Stamp::of(&self.directory) {
            Ok(stamp) => stamp,
            // Between two renames there is no directory for a moment.
            Err(error) => {
                let is_second = self.vain_looks.fetch_add(1, Ordering::Relaxed) == 1;
                return is_second.then(|| (Err(error.into()), true));
            }
        };
        self.vain_looks.store(0, Ordering::Relaxed);
        let is_failed = || failure.as_ref().is_some_and(|failure| failure.holds(&stamp, Instant::now()));
        if stamp == self.current().stamp || is_failed() {
            return None;
        }
        let before = failure.as_ref().map(|failure| failure.problem.clone());
        let outcome = self.read_again(&mut failure);
        let is_news = outcome.is_ok() || failure.as_ref().map(|failure| &failure.problem) != before.as_ref();
        Some((outcome, is_news))
    }

    fn read_again(&self, failure: &mut Option<Failure>) -> Result<Arc<Loaded>, Error> {
        let (current, stamp) = (self.current(), Stamp::of(&self.directory).ok());
        let (version, kind) = (current.version + 1, current.manifest.kind.clone());
        drop(current);
        let loaded = behind_answers(|| Loaded::read(&self.directory, version, Some(&kind))).and_then(|loaded| {
            let replaced = || megagrid_training::Error::invalid(&self.directory, REPLACED).into();
            loaded.map(Arc::new).ok_or_else(replaced)
        });
        *failure = loaded.as_ref().err().map(|error| Failure::after(failure.as_ref(), error.to_string(), stamp));
        let loaded = loaded?;
        let before = self.replace(Arc::clone(&loaded));
        give_back(before);
        Ok(loaded)
    }

    fn replace(&self, loaded: Arc<Loaded>) -> Arc<Loaded> {
        std::mem::replace(&mut *self.loaded.write().unwrap_or_else(PoisonError::into_inner), loaded)
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

#[cfg(test)]
impl Served {
    /// Serves answers of no directory, or of one that has none of them.
    pub(crate) fn of(answers: Box<dyn Answers>, directory: PathBuf) -> Self {
        let data = json!({ "left": 0, "right": 0, "edges": 0, "checksum": "" });
        let manifest = json!({
            "kind": "test", "version": 1, "megagrid": "", "config": {}, "shapes": {}, "data": data, "metrics": {},
        });
        let manifest = serde_json::from_value(manifest).unwrap();
        let stamp = Stamp { written: SystemTime::UNIX_EPOCH, files: Vec::new() };
        let loaded = Loaded { answers, manifest, version: 1, stamp, at: Instant::now() };
        let loaded = RwLock::new(Arc::new(loaded));
        let (name, reloading, vain_looks) = ("test".to_owned(), Mutex::default(), AtomicUsize::default());
        Self { name, directory, max_age: None, loaded, reloading, vain_looks }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{Answer, Refusal};

    /// Answers whatever it is asked, but says so of one question only.
    pub(crate) struct Anything;

    impl Answers for Anything {
        fn questions(&self) -> &'static [&'static str] {
            &["rank"]
        }

        fn answer(&self, _: &str, _: &[u8]) -> Result<Answer<'_>, Refusal> {
            Ok(Answer::Other(Value::Null))
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_read_again_until_it_is_another() {
        let directory = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(model::manifest_path(directory.path()), text).unwrap();
        write("{}");
        let served = Served::of(Box::new(Anything), directory.path().to_owned());
        let look = || served.reload_if_changed().map(|(outcome, is_news)| (outcome.is_ok(), is_news));
        // Whatever the machine does meanwhile.
        let wait = || served.reloading.lock().unwrap().as_mut().unwrap().pause = Duration::MAX;
        assert_eq!(look(), Some((false, true)));
        wait();
        assert_eq!((look(), look()), (None, None));
        write("{ }");
        assert!(look().is_some_and(|(is_read, _)| !is_read));
        wait();
        assert_eq!(look(), None);
        // Whoever asks for it has it read.
        assert!(served.reload().is_err() && served.reload().is_err());
        assert_eq!(served.current().version, 1);
    }

    #[test]
    fn a_directory_that_is_gone_is_told_once_and_read_when_it_is_back() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("model");
        let served = Served::of(Box::new(Anything), directory.clone());
        let look =
            || served.reload_if_changed().map(|(outcome, is_news)| (outcome.err().unwrap().to_string(), is_news));
        for text in ["{}", "{ }"] {
            assert_eq!(look(), None, "it may be replaced just now");
            let (problem, is_news) = look().unwrap();
            assert!(is_news && problem.contains("model.json: "), "{problem}");
            assert_eq!((look(), look()), (None, None));
            std::fs::create_dir(&directory).unwrap();
            std::fs::write(model::manifest_path(&directory), text).unwrap();
            // Nothing is answered by such a model.
            assert!(!look().unwrap().0.contains("model.json: No such file"));
            std::fs::remove_dir_all(&directory).unwrap();
        }
        assert_eq!(served.current().version, 1);
    }

    #[test]
    fn a_pause_doubles_up_to_a_minute_and_is_of_one_directory() {
        let stamp = |files: usize| Stamp {
            written: SystemTime::UNIX_EPOCH,
            files: vec![(OsString::new(), SystemTime::UNIX_EPOCH, 0, 0); files],
        };
        let failed = |before: Option<&Failure>, files| Failure::after(before, String::new(), Some(stamp(files)));
        let mut last = failed(None, 1);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            pauses.push(last.pause.as_secs());
            last = failed(Some(&last), 1);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        let minute = Duration::from_secs(60);
        assert!(last.holds(&stamp(1), last.at) && !last.holds(&stamp(1), last.at + minute));
        assert!(!last.holds(&stamp(2), last.at));
        assert_eq!(failed(Some(&last), 2).pause, FIRST_PAUSE);
    }

    #[test]
    fn what_is_replaced_while_it_is_read_is_read_again() {
        // Replaced during the first reads only, so many of them.
        let read_while_replaced = |times: u32| {
            let (version, reads) = (Cell::new(0), Cell::new(0));
            let read = || {
                reads.set(reads.get() + 1);
                version.set(version.get() + u32::from(reads.get() <= times));
                reads.get()
            };
            whole(|| version.get(), read)
        };
        assert_eq!(read_while_replaced(0), Some((0, 1)));
        assert_eq!(read_while_replaced(2), Some((2, 3)));
        assert_eq!(read_while_replaced(3), None);
    }
}

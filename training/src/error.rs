//! What can go wrong between options and a model.

use std::io;
use std::path::{Path, PathBuf};

use crate::record::{Name, Record};

/// Why training, or a model, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option out of range, or options that contradict each other.
    #[error("{0}")]
    Option(String),
    /// A file or directory whose content is of no use; the message says what was expected.
    #[error("{}: {problem}", path.display())]
    Invalid {
        /// The file or directory.
        path: PathBuf,
        /// What was found, what was expected, what to do.
        problem: String,
    },
    /// An input that is too large for the memory; the message says what it needs, and what to do.
    #[error("{}: {problem}", path.display())]
    TooLarge {
        /// The file or directory.
        path: PathBuf,
        /// What is needed, what is available, what to do.
        problem: String,
    },
    /// The system refused to read or write.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Data or a model that do not hold what was asked for.
    #[error("{0}")]
    Missing(String),
    /// The objective, or a running value, is no number any more.
    #[error("{name} became {value} in iteration {iteration}; {advice}")]
    Diverged {
        /// What it is.
        name: Name,
        /// Its value.
        value: f64,
        /// After which iteration.
        iteration: u64,
        /// What to try.
        advice: &'static str,
    },
    /// The run was asked to end.
    #[error("interrupted after iteration {iteration}; {left}")]
    Interrupted {
        /// The last complete iteration.
        iteration: u64,
        /// What was saved, and what was not.
        left: String,
        /// The record of what was done; none of a run that tunes itself.
        record: Option<Box<Record>>,
    },
    /// Values that cannot be written as JSON, or read from it.
    #[error("{place}: {source}")]
    Json {
        /// What was read or written.
        place: String,
        /// The problem.
        source: serde_json::Error,
    },
    /// Parameters that the algorithm refuses.
    #[error("{0}")]
    Algorithm(#[from] megagrid_algorithms::Error),
    /// Input or output.
    #[error("{0}")]
    Data(#[from] megagrid_datasets::Error),
    /// A sequence of stages.
    #[error("{0}")]
    Stages(#[from] megagrid_stages::Error),
    /// The engine.
    #[error("{0}")]
    Engine(#[from] megagrid_engine::Error),
    /// The other processes.
    #[error("{0}")]
    Cluster(#[from] megagrid_engine::cluster::ClusterError),
    /// The tuner.
    #[error("{0}")]
    Tuner(#[from] megagrid_tuner::Error),
}

impl Error {
    /// Says that an option is wrong.
    pub fn option(message: impl Into<String>) -> Self {
        Self::Option(message.into())
    }

    /// Says that a file is of no use.
    pub fn invalid(path: &Path, problem: impl Into<String>) -> Self {
        Self::Invalid { path: path.to_owned(), problem: problem.into() }
    }

    /// Makes an error of the system one of this crate, with the path.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Makes an error of JSON one of this crate, with what was read or written.
    pub fn json(place: impl ToString) -> impl FnOnce(serde_json::Error) -> Self {
        let place = place.to_string();
        move |source| Self::Json { place, source }
    }
}

/// The edges of an input that cannot be read.
pub(crate) fn reading(source: io::Error) -> Error {
    Error::Io { path: "edges".into(), source }
}

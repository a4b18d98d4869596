//! Updates of models against training on all data.

mod blockpg;
mod counted;
mod factors;
mod pagerank;
mod topics;

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use megagrid_datasets::Format;
use megagrid_training::input::Source;
use megagrid_training::update::{self, Changes, Place};
use megagrid_training::{Algorithm, Data, Error, Job, Processes, RunOptions, Trained, model, options, train};
use tempfile::TempDir;

/// A directory with data and models of an algorithm.
struct Desk<A: Algorithm> {
    directory: TempDir,
    options: A::Options,
    how: fn() -> <A::Data as Data>::Options,
}

impl<A: Algorithm> Desk<A> {
    fn new(options: A::Options, how: fn() -> <A::Data as Data>::Options) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), options, how }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, lines: &[String]) -> PathBuf {
        fs::write(self.path(name), lines.concat()).unwrap();
        self.path(name)
    }

    /// Reads a file to be trained on.
    fn job(&self, data: &Path, run: &RunOptions) -> Result<Job<A>, Error> {
        self.job_of(Source::new(data), run)
    }

    fn job_of(&self, source: Source, run: &RunOptions) -> Result<Job<A>, Error> {
        let format = match A::NAME {
            "pagerank" => Some(Format::Edges),
            "lda" => Some(Format::Text),
            _ => None,
        };
        let source = Source { format, ..source };
        Job::read((source, &(self.how)()), self.options.clone(), run, &Processes::default())
    }

    /// Trains on a file, writes the model beside it, and returns what came of it.
    fn train(&self, data: &Path) -> (PathBuf, Trained<A>) {
        self.train_on(Source::new(data), &run())
    }

    fn train_on(&self, source: Source, run: &RunOptions) -> (PathBuf, Trained<A>) {
        let directory = source.input.with_extension("model");
        let job = self.job_of(source, run).unwrap();
        let trained = train(Job { is_kept: true, ..job }, &Processes::default(), &()).unwrap();
        model::save(trained.model.as_ref().unwrap(), &directory, &trained.record, trained.checksum).unwrap();
        (directory, trained)
    }

    /// Updates a model where it is.
    fn update(&self, directory: &Path, changes: &Changes) -> Result<Trained<A>, Error> {
        let (job, before) = update::read::<A>(directory, changes, Ok, run())?;
        let trained = train(job, &Processes::default(), &())?;
        before.save(&trained, &Place::Same(directory.to_owned()))?;
        Ok(trained)
    }
}

fn run() -> RunOptions {
    RunOptions { workers: Some(2), ..RunOptions::default() }
}

fn by_default<O: clap::Args>() -> O {
    options([""; 0]).unwrap()
}

fn added(path: PathBuf) -> Changes {
    Changes { added: Some(path), ..Changes::default() }
}

fn removed(path: PathBuf) -> Changes {
    Changes { removed: Some(path), ..Changes::default() }
}

fn refused<T>(outcome: Result<T, Error>) -> String {
    outcome.map(drop).unwrap_err().to_string()
}

/// Fails unless two numbers differ by no more than a part of the second.
fn assert_near(found: f64, expected: f64, part: f64, what: impl Debug) {
    assert!((found - expected).abs() <= part * expected.abs(), "{what:?}: {found}, expected {expected}");
}

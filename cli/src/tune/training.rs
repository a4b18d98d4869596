//! Engines and their branches: what one process has of a run that tunes itself.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Context;
use megagrid_tuner::{Branch, Clock, Progress, ROOT, Setting, Value};

use super::saved;
use super::strand::{Done, Strand};
use crate::common::Common;
use crate::failure::Failure;
use crate::interrupt;
use crate::session::Measured;

/// An algorithm that can be tuned.
pub trait Algorithm {
    /// What training comes to.
    type Trained;

    /// Makes an engine at the beginning of a run, whose state is the branch `first`.
    fn strand(&self, setting: &Setting, first: u64) -> anyhow::Result<Box<dyn Strand<Self::Trained> + '_>>;

    /// Returns the values of a setting that need an engine of their own: what lays out the graph, or is another program.
    fn layout(&self, setting: &Setting) -> Vec<Value>;

    /// Returns a checksum of the input.
    fn checksum(&self) -> anyhow::Result<u64>;

    /// Returns what training makes smaller.
    fn loss(&self, measured: &Measured) -> f64;

    /// Returns the loss before the first iteration, where it cannot be measured.
    fn first_loss(&self) -> Option<f64> {
        None
    }
}

/// What a clock's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Time {
    /// Wall-clock seconds.
    Seconds,
    /// Edges processed: a run is then reproducible.
    Samples,
}

/// A branch and where it is.
struct Seat {
    strand: u64,
    setting: Setting,
    history: Vec<Done>,
}

/// A run with its branches, or what one of several processes has of them.
pub struct Training<'a, A: Algorithm> {
    algorithm: &'a A,
    time: Time,
    common: &'a Common,
    strands: BTreeMap<u64, Box<dyn Strand<A::Trained> + 'a>>,
    seats: BTreeMap<Branch, Seat>,
    /// The branch that is the run, while no search is under way.
    kept: Option<Branch>,
    /// Iterations that were done when the run was resumed, and when it was saved last.
    done: u64,
    saved: u64,
}

/// What trains a branch.
pub type Engine<'a, A> = Box<dyn Strand<<A as Algorithm>::Trained> + 'a>;

impl<'a, A: Algorithm> Training<'a, A> {
    /// Begins a run with the settings that its options say, or goes on with one that was saved; returns what that had come to.
    /// All processes call it.
    pub fn new(
        algorithm: &'a A,
        time: Time,
        common: &'a Common,
        resolved: &serde_json::Value,
        progress: Option<Progress>,
    ) -> anyhow::Result<(Self, Option<Progress>)> {
        // Later settings have the layout of the first.
        let first = progress.as_ref().and_then(|progress| progress.settings.first());
        let first = first.map(|(_, setting)| setting.clone()).unwrap_or_default();
        let mut strand = algorithm.strand(&first, ROOT.0)?;
        let done = strand.begin(&common.checkpoint, resolved)?;
        let back = |progress: Progress| {
            progress.back_to(done).context("what tuning came to is of fewer iterations than the checkpoint; start anew")
        };
        let progress = progress.map(back).transpose()?;
        let setting = progress.as_ref().and_then(Progress::setting).cloned().unwrap_or_default();
        let root = Seat { strand: ROOT.0, setting, history: Vec::new() };
        let (strands, seats) = (BTreeMap::from([(ROOT.0, strand)]), BTreeMap::from([(ROOT, root)]));
        Ok((Self { algorithm, time, common, strands, seats, kept: None, done, saved: done }, progress))
    }

    /// Returns the iterations that were done by the run that this one goes on with.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Takes out a branch: its engine and its iterations.
    pub fn take(mut self, branch: Branch) -> anyhow::Result<(Engine<'a, A>, Vec<Done>)> {
        let seat = self.seats.remove(&branch).ok_or_else(|| gone(branch))?;
        let strand = self.strands.remove(&seat.strand).ok_or_else(|| gone(branch))?;
        Ok((strand, seat.history))
    }

    fn iterations(&self, branch: Branch) -> u64 {
        self.done + self.seats.get(&branch).map_or(0, |seat| seat.history.len() as u64)
    }

    fn seat(&mut self, branch: Branch) -> anyhow::Result<(&mut Seat, &mut Engine<'a, A>)> {
        let seat = self.seats.get_mut(&branch).ok_or_else(|| gone(branch))?;
        let strand = self.strands.get_mut(&seat.strand).ok_or_else(|| gone(branch))?;
        Ok((seat, strand))
    }

    /// Copies a branch to another, which goes on with a setting.
    pub fn fork(&mut self, parent: Branch, child: Branch, setting: &Setting) -> anyhow::Result<()> {
        let algorithm = self.algorithm;
        self.kept = None;
        let (seat, strand) = self.seat(parent)?;
        let history = seat.history.clone();
        let strand = if algorithm.layout(setting) == algorithm.layout(&seat.setting) {
            strand.fork(parent.0, child.0)?;
            seat.strand
        } else if parent == ROOT {
            self.strands.insert(child.0, algorithm.strand(setting, child.0)?);
            child.0
        } else {
            anyhow::bail!("{setting} lays out the graph in another way, which a run cannot change on the way")
        };
        self.seats.insert(child, Seat { strand, setting: setting.clone(), history });
        Ok(())
    }

    /// Runs an iteration of a branch, and measures.
    pub fn schedule(&mut self, branch: Branch) -> anyhow::Result<Clock> {
        // The run itself ends where it is kept.
        if self.kept != Some(branch) && self.common.any(interrupt::asked())? {
            let left = match &self.common.checkpoint.checkpoint {
                Some(directory) if self.saved > 0 => format!("continue with --resume {}", directory.display()),
                _ => "no model was written, and a search is not saved".to_owned(),
            };
            return Err(Failure::Interrupted { iteration: self.iterations(branch), left }.into());
        }
        let (time, algorithm) = (self.time, self.algorithm);
        let (seat, strand) = self.seat(branch)?;
        let report = strand.iterate(branch.0, &seat.setting)?;
        let begin = Instant::now();
        let measured = strand.measure(branch.0)?;
        let time = match time {
            Time::Seconds => report.seconds,
            Time::Samples => report.updates as f64,
        };
        let loss = measured.as_ref().map_or(f64::NAN, |measured| algorithm.loss(measured));
        let finished = measured.as_ref().is_some_and(|measured| measured.converged);
        seat.history.push(Done { report, measured, seconds: begin.elapsed().as_secs_f64() });
        Ok(Clock { time, loss, finished })
    }

    /// Measures a branch as it stands.
    pub fn report(&mut self, branch: Branch) -> anyhow::Result<f64> {
        let algorithm = self.algorithm;
        if let (ROOT, Some(loss)) = (branch, algorithm.first_loss()) {
            return Ok(loss);
        }
        let measured = self.seat(branch)?.1.measure(branch.0)?;
        Ok(measured.map_or(f64::NAN, |measured| algorithm.loss(&measured)))
    }

    /// Ends a branch.
    pub fn free(&mut self, branch: Branch) -> anyhow::Result<()> {
        let Some(seat) = self.seats.remove(&branch) else { return Ok(()) };
        if !self.seats.values().any(|other| other.strand == seat.strand) {
            self.strands.remove(&seat.strand);
        } else if let Some(strand) = self.strands.get_mut(&seat.strand) {
            strand.free(branch.0)?;
        }
        Ok(())
    }

    /// Saves the branch that is the run, with what tuning came to, if that is due; ends the run if it is asked to.
    pub fn keep(&mut self, branch: Branch, progress: Option<&Progress>, is_last: bool) -> anyhow::Result<()> {
        self.kept = Some(branch);
        let (common, iterations) = (self.common, self.iterations(branch));
        let is_asked = common.any(interrupt::asked() && !is_last)?;
        let every = common.checkpoint.checkpoint_every;
        let is_due = is_asked || is_last || every.is_some_and(|every| iterations / every > self.saved / every);
        let directory = common.checkpoint.checkpoint.as_ref();
        if let Some(directory) = directory.filter(|_| is_due) {
            if let Some(progress) = progress {
                saved::write(directory, progress)?;
            }
            self.seat(branch)?.1.save(branch.0, &common.checkpoint)?;
            self.saved = iterations;
        }
        if !is_asked {
            return Ok(());
        }
        let left = match directory {
            Some(directory) => format!("continue with --resume {}", directory.display()),
            None => "no model was written, and no checkpoint was asked for".to_owned(),
        };
        Err(Failure::Interrupted { iteration: iterations, left }.into())
    }
}

fn gone(branch: Branch) -> anyhow::Error {
    anyhow::anyhow!("branch {} is not there", branch.0)
}

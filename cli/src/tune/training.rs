//! Engines and their branches as the tuner's trainer.

use std::collections::BTreeMap;
use std::time::Instant;

use megagrid_tuner::{Branch, Clock, Noise, ROOT, Setting, Trainer, Value};

use super::strand::{Done, Strand};
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

/// A run with its branches.
pub struct Training<'a, A: Algorithm> {
    algorithm: &'a A,
    time: Time,
    strands: BTreeMap<u64, Box<dyn Strand<A::Trained> + 'a>>,
    seats: BTreeMap<Branch, Seat>,
}

/// What trains a branch.
type Engine<'a, A> = Box<dyn Strand<<A as Algorithm>::Trained> + 'a>;

impl<'a, A: Algorithm> Training<'a, A> {
    /// Begins a run with the settings that its options say.
    pub fn new(algorithm: &'a A, time: Time) -> anyhow::Result<Self> {
        let setting = Setting::default();
        let strands = BTreeMap::from([(ROOT.0, algorithm.strand(&setting, ROOT.0)?)]);
        let root = Seat { strand: ROOT.0, setting, history: Vec::new() };
        Ok(Self { algorithm, time, strands, seats: BTreeMap::from([(ROOT, root)]) })
    }

    /// Takes out a branch: its engine and its iterations.
    pub fn take(mut self, branch: Branch) -> anyhow::Result<(Engine<'a, A>, Vec<Done>)> {
        let seat = self.seats.remove(&branch).ok_or_else(|| gone(branch))?;
        let strand = self.strands.remove(&seat.strand).ok_or_else(|| gone(branch))?;
        Ok((strand, seat.history))
    }
}

fn gone(branch: Branch) -> anyhow::Error {
    anyhow::anyhow!("branch {} is not there", branch.0)
}

impl<A: Algorithm> Trainer for Training<'_, A> {
    type Error = anyhow::Error;

    fn noise(&self) -> Noise {
        Noise::Exact
    }

    fn fork(&mut self, parent: Branch, child: Branch, setting: &Setting) -> anyhow::Result<()> {
        let seat = self.seats.get(&parent).ok_or_else(|| gone(parent))?;
        let history = seat.history.clone();
        let strand = if self.algorithm.layout(setting) == self.algorithm.layout(&seat.setting) {
            let strand = self.strands.get_mut(&seat.strand).ok_or_else(|| gone(parent))?;
            strand.fork(parent.0, child.0)?;
            seat.strand
        } else if parent == ROOT {
            self.strands.insert(child.0, self.algorithm.strand(setting, child.0)?);
            child.0
        } else {
            anyhow::bail!("{setting} lays out the graph in another way, which a run cannot change on the way")
        };
        self.seats.insert(child, Seat { strand, setting: setting.clone(), history });
        Ok(())
    }

    fn schedule(&mut self, branch: Branch) -> anyhow::Result<Clock> {
        if interrupt::asked() {
            let iteration = self.seats.get(&branch).map_or(0, |seat| seat.history.len() as u64);
            let left = "no model was written".to_owned();
            return Err(Failure::Interrupted { iteration, left }.into());
        }
        let seat = self.seats.get_mut(&branch).ok_or_else(|| gone(branch))?;
        let strand = self.strands.get_mut(&seat.strand).ok_or_else(|| gone(branch))?;
        let report = strand.iterate(branch.0, &seat.setting)?;
        let begin = Instant::now();
        let measured = strand.measure(branch.0)?;
        let time = match self.time {
            Time::Seconds => report.seconds,
            Time::Samples => report.updates as f64,
        };
        let (loss, finished) = (self.algorithm.loss(&measured), measured.converged);
        seat.history.push(Done { report, measured, seconds: begin.elapsed().as_secs_f64() });
        Ok(Clock { time, loss, finished })
    }

    fn report(&mut self, branch: Branch) -> anyhow::Result<f64> {
        if let (ROOT, Some(loss)) = (branch, self.algorithm.first_loss()) {
            return Ok(loss);
        }
        let seat = self.seats.get(&branch).ok_or_else(|| gone(branch))?;
        let strand = self.strands.get_mut(&seat.strand).ok_or_else(|| gone(branch))?;
        Ok(self.algorithm.loss(&strand.measure(branch.0)?))
    }

    fn free(&mut self, branch: Branch) -> anyhow::Result<()> {
        let Some(seat) = self.seats.remove(&branch) else { return Ok(()) };
        if !self.seats.values().any(|other| other.strand == seat.strand) {
            self.strands.remove(&seat.strand);
        } else if let Some(strand) = self.strands.get_mut(&seat.strand) {
            strand.free(branch.0)?;
        }
        Ok(())
    }
}

//! Several processes that tune together: the first one decides, and all do the same at the same place of the run.

use std::sync::Arc;

use anyhow::Context;
use megagrid_engine::cluster::Cluster;
use megagrid_tuner::{Branch, Clock, Noise, Progress, Setting, Trainer};
use serde::{Deserialize, Serialize};

use super::strand::Done;
use super::training::{Algorithm, Engine, Training};

/// What all processes are to do next.
#[derive(Serialize, Deserialize)]
enum Order {
    Fork { parent: Branch, child: Branch, setting: Words },
    Schedule { branch: Branch },
    Report { branch: Branch },
    Free { branch: Branch },
    Keep { branch: Branch, is_last: bool },
    End { branch: Branch },
}

/// A setting as it is printed: numbers read back exactly.
type Words = Vec<(String, String)>;

/// A run that does what the first process says.
pub struct Led<'a, A: Algorithm> {
    training: Training<'a, A>,
    cluster: Option<Arc<Cluster>>,
}

impl<'a, A: Algorithm> Led<'a, A> {
    /// Begins in all processes; with one there is no cluster.
    pub fn new(training: Training<'a, A>, cluster: Option<Arc<Cluster>>) -> Self {
        Self { training, cluster }
    }

    /// Ends the run in all processes.
    pub fn end(&self, branch: Branch) -> anyhow::Result<()> {
        self.tell(&Order::End { branch })
    }

    /// Takes out a branch: its engine and its iterations.
    pub fn take(self, branch: Branch) -> anyhow::Result<(Engine<'a, A>, Vec<Done>)> {
        self.training.take(branch)
    }

    fn tell(&self, order: &Order) -> anyhow::Result<()> {
        if let Some(cluster) = &self.cluster {
            cluster.broadcast(serde_json::to_vec(order)?)?;
        }
        Ok(())
    }

    /// In the other processes: does what the first one says, until that ends the run. Returns the branch with the result.
    pub fn follow(&mut self) -> anyhow::Result<Branch> {
        let cluster = self.cluster.clone().context("there is no process to follow")?;
        loop {
            let order = cluster.broadcast(Vec::new())?;
            let training = &mut self.training;
            match serde_json::from_slice(&order).context("reading what the first process says")? {
                Order::Fork { parent, child, setting } => {
                    let values = setting.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
                    training.fork(parent, child, &Setting::new(values.collect()))?;
                }
                Order::Schedule { branch } => drop(training.schedule(branch)?),
                Order::Report { branch } => drop(training.report(branch)?),
                Order::Free { branch } => training.free(branch)?,
                Order::Keep { branch, is_last } => training.keep(branch, None, is_last)?,
                Order::End { branch } => return Ok(branch),
            }
        }
    }
}

/// In the first process: it tells the others before it does the same.
impl<A: Algorithm> Trainer for Led<'_, A> {
    type Error = anyhow::Error;

    fn noise(&self) -> Noise {
        Noise::Exact
    }

    fn fork(&mut self, parent: Branch, child: Branch, setting: &Setting) -> anyhow::Result<()> {
        let words = setting.iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
        self.tell(&Order::Fork { parent, child, setting: words })?;
        self.training.fork(parent, child, setting)
    }

    fn schedule(&mut self, branch: Branch) -> anyhow::Result<Clock> {
        self.tell(&Order::Schedule { branch })?;
        self.training.schedule(branch)
    }

    fn report(&mut self, branch: Branch) -> anyhow::Result<f64> {
        self.tell(&Order::Report { branch })?;
        self.training.report(branch)
    }

    fn free(&mut self, branch: Branch) -> anyhow::Result<()> {
        self.tell(&Order::Free { branch })?;
        self.training.free(branch)
    }

    fn keep(&mut self, branch: Branch, progress: &Progress, is_last: bool) -> anyhow::Result<()> {
        self.tell(&Order::Keep { branch, is_last })?;
        self.training.keep(branch, Some(progress), is_last)
    }
}

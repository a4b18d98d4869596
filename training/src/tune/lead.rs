//! Several processes that tune together: the first one decides, and all do the same at the same place of the run.

use megagrid_tuner::{Branch, Clock, Noise, Progress, Setting, Trainer};
use serde::{Deserialize, Serialize};

use super::branches::Branches;
use crate::Error;
use crate::algorithm::Algorithm;
use crate::processes::{decoded, encoded};

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
pub struct Lead<'s, A: Algorithm>(Branches<'s, A>);

impl<'s, A: Algorithm> Lead<'s, A> {
    /// Begins in all processes.
    pub fn new(branches: Branches<'s, A>) -> Self {
        Self(branches)
    }

    /// Gives the branches back.
    pub fn into_branches(self) -> Branches<'s, A> {
        self.0
    }

    /// Ends the run in all processes.
    pub fn end(&self, branch: Branch) -> Result<(), Error> {
        self.tell(&Order::End { branch })
    }

    fn tell(&self, order: &Order) -> Result<(), Error> {
        self.0.processes.broadcast(encoded(order)?).map(drop)
    }

    /// In the other processes: does what the first one says, until that ends the run. Returns the branch with the result.
    pub fn follow(&mut self) -> Result<Branch, Error> {
        loop {
            let branches = &mut self.0;
            match decoded(&branches.processes.broadcast(Vec::new())?)? {
                Order::Fork { parent, child, setting } => {
                    let values = setting.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
                    branches.fork(parent, child, &Setting::new(values.collect()))?;
                }
                Order::Schedule { branch } => drop(branches.schedule(branch)?),
                Order::Report { branch } => drop(branches.report(branch)?),
                Order::Free { branch } => branches.free(branch)?,
                Order::Keep { branch, is_last } => branches.keep(branch, None, is_last)?,
                Order::End { branch } => return Ok(branch),
            }
        }
    }
}

/// In the first process: it tells the others before it does the same.
impl<A: Algorithm> Trainer for Lead<'_, A> {
    type Error = Error;

    fn noise(&self) -> Noise {
        Noise::Exact
    }

    fn fork(&mut self, parent: Branch, child: Branch, setting: &Setting) -> Result<(), Error> {
        let words = setting.iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
        self.tell(&Order::Fork { parent, child, setting: words })?;
        self.0.fork(parent, child, setting)
    }

    fn schedule(&mut self, branch: Branch) -> Result<Clock, Error> {
        self.tell(&Order::Schedule { branch })?;
        self.0.schedule(branch)
    }

    fn report(&mut self, branch: Branch) -> Result<f64, Error> {
        self.tell(&Order::Report { branch })?;
        self.0.report(branch)
    }

    fn free(&mut self, branch: Branch) -> Result<(), Error> {
        self.tell(&Order::Free { branch })?;
        self.0.free(branch)
    }

    fn keep(&mut self, branch: Branch, progress: &Progress, is_last: bool) -> Result<(), Error> {
        self.tell(&Order::Keep { branch, is_last })?;
        self.0.keep(branch, Some(progress), is_last)
    }
}

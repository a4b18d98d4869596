//! A perceptron of GeePS as the tuners' trainer, or without hidden layers logistic regression of many classes. A clock is a few
//! mini-batches, a small part of a pass: losses are of the samples that it trained on, so that they are noise around the loss. Time is
//! samples. The error on others is measured after each pass of a branch, on values that were copied out; it takes no time.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use megagrid_geeps::apps::network::{self, Optimizer, Settings};
use megagrid_geeps::apps::{Application, Measured, Network, Place, Samples};
use megagrid_geeps::device::Cpu;
use megagrid_geeps::memory::Plan;
use megagrid_geeps::run::{Run, State, record, train};
use megagrid_geeps::{Consistency, Error, Session, Tables, VirtualIteration};
use megagrid_tuner::{Branch, Clock, Noise, ROOT, Setting, Trainer};

/// Samples of a clock: a mini-batch, or several smaller ones.
pub const CLOCK: u64 = 64;

/// What is trained, and on what.
pub struct Task {
    /// Outputs of the hidden layers.
    pub hidden: Vec<usize>,
    /// Samples to train on, and to test on.
    pub parts: [Samples; 2],
}

impl Task {
    /// Returns the clocks of a pass.
    pub fn epoch(&self) -> u64 {
        (self.parts[0].len() as u64).div_ceil(CLOCK)
    }

    /// Makes a network of the samples to train on, or to test on.
    fn network(&self, part: usize, settings: Settings) -> Result<Network, Error> {
        Network::new(self.parts[part].clone(), Settings { hidden: self.hidden.clone(), ..settings })
    }
}

/// A run and its branches.
pub struct Networks<'t> {
    task: &'t Task,
    seed: u64,
    branches: BTreeMap<u64, Held>,
    /// Samples that all branches have trained on.
    samples: f64,
    /// These at each test, and the part of others that was right then.
    pub tested: Vec<(f64, f64)>,
}

/// A branch.
struct Held {
    network: Network,
    batch: u64,
    /// Where it is; `None`: at the beginning.
    state: Option<State>,
    clocks: u64,
}

impl<'t> Networks<'t> {
    /// Begins a run with first values by a seed.
    pub fn new(task: &'t Task, seed: u64) -> Result<Self, Error> {
        let root = Held { network: task.network(0, of(&Setting::default(), seed))?, batch: 1, state: None, clocks: 0 };
        Ok(Self { task, seed, branches: BTreeMap::from([(ROOT.0, root)]), samples: 0.0, tested: Vec::new() })
    }

    fn held(&mut self, branch: Branch) -> Result<&mut Held, Error> {
        let problem = format!("branch {} is not there", branch.0);
        self.branches.get_mut(&branch.0).ok_or(Error::State { problem })
    }

    /// Returns the part of the samples to test on that are not right.
    fn test(&mut self, branch: Branch) -> Result<f64, Error> {
        let tested = self.task.network(1, of(&Setting::default(), self.seed))?;
        let held = self.held(branch)?;
        let right = match &held.state {
            Some(state) => tested.measure(&state.values),
            None => tested.measure(&held.network.first_values()?),
        };
        let right = right.metrics.get("accuracy").copied().unwrap_or(0.0);
        self.tested.push((self.samples, right));
        Ok(1.0 - right)
    }
}

/// Returns the settings of a network; what a setting does not say is one that no gradient follows.
fn of(setting: &Setting, seed: u64) -> Settings {
    let number = |name, default| setting.number(name).unwrap_or(default);
    let momentum = number("momentum", 0.0) as f32;
    Settings {
        hidden: Vec::new(),
        workers: 1,
        batch: number("batch", 1.0) as usize,
        step: number("step", 1.0) as f32,
        optimizer: Optimizer::Momentum { momentum },
        seed,
    }
}

impl Trainer for Networks<'_> {
    type Error = Error;

    fn noise(&self) -> Noise {
        Noise::Sampled
    }

    fn epoch(&self) -> u64 {
        self.task.epoch()
    }

    fn fork(&mut self, parent: Branch, child: Branch, setting: &Setting) -> Result<(), Error> {
        let settings = of(setting, self.seed);
        let batch = settings.batch as u64;
        let network = self.task.network(0, settings)?;
        let parent = self.held(parent)?;
        let held = Held { network, batch, state: parent.state.clone(), clocks: parent.clocks };
        self.branches.insert(child.0, held);
        Ok(())
    }

    fn schedule(&mut self, branch: Branch) -> Result<Clock, Error> {
        let epoch = self.epoch();
        let held = self.held(branch)?;
        let count = CLOCK / held.batch;
        let part = Part { network: &held.network, first: held.clocks * CLOCK, count };
        let (loss, state) = part.train(held.state.clone())?;
        held.state = state.or(held.state.take());
        held.clocks += 1;
        let is_tested = loss.is_finite() && held.clocks % epoch == 0;
        let time = (count * held.batch) as f64;
        self.samples += time;
        let tested = if is_tested { Some(self.test(branch)?) } else { None };
        Ok(Clock { time, loss, tested, finished: false })
    }

    fn report(&mut self, branch: Branch) -> Result<f64, Error> {
        let held = self.held(branch)?;
        let values = match &held.state {
            Some(state) => state.values.clone(),
            None => held.network.first_values()?,
        };
        Ok(held.network.measure(&values).objective)
    }

    fn free(&mut self, branch: Branch) -> Result<(), Error> {
        self.branches.remove(&branch.0);
        Ok(())
    }
}

/// Some mini-batches of a network, each drawn from all samples by its number.
struct Part<'n> {
    network: &'n Network,
    /// The number of the first one.
    first: u64,
    count: u64,
}

impl Part<'_> {
    /// Trains from a state; returns the mean loss of the samples, each before the step that it caused, and the state then. A loss that is
    /// no finite number has none.
    fn train(&self, from: Option<State>) -> Result<(f64, Option<State>), Error> {
        let budget = Plan::full_budget(&record(self, 0)?.0);
        let run = Run { workers: 1, epochs: 1, consistency: Consistency::Bsp, budget, prefetch: true };
        let from = from.map(|state| State { epochs: 0, ..state });
        let mut after = Ok((f64::NAN, None));
        let ran = train(self, &run, |_| Ok(Arc::new(Cpu::new())), from, &mut |epoch, take| {
            after = take().map(|state| (epoch.loss, Some(state)));
            ControlFlow::Continue(())
        });
        match ran {
            Err(Error::Diverged { .. }) => Ok((f64::NAN, None)),
            ran => ran.and(after),
        }
    }
}

impl Application for Part<'_> {
    type Worker = network::Worker;

    fn tables(&self) -> Tables {
        self.network.tables()
    }

    fn first_values(&self) -> Result<Vec<Vec<f32>>, Error> {
        self.network.first_values()
    }

    fn iterations(&self) -> u64 {
        self.count
    }

    fn declare(&self, worker: usize, session: &mut VirtualIteration) -> Result<Self::Worker, Error> {
        self.network.declare(worker, session)
    }

    /// A mini-batch is the first one of an epoch of its own.
    fn iterate(&self, worker: &mut Self::Worker, place: Place, session: &mut impl Session) -> Result<f64, Error> {
        self.network.iterate(worker, Place { epoch: self.first + place.iteration, iteration: 0 }, session)
    }

    fn samples(&self, worker: usize) -> u64 {
        self.network.samples(worker)
    }

    fn measure(&self, _: &[Vec<f32>]) -> Measured {
        Measured::default()
    }
}

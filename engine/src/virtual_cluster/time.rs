//! Virtual time, and what passes of it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use megagrid_partition::parallel::lock;

use super::calibration::{Samples, StageCost};
use super::model::{Costs, Model, jitter};
use crate::Error;
use crate::plan::Plan;
use crate::run::Time;

/// The time of whichever worker is at work. Whole nanoseconds, so that sums do not depend on their order.
#[derive(Debug)]
pub struct VirtualTime {
    epoch: Instant,
    nanos: Cell<u64>,
}

/// Turns seconds into whole nanoseconds.
pub fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl VirtualTime {
    pub fn new() -> Self {
        Self { epoch: Instant::now(), nanos: Cell::new(0) }
    }

    /// Returns nanoseconds since the run began.
    pub fn nanos(&self) -> u64 {
        self.nanos.get()
    }

    /// Goes to another worker's time.
    pub fn set(&self, nanos: u64) {
        self.nanos.set(nanos);
    }

    /// Lets time pass.
    pub fn pass(&self, nanos: u64) {
        self.nanos.set(self.nanos.get() + nanos);
    }

    /// Returns the time as a moment, of which only differences mean something.
    pub fn instant(&self) -> Instant {
        self.epoch + Duration::from_nanos(self.nanos.get())
    }
}

/// What a worker's tasks take.
pub struct Charges {
    model: Arc<Model>,
    /// What tasks took, where costs are measured.
    samples: Arc<Mutex<Samples>>,
    worker: usize,
    /// By stage; `None`: as long as they really take.
    costs: Option<Vec<StageCost>>,
    names: Vec<String>,
    clock_seconds: f64,
    /// What everything in the current clock is multiplied with.
    factor: f64,
    rest_of_clock: u64,
}

impl Charges {
    /// Finds what the stages of a plan cost.
    ///
    /// # Errors
    /// A stage that the calibration does not know.
    pub fn new(model: Arc<Model>, samples: Arc<Mutex<Samples>>, worker: usize, plan: &Plan) -> Result<Self, Error> {
        let names: Vec<String> = plan.stages.iter().map(|stage| stage.name.clone()).collect();
        let (costs, clock_seconds) = match &model.costs {
            Costs::Measured => (None, 0.0),
            Costs::Clock(seconds) => (Some(vec![StageCost::default(); names.len()]), *seconds),
            Costs::Calibrated(calibration) => {
                let of = |name: &String| {
                    let missing = || Error::Calibration(name.clone());
                    calibration.stages.get(name).copied().ok_or_else(missing)
                };
                (Some(names.iter().map(of).collect::<Result<_, _>>()?), 0.0)
            }
        };
        Ok(Self { model, samples, worker, costs, names, clock_seconds, factor: 1.0, rest_of_clock: 0 })
    }

    fn begin_clock(&mut self, clock: u64) {
        self.factor = jitter(&self.model, self.worker, clock);
        self.rest_of_clock = nanos(self.clock_seconds * self.factor);
    }

    /// Returns what a task takes that ran on `units` edges or rows, and really began at `begin` and ends now.
    fn task(&self, stage: usize, units: u64, begin: Instant) -> u64 {
        let seconds = match &self.costs {
            Some(costs) => costs[stage].seconds(units),
            None => {
                let seconds = begin.elapsed().as_secs_f64();
                lock(&self.samples).add(&self.names[stage], units, seconds);
                seconds
            }
        };
        nanos(seconds * self.factor)
    }
}

/// A worker's time: that of the cluster, and what its tasks take of it.
pub struct ModelledTime {
    time: Rc<VirtualTime>,
    charges: Charges,
    /// When the task at hand really began.
    began: Instant,
}

impl ModelledTime {
    pub fn new(time: &Rc<VirtualTime>, charges: Charges) -> Self {
        Self { time: Rc::clone(time), charges, began: Instant::now() }
    }
}

impl Time for ModelledTime {
    fn now(&self) -> Instant {
        self.time.instant()
    }

    fn begin_clock(&mut self, clock: u64) {
        self.charges.begin_clock(clock);
    }

    fn rest_of_clock(&mut self) -> Duration {
        Duration::from_nanos(std::mem::take(&mut self.charges.rest_of_clock))
    }

    fn begin_task(&mut self) {
        self.began = Instant::now();
    }

    fn end_task(&mut self, stage: usize, units: u64) {
        self.time.pass(self.charges.task(stage, units, self.began));
    }
}

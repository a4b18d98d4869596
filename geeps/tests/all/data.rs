//! Small data with something to learn, and runs on them.

use std::ops::ControlFlow;
use std::sync::Arc;

use megagrid_geeps::apps::factorization::{self, Factorization, Ratings};
use megagrid_geeps::apps::network::{self, Network, Optimizer};
use megagrid_geeps::apps::{Application, Samples};
use megagrid_geeps::device::{Cpu, Device};
use megagrid_geeps::run::{Epoch, Finish, Run, train};
use megagrid_geeps::{Consistency, Error};
use megagrid_partition::SplitMix;

/// Features and classes of [`samples`].
pub const FEATURES: usize = 9;
pub const CLASSES: usize = 4;

/// Samples around a point for each class, a third of whose values are left out.
pub fn samples(count: usize) -> Samples {
    let mut random = SplitMix::new(3, 0);
    let (mut offsets, mut features, mut values, mut classes) = (vec![0], vec![], vec![], vec![]);
    for sample in 0..count {
        let class = sample % CLASSES;
        for feature in 0..FEATURES {
            if random.below(3) > 0 {
                let centre = SplitMix::new(8, (class * FEATURES + feature) as u64).unit() * 2.0 - 1.0;
                features.push(feature as u32);
                values.push((centre + 0.6 * (random.unit() - 0.5)) as f32);
            }
        }
        offsets.push(features.len());
        classes.push(class as u32);
    }
    Samples::new([FEATURES, CLASSES], offsets, features, values, classes).expect("they fit")
}

/// A network of two hidden layers for a hundred samples.
pub fn network(workers: usize, optimizer: Optimizer) -> Network {
    network_of(&[20, 12], workers, optimizer)
}

/// The same with other hidden layers; without any it is logistic regression.
pub fn network_of(hidden: &[usize], workers: usize, optimizer: Optimizer) -> Network {
    let (hidden, batch) = (hidden.to_vec(), 24 / workers);
    let settings = network::Settings { hidden, workers, batch, step: 0.3, optimizer, seed: 5 };
    Network::new(samples(100), settings).expect("settings are in range")
}

/// Ratings that follow from factors of two values.
pub fn ratings() -> Ratings {
    let value = |vertex: u64, at: u64| SplitMix::new(4, 2 * vertex + at).unit() as f32 * 2.0 - 1.0;
    let mut random = SplitMix::new(6, 0);
    let mut all = Vec::new();
    for user in 0..30_u32 {
        for item in 0..20_u32 {
            if random.below(2) == 0 {
                let dot: f32 = (0..2).map(|at| value(u64::from(user), at) * value(1000 + u64::from(item), at)).sum();
                all.push((user, item, 3.0 + dot));
            }
        }
    }
    Ratings { num_users: 30, num_items: 20, all }
}

/// A factorization of [`ratings`].
pub fn factorization(workers: usize) -> Factorization {
    let settings = factorization::Settings { dims: 5, workers, batch: 32, step: 0.05, lambda: 0.01, seed: 2 };
    Factorization::new(ratings(), settings).expect("settings are in range")
}

/// Some epochs of bulk synchronous training with as much memory as is useful.
pub const RUN: Run = Run { workers: 1, epochs: 3, consistency: Consistency::Bsp, budget: 1 << 24, prefetch: true };

/// How the device of a worker is made.
pub type Make = fn(usize) -> Result<Arc<dyn Device>, Error>;

/// Makes the reference device.
pub fn on_cpu(_: usize) -> Result<Arc<dyn Device>, Error> {
    Ok(Arc::new(Cpu::new()))
}

/// Trains on the reference device.
pub fn try_train(application: &impl Application, run: Run) -> Result<(Finish, Vec<Epoch>), Error> {
    try_train_on(application, run, on_cpu)
}

/// Trains on the devices that workers are given.
pub fn try_train_on(
    application: &impl Application,
    run: Run,
    device: impl Fn(usize) -> Result<Arc<dyn Device>, Error>,
) -> Result<(Finish, Vec<Epoch>), Error> {
    let mut epochs = Vec::new();
    let finish = train(application, &run, device, None, &mut |epoch, _| {
        epochs.push(epoch.clone());
        ControlFlow::Continue(())
    })?;
    Ok((finish, epochs))
}

/// Trains on the reference device, where nothing can go wrong.
#[track_caller]
pub fn trained(application: &impl Application, run: Run) -> (Finish, Vec<Epoch>) {
    try_train(application, run).unwrap_or_else(|error| panic!("{run:?}: {error}"))
}

/// The bits of all parameters.
pub fn bits(finish: &Finish) -> Vec<u32> {
    finish.values.iter().flatten().map(|value| value.to_bits()).collect()
}

//! Few features: Newton's method.

use std::sync::OnceLock;

use megagrid_algorithms::blockpg::Config;
use megagrid_algorithms::newton::{Label, Newton, State, Trial, sequence};
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Left, Right, Sequence, Stages};

use super::data::Samples;
use super::options::LinearOptions;
use super::solver::{Begin, Progress, Solver};
use crate::Error;
use crate::error::reading;

/// A worker is worth its while where it has this many values.
const WORTH_A_WORKER: usize = 1 << 14;
/// There is a product for each two values of a sample: at most this many times as many as there are values.
const MOST_PRODUCTS: usize = 64;
/// The minimum of a model takes the cube of its features: at most this many times as many as there are products.
const MOST_CUBES: usize = 8;
/// Whose matrix takes 32 MiB.
const MOST_FEATURES: usize = 2048;

/// Tells whether features are few enough for Newton's method.
pub(super) fn suits(samples: &Samples) -> Result<bool, Error> {
    let (values, features) = (samples.values.num_edges(), samples.values.num_vertices(Side::Right));
    // Without labels nothing is to be trained.
    if features > MOST_FEATURES || samples.labels.of.is_empty() {
        return Ok(false);
    }
    let mut of_sample = vec![0_usize; samples.labels.of.len()];
    each(samples, |_, sample, _| of_sample[sample] += 1)?;
    let products: usize = of_sample.iter().map(|values| values * (values + 1) / 2).sum();
    Ok(products <= MOST_PRODUCTS * values && features.pow(3) <= MOST_CUBES * products)
}

/// Tells whether few features are so much alike that descent on a model of the first iteration, made of some samples, is slow.
pub(super) fn descent_is_slow(samples: &Samples, config: &Config) -> Result<bool, Error> {
    let labels = samples.signs(0);
    let curvatures = curvatures(samples)?;
    let mut leverages = vec![0.0; labels.len()];
    each(samples, |feature, sample, x| {
        if curvatures[feature] > 0.0 {
            leverages[sample] += 0.25 * weight(samples, sample) * x * x / curvatures[feature];
        }
    })?;
    let mut trial = Trial::new(&curvatures, &leverages);
    let mut chosen = Vec::new();
    each(samples, |feature, sample, x| {
        trial.slope(feature, -0.5 * f64::from(labels[sample]) * weight(samples, sample) * x);
        if trial.is_chosen(sample) {
            chosen.push((sample, (feature as u32, x)));
        }
    })?;
    chosen.sort_by_key(|&(sample, _)| sample);
    for values in chosen.chunk_by(|one, next| one.0 == next.0) {
        let (sample, row) = (values[0].0, values.iter().map(|&(_, value)| value).collect::<Vec<_>>());
        trial.meet(sample, 0.25 * weight(samples, sample), &row);
    }
    Ok(trial.is_slow(config, samples.intercept))
}

/// Returns the curvature of the loss by each weight, where all are 0.
fn curvatures(samples: &Samples) -> Result<Vec<f64>, Error> {
    let mut curvatures = vec![0.0; samples.values.num_vertices(Side::Right)];
    each(samples, |feature, sample, x| curvatures[feature] += 0.25 * weight(samples, sample) * x * x)?;
    Ok(curvatures)
}

fn weight(samples: &Samples, sample: usize) -> f64 {
    samples.weight(sample).into()
}

/// Visits all values: feature, sample, value.
fn each(samples: &Samples, mut visit: impl FnMut(usize, usize, f64)) -> Result<(), Error> {
    for feature in 0..samples.values.num_vertices(Side::Right) {
        let row = &mut |ends: &[u32], values: &[f32]| {
            ends.iter().zip(values).for_each(|(&sample, &x)| visit(feature, sample as usize, x.into()));
        };
        samples.values.visit_rows(Side::Right, feature..feature + 1, row).map_err(reading)?;
    }
    Ok(())
}

/// Newton's method.
pub(super) struct NewtonSolver {
    values: usize,
    features: usize,
    /// Of the loss by each weight, once they are asked for: classes begin often.
    curvatures: OnceLock<Vec<f64>>,
}

impl Solver for NewtonSolver {
    type Program = Newton;
    const TURN: u64 = 3;

    fn new(samples: &Samples, _: &LinearOptions, _: &Settings) -> Result<Self, Error> {
        let (values, features) = (samples.values.num_edges(), samples.values.num_vertices(Side::Right));
        Ok(Self { values, features, curvatures: OnceLock::new() })
    }

    fn workers(&self, asked: usize) -> usize {
        asked.min((self.values / WORTH_A_WORKER).max(1))
    }

    fn dims(&self) -> usize {
        self.features.max(1)
    }

    fn sequence(&self) -> Sequence<Newton, impl Stages<Newton>> {
        sequence()
    }

    fn init(&self, samples: &Samples, begin: Begin<'_>, engine: &mut Engine<Newton>) -> Result<(), Error> {
        let Begin { config, labels, weights, .. } = begin;
        let curvatures = match self.curvatures.get() {
            Some(curvatures) => curvatures,
            None => {
                let curvatures = curvatures(samples)?;
                self.curvatures.get_or_init(|| curvatures)
            }
        };
        let mut state = State::new(config, samples.intercept, weights.to_vec(), curvatures);
        state.begun = engine.iterations();
        engine.set_global(state);
        engine.init(Left, |sample, first| {
            let (sign, weight) = (labels[sample].into(), samples.weight(sample).into());
            *first.sync = Label { sign, weight, offset: begin.offset(sample) };
        });
        engine.init(Right, |feature, first| *first.sync = feature as u32);
        Ok(())
    }

    fn turn_to(config: &Config, engine: &mut Engine<Newton>) {
        let (begun, state) = (engine.iterations(), engine.global().turn_to(config, engine.iterations()));
        engine.resume(begun, state);
    }

    fn progress(engine: &Engine<Newton>) -> Progress {
        let State { begun, l1, optimality, .. } = *engine.global();
        Progress { begun, l1, optimality, is_of_all: true }
    }

    fn weights(engine: &Engine<Newton>) -> Vec<f64> {
        engine.global().weights.clone()
    }

    fn loss(engine: &Engine<Newton>) -> f64 {
        engine.global().loss
    }
}

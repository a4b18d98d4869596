//! Training, one l1 after the other.

use std::sync::Arc;

use megagrid_algorithms::blockpg::{
    self, BlockPg, Certificate, Config, Fit, Margin, Quality, Region, State, log_loss, margins,
};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Left, Right, Sequence, Stages};

use super::data::Samples;
use super::model::Linear;
use super::options::LinearOptions;
use crate::algorithm::{Algorithm, Knob, Leg, MakeForm, Measured, Trainer};
use crate::error::reading;
use crate::form::form;
use crate::record::Metrics;
use crate::{Error, model};

/// Sparse logistic regression.
#[derive(Clone, Copy, Debug)]
pub struct Regression;

impl Algorithm for Regression {
    const NAME: &'static str = "blockpg";
    const ADVICE: &'static str = "scale the values, with --normalize say";
    const TESTED_BY: Option<&'static str> = Some("test_log_loss");
    /// l1 says how closely a model is fitted, and a certificate that it is: nothing is stopped early unless that is asked for.
    const PATIENCE: u64 = 0;
    const KNOBS: &'static [Knob] = &[
        Knob { name: "blocks", is_layout: true, is_timed: true },
        Knob { name: "delay", is_layout: false, is_timed: true },
        Knob { name: "workers", is_layout: true, is_timed: true },
    ];
    type Data = Samples;
    type Options = LinearOptions;
    type Model = Linear;

    #[inline(never)]
    fn form(_: &LinearOptions) -> MakeForm<Self> {
        form::<Fitter>
    }

    /// Blocks around their default.
    fn tuned(samples: &Samples, options: &LinearOptions) -> Vec<String> {
        let features = samples.signed.num_vertices(Side::Right);
        let blocks = options.num_blocks(samples.signed.num_edges(), features);
        vec![format!("blocks={},{blocks},{}", (blocks / 2).max(1), 2 * blocks), "delay=0,1,2".to_owned()]
    }

    fn check_tuned(options: &LinearOptions) -> Result<(), Error> {
        if options.l1.len() == 1 {
            return Ok(());
        }
        Err(Error::option(
            "tune takes one --l1; find the settings first, and train the path with the command that it prints",
        ))
    }
}

/// A worker of a descent is worth its while where it has this many values, and samples have many each: what workers tell each other
/// is one number a sample (measured: 80 values a sample gain; with 10 to 16 some data lose).
const WORTH_A_WORKER: usize = 1 << 16;
const WORTH_WORKERS: usize = 32;

/// Fits weights.
pub struct Fitter {
    /// Parameters, the largest l1 first.
    path: Vec<Config>,
    /// First weights, by feature.
    start: Vec<f64>,
    /// Values and number of blocks.
    block_values: u64,
    blocks: u64,
    /// Whether features descend one after the other; else they step by blocks.
    descends: bool,
    /// More workers would take longer.
    most_workers: usize,
    values: u64,
    delay: Option<u64>,
    /// The loss of weights 0.
    at_zero: f64,
    /// Relative duality gap that ends a leg.
    tolerance: f64,
    /// What is known of the models of the legs that have ended.
    ended: Vec<(f64, Certificate)>,
    /// What is known of the model after an iteration.
    certified: Option<(u64, Certificate)>,
}

impl Trainer for Fitter {
    type Algorithm = Regression;
    type Program = BlockPg;

    fn new(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Result<Self, Error> {
        let (values, features) = (samples.signed.num_edges(), samples.signed.num_vertices(Side::Right));
        let number = samples.signed.num_vertices(Side::Left);
        let descends = options.descends(number, settings);
        let is_worth = values >= WORTH_WORKERS * number;
        let most_workers = match descends {
            true if is_worth => (values / WORTH_A_WORKER).max(1),
            true => 1,
            false => usize::MAX,
        };
        let start = match &options.warm_start {
            Some(directory) => all_weights(&model::load::<Linear>(directory)?.0, samples),
            None => vec![0.0; features],
        };
        Ok(Self {
            path: options.path(),
            start,
            block_values: options.block_values(values, features),
            descends,
            most_workers,
            values: (values as u64).max(1),
            blocks: options.num_blocks(values, features),
            delay: settings.slack,
            at_zero: samples.total_weight() * std::f64::consts::LN_2,
            tolerance: options.tolerance,
            ended: Vec::new(),
            certified: None,
        })
    }

    fn resolved(&self, _: &Samples, options: &LinearOptions) -> LinearOptions {
        if self.descends {
            return LinearOptions { delay: self.delay, ..options.clone() };
        }
        let blocks = if options.batch.is_some() { options.blocks } else { Some(self.blocks) };
        LinearOptions { batch: Some(self.block_values), blocks, delay: self.delay, ..options.clone() }
    }

    fn workers(&self, asked: usize) -> usize {
        asked.min(self.most_workers)
    }

    fn source<'d>(&'d self, samples: &'d Samples) -> Source<'d, f32, BlockPg> {
        (&samples.signed).into()
    }

    fn sequence(&self) -> Sequence<BlockPg, impl Stages<BlockPg>> {
        blockpg::sequence(self.block_values).or(blockpg::descent(self.values), self.descends)
    }

    fn init(&self, samples: &Samples, engine: &mut Engine<BlockPg>) -> Result<(), Error> {
        let state = self.path[0].state();
        engine.set_global(if self.descends { state.with_descent(engine.plan().workers) } else { state });
        let (reaches, margins) =
            (samples.reaches(self.descends)?, margins(&samples.signed, &self.start).map_err(reading)?);
        engine.init(Left, |sample, first| {
            let weight = samples.sample_weights.get(sample).copied().unwrap_or(1.0);
            *first.master = Margin::new(margins[sample], weight);
            *first.sync = first.master.parabola();
        });
        engine.init(Right, |feature, first| {
            *first.master = Region::new(reaches[feature]);
            *first.sync = first.master.weight(self.start[feature], samples.intercept == Some(feature));
        });
        Ok(())
    }

    fn running(&self, _: &Samples, engine: &Engine<BlockPg>) -> Metrics {
        Metrics::from([("kkt_violation".into(), engine.global().last.violation)])
    }

    /// Only then can there be a certificate: no optimum is above the objective of weights 0.
    fn is_due(&self, _: &Samples, engine: &Engine<BlockPg>) -> bool {
        let state = engine.global();
        state.is_near(self.tolerance, self.at_zero, state.last.sizes)
    }

    /// Measures the objective; once the run seems to have converged, also makes the certificate.
    fn measure(&mut self, samples: &Samples, engine: &mut Engine<BlockPg>) -> Result<Option<Measured>, Error> {
        engine.collect()?;
        self.certified = None;
        if engine.plan().processes.this > 0 {
            return Ok(None);
        }
        let (config, weights, left) = (*self.config(engine), weights(engine), engine.on(Left));
        let of = |sample: usize| {
            let kept = left.master(sample);
            kept.weight * log_loss(kept.margin)
        };
        let loss: f64 = (0..left.len()).map(of).sum();
        drop(left);
        let penalized = &weights[..samples.features.len()];
        let objective = loss + config.penalty(penalized.iter().copied());
        let state = engine.global();
        let nonzeros = penalized.iter().filter(|w| **w != 0.0).count();
        let metrics = Metrics::from([("loss".into(), loss), ("nonzeros".into(), nonzeros as f64)]);
        let sizes: f64 = penalized.iter().map(|w| w.abs()).sum();
        if state.is_near(self.tolerance, objective, sizes) {
            let certificate = Certificate::new(&fit(samples, &weights), &config).ok();
            let certificate = certificate.filter(|certificate| certificate.is_within(self.tolerance, &config));
            self.certified = certificate.map(|certificate| (engine.iterations(), certificate));
        }
        #[cfg(debug_assertions)]
        check_margins(samples, engine, &weights);
        Ok(Some(Measured { objective, metrics, converged: Some(self.certified.is_some()) }))
    }

    fn test(&mut self, samples: &Samples, engine: &mut Engine<BlockPg>) -> Result<Metrics, Error> {
        let Some(test) = &samples.test else { return Ok(Metrics::new()) };
        engine.collect()?;
        let weights = weights(engine);
        let penalized = &weights[..samples.features.len()];
        let intercept = weights.get(penalized.len()).copied().unwrap_or(0.0);
        let Quality { auc, log_loss, accuracy } = Quality::new(&test.scores(penalized, intercept), &test.labels);
        let mut metrics = Metrics::from([("test_log_loss".into(), log_loss), ("test_accuracy".into(), accuracy)]);
        // A test of one class only has none, and a record takes numbers only.
        metrics.extend(auc.is_finite().then_some(("test_auc".into(), auc)));
        Ok(metrics)
    }

    fn leg(&self, options: &LinearOptions, engine: &Engine<BlockPg>) -> Leg {
        let until = engine.global().begun + options.iterations;
        Leg { until, is_last: self.at(engine) + 1 == self.path.len() }
    }

    fn next(&mut self, samples: &Samples, engine: &mut Engine<BlockPg>) -> Result<(), Error> {
        let (at, config) = (self.at(engine), *self.config(engine));
        engine.collect()?;
        if engine.plan().processes.this == 0 {
            let certificate = match self.certified.take() {
                Some((_, certificate)) => certificate,
                None => Certificate::new(&fit(samples, &weights(engine)), &config).map_err(reading)?,
            };
            self.ended.push((config.l1, certificate));
        }
        let (begun, State { damping, descending, apart, .. }) = (engine.iterations(), *engine.global());
        engine.resume(begun, State { begun, damping, descending, apart, ..self.path[at + 1].state() });
        Ok(())
    }

    fn most_iterations(&self, options: &LinearOptions, done: u64) -> u64 {
        done + options.iterations * self.path.len() as u64
    }

    fn model(&self, samples: &Samples, engine: &Engine<BlockPg>) -> Result<Linear, Error> {
        let mut weights = weights(engine);
        let intercept = samples.intercept.and_then(|_| weights.pop()).unwrap_or(0.0);
        let certificate = self.certified.filter(|(of, _)| *of == engine.iterations());
        let certificate = certificate.map(|(_, certificate)| certificate);
        let (normalize, positive) = (samples.normalize, samples.positive.clone());
        let features = Arc::clone(&samples.features);
        Ok(Linear { normalize, positive, ..Linear::new(features, weights, intercept, certificate) })
    }

    fn finish(&self, samples: &Samples, model: &mut Linear) -> Result<(), Error> {
        let Some(config) = self.path.last() else { return Ok(()) };
        let weights = all_weights(model, samples);
        let certificate = match model.certificate {
            Some(certificate) => certificate,
            None => Certificate::new(&fit(samples, &weights), config).map_err(reading)?,
        };
        // One that was read has only the weights that are not zero.
        model.weights = weights[..samples.features.len()].to_vec();
        model.features = Arc::clone(&samples.features);
        model.certificate = Some(certificate);
        model.has_converged = self.tolerance == 0.0 || certificate.is_within(self.tolerance, config);
        model.path = self.ended.clone();
        model.path.push((config.l1, certificate));
        Ok(())
    }
}

impl Fitter {
    /// Returns where on the path an engine is.
    fn at(&self, engine: &Engine<BlockPg>) -> usize {
        self.path.iter().position(|config| config.l1 == engine.global().l1).unwrap_or(0)
    }

    fn config(&self, engine: &Engine<BlockPg>) -> &Config {
        &self.path[self.at(engine)]
    }
}

/// Returns the weights of a model by the features of samples, the intercept last if there is one.
fn all_weights(model: &Linear, samples: &Samples) -> Vec<f64> {
    let mut weights = vec![0.0; samples.signed.num_vertices(Side::Right)];
    if Arc::ptr_eq(&model.features, &samples.features) {
        weights[..model.weights.len()].copy_from_slice(&model.weights);
    } else {
        let places = model.features.translate(&samples.features).into_iter().zip(&model.weights);
        places.for_each(|(place, weight)| place.into_iter().for_each(|at| weights[at as usize] = *weight));
    }
    samples.intercept.into_iter().for_each(|feature| weights[feature] = model.intercept);
    weights
}

fn fit<'d>(samples: &'d Samples, weights: &'d [f64]) -> Fit<'d> {
    let Samples { signed, labels, sample_weights, intercept, .. } = samples;
    Fit { signed, labels, sample_weights, intercept: *intercept, weights }
}

fn weights(engine: &Engine<BlockPg>) -> Vec<f64> {
    let features = engine.on(Right);
    (0..features.len()).map(|feature| features.sync(feature).value).collect()
}

/// Compares the margins kept with those of the weights.
#[cfg(debug_assertions)]
fn check_margins(samples: &Samples, engine: &Engine<BlockPg>, weights: &[f64]) {
    let left = engine.on(Left);
    for (sample, margin) in margins(&samples.signed, weights).unwrap_or_default().into_iter().enumerate() {
        let kept = left.master(sample).margin;
        assert!(
            (kept - margin).abs() <= 1e-6 * (1.0 + margin.abs()),
            "margin of {sample}: kept {kept}, exactly {margin}"
        );
    }
}

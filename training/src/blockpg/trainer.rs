//! Training, one l1 after the other, and where there are more than two classes one class after the other, each against the rest, unless they are
//! fitted [together](super::turns::Turns).

use std::marker::PhantomData;
use std::sync::Arc;

use bincode::Options;
use megagrid_algorithms::blockpg::{Certificate, Config, Fit, log_chances, mean_loss};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Sequence, Stages};
use serde::{Deserialize, Serialize};

use super::data::Samples;
use super::fits::Fits;
use super::model::{self, Linear, by_sample, quality};
use super::options::LinearOptions;
use super::path::{CLASS_TESTED_BY, OfPenalty};
use super::solver::{Begin, Solver};
use super::unseen::Unseen;
use super::weights::{all_weights, model_of};
use crate::Error;
use crate::algorithm::Algorithm;
use crate::error::reading;
use crate::leg::Leg;
use crate::measured::Measured;
use crate::record::Metrics;
use crate::trainer::Trainer;

/// Fits weights, for the algorithm that this is a form of.
pub(super) struct Fitter<A, S> {
    of: PhantomData<A>,
    solver: S,
    /// Parameters, the largest l1 first.
    path: Vec<Config>,
    /// First weights of each model, by feature.
    start: Vec<Vec<f64>>,
    /// What the model that is being fitted has for labels.
    labels: Vec<f32>,
    /// Models that are fitted.
    fitted: Vec<Fitted>,
    /// Their scores of the samples to test on, as far as those were asked for.
    tested: Vec<Vec<f64>>,
    /// The loss of weights 0.
    at_zero: f64,
    /// Relative duality gap that ends a leg.
    tolerance: f64,
    /// The models of the legs that have ended.
    ended: Fits,
    /// Where on the path the leg is that is on, and its iterations.
    penalty: usize,
    iterations: u64,
    /// What is known of the model after an iteration.
    certified: Option<(u64, Certificate)>,
}

/// A model that is fitted, in the first process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Fitted {
    /// By feature, the intercept last if there is one.
    weights: Vec<f64>,
    certificate: Certificate,
}

impl<A, S: Solver> Trainer for Fitter<A, S>
where
    A: Algorithm<Data = Samples, Options = LinearOptions, Model = Linear>,
{
    type Algorithm = A;
    type Program = S::Program;
    type Edge = f32;

    fn new(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            of: PhantomData,
            solver: S::new(samples, options, settings)?,
            path: options.path(),
            start: samples.first_weights(),
            labels: samples.signs(0),
            fitted: Vec::new(),
            tested: Vec::new(),
            at_zero: samples.total_weight() * std::f64::consts::LN_2,
            tolerance: options.tolerance,
            ended: Fits::of(options.path().len()),
            penalty: 0,
            iterations: 0,
            certified: None,
        })
    }

    fn resolved(&self, _: &Samples, options: &LinearOptions) -> LinearOptions {
        self.solver.resolved(options)
    }

    fn workers(&self, asked: usize) -> usize {
        self.solver.workers(asked)
    }

    fn dims(&self) -> usize {
        self.solver.dims()
    }

    fn source<'d>(&'d self, samples: &'d Samples) -> Source<'d, f32, S::Program> {
        (&samples.values).into()
    }

    fn sequence(&self) -> Sequence<S::Program, impl Stages<S::Program>> {
        self.solver.sequence()
    }

    fn init(&self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<(), Error> {
        self.begin(samples, engine)
    }

    fn after_iteration(&mut self, _: &Samples, engine: &mut Engine<S::Program>) -> Result<(), Error> {
        self.see(engine);
        Ok(())
    }

    fn running(&self, _: &Samples, engine: &Engine<S::Program>) -> Metrics {
        Metrics::from([("kkt_violation".into(), S::progress(engine).optimality.violation)])
    }

    /// Only then can there be a certificate: no optimum is above the objective of weights 0.
    fn is_due(&self, _: &Samples, engine: &Engine<S::Program>) -> bool {
        let at = S::progress(engine);
        at.is_of_all && at.optimality.is_near(self.tolerance, self.at_zero, at.optimality.sizes)
    }

    /// Measures the objective; once the run seems to have converged, also makes the certificate.
    fn measure(&mut self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<Option<Measured>, Error> {
        engine.collect()?;
        self.certified = None;
        self.see(engine);
        if engine.plan().processes.this > 0 {
            return Ok(None);
        }
        let (config, weights) = (*self.config(engine), S::weights(engine));
        let loss = match S::loss(engine) {
            // Before samples have met the first weights.
            f64::INFINITY => Certificate::new(&self.fit(samples, &weights), &config).map_err(reading)?.loss,
            loss => loss,
        };
        let penalized = &weights[..samples.features.len()];
        let objective = loss + config.penalty(penalized.iter().copied());
        let nonzeros = penalized.iter().filter(|w| **w != 0.0).count();
        let sizes: f64 = penalized.iter().map(|w| w.abs()).sum();
        let at = S::progress(engine);
        if at.is_of_all && at.optimality.is_near(self.tolerance, objective, sizes) {
            let certificate = Certificate::new(&self.fit(samples, &weights), &config).ok();
            let certificate = certificate.filter(|certificate| certificate.is_within(self.tolerance, &config));
            self.certified = certificate.map(|certificate| (engine.iterations(), certificate));
        }
        #[cfg(debug_assertions)]
        S::check(samples, &self.labels, engine, &weights);
        // Models to come have the weights 0.
        let at_zero = self.at_zero * (samples.num_models() - self.fitted.len() - 1) as f64;
        let mut sum =
            Certificate { objective: objective + at_zero, loss: loss + at_zero, nonzeros, ..Certificate::default() };
        self.fitted.iter().for_each(|model| sum.join(&model.certificate));
        let metrics = Metrics::from([("loss".into(), sum.loss), ("nonzeros".into(), sum.nonzeros as f64)]);
        Ok(Some(Measured { objective: sum.objective, metrics, converged: Some(self.certified.is_some()) }))
    }

    fn test(&mut self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<Metrics, Error> {
        let Some(test) = &samples.test else { return Ok(Metrics::new()) };
        engine.collect()?;
        if engine.plan().processes.this > 0 {
            return Ok(Metrics::new());
        }
        for model in &self.fitted[self.tested.len()..] {
            self.tested.push(scores(samples, test, &model.weights)?);
        }
        let now = scores(samples, test, &S::weights(engine))?;
        let mut metrics = Metrics::new();
        if samples.num_models() > 1 {
            let signs = samples.signs_of(self.fitted.len(), &test.labels);
            metrics.insert(CLASS_TESTED_BY.into(), mean_loss(&now, &signs, &test.weights));
        }
        if self.fitted.len() + 1 == samples.num_models() {
            let all = by_sample(self.tested.iter().cloned().chain([now]).collect());
            metrics.extend(model::metrics(quality((&all, samples.labels.classes.len()), test.known(), log_chances)));
        }
        Ok(metrics)
    }

    fn leg(&self, options: &LinearOptions, engine: &Engine<S::Program>) -> Leg {
        let since = S::progress(engine).begun;
        let is_model = self.at(engine) + 1 == self.path.len();
        let is_last = is_model && self.fitted.len() + 1 == self.start.len();
        let tested_by = if self.start.len() == 1 { A::TESTED_BY } else { Some(CLASS_TESTED_BY) };
        Leg {
            since,
            until: since.saturating_add(options.iterations),
            is_last,
            tested_by: tested_by.filter(|_| is_model),
        }
    }

    fn next(&mut self, samples: &Samples, engine: &mut Engine<S::Program>, best: Option<Linear>) -> Result<(), Error> {
        let (at, config) = (self.at(engine), *self.config(engine));
        engine.collect()?;
        let (mut weights, mut certificate) = (S::weights(engine), Certificate::default());
        if engine.plan().processes.this == 0 {
            let certified = self.certified.take().filter(|_| best.is_none());
            if let Some(best) = best {
                weights = all_weights(&best, samples)?.swap_remove(self.fitted.len());
            }
            certificate = match certified {
                Some((_, certificate)) => certificate,
                None => Certificate::new(&self.fit(samples, &weights), &config).map_err(reading)?,
            };
            let iterations = engine.iterations() - S::progress(engine).begun;
            let tested = self.tested_on_path(samples, self.fitted.len(), &weights)?;
            let known = self.known((&config, iterations), certificate, tested);
            self.ended.note(known, [&weights[..]]);
        }
        if let Some(config) = self.path.get(at + 1) {
            S::turn_to(config, engine);
            return Ok(());
        }
        self.fitted.push(Fitted { weights, certificate });
        self.labels = samples.signs(self.fitted.len());
        self.begin(samples, engine)
    }

    /// Which class is being fitted is told by how many are.
    fn notes(&self) -> Result<Vec<u8>, Error> {
        let notes = bincode::options().serialize(&(&self.fitted, &self.ended));
        notes.map_err(|error| Error::Missing(format!("models that are fitted cannot be written: {error}")))
    }

    fn take_notes(&mut self, samples: &Samples, notes: &[u8]) -> Result<(), Error> {
        let unknown = || {
            Error::Missing(
                "what it says of the models that were fitted is of another version or of other samples; start anew"
                    .to_owned(),
            )
        };
        if notes.is_empty() {
            // Checkpoints of before have none, and are of one model.
            return Ok(());
        }
        let (fitted, ended): (Vec<Fitted>, Fits) = bincode::options().deserialize(notes).map_err(|_| unknown())?;
        let features = samples.values.num_vertices(Side::Right);
        if fitted.len() >= samples.num_models() || fitted.iter().any(|model| model.weights.len() != features) {
            return Err(unknown());
        }
        self.labels = samples.signs(fitted.len());
        (self.fitted, self.ended) = (fitted, ended);
        Ok(())
    }

    fn most_iterations(&self, options: &LinearOptions, done: u64) -> u64 {
        let legs = self.path.len() * (self.start.len() - self.fitted.len());
        done.saturating_add(options.iterations.saturating_mul(legs as u64))
    }

    fn model(&self, samples: &Samples, engine: &Engine<S::Program>) -> Result<Linear, Error> {
        let certificate = self.certified.filter(|(of, _)| *of == engine.iterations());
        let certificate = certificate.map(|(_, certificate)| certificate);
        let now = S::weights(engine);
        let fitted = self.fitted.iter().map(|model| &model.weights).chain([&now]);
        let to_come = &self.start[self.fitted.len() + 1..];
        let model = model_of(samples, fitted.chain(to_come).map(|weights| &weights[..]))?;
        Ok(Linear { certificate, ..model })
    }

    fn model_so_far(&self, samples: &Samples, engine: &Engine<S::Program>) -> Result<Linear, Error> {
        let mut model = self.model(samples, engine)?;
        if self.path.len() > 1 {
            let iterations = engine.iterations() - S::progress(engine).begun;
            self.settle(samples, &mut model, (self.at(engine), iterations))?;
        }
        Ok(model)
    }

    fn finish(&self, samples: &Samples, model: &mut Linear) -> Result<(), Error> {
        self.settle(samples, model, (self.penalty, self.iterations))?;
        model.calibrate(samples.calibration(model)?);
        Ok(())
    }
}

impl<A, S: Solver> Fitter<A, S> {
    /// Has a model, after `done` iterations at an l1, know of the path, and be the best of it.
    fn settle(&self, samples: &Samples, model: &mut Linear, (penalty, done): (usize, u64)) -> Result<(), Error> {
        let config = &self.path[penalty];
        // One that was read has only the features with a weight that is not zero.
        let all = all_weights(model, samples)?;
        model.weights = all.iter().flat_map(|weights| &weights[..samples.features.len()]).copied().collect();
        model.features = Arc::clone(&samples.features);
        let known = self.fitted.iter().map(|model| Some(model.certificate)).chain([model.certificate]);
        let known = known.chain(std::iter::repeat(None));
        let mut fits = self.ended.clone();
        for (at, (weights, known)) in all.iter().zip(known).enumerate() {
            let labels = samples.signs(at);
            let certificate = match known {
                Some(certificate) => certificate,
                None => Certificate::new(&fit(samples, &labels, weights), config).map_err(reading)?,
            };
            if at >= self.fitted.len() {
                let tested = self.tested_on_path(samples, at, weights)?;
                let iterations = if at == self.fitted.len() { done } else { 0 };
                fits.note(self.known((config, iterations), certificate, tested), [&weights[..]]);
            }
        }
        fits.settle(samples, model, config.l1)
    }

    /// Sees where on the path an engine is, and its iterations there.
    fn see(&mut self, engine: &Engine<S::Program>) {
        (self.penalty, self.iterations) = (self.at(engine), engine.iterations() - S::progress(engine).begun);
    }

    /// Returns where on the path an engine is.
    fn at(&self, engine: &Engine<S::Program>) -> usize {
        self.path.iter().position(|config| config.l1 == S::progress(engine).l1).unwrap_or(0)
    }

    fn config(&self, engine: &Engine<S::Program>) -> &Config {
        &self.path[self.at(engine)]
    }

    fn known(&self, (config, iterations): (&Config, u64), certificate: Certificate, tested: Metrics) -> OfPenalty {
        let has_converged = self.tolerance == 0.0 || certificate.is_within(self.tolerance, config);
        OfPenalty { l1: config.l1, certificate, has_converged, iterations, tested }
    }

    /// Begins to fit the next model, on the same grid.
    fn begin(&self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<(), Error> {
        let weights = &self.start[self.fitted.len()];
        self.solver.init(samples, Begin { config: &self.path[0], labels: &self.labels, offsets: &[], weights }, engine)
    }

    /// Returns what samples to test on tell of an l1 by the weights of a model, where penalties are several. Of many classes each adds its part to
    /// their mean.
    fn tested_on_path(&self, samples: &Samples, model: usize, weights: &[f64]) -> Result<Metrics, Error> {
        let Some(test) = samples.test.as_ref().filter(|_| self.path.len() > 1) else { return Ok(Metrics::new()) };
        let scores = scores(samples, test, weights)?;
        if samples.num_models() == 1 {
            return Ok(model::metrics(quality((&scores, samples.labels.classes.len()), test.known(), log_chances)));
        }
        let loss = mean_loss(&scores, &samples.signs_of(model, &test.labels), &test.weights);
        Ok(Metrics::from([(CLASS_TESTED_BY.into(), loss / samples.num_models() as f64)]))
    }

    fn fit<'d>(&'d self, samples: &'d Samples, weights: &'d [f64]) -> Fit<'d> {
        fit(samples, &self.labels, weights)
    }
}

fn scores(samples: &Samples, test: &Unseen, weights: &[f64]) -> Result<Vec<f64>, Error> {
    let intercept = samples.intercept.map_or(0.0, |feature| weights[feature]);
    test.scores(&weights[..samples.features.len()], intercept)
}

fn fit<'d>(samples: &'d Samples, labels: &'d [f32], weights: &'d [f64]) -> Fit<'d> {
    let Samples { values, sample_weights, intercept, .. } = samples;
    Fit { values, labels, sample_weights, intercept: *intercept, weights }
}

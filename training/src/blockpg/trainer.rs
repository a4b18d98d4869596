//! Training, one l1 after the other.

use std::sync::Arc;

use megagrid_algorithms::blockpg::{Certificate, Config, Fit, Quality};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Sequence, Stages};

use super::data::Samples;
use super::model::Linear;
use super::newton::{self, NewtonSolver};
use super::options::LinearOptions;
use super::solver::Solver;
use super::steps::StepSolver;
use crate::Error;
use crate::algorithm::{Algorithm, Form, Knob, Leg, MakeForm, Measured, Trainer, UpdatedOn};
use crate::error::reading;
use crate::form::form;
use crate::record::Metrics;

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
    fn form(_: &Samples, _: &LinearOptions) -> MakeForm<Self> {
        by_size
    }

    fn start_from(samples: &mut Samples, _: &LinearOptions, model: Linear) -> Result<(), Error> {
        samples.start = Some(model);
        Ok(())
    }

    fn updated_on(_: &Linear) -> Result<UpdatedOn, Error> {
        Ok(UpdatedOn::All)
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

/// Fits weights.
struct Fitter<S> {
    solver: S,
    /// Parameters, the largest l1 first.
    path: Vec<Config>,
    /// First weights, by feature.
    start: Vec<f64>,
    /// The loss of weights 0.
    at_zero: f64,
    /// Relative duality gap that ends a leg.
    tolerance: f64,
    /// What is known of the models of the legs that have ended.
    ended: Vec<(f64, Certificate)>,
    /// What is known of the model after an iteration.
    certified: Option<(u64, Certificate)>,
}

/// Makes the form that sizes and options ask for.
fn by_size(
    samples: Arc<Samples>,
    options: LinearOptions,
    settings: Settings,
) -> Result<Box<dyn Form<Regression>>, Error> {
    let is_newton = !options.has_blocks(&settings) && newton::suits(&samples, &options.path()[0])?;
    let make: MakeForm<Regression> = if is_newton { form::<Fitter<NewtonSolver>> } else { form::<Fitter<StepSolver>> };
    make(samples, options, settings)
}

impl<S: Solver> Trainer for Fitter<S> {
    type Algorithm = Regression;
    type Program = S::Program;
    type Edge = f32;

    fn new(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Result<Self, Error> {
        let start = match &samples.start {
            Some(model) => all_weights(model, samples),
            None => vec![0.0; samples.signed.num_vertices(Side::Right)],
        };
        Ok(Self {
            solver: S::new(samples, options, settings)?,
            path: options.path(),
            start,
            at_zero: samples.total_weight() * std::f64::consts::LN_2,
            tolerance: options.tolerance,
            ended: Vec::new(),
            certified: None,
        })
    }

    fn resolved(&self, _: &Samples, options: &LinearOptions) -> LinearOptions {
        self.solver.resolved(options)
    }

    fn workers(&self, asked: usize) -> usize {
        self.solver.workers(asked)
    }

    fn source<'d>(&'d self, samples: &'d Samples) -> Source<'d, f32, S::Program> {
        (&samples.signed).into()
    }

    fn sequence(&self) -> Sequence<S::Program, impl Stages<S::Program>> {
        self.solver.sequence()
    }

    fn init(&self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<(), Error> {
        self.solver.init(samples, &self.path[0], &self.start, engine)
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
        if engine.plan().processes.this > 0 {
            return Ok(None);
        }
        let (config, weights) = (*self.config(engine), S::weights(engine));
        let loss = S::loss(engine);
        let penalized = &weights[..samples.features.len()];
        let objective = loss + config.penalty(penalized.iter().copied());
        let nonzeros = penalized.iter().filter(|w| **w != 0.0).count();
        let metrics = Metrics::from([("loss".into(), loss), ("nonzeros".into(), nonzeros as f64)]);
        let sizes: f64 = penalized.iter().map(|w| w.abs()).sum();
        let at = S::progress(engine);
        if at.is_of_all && at.optimality.is_near(self.tolerance, objective, sizes) {
            let certificate = Certificate::new(&fit(samples, &weights), &config).ok();
            let certificate = certificate.filter(|certificate| certificate.is_within(self.tolerance, &config));
            self.certified = certificate.map(|certificate| (engine.iterations(), certificate));
        }
        #[cfg(debug_assertions)]
        S::check(samples, engine, &weights);
        Ok(Some(Measured { objective, metrics, converged: Some(self.certified.is_some()) }))
    }

    fn test(&mut self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<Metrics, Error> {
        let Some(test) = &samples.test else { return Ok(Metrics::new()) };
        engine.collect()?;
        let weights = S::weights(engine);
        let penalized = &weights[..samples.features.len()];
        let intercept = weights.get(penalized.len()).copied().unwrap_or(0.0);
        let Quality { auc, log_loss, accuracy } = Quality::new(&test.scores(penalized, intercept), &test.labels);
        let mut metrics = Metrics::from([("test_log_loss".into(), log_loss), ("test_accuracy".into(), accuracy)]);
        // A test of one class only has none, and a record takes numbers only.
        metrics.extend(auc.is_finite().then_some(("test_auc".into(), auc)));
        Ok(metrics)
    }

    fn leg(&self, options: &LinearOptions, engine: &Engine<S::Program>) -> Leg {
        let until = S::progress(engine).begun + options.iterations;
        Leg { until, is_last: self.at(engine) + 1 == self.path.len() }
    }

    fn next(&mut self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<(), Error> {
        let (at, config) = (self.at(engine), *self.config(engine));
        engine.collect()?;
        if engine.plan().processes.this == 0 {
            let certificate = match self.certified.take() {
                Some((_, certificate)) => certificate,
                None => Certificate::new(&fit(samples, &S::weights(engine)), &config).map_err(reading)?,
            };
            self.ended.push((config.l1, certificate));
        }
        S::turn_to(&self.path[at + 1], engine);
        Ok(())
    }

    fn most_iterations(&self, options: &LinearOptions, done: u64) -> u64 {
        done + options.iterations * self.path.len() as u64
    }

    fn model(&self, samples: &Samples, engine: &Engine<S::Program>) -> Result<Linear, Error> {
        let mut weights = S::weights(engine);
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

impl<S: Solver> Fitter<S> {
    /// Returns where on the path an engine is.
    fn at(&self, engine: &Engine<S::Program>) -> usize {
        self.path.iter().position(|config| config.l1 == S::progress(engine).l1).unwrap_or(0)
    }

    fn config(&self, engine: &Engine<S::Program>) -> &Config {
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

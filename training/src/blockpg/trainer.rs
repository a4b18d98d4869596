//! Training, one l1 after the other, and where there are more than two classes one class after the other, each against the rest, unless they are
//! fitted [together](Turns).

use std::sync::Arc;

use bincode::Options;
use megagrid_algorithms::blockpg::{Certificate, Config, Fit, log_chances, mean_loss};
use megagrid_datasets::Labels;
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Sequence, Stages};
use serde::{Deserialize, Serialize};

use super::data::Samples;
use super::model::{self, Linear, by_sample, quality};
use super::newton::{self, NewtonSolver};
use super::options::LinearOptions;
use super::solver::{Begin, Solver};
use super::steps::StepSolver;
use super::turns::{self, Turns};
use super::weights::{all_weights, model_of};
use crate::algorithm::{Algorithm, Form, Knob, MakeForm};
use crate::error::reading;
use crate::form::form;
use crate::leg::Leg;
use crate::measured::Measured;
use crate::record::Metrics;
use crate::trainer::Trainer;
use crate::{Error, RunOptions, UpdatedOn};

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
        samples.start = all_weights(&model, samples)?;
        Ok(())
    }

    fn updated_on(_: &Linear) -> Result<UpdatedOn, Error> {
        Ok(UpdatedOn::All)
    }

    /// Blocks around their default; workers, if there are several, where there are no blocks unless they are asked for.
    fn tuned(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Vec<String> {
        let [number, features] = [Side::Left, Side::Right].map(|side| samples.values.num_vertices(side));
        let is_newton = || is_newton(samples, options, settings).is_ok_and(|is_newton| is_newton);
        if options.descends(number, settings) || is_newton() {
            if settings.workers == 1 {
                return Vec::new();
            }
            let fewer = std::iter::successors(Some(1), |workers| Some(2 * workers));
            let workers = fewer.take_while(|&fewer| fewer < settings.workers).chain([settings.workers]);
            return vec![format!("workers={}", workers.map(|number| number.to_string()).collect::<Vec<_>>().join(","))];
        }
        let blocks = options.num_blocks(samples.values.num_edges(), features);
        let fewer = if blocks > 1 { format!("{},", blocks / 2) } else { String::new() };
        vec![format!("blocks={fewer}{blocks},{}", 2 * blocks), "delay=0,1,2".to_owned()]
    }

    /// Of several models one is in the engine, and only the last iterations have all.
    fn check_run(samples: &Samples, options: &LinearOptions, run: &RunOptions, is_tuned: bool) -> Result<(), Error> {
        samples.check_calibration()?;
        if options.multinomial && samples.num_models() > 1 {
            turns::check(samples)?;
        }
        if samples.calibrate && run.checkpoint_model {
            // Nothing else of the end changes what a model answers.
            return Err(Error::option(
                "--calibrate is found at the end of a run, and the models of --checkpoint-model would be without it; leave one of the two out",
            ));
        }
        let classes = samples.labels.classes.len();
        if classes > 2 && is_tuned {
            let are_numbers = samples.labels.classes.iter().all(|class| Labels::number(class).is_some());
            let one = match are_numbers {
                true => "which --positive names",
                false => {
                    "in a copy of the samples with its label as 1 and any other as 0, since --positive names numbers only"
                }
            };
            return Err(Error::option(format!(
                "tune tries settings on one model, and {classes} classes are fitted in turn; tune one class, {one}, \
                 and train all with the settings that it found: they change how long a fit takes, not what comes of it"
            )));
        }
        if classes > 2 && run.checkpoint_model && !options.multinomial {
            return Err(Error::option(format!(
                "--checkpoint-model writes models of a training under way, and {classes} classes are fitted one after the other, so that those to \
                 come would have no weights; leave it out"
            )));
        }
        Ok(())
    }

    fn check_tuned(options: &LinearOptions) -> Result<(), Error> {
        if options.path().len() == 1 {
            return Ok(());
        }
        Err(Error::option("tuning takes one l1; find the settings first, and train the path with those that are found"))
    }
}

/// Fits weights.
struct Fitter<S> {
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
    /// What is known of the models of the legs that have ended.
    ended: Vec<(f64, Certificate)>,
    /// What is known of the model after an iteration.
    certified: Option<(u64, Certificate)>,
}

/// What tells how well the class that is being fitted is told from the rest, where there are more than two.
const CLASS_TESTED_BY: &str = "test_class_log_loss";

/// A model that is fitted, in the first process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Fitted {
    /// By feature, the intercept last if there is one.
    weights: Vec<f64>,
    certificate: Certificate,
}

/// Makes the form that sizes and options ask for.
fn by_size(
    samples: Arc<Samples>,
    options: LinearOptions,
    settings: Settings,
) -> Result<Box<dyn Form<Regression>>, Error> {
    let is_newton = is_newton(&samples, &options, &settings)?;
    let make: MakeForm<Regression> = match (options.multinomial && samples.num_models() > 1, is_newton) {
        (false, false) => form::<Fitter<StepSolver>>,
        (false, true) => form::<Fitter<NewtonSolver>>,
        (true, false) => form::<Turns<Regression, StepSolver>>,
        (true, true) => form::<Turns<Regression, NewtonSolver>>,
    };
    make(samples, options, settings)
}

fn is_newton(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Result<bool, Error> {
    Ok(!options.has_blocks(settings) && newton::suits(samples, &options.path()[0])?)
}

impl<S: Solver> Trainer for Fitter<S> {
    type Algorithm = Regression;
    type Program = S::Program;
    type Edge = f32;

    fn new(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            solver: S::new(samples, options, settings)?,
            path: options.path(),
            start: samples.first_weights(),
            labels: samples.signs(0),
            fitted: Vec::new(),
            tested: Vec::new(),
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
        (&samples.values).into()
    }

    fn sequence(&self) -> Sequence<S::Program, impl Stages<S::Program>> {
        self.solver.sequence()
    }

    fn init(&self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<(), Error> {
        self.begin(samples, engine)
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
        let scores = |weights: &[f64]| {
            let intercept = samples.intercept.map_or(0.0, |feature| weights[feature]);
            test.scores(&weights[..samples.features.len()], intercept)
        };
        for model in &self.fitted[self.tested.len()..] {
            self.tested.push(scores(&model.weights)?);
        }
        let now = scores(&S::weights(engine))?;
        let mut metrics = Metrics::new();
        if samples.num_models() > 1 {
            let signs = samples.signs_of(self.fitted.len(), &test.labels);
            metrics.insert(CLASS_TESTED_BY.into(), mean_loss(&now, &signs));
        }
        if self.fitted.len() + 1 == samples.num_models() {
            let all = by_sample(self.tested.iter().cloned().chain([now]).collect());
            metrics.extend(model::metrics(quality(&all, samples.labels.classes.len(), &test.labels, log_chances)));
        }
        Ok(metrics)
    }

    fn leg(&self, options: &LinearOptions, engine: &Engine<S::Program>) -> Leg {
        let since = S::progress(engine).begun;
        let is_model = self.at(engine) + 1 == self.path.len();
        let is_last = is_model && self.fitted.len() + 1 == self.start.len();
        let tested_by = if self.start.len() == 1 { Regression::TESTED_BY } else { Some(CLASS_TESTED_BY) };
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
            note(&mut self.ended, &config, &certificate);
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
        let (fitted, ended): (Vec<Fitted>, _) = bincode::options().deserialize(notes).map_err(|_| unknown())?;
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

    fn finish(&self, samples: &Samples, model: &mut Linear) -> Result<(), Error> {
        let Some(config) = self.path.last() else { return Ok(()) };
        // One that was read has only the features with a weight that is not zero.
        let all = all_weights(model, samples)?;
        model.weights = all.iter().flat_map(|weights| &weights[..samples.features.len()]).copied().collect();
        model.features = Arc::clone(&samples.features);
        let known = self.fitted.iter().map(|model| Some(model.certificate)).chain([model.certificate]);
        let known = known.chain(std::iter::repeat(None));
        model.path = self.ended.clone();
        model.has_converged = true;
        for (at, (weights, known)) in all.iter().zip(known).enumerate() {
            let labels = samples.signs(at);
            let certificate = match known {
                Some(certificate) => certificate,
                None => Certificate::new(&fit(samples, &labels, weights), config).map_err(reading)?,
            };
            model.has_converged &= self.tolerance == 0.0 || certificate.is_within(self.tolerance, config);
            if at >= self.fitted.len() {
                note(&mut model.path, config, &certificate);
            }
        }
        model.certificate = model.path.last().map(|(_, certificate)| *certificate);
        model.calibrate(samples.calibration(model)?);
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

    /// Begins to fit the next model, on the same grid.
    fn begin(&self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<(), Error> {
        let weights = &self.start[self.fitted.len()];
        self.solver.init(samples, Begin { config: &self.path[0], labels: &self.labels, offsets: &[], weights }, engine)
    }

    fn fit<'d>(&'d self, samples: &'d Samples, weights: &'d [f64]) -> Fit<'d> {
        fit(samples, &self.labels, weights)
    }
}

/// Adds what is known of a model to what is known of others with the same l1.
fn note(path: &mut Vec<(f64, Certificate)>, config: &Config, certificate: &Certificate) {
    match path.iter_mut().find(|(l1, _)| *l1 == config.l1) {
        Some((_, all)) => all.join(certificate),
        None => path.push((config.l1, *certificate)),
    }
}

fn fit<'d>(samples: &'d Samples, labels: &'d [f32], weights: &'d [f64]) -> Fit<'d> {
    let Samples { values, sample_weights, intercept, .. } = samples;
    Fit { values, labels, sample_weights, intercept: *intercept, weights }
}

//! Training of classes that share their chances: they take turns at fitting two classes, their own and the rest, on one grid; see
//! [`megagrid_algorithms::blockpg`]'s `offsets`.

use std::marker::PhantomData;

use megagrid_algorithms::blockpg::{Certificate, Config, FitOfClasses, offsets, scores, shift};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_stages::{Sequence, Stages};

use super::data::Samples;
use super::model::Linear;
use super::options::{Classes, LinearOptions};
use super::solver::{Begin, Solver};
use crate::algorithm::{Algorithm, Leg, Measured, Trainer};
use crate::error::reading;
use crate::record::Metrics;
use crate::{Error, model};

/// Fits the weights of classes in turn.
pub(super) struct Turns<S, A> {
    solver: S,
    of: PhantomData<A>,
    /// Parameters, the largest l1 first, and where on the path the run is.
    path: Vec<Config>,
    at: usize,
    /// Iterations done when training at this l1 began, and how many there are at most.
    begun: u64,
    most: u64,
    /// Whose turn it is, and the iteration that ends it.
    class: usize,
    until: u64,
    /// Weights and scores after the round before.
    before: Option<(Vec<Vec<f64>>, Vec<Vec<f64>>)>,
    /// Labels of samples, 1 of that class, and the offsets of their scores.
    labels: Vec<f32>,
    offsets: Vec<f64>,
    /// What the loss of all classes is more than that of two in this turn.
    rest: f64,
    /// Weights of each class by feature, and its scores by sample.
    weights: Vec<Vec<f64>>,
    scores: Vec<Vec<f64>>,
    /// Relative duality gap that ends a leg.
    tolerance: f64,
    /// What is known of the models of each l1.
    ended: Vec<(f64, Certificate)>,
    /// What is known of the model after the last round of all classes.
    certificate: Option<Certificate>,
}

impl<S, A> Trainer for Turns<S, A>
where
    S: Solver,
    A: Algorithm<Data = Samples, Options = LinearOptions, Model = Linear>,
{
    type Algorithm = A;
    type Program = S::Program;
    type Edge = f32;

    fn new(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Result<Self, Error> {
        if settings.peers.is_some() {
            return Err(Error::option(
                "--classes multinomial is for one process; leave it out, or leave out --processes",
            ));
        }
        let weights = match &options.warm_start {
            Some(directory) => model::load::<Linear>(directory)?.0.rows(samples, Classes::Multinomial)?,
            None => samples.no_weights(Classes::Multinomial),
        };
        let most = options.iterations * weights.len() as u64;
        let mut turns = Self {
            solver: S::new(samples, options, settings)?,
            of: PhantomData,
            path: options.path(),
            at: 0,
            begun: 0,
            most,
            class: 0,
            until: 0,
            before: None,
            labels: Vec::new(),
            offsets: Vec::new(),
            rest: 0.0,
            scores: all_scores(samples, &weights)?,
            weights,
            tolerance: options.tolerance,
            ended: Vec::new(),
            certificate: None,
        };
        turns.prepare(samples, 0);
        Ok(turns)
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
        let Self { labels, offsets, class, .. } = self;
        let (config, weights) = (&self.path[self.at], &self.weights[*class]);
        self.solver.init(samples, Begin { config, labels, offsets, weights }, engine)
    }

    fn running(&self, _: &Samples, engine: &Engine<S::Program>) -> Metrics {
        Metrics::from([("kkt_violation".into(), S::progress(engine).optimality.violation)])
    }

    fn is_due(&self, _: &Samples, engine: &Engine<S::Program>) -> bool {
        engine.iterations() >= self.until
    }

    /// Measures the objective; after a round of all classes, also makes the certificate.
    fn measure(&mut self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<Option<Measured>, Error> {
        engine.collect()?;
        self.weights[self.class] = S::weights(engine);
        self.certificate = None;
        let config = self.path[self.at];
        let penalized = || self.weights.iter().map(|weights| &weights[..samples.features.len()]);
        let mut loss = S::loss(engine) + self.rest;
        let mut objective = loss + penalized().map(|weights| config.penalty(weights.iter().copied())).sum::<f64>();
        if self.ends_round(engine) {
            let certificate = self.conclude(samples)?;
            (loss, objective) = (certificate.loss, certificate.objective);
        }
        let nonzeros = self.weights.iter().flat_map(|weights| &weights[..samples.features.len()]);
        let nonzeros = nonzeros.filter(|w| **w != 0.0).count() as f64;
        let metrics = Metrics::from([("loss".into(), loss), ("nonzeros".into(), nonzeros)]);
        Ok(Some(Measured { objective, metrics, converged: Some(self.has_converged()) }))
    }

    fn test(&mut self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<Metrics, Error> {
        // Between rounds a model is of weights that do not know of each other.
        if !self.ends_round(engine) {
            return Ok(Metrics::new());
        }
        engine.collect()?;
        self.weights[self.class] = S::weights(engine);
        Ok(self.model(samples, engine)?.measured(samples))
    }

    fn leg(&self, _: &LinearOptions, _: &Engine<S::Program>) -> Leg {
        let is_last_penalty = self.at + 1 == self.path.len();
        let is_last = is_last_penalty && self.until == self.begun + self.most;
        Leg { until: self.until, is_last, ends_converged: is_last_penalty }
    }

    fn next(&mut self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<(), Error> {
        engine.collect()?;
        let done = engine.iterations();
        if self.certificate.is_none() {
            self.weights[self.class] = S::weights(engine);
            self.scores[self.class] = scores(&samples.values, &self.weights[self.class]).map_err(reading)?;
        }
        self.class = (self.class + 1) % self.weights.len();
        if self.at + 1 < self.path.len() && (self.has_converged() || done == self.begun + self.most) {
            let certificate = match self.certificate {
                Some(certificate) => certificate,
                None => self.certify(samples)?,
            };
            self.ended.push((self.path[self.at].l1, certificate));
            (self.at, self.begun, self.class, self.before) = (self.at + 1, done, 0, None);
        }
        self.prepare(samples, done);
        self.init(samples, engine)
    }

    fn most_iterations(&self, options: &LinearOptions, done: u64) -> u64 {
        done + options.iterations * (self.path.len() * self.weights.len()) as u64
    }

    fn model(&self, samples: &Samples, _: &Engine<S::Program>) -> Result<Linear, Error> {
        let certificate = self.certificate;
        Ok(Linear {
            certificate,
            ..Linear::of_weights(samples, Classes::Multinomial, &self.weights.iter().collect::<Vec<_>>())?
        })
    }

    fn finish(&self, samples: &Samples, model: &mut Linear) -> Result<(), Error> {
        let Some(config) = self.path.last() else { return Ok(()) };
        let certificate = match model.certificate {
            Some(certificate) => certificate,
            None => self.certify(samples)?,
        };
        model.certificate = Some(certificate);
        model.has_converged = self.tolerance == 0.0 || certificate.is_within(self.tolerance, config);
        model.path = self.ended.clone();
        model.path.push((config.l1, certificate));
        Ok(())
    }
}

impl<S, A> Turns<S, A>
where
    S: Solver,
    A: Algorithm<Data = Samples, Options = LinearOptions, Model = Linear>,
{
    /// Prepares the turn of the class, after so many iterations.
    fn prepare(&mut self, samples: &Samples, done: u64) {
        self.until = (done + S::TURN).min(self.begun + self.most);
        self.labels = samples.signs(self.class, Classes::Multinomial);
        self.offsets = offsets(&self.scores, self.class);
        self.certificate = None;
        let others = samples.labels.of.iter().enumerate().filter(|(_, of)| **of as usize != self.class);
        let rest = |(sample, &of): (usize, &u32)| {
            f64::from(samples.weight(sample)) * (-self.offsets[sample] - self.scores[of as usize][sample])
        };
        self.rest = others.map(rest).sum();
    }

    /// Tells whether the turn of the last class is over.
    fn ends_round(&self, engine: &Engine<S::Program>) -> bool {
        engine.iterations() >= self.until && self.class + 1 == self.weights.len()
    }

    /// Ends a round: takes off weights what all classes share, and finds what is known of them.
    fn conclude(&mut self, samples: &Samples) -> Result<Certificate, Error> {
        let Config { l1, l2 } = self.path[self.at];
        self.scores[self.class] = scores(&samples.values, &self.weights[self.class]).map_err(reading)?;
        let shifts: Vec<f64> = (0..self.weights[0].len())
            .map(|feature| {
                let of_classes: Vec<f64> = self.weights.iter().map(|weights| weights[feature]).collect();
                if samples.intercept == Some(feature) {
                    shift(&of_classes, 0.0, 1.0)
                } else {
                    shift(&of_classes, l1, l2)
                }
            })
            .collect();
        let shared = scores(&samples.values, &shifts).map_err(reading)?;
        let take_off = |all: &mut Vec<f64>, shared: &[f64]| {
            all.iter_mut().zip(shared).for_each(|(one, shared)| *one -= shared);
        };
        self.weights.iter_mut().for_each(|weights| take_off(weights, &shifts));
        self.scores.iter_mut().for_each(|scores| take_off(scores, &shared));
        self.go_on(samples);
        let certificate = self.fit(samples, &self.scores)?;
        self.certificate = Some(certificate);
        Ok(certificate)
    }

    /// Goes on in the direction of the round, twice as far each time, while the objective falls: where features add up to others, turns go the same
    /// way for thousands of rounds, a little in each.
    fn go_on(&mut self, samples: &Samples) {
        if let Some((weights, scores)) = self.before.take() {
            let (mut least, mut part) = (self.objective(samples, &self.weights, &self.scores), 1.0);
            let mut best = None;
            while part < FARTHEST {
                let ahead = (go(&self.weights, &weights, part), go(&self.scores, &scores, part));
                let objective = self.objective(samples, &ahead.0, &ahead.1);
                if objective.is_nan() || objective >= least {
                    break;
                }
                (least, part, best) = (objective, 2.0 * part, Some(ahead));
            }
            if let Some(best) = best {
                (self.weights, self.scores) = best;
            }
        }
        self.before = Some((self.weights.clone(), self.scores.clone()));
    }

    fn objective(&self, samples: &Samples, weights: &[Vec<f64>], scores: &[Vec<f64>]) -> f64 {
        let Samples { values, labels, sample_weights, intercept, .. } = samples;
        let (labels, intercept) = (&labels.of, *intercept);
        let fit = FitOfClasses { values, labels, sample_weights, intercept, weights, scores };
        let penalized = weights.iter().map(|weights| &weights[..samples.features.len()]);
        let config = self.path[self.at];
        fit.loss() + penalized.map(|weights| config.penalty(weights.iter().copied())).sum::<f64>()
    }

    /// Finds what is known of the weights as they are.
    fn certify(&self, samples: &Samples) -> Result<Certificate, Error> {
        self.fit(samples, &all_scores(samples, &self.weights)?)
    }

    fn fit(&self, samples: &Samples, scores: &[Vec<f64>]) -> Result<Certificate, Error> {
        let Samples { values, labels, sample_weights, intercept, .. } = samples;
        let (labels, intercept, weights) = (&labels.of, *intercept, &self.weights);
        let fit = FitOfClasses { values, labels, sample_weights, intercept, weights, scores };
        Certificate::of_classes(&fit, &self.path[self.at]).map_err(reading)
    }

    fn has_converged(&self) -> bool {
        let is_within = |known: Certificate| known.is_within(self.tolerance, &self.path[self.at]);
        self.tolerance > 0.0 && self.certificate.is_some_and(is_within)
    }
}

/// Adds a part of changes to rows.
fn go(rows: &[Vec<f64>], before: &[Vec<f64>], part: f64) -> Vec<Vec<f64>> {
    let one = |(now, before): (&Vec<f64>, &Vec<f64>)| {
        now.iter().zip(before).map(|(now, before)| now + part * (now - before)).collect()
    };
    rows.iter().zip(before).map(one).collect()
}

/// A way is not gone farther than this many times what a round went.
const FARTHEST: f64 = 1e4;

/// Returns the scores of each class by sample.
fn all_scores(samples: &Samples, weights: &[Vec<f64>]) -> Result<Vec<Vec<f64>>, Error> {
    weights.iter().map(|weights| scores(&samples.values, weights).map_err(reading)).collect()
}

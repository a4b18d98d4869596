//! Training of classes that are fitted together: they take turns at fitting two classes, their own and the rest, on one grid; see
//! [`FitOfClasses`].

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::Instant;

use bincode::Options;
use megagrid_algorithms::blockpg::{
    Certificate, Config, FitOfClasses, MOST_ROUNDS, OfClasses, offsets, scores, scores_of_classes,
};
use megagrid_engine::{Engine, IterationReport, Settings, Source};
use megagrid_stages::{Sequence, Stages};
use serde::{Deserialize, Serialize};

use super::data::Samples;
use super::fits::Fits;
use super::model::Linear;
use super::options::LinearOptions;
use super::path::OfPenalty;
use super::solver::{Begin, Solver};
use super::weights::{all_weights, model_of};
use crate::Error;
use crate::algorithm::Algorithm;
use crate::error::reading;
use crate::leg::Leg;
use crate::measured::Measured;
use crate::record::Metrics;
use crate::trainer::Trainer;

/// Fits the weights of classes in turn, for the algorithm that this is a form of.
pub(super) struct Turns<A, S> {
    of: PhantomData<A>,
    solver: S,
    /// Parameters, the largest l1 first.
    path: Vec<Config>,
    /// Relative duality gap that ends a leg.
    tolerance: f64,
    /// Iterations of all classes for each l1, at most: whole rounds.
    most: u64,
    at: Place,
    /// Scores of each class by sample.
    scores: OfClasses,
    /// Labels of samples, 1 of the class in turn, and the offsets of their scores.
    labels: Vec<f32>,
    offsets: Vec<f64>,
    /// What the other classes have.
    others: Others,
    /// The loss as the turn began.
    loss: f64,
    /// What is known of the weights, if a round has just ended.
    certificate: Option<Certificate>,
    /// Iterations, when they were measured last.
    done: u64,
    /// The iteration after which the last turn ended, and the seconds that this took.
    ended: (u64, f64),
}

/// What the classes have whose turn it is not.
#[derive(Clone, Copy, Default)]
struct Others {
    /// What the loss of all classes is more than that of two in this turn.
    loss: f64,
    /// The penalty of their weights.
    penalty: f64,
    /// Their weights that are not zero, intercepts not counted.
    nonzeros: usize,
}

/// Where a run is, beside the engine.
#[derive(Clone, Serialize, Deserialize)]
struct Place {
    /// Which l1 of the path.
    penalty: usize,
    /// Iterations done when training at this l1 began.
    begun: u64,
    /// Whose turn it is, and the iterations done when it began.
    class: usize,
    since: u64,
    /// Weights of each class by feature, the intercept last if there is one. Of the class in turn as they were before.
    weights: OfClasses,
    /// All of them as the round began, and the objective.
    first: OfClasses,
    objective: f64,
    /// By how much the last few rounds changed them, the latest first.
    rounds: Vec<OfClasses>,
    /// The models of the legs that have ended.
    ended: Fits,
}

impl<A, S: Solver> Trainer for Turns<A, S>
where
    A: Algorithm<Data = Samples, Options = LinearOptions, Model = Linear>,
{
    type Algorithm = A;
    type Program = S::Program;
    type Edge = f32;

    fn new(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Result<Self, Error> {
        if settings.peers.is_some() {
            return Err(Error::option(
                "--multinomial is for one process; leave it out, so that each class is told from the rest, or run one process",
            ));
        }
        let weights = samples.first_weights();
        let at = Place {
            penalty: 0,
            begun: 0,
            class: 0,
            since: 0,
            first: weights.clone(),
            objective: f64::INFINITY,
            weights,
            rounds: Vec::new(),
            ended: Fits::of(options.path().len()),
        };
        let mut turns = Self {
            of: PhantomData,
            solver: S::new(samples, options, settings)?,
            path: options.path(),
            tolerance: options.tolerance,
            most: options.iterations.next_multiple_of(S::TURN) * samples.num_models() as u64,
            scores: Vec::new(),
            at,
            labels: Vec::new(),
            offsets: Vec::new(),
            others: Others::default(),
            loss: 0.0,
            certificate: None,
            done: 0,
            ended: (0, 0.0),
        };
        turns.set(samples)?;
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
        let Self { labels, offsets, at, .. } = self;
        let (config, weights) = (self.config(), &at.weights[at.class]);
        self.solver.init(samples, Begin { config, labels, offsets, weights }, engine)
    }

    /// Ends the turn of a class after its iterations.
    fn after_iteration(&mut self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<(), Error> {
        self.certificate = None;
        let done = engine.iterations();
        self.done = done;
        if done < self.at.since + S::TURN {
            return Ok(());
        }
        let begin = Instant::now();
        engine.collect()?;
        let class = self.at.class;
        self.loss = S::loss(engine) + self.others.loss;
        self.at.weights[class] = S::weights(engine);
        self.scores[class] = scores(&samples.values, &self.at.weights[class]).map_err(reading)?;
        (self.at.class, self.at.since) = ((class + 1) % self.scores.len(), done);
        if self.at.class == 0 {
            self.end_round(samples)?;
        }
        self.prepare(samples);
        self.init(samples, engine)?;
        self.ended = (done, begin.elapsed().as_secs_f64());
        Ok(())
    }

    /// What comes after a turn is training, too.
    fn corrected<'r>(&self, report: &'r IterationReport) -> Cow<'r, IterationReport> {
        match self.ended {
            (after, seconds) if after == report.iteration => {
                Cow::Owned(IterationReport { seconds: report.seconds + seconds, ..report.clone() })
            }
            _ => Cow::Borrowed(report),
        }
    }

    fn is_due(&self, _: &Samples, _: &Engine<S::Program>) -> bool {
        self.has_converged()
    }

    fn measure(&mut self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<Option<Measured>, Error> {
        engine.collect()?;
        self.done = engine.iterations();
        let Others { loss: rest, penalty, nonzeros } = self.others;
        let (loss, weights) = match self.has_begun(engine) {
            true => (S::loss(engine) + rest, S::weights(engine)),
            false => (self.loss, self.at.weights[self.at.class].clone()),
        };
        let weights = &weights[..samples.features.len()];
        let objective = loss + penalty + self.config().penalty(weights.iter().copied());
        let nonzeros = nonzeros + weights.iter().filter(|w| **w != 0.0).count();
        let metrics = Metrics::from([("loss".into(), loss), ("nonzeros".into(), nonzeros as f64)]);
        Ok(Some(Measured { objective, metrics, converged: Some(self.has_converged()) }))
    }

    /// After a round: all classes cost several times an iteration of one.
    fn test(&mut self, samples: &Samples, engine: &mut Engine<S::Program>) -> Result<Metrics, Error> {
        let ends_round = self.at.class == 0 && !self.has_begun(engine);
        let Some(test) = samples.test.as_ref().filter(|_| ends_round) else { return Ok(Metrics::new()) };
        engine.collect()?;
        self.model(samples, engine)?.tested(test)
    }

    fn leg(&self, _: &LinearOptions, _: &Engine<S::Program>) -> Leg {
        let (since, is_last) = (self.at.begun, self.at.penalty + 1 == self.path.len());
        Leg { since, until: since + self.most, is_last, tested_by: A::TESTED_BY.filter(|_| is_last) }
    }

    /// No leg before the last is tested, so that there is no best iteration.
    fn next(&mut self, samples: &Samples, engine: &mut Engine<S::Program>, _: Option<Linear>) -> Result<(), Error> {
        engine.collect()?;
        self.at.weights = self.weights(engine);
        self.set(samples)?;
        let certificate = match self.certificate {
            Some(certificate) => certificate,
            None => self.certify(samples)?,
        };
        let (done, first) = (engine.iterations(), self.at.weights.clone());
        let known = self.known(samples, &first, certificate, done)?;
        self.at.ended.note(known, first.iter().map(|weights| &weights[..]));
        self.at = Place { penalty: self.at.penalty + 1, begun: done, since: done, class: 0, first, ..self.at.clone() };
        (self.at.objective, self.certificate) = (f64::INFINITY, None);
        self.at.rounds.clear();
        self.prepare(samples);
        self.init(samples, engine)
    }

    fn notes(&self) -> Result<Vec<u8>, Error> {
        let notes = bincode::options().serialize(&self.at);
        notes.map_err(|error| Error::Missing(format!("weights of classes cannot be written: {error}")))
    }

    fn take_notes(&mut self, samples: &Samples, notes: &[u8]) -> Result<(), Error> {
        let at: Option<Place> = bincode::options().deserialize(notes).ok();
        let shape = |weights: &OfClasses| weights.iter().map(Vec::len).collect::<Vec<_>>();
        let expected = shape(&self.at.weights);
        let fits = |at: &Place| {
            let mut all = at.rounds.iter().chain([&at.weights, &at.first]);
            at.class < expected.len() && at.penalty < self.path.len() && all.all(|weights| shape(weights) == expected)
        };
        self.at = at.filter(fits).ok_or_else(|| {
            Error::Missing(
                "what it says of the classes is of another version or of other samples; start anew".to_owned(),
            )
        })?;
        self.set(samples)
    }

    fn most_iterations(&self, _: &LinearOptions, done: u64) -> u64 {
        done + self.most * (self.path.len() - self.at.penalty) as u64
    }

    fn model(&self, samples: &Samples, engine: &Engine<S::Program>) -> Result<Linear, Error> {
        Ok(Linear { certificate: self.certificate, ..linear(samples, &self.weights(engine))? })
    }

    fn model_so_far(&self, samples: &Samples, engine: &Engine<S::Program>) -> Result<Linear, Error> {
        let mut model = self.model(samples, engine)?;
        if self.path.len() > 1 {
            self.finish(samples, &mut model)?;
        }
        Ok(model)
    }

    fn finish(&self, samples: &Samples, model: &mut Linear) -> Result<(), Error> {
        let weights = all_weights(model, samples)?;
        let certificate = match model.certificate {
            Some(certificate) => certificate,
            None => {
                let scores = scores_of_classes(&samples.values, &weights).map_err(reading)?;
                Certificate::of_classes(&fit(samples, &weights, &scores), self.config()).map_err(reading)?
            }
        };
        let mut fits = self.at.ended.clone();
        let known = self.known(samples, &weights, certificate, self.done)?;
        fits.note(known, weights.iter().map(|weights| &weights[..]));
        fits.settle(samples, model, self.config().l1)
    }
}

impl<A, S: Solver> Turns<A, S> {
    fn config(&self) -> &Config {
        &self.path[self.at.penalty]
    }

    /// Returns what is known of the weights of an l1 after `done` iterations; they are tested where penalties are several.
    fn known(
        &self,
        samples: &Samples,
        weights: &[Vec<f64>],
        certificate: Certificate,
        done: u64,
    ) -> Result<OfPenalty, Error> {
        let tested = match samples.test.as_ref().filter(|_| self.path.len() > 1) {
            Some(test) => linear(samples, weights)?.tested(test)?,
            None => Metrics::new(),
        };
        let has_converged = self.tolerance == 0.0 || certificate.is_within(self.tolerance, self.config());
        let (l1, iterations) = (self.config().l1, done.saturating_sub(self.at.begun));
        Ok(OfPenalty { l1, certificate, has_converged, iterations, tested })
    }

    /// Tells whether an engine has iterated in this turn; else it may know nothing of the loss.
    fn has_begun(&self, engine: &Engine<S::Program>) -> bool {
        engine.iterations() > self.at.since
    }

    /// Returns the weights as they are, those of the class in turn from the engine.
    fn weights(&self, engine: &Engine<S::Program>) -> OfClasses {
        let mut weights = self.at.weights.clone();
        if self.has_begun(engine) {
            weights[self.at.class] = S::weights(engine);
        }
        weights
    }

    /// Finds what follows from weights and the class in turn.
    fn set(&mut self, samples: &Samples) -> Result<(), Error> {
        self.scores = scores_of_classes(&samples.values, &self.at.weights).map_err(reading)?;
        self.loss = fit(samples, &self.at.weights, &self.scores).loss();
        self.prepare(samples);
        Ok(())
    }

    /// Prepares the turn of the class.
    fn prepare(&mut self, samples: &Samples) {
        self.labels = samples.signs(self.at.class);
        self.offsets = offsets(&self.scores, self.at.class);
        let Self { scores, offsets, .. } = &*self;
        let classes = || (0..scores.len()).filter(|class| *class != self.at.class);
        let of_sample = |(sample, &label): (usize, &u32)| {
            let is_own = label as usize == self.at.class;
            let above = if is_own { 0.0 } else { -offsets[sample] - scores[label as usize][sample] };
            f64::from(samples.weight(sample)) * above
        };
        let weights = |class: usize| self.at.weights[class][..samples.features.len()].iter().copied();
        let nonzeros = |class| weights(class).filter(|w| *w != 0.0).count();
        self.others = Others {
            loss: samples.labels.of.iter().enumerate().map(of_sample).sum(),
            penalty: classes().map(|class| self.config().penalty(weights(class))).sum(),
            nonzeros: classes().map(nonzeros).sum(),
        };
    }

    /// Takes off weights what all classes share, goes on in the direction of the last rounds, and finds out whether that is the end.
    fn end_round(&mut self, samples: &Samples) -> Result<(), Error> {
        let config = *self.config();
        self.at.weights = fit(samples, &self.at.weights, &self.scores).shifted(&config);
        self.scores = scores_of_classes(&samples.values, &self.at.weights).map_err(reading)?;
        let last = changes(&self.at.weights, &self.at.first);
        self.at.rounds.insert(0, last);
        self.at.rounds.truncate(MOST_ROUNDS);
        let leap = fit(samples, &self.at.weights, &self.scores).leap(&config, &self.at.rounds).map_err(reading)?;
        if let Some((weights, scores)) = leap {
            (self.at.weights, self.scores) = (weights, scores);
            self.at.rounds[0] = changes(&self.at.weights, &self.at.first);
        }
        self.at.first.clone_from(&self.at.weights);
        let now = fit(samples, &self.at.weights, &self.scores);
        let objective = now.objective(&config);
        self.loss = now.loss();
        let fallen = self.at.objective - objective;
        self.at.objective = objective;
        // What a round gains is no more than what there is to gain.
        if self.tolerance > 0.0 && fallen <= SEEMS * self.tolerance * objective {
            self.certificate = Some(self.certify(samples)?);
        }
        Ok(())
    }

    /// Finds what is known of the weights as they are.
    fn certify(&self, samples: &Samples) -> Result<Certificate, Error> {
        Certificate::of_classes(&fit(samples, &self.at.weights, &self.scores), self.config()).map_err(reading)
    }

    fn has_converged(&self) -> bool {
        let is_within = |known: Certificate| known.is_within(self.tolerance, self.config());
        self.tolerance > 0.0 && self.certificate.is_some_and(is_within)
    }
}

fn linear(samples: &Samples, weights: &[Vec<f64>]) -> Result<Linear, Error> {
    let model = model_of(samples, weights.iter().map(|weights| &weights[..]))?;
    Ok(Linear { is_multinomial: true, ..model })
}

fn changes(to: &[Vec<f64>], from: &[Vec<f64>]) -> OfClasses {
    to.iter().zip(from).map(|(to, from)| to.iter().zip(from).map(|(to, from)| to - from).collect()).collect()
}

fn fit<'d>(samples: &'d Samples, weights: &'d [Vec<f64>], scores: &'d [Vec<f64>]) -> FitOfClasses<'d> {
    let Samples { values, labels, sample_weights, intercept, .. } = samples;
    FitOfClasses { values, labels: &labels.of, sample_weights, intercept: *intercept, weights, scores }
}

/// Refuses what is not for classes that are fitted together.
pub(super) fn check(samples: &Samples) -> Result<(), Error> {
    if samples.calibrate {
        return Err(Error::option(
            "--calibrate fits a line to the scores of each class against the rest, and --multinomial has none; leave out one of them",
        ));
    }
    Ok(())
}

/// A certificate is worth its passes over the values after a round that gained at most this many times the tolerance.
const SEEMS: f64 = 4.0;

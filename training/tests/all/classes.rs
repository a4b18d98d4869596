//! Logistic regression of many classes against dense implementations: proximal gradient steps on all weights, in f64.

mod multinomial;
mod rest;

use std::cell::Cell;

use megagrid_datasets::{Dataset, Dictionary, Labels, Samples as Labelled};
use megagrid_partition::{EdgeList, SplitMix};
use megagrid_training::blockpg::{Linear, LinearOptions, Regression, SampleOptions, Samples};
use megagrid_training::record::Record;
use megagrid_training::words::WordOptions;
use megagrid_training::{
    Algorithm, CheckpointOptions, Error, Job, Observer, Processes, Reading, RunOptions, Trained, train,
};

const SAMPLES: usize = 240;
const CLASSES: usize = 4;

/// Dense values, classes that follow from them with some noise, and weights of samples.
struct Made {
    values: Vec<Vec<f64>>,
    classes: Vec<u32>,
    weights: Vec<f32>,
}

impl Made {
    /// Where features are alike, Newton's method fits them; else they descend.
    fn new(features: usize, are_alike: bool, seed: u64) -> Self {
        let mut random = SplitMix::new(seed, 0);
        let mut uniform = || random.unit() - 0.5;
        let planted: Vec<Vec<f64>> = (0..CLASSES).map(|_| (0..features).map(|_| 4.0 * uniform()).collect()).collect();
        let mixtures: Vec<[f64; 3]> = (0..features).map(|_| [(); 3].map(|()| uniform())).collect();
        let mut made = Self { values: Vec::new(), classes: Vec::new(), weights: Vec::new() };
        for _ in 0..SAMPLES {
            let hidden = [(); 3].map(|()| 3.0 * uniform());
            let row: Vec<f64> = mixtures
                .iter()
                .map(|parts| {
                    let mixed = parts.iter().zip(hidden).map(|(part, value)| part * value).sum::<f64>();
                    // A value that is 0 is an edge that is not there.
                    let value = if are_alike { mixed + 0.1 * uniform() } else { uniform() };
                    f64::from(if !are_alike && uniform() < 0.0 { 0.0 } else { value as f32 })
                })
                .collect();
            let score = |weights: &Vec<f64>| weights.iter().zip(&row).map(|(w, x)| w * x).sum::<f64>();
            let scores: Vec<f64> = planted.iter().map(|weights| score(weights) + uniform()).collect();
            let best = (0..CLASSES).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
            made.values.push(row);
            made.classes.push(best as u32);
            made.weights.push(1.0 + uniform() as f32);
        }
        made
    }

    fn features(&self) -> usize {
        self.values[0].len()
    }

    fn samples(&self, how: &SampleOptions, run: &RunOptions) -> Result<Samples, Error> {
        let mut edges = EdgeList { num_left: SAMPLES, num_right: self.features(), ..EdgeList::default() };
        for (sample, row) in self.values.iter().enumerate() {
            for (feature, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                edges.push(sample as u32, feature as u32, x as f32);
            }
        }
        let names = |first: u64, count: usize| Dictionary::from_integers((first..first + count as u64).collect());
        let data = Dataset { edges, left_names: names(1, SAMPLES), right_names: Some(names(0, self.features())) };
        let labels = Labels { classes: ["a", "b", "c", "d"].map(str::to_owned).to_vec(), of: self.classes.clone() };
        let reading =
            Reading { command: Regression::NAME, seed: run.seed, degree_order: true, cluster: None, readers: None };
        Samples::of(Labelled { data, labels, weights: self.weights.clone() }, how, &reading)
    }

    fn trained(&self, options: LinearOptions, how: &SampleOptions, run: &RunOptions) -> Trained<Regression> {
        let (processes, origin) = (Processes::default(), serde_json::json!({}));
        let samples = self.samples(how, run).unwrap();
        train(Job::<Regression>::new(samples, origin, options, run, &processes).unwrap(), &processes, &()).unwrap()
    }
}

/// Returns the weights of a model by number of the feature, the intercept last.
fn weights(linear: &Linear, model: usize) -> Vec<f64> {
    let mut found = vec![0.0; linear.features.len() + 1];
    for (at, name) in linear.features.iter().enumerate() {
        found[name.parse::<usize>().unwrap()] = linear.of(model)[at];
    }
    found[linear.features.len()] = linear.intercepts[model];
    found
}

fn how() -> SampleOptions {
    SampleOptions {
        positive: Vec::new(),
        normalize: false,
        intercept: true,
        sample_weights: None,
        class_weight: Some("b=2.5,d=0.5".parse().unwrap()),
        hash_bits: None,
        words: WordOptions::default(),
        test: None,
        holdout: None,
        calibrate: false,
    }
}

fn apart(found: &[f64], expected: &[f64]) -> f64 {
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Ends a run after `iterations` of its own.
struct EndsAfter {
    iterations: u64,
    seen: Cell<u64>,
}

impl Observer for EndsAfter {
    fn iteration(&self, _: &Record) {
        self.seen.set(self.seen.get() + 1);
    }

    fn asks_to_end(&self) -> bool {
        self.seen.get() >= self.iterations
    }
}

/// Trains in pieces of `pieces` iterations, each continued from the checkpoint of the one before.
fn in_pieces(
    made: &Made,
    pieces: u64,
    options: &LinearOptions,
    how: &SampleOptions,
    run: &RunOptions,
) -> Trained<Regression> {
    let place = tempfile::tempdir().unwrap();
    let directory = Some(place.path().join("run"));
    let mut resume = None;
    loop {
        let checkpoints = CheckpointOptions { checkpoint: directory.clone(), checkpoint_every: None, resume };
        let run = RunOptions { checkpoints, ..run.clone() };
        let (samples, processes) = (made.samples(how, &run).unwrap(), Processes::default());
        let job = Job::<Regression>::new(samples, serde_json::json!({}), options.clone(), &run, &processes).unwrap();
        match train(job, &processes, &EndsAfter { iterations: pieces, seen: Cell::new(0) }) {
            Ok(trained) => return trained,
            Err(Error::Interrupted { .. }) => resume = directory.clone(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Returns the bits of all weights and intercepts.
fn bits(trained: &Trained<Regression>) -> Vec<u64> {
    let model = trained.model.as_ref().unwrap();
    model.weights.iter().chain(&model.intercepts).map(|weight| weight.to_bits()).collect()
}

//! Multi-class logistic regression by mini-batch gradient descent, with its weights in a parameter server: the use of the
//! library on something else than what Megagrid is compared on.
//!
//!     cargo run --release -p megagrid-baselines --example logistic_regression -- --threads 2 --slack 1
//!
//! Class c has a weight vector w_c, a row of the table. For a sample x of class y the model says
//! P(c | x) = exp(w_c . x) / sum_d exp(w_d . x); descent of -log P(y | x) changes w_c by step (1{c = y} - P(c | x)) x. The
//! samples are generated: a centre for each class, and normal noise around it. Each thread has its share of the samples,
//! and a clock is a mini-batch of each.

use std::error::Error;
use std::time::Instant;

use megagrid_baselines::server::{Client, Gather, Options, Preset, ServerOptions, Table, Tables, TabletServer, Worker};
use megagrid_partition::SplitMix;

const CLASSES: usize = 10;
const FEATURES: usize = 40;
const TRAINING: usize = 20_000;
const TEST: usize = 5_000;
const BATCH: usize = 100;
const STEP: f32 = 0.02;

struct Sample {
    features: Vec<f32>,
    class: usize,
}

/// Options of the command line, which come in pairs.
struct Arguments {
    threads: usize,
    servers: usize,
    slack: u32,
    epochs: usize,
    preset: Preset,
}

impl Arguments {
    fn parse() -> Result<Self, Box<dyn Error>> {
        let mut parsed = Self { threads: 2, servers: 1, slack: 0, epochs: 5, preset: Preset::IterStore };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--threads" => parsed.threads = value.parse()?,
                "--servers" => parsed.servers = value.parse()?,
                "--slack" => parsed.slack = value.parse()?,
                "--epochs" => parsed.epochs = value.parse()?,
                "--preset" => parsed.preset = value.parse()?,
                _ => return Err(format!("{name}: use --threads, --servers, --slack, --epochs or --preset").into()),
            }
        }
        Ok(parsed)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse()?;
    let mut random = SplitMix::new(7, 0);
    let centres: Vec<Vec<f32>> =
        (0..CLASSES).map(|_| (0..FEATURES).map(|_| 0.5 * normal(&mut random)).collect()).collect();
    let training = samples(TRAINING, &centres, &mut random);
    let test = samples(TEST, &centres, &mut random);

    let mut tables = Tables::new();
    let weights = tables.add::<f32>(FEATURES);
    let server = |server| TabletServer::start("127.0.0.1:0", &tables, ServerOptions::new(server, arguments.servers, 1));
    let servers = (0..arguments.servers).map(server).collect::<Result<Vec<_>, _>>()?;
    let addresses: Vec<_> = servers.iter().map(TabletServer::address).collect();
    let options = Options::preset(arguments.preset, arguments.threads, arguments.slack);
    let client = Client::connect(&addresses, &tables, options)?;

    let begin = Instant::now();
    let share = training.len().div_ceil(arguments.threads);
    std::thread::scope(|scope| {
        let shares = client.workers().into_iter().zip(training.chunks(share));
        let threads: Vec<_> = shares
            .map(|(mut worker, share)| {
                scope.spawn(|| train(&mut worker, weights, share, &arguments).map(|()| drop(worker)))
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let model = client.read_table(weights, u32::MAX)?;
    let wait = client.statistics().wait.as_secs_f64() / arguments.threads as f64;
    println!("{} threads, slack {}, preset {}", arguments.threads, arguments.slack, arguments.preset.name());
    println!("trained in {:.3} s, of which a thread waited {wait:.3} s", begin.elapsed().as_secs_f64());
    let [training, of_test] = [&training, &test].map(|samples| accuracy(&model.values, samples));
    println!("accuracy: training {training:.4}, test {of_test:.4}");
    println!("accuracy of the nearest centre, which is the best there can be: {:.4}", nearest(&centres, &test));
    Ok(())
}

/// Runs all epochs over one thread's samples; each mini-batch reads and updates all rows.
fn train(
    worker: &mut Worker,
    weights: Table<f32>,
    samples: &[Sample],
    arguments: &Arguments,
) -> Result<(), megagrid_baselines::Error> {
    let classes: Vec<u32> = (0..CLASSES as u32).collect();
    let (mut model, mut delta) = (vec![0.0; CLASSES * FEATURES], vec![0.0; CLASSES * FEATURES]);
    worker.start_gather(Gather::Virtual);
    worker.read_rows(weights, &classes, arguments.slack, &mut model)?;
    worker.update_rows(weights, &classes, &delta)?;
    worker.clock()?;
    worker.finish_gather()?;
    for _ in 0..arguments.epochs {
        for batch in samples.chunks(BATCH) {
            worker.read_rows(weights, &classes, arguments.slack, &mut model)?;
            gradient(&model, batch, &mut delta);
            worker.update_rows(weights, &classes, &delta)?;
            worker.clock()?;
        }
    }
    Ok(())
}

/// Sets `delta` to the step of a mini-batch.
fn gradient(model: &[f32], batch: &[Sample], delta: &mut [f32]) {
    delta.fill(0.0);
    for sample in batch {
        let probabilities = probabilities(model, &sample.features);
        for (class, (delta, probability)) in delta.chunks_exact_mut(FEATURES).zip(probabilities).enumerate() {
            let error = f32::from(class == sample.class) - probability;
            delta.iter_mut().zip(&sample.features).for_each(|(delta, x)| *delta += STEP * error * x);
        }
    }
}

fn probabilities(model: &[f32], features: &[f32]) -> [f32; CLASSES] {
    let mut scores = [0.0f32; CLASSES];
    for (score, weights) in scores.iter_mut().zip(model.chunks_exact(FEATURES)) {
        *score = weights.iter().zip(features).map(|(weight, x)| weight * x).sum();
    }
    let largest = scores.iter().copied().fold(f32::MIN, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let sum: f32 = scores.iter().sum();
    scores.map(|score| score / sum)
}

/// Returns the share of samples whose most probable class is theirs.
fn accuracy(model: &[f32], samples: &[Sample]) -> f64 {
    share_of(samples, |sample| {
        let probabilities = probabilities(model, &sample.features);
        (0..CLASSES).max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]))
    })
}

fn nearest(centres: &[Vec<f32>], samples: &[Sample]) -> f64 {
    share_of(samples, |sample| {
        let distance = |class: usize| -> f32 {
            centres[class].iter().zip(&sample.features).map(|(centre, x)| (centre - x) * (centre - x)).sum()
        };
        (0..CLASSES).min_by(|&a, &b| distance(a).total_cmp(&distance(b)))
    })
}

fn share_of(samples: &[Sample], class: impl Fn(&Sample) -> Option<usize>) -> f64 {
    let right = samples.iter().filter(|sample| class(sample) == Some(sample.class)).count();
    right as f64 / samples.len() as f64
}

fn samples(count: usize, centres: &[Vec<f32>], random: &mut SplitMix) -> Vec<Sample> {
    let mut sample = |index: usize| {
        let class = index % centres.len();
        let features = centres[class].iter().map(|centre| centre + normal(random)).collect();
        Sample { features, class }
    };
    (0..count).map(&mut sample).collect()
}

/// A sum of twelve uniform numbers is close enough to a normal one.
fn normal(random: &mut SplitMix) -> f32 {
    (0..12).map(|_| random.unit() as f32).sum::<f32>() - 6.0
}

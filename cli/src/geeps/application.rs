//! What can be trained: options, and how they and an input become an application.

use clap::ValueEnum;
use megagrid_datasets::read_samples;
use megagrid_geeps::apps::factorization::{self, Factorization, Ratings};
use megagrid_geeps::apps::network::{self, Network};
use megagrid_geeps::apps::{self, Samples};
use megagrid_training::input::plain_ratings;
use megagrid_training::record::InputSizes;
use serde::Serialize;

use super::options::Options;
use crate::failure::usage;

/// Samples or ratings of a mini-batch, where there are as many.
const BATCH: usize = 128;

/// An application on the command line.
pub trait Application: Serialize {
    /// What it is called in records.
    const NAME: &'static str;
    /// What is trained.
    type Trained: apps::Application;

    /// Reads the input, and makes of it what is trained by `workers` workers in all.
    fn prepare(&self, options: &Options, workers: usize) -> anyhow::Result<Prepared<Self::Trained>>;
}

/// What is trained, and what is known of its data.
pub struct Prepared<T> {
    pub trained: T,
    /// Samples or ratings of a worker's mini-batch.
    pub batch: usize,
    pub sizes: InputSizes,
    /// A hash of all data, the same for the same data in the same order.
    pub hash: u64,
}

/// Hashes numbers one after the other (Fowler, Noll and Vo's function, by words).
fn hash(numbers: impl Iterator<Item = u32>) -> u64 {
    numbers.fold(0xcbf2_9ce4_8422_2325, |hash, number| (hash ^ u64::from(number)).wrapping_mul(0x0100_0000_01b3))
}

/// How gradients become updates.
#[derive(Clone, Copy, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Optimizer {
    /// The step times the gradient.
    Sgd,
    /// The step times a velocity of gradients.
    Momentum,
    /// Steps that shrink with the gradients so far.
    Adagrad,
}

/// How layers are changed.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[group(skip)]
pub struct Descent {
    /// The step, for the mean gradient over the mini-batches of all workers.
    #[arg(long, default_value_t = 0.1)]
    step: f32,
    /// How gradients become updates.
    #[arg(long, value_enum, default_value_t = Optimizer::Sgd)]
    optimizer: Optimizer,
    /// What `--optimizer momentum` keeps of a velocity [default: 0.9].
    #[arg(long)]
    momentum: Option<f32>,
}

impl Descent {
    fn optimizer(&self) -> anyhow::Result<network::Optimizer> {
        Ok(match self.optimizer {
            Optimizer::Momentum => network::Optimizer::Momentum { momentum: self.momentum.unwrap_or(0.9) },
            _ if self.momentum.is_some() => return Err(usage("--momentum goes with --optimizer momentum")),
            Optimizer::Sgd => network::Optimizer::Sgd,
            Optimizer::Adagrad => network::Optimizer::AdaGrad,
        })
    }
}

/// Options of a perceptron.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[group(skip)]
pub struct Stack {
    /// Outputs of the hidden layers, the first one first.
    #[arg(long, value_name = "WIDTHS", value_delimiter = ',', default_value = "128")]
    hidden: Vec<usize>,
    #[command(flatten)]
    #[serde(flatten)]
    descent: Descent,
}

impl Application for Stack {
    const NAME: &'static str = "geeps mlp";
    type Trained = Network;

    fn prepare(&self, options: &Options, workers: usize) -> anyhow::Result<Prepared<Network>> {
        network(options, workers, self.hidden.clone(), &self.descent)
    }
}

/// Options of logistic regression.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[group(skip)]
pub struct Regress {
    #[command(flatten)]
    #[serde(flatten)]
    descent: Descent,
}

impl Application for Regress {
    const NAME: &'static str = "geeps mlr";
    type Trained = Network;

    fn prepare(&self, options: &Options, workers: usize) -> anyhow::Result<Prepared<Network>> {
        network(options, workers, Vec::new(), &self.descent)
    }
}

fn network(
    options: &Options,
    workers: usize,
    hidden: Vec<usize>,
    descent: &Descent,
) -> anyhow::Result<Prepared<Network>> {
    let source = &options.source;
    let megagrid_datasets::Samples { data, labels, weights } = read_samples(&source.input, source.layout(), &[])?;
    if !weights.is_empty() {
        return Err(usage("all samples weigh the same here: leave weight out of --columns"));
    }
    let (edges, labels, classes) = (data.edges, labels.classes, labels.of);
    let sizes =
        InputSizes { left: edges.num_left, right: edges.num_right, edges: edges.num_edges(), ..InputSizes::default() };
    // Rows come one after the other, as they were read.
    let mut offsets = vec![0; edges.num_left + 1];
    edges.left.iter().for_each(|&sample| offsets[sample as usize + 1] += 1);
    (0..edges.num_left).for_each(|sample| offsets[sample + 1] += offsets[sample]);
    let values = edges.left.iter().chain(&edges.right).chain(&classes).copied();
    let names = labels.iter().flat_map(|name| name.bytes().map(u32::from));
    let hash = hash(values.chain(edges.data.iter().map(|value| value.to_bits())).chain(names));
    let samples = Samples::new([edges.num_right, labels.len()], offsets, edges.right, edges.data, classes)?;
    // More workers than samples are refused below.
    let batch = options.batch.unwrap_or_else(|| BATCH.min(samples.len() / workers).max(1));
    let settings = network::Settings {
        hidden,
        workers,
        batch,
        step: descent.step,
        optimizer: descent.optimizer()?,
        seed: options.seed,
    };
    Ok(Prepared { trained: Network::new(samples, settings)?, batch, sizes, hash })
}

/// Options of a factorization.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[group(skip)]
pub struct Factorize {
    /// Values of a factor.
    #[arg(long, default_value_t = 32, value_name = "N")]
    dims: usize,
    /// The step, for each rating.
    #[arg(long, default_value_t = 0.02)]
    step: f32,
    /// How strongly factors are drawn to zero.
    #[arg(long, default_value_t = 0.05)]
    lambda: f32,
}

impl Application for Factorize {
    const NAME: &'static str = "geeps mf";
    type Trained = Factorization;

    fn prepare(&self, options: &Options, workers: usize) -> anyhow::Result<Prepared<Factorization>> {
        let edges = plain_ratings(&options.source)?.edges;
        let sizes = InputSizes {
            left: edges.num_left,
            right: edges.num_right,
            edges: edges.num_edges(),
            ..InputSizes::default()
        };
        let values = edges.left.iter().chain(&edges.right).copied();
        let hash = hash(values.chain(edges.data.iter().map(|value| value.to_bits())));
        let ends = edges.left.into_iter().zip(edges.right);
        let all = ends.zip(edges.data).map(|((user, item), rating)| (user, item, rating)).collect();
        let ratings = Ratings { num_users: edges.num_left, num_items: edges.num_right, all };
        let batch = options.batch.unwrap_or(BATCH);
        let settings = factorization::Settings {
            dims: self.dims,
            workers,
            batch,
            step: self.step,
            lambda: self.lambda,
            seed: options.seed,
        };
        Ok(Prepared { trained: Factorization::new(ratings, settings)?, batch, sizes, hash })
    }
}

//! `megagrid geeps`: training on a parameter server in device memory, and what it would move.

mod application;
mod checkpoint;
mod options;
mod plan;
mod together;
mod train;

use clap::Subcommand;

use application::{Factorize, Regress, Stack};
use options::Options;
pub use train::iteration;

/// Trains on GeePS, a parameter server that keeps what does not fit a device's memory on the host.
///
/// GeePS (Cui et al., EuroSys'16) is what Megagrid is compared with for dense models: workers, each with a device,
/// train the same parameters by mini-batches, layer by layer. Before the first iteration each worker goes through one
/// without data, so that all accesses and their order are known: what is pinned in the --budget of device memory,
/// what moves, and when. With --consistency bsp, what is trained is the same bit by bit at any budget.
///
/// Devices are `cpu`, this machine's processor, `gpu`, where the command is built with the feature of that name, and
/// `modelled`, which computes as `cpu` does and reports the time that a machine with given rates would need.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  megagrid geeps mlr train.libsvm --epochs 20 --step 0.5
  megagrid geeps mlp train.libsvm --hidden 256,128 --workers 4 --budget 64MiB
  megagrid geeps mf ratings.csv --dims 32 --consistency ssp --slack 1 --workers 2 --json run.json
  megagrid geeps plan mlp train.libsvm --hidden 256,128 --budget 2MiB
  megagrid geeps mlp train.libsvm --device modelled --copy 12e9 --workers 8
  megagrid launch -n 2 -- geeps mlp train.libsvm --hidden 256,128 --workers 2")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Train(Job),
    /// Shows what is pinned and what moves in each iteration, to the byte, without training.
    ///
    /// Takes the arguments of the training command, and is of the worker that needs most.
    Plan {
        #[command(subcommand)]
        job: Job,
    },
}

/// What is trained.
#[derive(Subcommand)]
enum Job {
    /// A multi-layer perceptron with a softmax at its end, on samples of several classes.
    ///
    /// Each layer is a table. Features are dense on the device: a mini-batch takes batch × features values.
    Mlp(Box<With<Stack>>),
    /// Multinomial logistic regression, on samples of several classes.
    Mlr(Box<With<Regress>>),
    /// Factors of ratings, by fixed mini-batches whose indexes are built once.
    Mf(Box<With<Factorize>>),
}

/// An application's options, and those of all.
#[derive(clap::Args)]
#[group(skip)]
struct With<A: clap::Args> {
    #[command(flatten)]
    application: A,
    #[command(flatten)]
    options: Options,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Train(job) => match job {
            Job::Mlp(with) => train::run(&with.application, &with.options),
            Job::Mlr(with) => train::run(&with.application, &with.options),
            Job::Mf(with) => train::run(&with.application, &with.options),
        },
        Command::Plan { job } => match job {
            Job::Mlp(with) => plan::run(&with.application, &with.options),
            Job::Mlr(with) => plan::run(&with.application, &with.options),
            Job::Mf(with) => plan::run(&with.application, &with.options),
        },
    }
}

//! `megagrid demo`: data with a known answer, trained on, and how near the result comes.

mod blockpg;
mod lda;
mod mf;
mod pagerank;
mod show;

use crate::common::Common;

/// Trains on generated data with a known answer, and shows how near the result comes. No file, no network.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid demo --workers 2 --report demo.html")]
pub struct Args {
    /// What to train.
    #[arg(long, value_enum, default_value_t = Demo::Mf)]
    algorithm: Demo,
    #[command(flatten)]
    common: Common,
}

/// What is trained.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "lower")]
enum Demo {
    /// A recommender, on ratings with planted factors.
    Mf,
    /// Ranks, on a graph whose ranks are computed by the definition as well.
    PageRank,
    /// Topics, on a corpus with planted topics.
    Lda,
    /// A click model, on clicks with planted weights.
    BlockPg,
}

/// Options of training commands that are of no use here.
pub const REFUSED: [&str; 3] = ["--virtual-workers", "--from", "--cache"];

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let advice = "is not for demo; train on a data set of `megagrid generate`";
    args.common.refuse(&REFUSED, advice)?;
    args.common.prepare(&args.common.run)?;
    match args.algorithm {
        Demo::Mf => mf::run(&args.common),
        Demo::PageRank => pagerank::run(&args.common),
        Demo::Lda => lda::run(&args.common),
        Demo::BlockPg => blockpg::run(&args.common),
    }
}

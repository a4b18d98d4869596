//! `megagrid demo`: data with a known answer, trained on, and how near the result comes.

mod blockpg;
mod lda;
mod mf;
mod pagerank;
mod show;

use crate::choice::{Choice, choice};
use crate::common::Common;

/// Trains on generated data with a known answer, and shows how near the result comes. No file, no network.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid demo --workers 2 --report demo.html")]
pub struct Args {
    /// What to train.
    #[arg(long, default_value = "mf", value_parser = choice::<Demo>())]
    algorithm: Demo,
    #[command(flatten)]
    common: Common,
}

/// What is trained.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Demo {
    Mf,
    PageRank,
    Lda,
    BlockPg,
}

impl Choice for Demo {
    const VALUES: &'static [(&'static str, &'static str)] = &[
        ("mf", "A recommender, on ratings with planted factors"),
        ("pagerank", "Ranks, on a graph whose ranks are computed by the definition as well"),
        ("lda", "Topics, on a corpus with planted topics"),
        ("blockpg", "A click model, on clicks with planted weights"),
    ];
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let advice = "is not for demo; train on a data set of `megagrid generate`";
    args.common.refuse(&["--virtual-workers"], advice)?;
    args.common.prepare(&args.common.run_options())?;
    match args.algorithm {
        Demo::Mf => mf::run(&args.common),
        Demo::PageRank => pagerank::run(&args.common),
        Demo::Lda => lda::run(&args.common),
        Demo::BlockPg => blockpg::run(&args.common),
    }
}

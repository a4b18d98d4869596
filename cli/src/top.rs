//! `megagrid top`: the best vertices of a trained PageRank model.

use std::path::PathBuf;

use megagrid_training::pagerank::{Ranks, Top, listing};
use megagrid_training::{Model, model};

use crate::output;

/// Lists the vertices with the highest scores of a PageRank model: place, score, id.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid top ranks -n 20")]
pub struct Args {
    /// The directory that `pagerank --model` wrote.
    model: PathBuf,
    /// How many.
    #[arg(short = 'n', long = "number", default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let (ranks, _) = model::load::<Ranks>(&args.model)?;
    output::print(&listing(&ranks.answer(&Top { number: args.number as usize })?))
}

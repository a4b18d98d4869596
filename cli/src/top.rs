//! `megagrid top`: the best vertices of a model of `pagerank` or `hits`.

use std::path::PathBuf;

use megagrid_training::graph::{Top, listing};
use megagrid_training::hits::Authorities;
use megagrid_training::pagerank::Ranks;
use megagrid_training::{Model, model};

use crate::output;

/// Lists the vertices with the highest scores of a model of `pagerank`, or the best authorities or hubs of a model of `hits`: place,
/// score, id.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid top ranks -n 20")]
pub struct Args {
    /// The directory that `pagerank --model` or `hits --model` wrote.
    model: PathBuf,
    /// How many.
    #[arg(short = 'n', long = "number", default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
    /// List hubs instead of authorities (hits).
    #[arg(long)]
    hubs: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let top = Top { number: args.number as usize, hubs: args.hubs };
    let best = if model::manifest(&args.model)?.kind == Authorities::KIND {
        model::load::<Authorities>(&args.model)?.0.answer(&top)?
    } else {
        model::load::<Ranks>(&args.model)?.0.answer(&top)?
    };
    output::print(&listing(&best))
}

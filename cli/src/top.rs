//! `megagrid top`: the best vertices of a model of `pagerank` or `hits`.

use std::path::PathBuf;

use megagrid_datasets::output::Column;
use megagrid_training::graph::{Top, listing};
use megagrid_training::hits::Authorities;
use megagrid_training::pagerank::Ranks;
use megagrid_training::{Model, model};

use crate::output;
use crate::rows::Output;

/// Lists the vertices with the highest scores of a model of `pagerank`, or the best authorities or hubs of a model of `hits`: place,
/// score, id. With --output or --json it is a table with the columns rank, id, score.
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
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.output.check()?;
    let top = Top { number: args.number as usize, hubs: args.hubs };
    let best = if model::manifest(&args.model)?.kind == Authorities::KIND {
        model::load::<Authorities>(&args.model)?.0.answer(&top)?
    } else {
        model::load::<Ranks>(&args.model)?.0.answer(&top)?
    };
    if !args.output.is_named() {
        return output::print(&listing(&best));
    }
    let (ids, scores): (Vec<String>, Vec<f64>) = best.into_iter().map(|one| (one.name, one.score)).unzip();
    args.output.write(std::iter::once(Ok(vec![
        ("rank", Column::U32((1..=ids.len() as u32).collect())),
        ("id", Column::Strings(ids.into())),
        ("score", Column::F64(scores.into())),
    ])))
}

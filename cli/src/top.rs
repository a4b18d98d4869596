//! `megagrid top`: the best vertices of a trained PageRank model.

use std::path::PathBuf;

use anyhow::bail;
use megagrid_datasets::output::{Column, read_table};

use crate::common;
use crate::model::{self, Manifest};
use crate::pagerank::listing;

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
    Manifest::read(&args.model, "pagerank")?;
    let path = args.model.join("scores.parquet");
    let (mut ids, mut scores) = (None, None);
    for (name, column) in read_table(&path)? {
        match (name.as_str(), column) {
            ("id", column) => ids = Some(column),
            ("score", Column::F32(values)) => scores = Some(values),
            _ => {}
        }
    }
    let Some(scores) = scores else {
        bail!("{}: no column score of numbers; the model is damaged, train it again", path.display());
    };
    common::print(&listing(&model::names(&path, ids)?, &scores, args.number as usize))
}

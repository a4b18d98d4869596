//! `megagrid similar`: the items, or users, that are most like others.

use std::path::PathBuf;

use clap::ArgGroup;
use megagrid_partition::Side;
use megagrid_training::mf::Similar;

use crate::factors::{Asked, listing, load, rows};
use crate::output;
use crate::rows::{Output, ROWS};

/// Lists the items most similar to an item, by the cosine of the angle between their factors in a model of `mf` or `als`: place, cosine, id.
///
/// For several items, and for those of --names and --all however many they are, it writes a table with the columns item, rank, similar,
/// cosine; as CSV to stdout, unless --output or --json names a place.
#[derive(Clone, Debug, clap::Args)]
#[command(
    group(ArgGroup::new("which").required(true).args(["name", "names", "all"])),
    after_help = "Examples:\n  megagrid similar movies 50 -n 5\n  megagrid similar movies --all --output alike.parquet"
)]
pub struct Args {
    /// The directory that `mf --model` or `als --model` wrote.
    model: PathBuf,
    /// Items, by their ids in the ratings.
    #[arg(value_name = "ITEM")]
    name: Vec<String>,
    /// The items that a file names, one a line; "-" is stdin.
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// All items of the model.
    #[arg(long)]
    all: bool,
    /// Compare users instead of items.
    #[arg(long)]
    users: bool,
    /// How many of each.
    #[arg(short = 'n', long = "number", default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.output.check()?;
    let (factors, _) = load(&args.model)?;
    let (side, column) = if args.users { (Side::Left, "user") } else { (Side::Right, "item") };
    let asked = match &args.names {
        Some(path) => Asked::of_file(&factors, side, path)?,
        None if args.all => Asked::all(&factors, side)?,
        None => Asked::named(&factors, side, &args.name)?,
    };
    let (similar, names, number) = (Similar::new(&factors.model, side), factors.names.get(side)?, args.number as usize);
    if asked.is_one && !args.output.is_named() {
        return output::print(&listing(&similar.to(&asked.ids, number).concat(), &names));
    }
    let step = (ROWS / number.min(names.len()).max(1)).max(1);
    args.output.write(asked.ids.chunks(step).map(|ids| {
        let found = similar.to(ids, number);
        Ok(rows([column, "rank", "similar", "cosine"], (ids, &names), (&found, &names)))
    }))
}

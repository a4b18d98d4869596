//! `megagrid top`: the best vertices of a model of `pagerank` or `hits`, or the largest weights of one of `blockpg`.

use std::path::PathBuf;

use megagrid_datasets::Dictionary;
use megagrid_datasets::output::Column;
use megagrid_training::Model;
use megagrid_training::blockpg::Linear;
use megagrid_training::graph::{Top, listing};
use megagrid_training::hits::Authorities;
use megagrid_training::model::{self, Scored};
use megagrid_training::pagerank::Ranks;

use crate::failure::usage;
use crate::kinds;
use crate::output;
use crate::progress::Progress;
use crate::rows::Output;

/// Lists the vertices with the highest scores of a model of `pagerank`, the best authorities or hubs of a model of `hits`, or the features with
/// the largest weights of a model of `blockpg`, for each class where it has more than two: place, score or weight, id. With --output or --json
/// it is a table with the columns rank, id, score, or class, rank, id, weight.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  megagrid top ranks -n 20\n  megagrid top clicks -n 5")]
pub struct Args {
    /// The directory that `pagerank --model`, `hits --model` or `blockpg --model` wrote.
    model: PathBuf,
    /// How many, of each class.
    #[arg(short = 'n', long = "number", default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
    /// List hubs instead of authorities (hits).
    #[arg(long)]
    hubs: bool,
    /// List the best of one set of vertices to restart at, counted from 1 (pagerank --restart-sets) [default: of all sets together].
    #[arg(long, value_name = "N", conflicts_with = "hubs")]
    set: Option<usize>,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.output.check()?;
    let kind = model::manifest(&args.model)?.kind;
    if kind == Linear::KIND {
        return weights(args);
    }
    let top = Top { number: args.number as usize, hubs: args.hubs, set: args.set };
    let progress = Progress::spinner(false, "loading");
    let (best, names) = match &kind[..] {
        Authorities::KIND => {
            let (model, _) = model::load::<Authorities>(&args.model)?;
            (model.answer(&top)?, if args.hubs { model.hubs.names } else { model.authorities.names })
        }
        Ranks::KIND => {
            let (model, _) = model::load::<Ranks>(&args.model)?;
            (model.answer(&top)?, model.ranked.names)
        }
        other => return Err(kinds::refused(&args.model, other, "pagerank, hits or blockpg")),
    };
    drop(progress);
    if !args.output.is_named() {
        return output::print(&listing(&best));
    }
    args.output.write(std::iter::once(Ok(vec![
        ("rank", Column::U32((1..=best.len() as u32).collect())),
        ("id", ids(best.iter(), &names)),
        ("score", Column::F64(best.iter().map(|one| one.score).collect())),
    ])))
}

/// Lists the largest weights of each model.
fn weights(args: &Args) -> anyhow::Result<()> {
    if args.hubs {
        return Err(usage("--hubs is for models of hits"));
    }
    if args.set.is_some() {
        return Err(usage("--set is for models of pagerank --restart-sets"));
    }
    let (linear, _) = model::load::<Linear>(&args.model)?;
    let found = largest(&linear, args.number as usize);
    if !args.output.is_named() {
        let text = found.iter().map(|(class, best)| format!("class {class}\n{}", listing(best)));
        return output::print(&text.collect::<String>());
    }
    let rows = || found.iter().flat_map(|(class, best)| (1_u32..).zip(best).map(move |(rank, one)| (class, rank, one)));
    args.output.write(std::iter::once(Ok(vec![
        ("class", Column::Strings(rows().map(|(class, ..)| class.clone()).collect())),
        ("rank", Column::U32(rows().map(|(_, rank, _)| rank).collect())),
        ("id", ids(rows().map(|(.., one)| one), &linear.features)),
        ("weight", Column::F64(rows().map(|(.., one)| one.score).collect())),
    ])))
}

/// Returns the class of each model, and the features with the largest weights.
fn largest(linear: &Linear, number: usize) -> Vec<(String, Vec<Scored>)> {
    let of = |model: usize| {
        let best = linear.largest(model, number).into_iter().map(|feature| Scored {
            name: linear.features.name(feature).into_owned(),
            score: linear.of(model)[feature as usize],
        });
        (linear.class(model).to_owned(), best.collect())
    };
    (0..linear.intercepts.len()).map(of).collect()
}

/// Returns names as a column: of integers where all of the model are.
fn ids<'s>(listed: impl Iterator<Item = &'s Scored>, all: &Dictionary) -> Column<'static> {
    let names: Vec<String> = listed.map(|one| one.name.clone()).collect();
    // The text of an integer is its canonical one.
    let integers = || names.iter().map(|name| name.parse().ok()).collect::<Option<Vec<u64>>>();
    match all.is_integers().then(integers).flatten() {
        Some(integers) => Column::U64(integers.into()),
        None => Column::Strings(names.into()),
    }
}

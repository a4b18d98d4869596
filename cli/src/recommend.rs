//! `megagrid recommend`: the best items of one user, of many, or of people that the model has not seen.

use std::path::{Path, PathBuf};

use clap::ArgGroup;
use megagrid_algorithms::ranking::Lists;
use megagrid_datasets::Roles;
use megagrid_partition::Side;
use megagrid_training::Error;
use megagrid_training::als::Recommender;
use megagrid_training::fold_in::{FoldedIn, fold_in};
use megagrid_training::input::{Source, plain_feedback, plain_pairs, plain_ratings};
use megagrid_training::mf::{Factors, Recommendations};
use megagrid_training::model::{Manifest, Model};

use crate::factors::{Asked, listing, load, rows, say_left_out, unclipped};
use crate::output;
use crate::progress::Progress;
use crate::rows::{Output, ROWS};

/// Lists the items that a model predicts the highest ratings of (`mf`), or that a user may want most (`als`): place, score, id.
///
/// For several users, and for those of --users, --all and --fold-in however many they are, it writes a table with the columns user, rank,
/// item, score; as CSV to stdout, unless --output or --json names a place.
/// Users come one after the other, as they were named. With --fold-in they are people whom the model has not seen: each is placed among
/// the model's items by his own ratings (or feedback) only, and what he has rated is left out.
#[derive(Clone, Debug, clap::Args)]
#[command(
    group(ArgGroup::new("who").required(true).args(["user", "users", "all", "fold_in"])),
    after_help = "Examples:\n  megagrid recommend movies 196 -n 5 --exclude ratings.csv\n  \
                  megagrid recommend movies --all --exclude ratings.csv --output best.parquet\n  \
                  megagrid recommend movies --fold-in theirs.csv"
)]
pub struct Args {
    /// The directory that `mf --model` or `als --model` wrote.
    model: PathBuf,
    /// Users, by their ids in the ratings.
    user: Vec<String>,
    /// The users that a file names, one a line; "-" is stdin.
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// All users of the model.
    #[arg(long)]
    all: bool,
    /// The people of these ratings, who need not be users of the model: a file, directory or .mgrid.
    #[arg(long, value_name = "RATINGS", conflicts_with = "exclude")]
    fold_in: Option<PathBuf>,
    /// How many items of each.
    #[arg(short = 'n', long = "number", default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
    /// Leave out the items that a user has rated here: a file, directory or .mgrid.
    #[arg(long, value_name = "RATINGS")]
    exclude: Option<PathBuf>,
    /// Where in the table of --exclude or --fold-in is what, by number or name: user=2,item=1 [default: as the model's ratings were].
    #[arg(long, value_name = "ROLE=COLUMN,...")]
    columns: Option<Roles>,
    /// Leave predictions outside the range of the ratings as they are (mf).
    #[arg(long)]
    no_clip: bool,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.output.check()?;
    let (mut factors, manifest) = load(&args.model)?;
    if args.no_clip {
        factors = unclipped(factors, &manifest)?;
    }
    match &args.fold_in {
        Some(path) => {
            let source = ratings(path, &manifest, args.columns.as_ref());
            let FoldedIn { factors, rated, .. } = folded_in(factors, &manifest, source)?;
            answer(args, &factors, &Asked::all(&factors, Side::Left)?, &rated)
        }
        None => {
            let asked = match &args.users {
                Some(path) => Asked::of_file(&factors, Side::Left, path)?,
                None if args.all => Asked::all(&factors, Side::Left)?,
                None => Asked::named(&factors, Side::Left, &args.user)?,
            };
            let left_out = match &args.exclude {
                Some(path) => rated(&factors, &asked.ids, ratings(path, &manifest, args.columns.as_ref()))?,
                None => Lists::new(asked.ids.len(), std::iter::empty()),
            };
            answer(args, &factors, &asked, &left_out)
        }
    }
}

fn answer(args: &Args, factors: &Factors, asked: &Asked, left_out: &Lists) -> anyhow::Result<()> {
    let (users, items) = (factors.names.get(Side::Left)?, factors.names.get(Side::Right)?);
    let (recommendations, number) = (Recommendations::new(&factors.model, factors.range), args.number as usize);
    if asked.is_one && !args.output.is_named() {
        let best = recommendations.of(&asked.ids, number, |at| left_out.of(at));
        return output::print(&listing(&best.concat(), &items));
    }
    let step = (ROWS / number.min(items.len()).max(1)).max(1);
    args.output.write((0..).step_by(step).zip(asked.ids.chunks(step)).map(|(first, ids)| {
        let best = recommendations.of(ids, number, |at| left_out.of(first + at));
        Ok(rows(["user", "rank", "item", "score"], (ids, &users), (&best, &items)))
    }))
}

/// Names ratings that are laid out as those of the model were, unless it is said how.
fn ratings(path: &Path, manifest: &Manifest, columns: Option<&Roles>) -> Source {
    let source = Source::as_trained(path, &manifest.config);
    Source { columns: columns.cloned().or(source.columns.clone()), ..source }
}

/// Places people among the items of a model, and says what of their ratings counts for nothing.
fn folded_in(factors: Factors, manifest: &Manifest, source: Source) -> anyhow::Result<FoldedIn> {
    let path = source.input.clone();
    let progress = Progress::spinner(false, "reading");
    let theirs = if manifest.kind == Recommender::KIND { plain_feedback(source)? } else { plain_ratings(&source)? };
    progress.say("placing");
    let folded = fold_in(factors, manifest, &theirs).map_err(|error| match error {
        Error::Missing(problem) => Error::invalid(&path, problem),
        other => other,
    })?;
    drop(progress);
    say_left_out(&folded.unknown_items, theirs.right_names().len(), "items", "not in the model");
    say_left_out(&folded.left_out, theirs.left_names.len(), "users", "without anything that counts");
    Ok(folded)
}

/// Returns the items that each of these users has rated.
fn rated(factors: &Factors, users: &[u32], source: Source) -> anyhow::Result<Lists> {
    let _progress = Progress::spinner(false, "reading");
    let ratings = plain_pairs(source)?;
    let (known_users, known_items) = (factors.names.get(Side::Left)?, factors.names.get(Side::Right)?);
    let mut numbers = vec![None; known_users.len()];
    (0..).zip(users).for_each(|(number, &user)| numbers[user as usize] = Some(number));
    let found = ratings.left_names.translate(&known_users);
    let items = ratings.right_names().translate(&known_items);
    for (rows, names, what) in [(&found, &ratings.left_names, "user"), (&items, ratings.right_names(), "item")] {
        if rows.iter().all(Option::is_none) {
            let first = names.name(0);
            eprintln!("megagrid: no {what} of the ratings to leave out (\"{first}\" …) is in the model");
        }
    }
    let numbers: Vec<Option<u32>> = found.into_iter().map(|user| numbers[user? as usize]).collect();
    let ends = ratings.edges.left.iter().zip(&ratings.edges.right);
    let pairs = ends.filter_map(|(&user, &item)| Some((numbers[user as usize]?, items[item as usize]?)));
    Ok(Lists::new(users.len(), pairs))
}

//! `megagrid recommend`: the best items of a user.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::anyhow;

use crate::mf::saved::{self, Saved};
use crate::{common, input};

/// Lists the items that a model of `mf` predicts the highest ratings of: place, rating, id.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid recommend movies 196 -n 5 --ratings ratings.csv")]
pub struct Args {
    /// The directory that `mf --model` wrote.
    model: PathBuf,
    /// The user, by its id in the ratings.
    user: String,
    /// How many.
    #[arg(short = 'n', long = "number", default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
    /// Leave out the items that the user has rated here: a file, directory or .mgrid.
    #[arg(long, value_name = "FILE")]
    ratings: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let saved = saved::read(&args.model)?;
    let user = saved.users.find(&args.user).ok_or_else(|| {
        let (number, user) = (saved.users.len(), &args.user);
        anyhow!("user \"{user}\" is not among the {number} users of the model; name it as the ratings did")
    })?;
    let seen = match &args.ratings {
        Some(path) => seen(&saved, &args.user, &input::plain_ratings(path)?),
        None => HashSet::new(),
    };
    let best = saved.best(user, args.number as usize, |item| seen.contains(&item));
    common::print(&listing(&saved, &best))
}

/// Returns the items that a user has rated.
fn seen(saved: &Saved, user: &str, ratings: &megagrid_datasets::Dataset<f32>) -> HashSet<u32> {
    let Some(user) = ratings.left_names.find(user) else { return HashSet::new() };
    let known = ratings.right_names().translate(&saved.items);
    let ends = ratings.edges.left.iter().zip(&ratings.edges.right);
    ends.filter(|(left, _)| **left == user).filter_map(|(_, &item)| known[item as usize]).collect()
}

/// Lists items and predicted ratings.
pub fn listing(saved: &Saved, best: &[(u32, f32)]) -> String {
    let line = |(at, (item, rating)): (usize, &(u32, f32))| {
        format!("{:>5}  {rating:>8.4}  {}\n", at + 1, saved.items.name(*item))
    };
    best.iter().enumerate().map(line).collect()
}

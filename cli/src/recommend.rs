//! `megagrid recommend`: the best items of a user.

use std::collections::HashSet;
use std::path::PathBuf;

use megagrid_datasets::Dataset;
use megagrid_training::als::Recommender;
use megagrid_training::mf::{Factors, Recommend};
use megagrid_training::model::Scored;
use megagrid_training::{Model, input, model};

use crate::output;

/// Lists the items that a model predicts the highest ratings of (`mf`), or that a user may want most (`als`): place, score, id.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid recommend movies 196 -n 5 --ratings ratings.csv")]
pub struct Args {
    /// The directory that `mf --model` or `als --model` wrote.
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
    let model = match model::manifest(&args.model)?.kind == Recommender::KIND {
        true => model::load::<Recommender>(&args.model)?.0.0,
        false => model::load::<Factors>(&args.model)?.0,
    };
    let without = match &args.ratings {
        Some(path) => rated(&args.user, &input::plain_ratings(path)?),
        None => HashSet::new(),
    };
    let question = Recommend { user: args.user.clone(), number: args.number as usize, without };
    let line = |(at, one): (usize, &Scored)| format!("{at:>5}  {:>8.4}  {}\n", one.score, one.name);
    output::print(&(1..).zip(&model.answer(&question)?).map(line).collect::<String>())
}

/// Returns the items that a user has rated.
fn rated(user: &str, ratings: &Dataset<f32>) -> HashSet<String> {
    let Some(user) = ratings.left_names.find(user) else { return HashSet::new() };
    let ends = ratings.edges.left.iter().zip(&ratings.edges.right);
    let items = ends.filter(|(left, _)| **left == user).map(|(_, &item)| item);
    items.map(|item| ratings.right_names().name(item).into_owned()).collect()
}

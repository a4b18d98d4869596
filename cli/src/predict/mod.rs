//! `megagrid predict`: how likely samples have the label 1, or how users will rate items.

mod pairs;
mod samples;

use std::path::PathBuf;

use megagrid_training::blockpg::Linear;
use megagrid_training::{Model, model};

use crate::failure::usage;
use crate::rows::Output;

/// Writes the probability that each sample has the label 1, by a model of `blockpg`, or the ratings of pairs of a user and an item, by a
/// model of `mf`; by one of `als` their scores.
///
/// Samples are LIBSVM text, `label index:value ...` a line. Labels are looked at only for --quality: otherwise a label may be
/// any word, or be left out. A .mgrid holds labels. Features that the model does not know count nothing. What is written has the columns
/// sample and probability; as text it is one number a line, in the order of the samples.
///
/// Pairs are `user item` a line, or `user item rating`, separated as ratings are. What is written has the columns user, item and
/// prediction, in the order of the pairs. Of a user or item that the model does not know, the mean and what is known of the other count.
/// Ratings are kept within the range of those that the model was trained on.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  megagrid predict clicks new.libsvm --output probabilities.parquet\n  \
                        megagrid predict movies pairs.csv --output ratings.csv\n  megagrid predict movies unseen.csv --quality")]
pub struct Args {
    /// The directory that `blockpg --model`, `mf --model` or `als --model` wrote.
    model: PathBuf,
    /// Samples or pairs: a file, directory or .mgrid.
    input: PathBuf,
    /// Say how good predictions are instead: area under the curve, log loss and accuracy by the labels of samples; root of the mean
    /// squared error and mean absolute error by the ratings of pairs.
    #[arg(long, conflicts_with = "output")]
    quality: bool,
    /// Leave predictions outside the range of the ratings as they are (mf).
    #[arg(long)]
    no_clip: bool,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.output.check()?;
    let is_linear = model::manifest(&args.model)?.kind == Linear::KIND;
    if is_linear && args.no_clip {
        return Err(usage("--no-clip is for ratings; probabilities have their range"));
    }
    if is_linear { samples::run(args) } else { pairs::run(args) }
}

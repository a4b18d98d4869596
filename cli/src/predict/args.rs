//! Arguments of `megagrid predict`.

use std::path::PathBuf;

use megagrid_datasets::Roles;

use crate::rows::Output;

/// Writes how likely each sample is of which class, by a model of `blockpg`, or the ratings of pairs of a user and an item, by a
/// model of `mf`; by one of `als` their scores.
///
/// Samples are written as those that the model was trained on: LIBSVM text, `label index:value ...` a line, or a table, whose words are found and whose features are called as
/// then. Labels are looked at only for --quality: otherwise a label may be
/// any word, or be left out, of a table with the column. A .mgrid holds labels. Features that the model does not know count nothing.
///
/// Of two classes what is written has the columns sample and probability_CLASS, of the second class: the greater number or the later word, 1 of
/// --positive; `megagrid top` names it. Where neither --output nor --json names a place it is that probability only, one number a line, in the order of the samples. Where the
/// model has more than two classes, what is written is always a table: sample, class (the likeliest) and a column probability_CLASS for each.
///
/// Pairs are `user item` a line, or `user item rating`, separated as ratings are. What is written has the columns user, item and
/// prediction, in the order of the pairs. Of a user or item that the model does not know, the mean and what is known of the other count.
/// Ratings are kept within the range of those that the model was trained on.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  megagrid predict clicks new.libsvm --output probabilities.parquet\n  \
                        megagrid predict movies pairs.csv --output ratings.csv\n  megagrid predict movies unseen.csv --quality")]
pub struct Args {
    /// The directory that `blockpg --model`, `mf --model` or `als --model` wrote.
    pub model: PathBuf,
    /// Samples or pairs: a file, directory or .mgrid.
    pub input: PathBuf,
    /// Say how good predictions are instead: area under the curve (of two classes), log loss and accuracy by the labels of samples; root of the mean
    /// squared error and mean absolute error by the ratings of pairs.
    #[arg(long, conflicts_with = "output")]
    pub quality: bool,
    /// Columns of a table: text=COLUMN of samples, and label=COLUMN for --quality, perhaps weight=COLUMN; user=COLUMN,item=COLUMN of pairs, and rating=COLUMN for
    /// --quality [default: those that the model was trained on].
    #[arg(long, value_name = "ROLE=COLUMN,...")]
    pub columns: Option<Roles>,
    /// Leave predictions outside the range of the ratings as they are (mf).
    #[arg(long)]
    pub no_clip: bool,
    #[command(flatten)]
    pub output: Output,
}

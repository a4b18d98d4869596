//! `megagrid predict`: how likely samples have the label 1.

use std::path::PathBuf;

use megagrid_algorithms::blockpg::Quality;
use megagrid_datasets::output::{Column, write_table};
use megagrid_datasets::{Format, Samples, read_unlabelled};
use megagrid_training::blockpg::{Linear, chance, read_samples};
use megagrid_training::model;

use crate::output;

/// Writes the probability that each sample has the label 1, by a model of `blockpg`: one number a line, in the order of the
/// samples. Features that the model does not know count nothing.
///
/// Samples are LIBSVM text, `label index:value ...` a line. Labels are looked at only for --quality: otherwise a label may be
/// any word, or be left out. A .mgrid holds labels.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid predict clicks new.libsvm --output probabilities.parquet")]
pub struct Args {
    /// The directory that `blockpg --model` wrote.
    model: PathBuf,
    /// Samples: a file, directory or .mgrid.
    samples: PathBuf,
    /// Write to a file instead: a table (sample, probability) if its name ends in .parquet, else text.
    #[arg(short, long, value_name = "FILE", conflicts_with = "quality")]
    output: Option<PathBuf>,
    /// Print area under the curve, log loss and accuracy instead, by the labels of the samples.
    #[arg(long)]
    quality: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let (model, _) = model::load::<Linear>(&args.model)?;
    let is_cache = matches!(Format::detect(&args.samples), Ok(Format::Cache));
    let samples = match (is_cache, args.quality) {
        // Its labels were chosen when it was made.
        (true, _) => read_samples(&args.samples, None, &[])?,
        (false, true) => read_samples(&args.samples, Some(Format::Libsvm), &model.positive)?,
        (false, false) => Samples { data: read_unlabelled(&args.samples)?, labels: Vec::new() },
    };
    let order: Vec<u64> = samples.data.left_names.iter().map(|name| name.parse().unwrap_or(0)).collect();
    let (scores, labels) = model.scores(samples);
    if args.quality {
        let Quality { auc, log_loss, accuracy } = Quality::new(&scores, &labels);
        return output::print(&format!("auc {auc:.6}\nlog_loss {log_loss:.6}\naccuracy {accuracy:.6}\n"));
    }
    // A cache has its samples in another order than the text that it was made of.
    let chances = scores.iter().map(|&score| chance(score));
    let mut rows: Vec<(u64, f64)> = order.into_iter().zip(chances).collect();
    rows.sort_by_key(|row| row.0);
    match &args.output {
        Some(path) if path.extension().is_some_and(|extension| extension == "parquet") => {
            let (numbers, chances): (Vec<u64>, Vec<f64>) = rows.into_iter().unzip();
            let columns = [("sample", Column::U64(numbers.into())), ("probability", Column::F64(chances.into()))];
            Ok(write_table(path, &columns)?)
        }
        output => {
            let text: String = rows.iter().map(|(_, chance)| format!("{chance:.9}\n")).collect();
            output::write_text(output.as_deref().unwrap_or("-".as_ref()), &text)
        }
    }
}

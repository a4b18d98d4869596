//! The probabilities of samples.

use megagrid_algorithms::blockpg::Quality;
use megagrid_datasets::output::Column;
use megagrid_datasets::{Format, Samples, read_unlabelled};
use megagrid_training::blockpg::{Linear, chance, read_samples};
use megagrid_training::model;

use super::args::Args;
use crate::data::write_findings;
use crate::output;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let (model, _) = model::load::<Linear>(&args.model)?;
    let is_cache = matches!(Format::detect(&args.input), Ok(Format::Cache));
    let samples = match (is_cache, args.quality) {
        // Its labels were chosen when it was made.
        (true, _) => read_samples(&args.input, None, &[])?,
        (false, true) => read_samples(&args.input, Some(Format::Libsvm), &model.positive)?,
        (false, false) => Samples { data: read_unlabelled(&args.input)?, labels: Vec::new() },
    };
    let order: Vec<u64> = samples.data.left_names.iter().map(|name| name.parse().unwrap_or(0)).collect();
    let (scores, labels) = model.scores(samples);
    if args.quality {
        let Quality { auc, log_loss, accuracy } = Quality::new(&scores, &labels);
        let text = format!("auc {auc:.6}\nlog_loss {log_loss:.6}\naccuracy {accuracy:.6}\n");
        let found = serde_json::json!({ "auc": auc, "log_loss": log_loss, "accuracy": accuracy });
        return write_findings(args.output.json.as_deref(), &found, &text);
    }
    // A cache has its samples in another order than the text that it was made of.
    let chances = scores.iter().map(|&score| chance(score));
    let mut rows: Vec<(u64, f64)> = order.into_iter().zip(chances).collect();
    rows.sort_by_key(|row| row.0);
    if args.output.is_text() {
        let text: String = rows.iter().map(|(_, chance)| format!("{chance:.9}\n")).collect();
        return output::write_text(args.output.output.as_deref().unwrap_or("-".as_ref()), &text);
    }
    let (numbers, chances): (Vec<u64>, Vec<f64>) = rows.into_iter().unzip();
    let piece = vec![("sample", Column::U64(numbers.into())), ("probability", Column::F64(chances.into()))];
    args.output.write(std::iter::once(Ok(piece)))
}

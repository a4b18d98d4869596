//! `megagrid demo --algorithm blockpg`: clicks with planted weights, and how many of these are found.

use std::fmt::Write;

use megagrid_datasets::synthetic::{ClicksSettings, ClicksTruth};
use megagrid_training::blockpg::{Linear, LinearOptions, Regression, Samples};
use megagrid_training::record::Record;

use crate::common::Common;

/// Part of the samples that is tested on.
const HOLDOUT: f64 = 0.2;
/// How many weights are shown.
const SHOWN: usize = 10;

/// Runs the demo.
pub fn run(common: &Common) -> anyhow::Result<()> {
    let planted =
        ClicksSettings { num_samples: 50_000, num_features: 1000, seed: common.run.seed, ..Default::default() };
    let made = planted.generate()?;
    common.say(&format!(
        "Made {} clicks on {} features: one feature in {:.0} has a weight, {:.0} % of the labels are 1.\n",
        planted.num_samples,
        planted.num_features,
        1.0 / planted.density,
        100.0 * planted.click_rate
    ))?;
    let options = LinearOptions { l1: vec![10.0].into(), iterations: 500, ..LinearOptions::default() };
    let data = Samples::new(made.samples.in_degree_order(), true, Some((HOLDOUT, common.run.seed)))?;
    let show = |record: &Record, model: &Linear| Ok(compared(record, model, &made.truth));
    let origin = serde_json::json!({ "holdout": HOLDOUT, "intercept": true });
    super::show::train::<Regression>(data, origin, options, common, &show)
}

/// Lists the largest weights beside the planted ones.
fn compared(record: &Record, model: &Linear, truth: &ClicksTruth) -> String {
    let mut order: Vec<usize> = (0..model.features.len()).collect();
    order.sort_by(|&a, &b| model.weights[b].abs().total_cmp(&model.weights[a].abs()));
    let mut text = "\nThe largest weights, as found and as planted:\n".to_owned();
    for &feature in order.iter().take(SHOWN) {
        let name = model.features.name(feature as u32);
        // Names are the generator's numbers, from 1.
        let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let planted = number.and_then(|number| truth.weights.get(number)).copied().unwrap_or(f32::NAN);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  feature {name:<6} {:>8.3} {planted:>8.3}", model.weights[feature]);
    }
    let found = record.result.metrics.get("test_log_loss").copied().unwrap_or(f64::NAN);
    let _ = writeln!(
        text,
        "\nLog loss on unseen samples {found:.4}; of the planted model on all samples {:.4}.\n\n\
         Next: megagrid blockpg YOUR-SAMPLES.libsvm --intercept --holdout 0.1 --model clicks",
        truth.log_loss
    );
    text
}

//! `megagrid demo --algorithm blockpg`: clicks with planted weights, and how many of these are found.

use std::fmt::Write;

use megagrid_datasets::synthetic::ClicksSettings;

use super::{Job, Options, SampleOptions, data, train};
use crate::common::{self, Common};
use crate::record::Phases;
use crate::session;

/// Part of the samples that is tested on.
const HOLDOUT: f64 = 0.2;
/// How many weights are shown.
const SHOWN: usize = 10;

/// Runs the demo.
pub fn run(common: &Common) -> anyhow::Result<()> {
    let (settings, resolved) = common.prepare()?;
    let planted = ClicksSettings { num_samples: 50_000, num_features: 1000, seed: common.seed, ..Default::default() };
    let made = planted.generate()?;
    let say = |text: &str| if common.wants_summary() { common::print(text) } else { Ok(()) };
    say(&format!(
        "Made {} clicks on {} features: one feature in {:.0} has a weight, {:.0} % of the labels are 1.\n",
        planted.num_samples,
        planted.num_features,
        1.0 / planted.density,
        100.0 * planted.click_rate
    ))?;
    let options = Options {
        l1: vec![10.0],
        l2: 0.0,
        intercept: true,
        warm_start: None,
        blocks: None,
        batch: None,
        delay: None,
        iterations: 500,
        tolerance: 1e-6,
    };
    let samples = SampleOptions { holdout: Some(HOLDOUT), ..SampleOptions::default() };
    let data = data::from_samples(made.samples, &samples, true, common, &mut Phases::default())?;
    let job = Job::new(data, options.path()?, &options, None, settings);
    let own = options.resolved(job.block_values);
    let config = common::join([own, serde_json::json!({ "holdout": HOLDOUT }), serde_json::to_value(&resolved)?]);
    let trained = train(job, common, config, Phases::default())?;
    if let Some(directory) = &common.model {
        trained.write(directory)?;
    }
    say(&session::summary(&trained.record))?;
    say(&trained.findings())?;
    session::write_record(&trained.record, common)?;

    let mut order: Vec<usize> = (0..trained.features.len()).collect();
    order.sort_by(|&a, &b| trained.weights[b].abs().total_cmp(&trained.weights[a].abs()));
    let mut text = "\nThe largest weights, as found and as planted:\n".to_owned();
    for &feature in order.iter().take(SHOWN) {
        let name = trained.features.name(feature as u32);
        // Names are the generator's numbers, from 1.
        let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let planted = number.and_then(|number| made.truth.weights.get(number)).copied().unwrap_or(f32::NAN);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  feature {name:<6} {:>8.3} {planted:>8.3}", trained.weights[feature]);
    }
    let found = trained.record.result.metrics.get("test_log_loss").copied().unwrap_or(f64::NAN);
    let _ = writeln!(
        text,
        "\nLog loss on unseen samples {found:.4}; of the planted model on all samples {:.4}.\n\n\
         Next: megagrid blockpg YOUR-SAMPLES.libsvm --intercept --holdout 0.1 --model clicks",
        made.truth.log_loss
    );
    say(&text)
}

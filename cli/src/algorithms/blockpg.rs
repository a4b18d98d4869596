//! `megagrid blockpg`.

use megagrid_datasets::Label;
use megagrid_training::blockpg::{LinearOptions, Regression, SampleOptions};
use megagrid_training::{Consistency, RunOptions};
use serde_json::Value;

use super::refuse_words;
use crate::data::Kind;
use crate::entry::{Spelling, Trains};
use crate::failure::usage;

impl Trains for Regression {
    const KIND: Kind = Kind::Samples;
    const ABOUT: [&'static str; 2] = [
        "Fits a sparse logistic regression: weights of features, most of them zero, that tell the classes of samples",
        "Minimizes: sum of log losses + l1 · |w|₁ + l2/2 · |w|². A run that converged prints a certificate: a bound below which no \
         model's objective is. The model holds weights.parquet (id, weight), of features whose weight is not zero; of more than two classes a column weight_CLASS for each. \
         These are each told from the rest, or fitted together (--multinomial).",
    ];
    const ENDS: [Option<&'static str>; 2] = [None, Some("features")];
    const EXAMPLES: &'static str = "Examples:
  megagrid blockpg clicks.libsvm --l1 1 --intercept --holdout 0.1 --model clicks
  megagrid blockpg news20.gz --positive 1,2,3,4,5 --normalize --l1 path --holdout 0.1
  megagrid blockpg news20.gz --normalize --l1 0 --l2 1 --class-weight balanced --model news
  megagrid blockpg news20.gz --multinomial --normalize --intercept --l1 0.5 --holdout 0.1 --model news
  megagrid blockpg reviews.csv --columns text=body,label=stars --lower-case --split punctuation --bigrams --normalize --model stars";

    fn kept_positive(samples: &SampleOptions) -> anyhow::Result<Vec<Label>> {
        refuse_words(&samples.words)?;
        Ok(samples.positive.clone())
    }

    /// A delay is a slack, which is written as such.
    fn spell(name: &str, _: &Value, _: &Value) -> Spelling {
        if name == "delay" { Spelling::Absent } else { Spelling::Usual }
    }

    fn run_options(options: &LinearOptions, run: &RunOptions) -> anyhow::Result<RunOptions> {
        if options.delay.is_none() {
            return Ok(run.clone());
        }
        if run.consistency != Consistency::Bsp || run.slack.is_some() {
            return Err(usage("--delay is --consistency ssp --slack by another name; give one of them"));
        }
        Ok(RunOptions { consistency: Consistency::Ssp, slack: options.delay, ..run.clone() })
    }
}

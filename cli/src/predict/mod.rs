//! `megagrid predict`: how likely samples are of which class, or how users will rate items.

mod args;
mod pairs;
mod samples;

pub use args::Args;

use megagrid_training::blockpg::Linear;
use megagrid_training::{Model, model};

use crate::failure::usage;

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.output.check()?;
    let is_linear = model::manifest(&args.model)?.kind == Linear::KIND;
    if is_linear && args.no_clip {
        return Err(usage("--no-clip is for ratings; probabilities have their range"));
    }
    if is_linear { samples::run(args) } else { pairs::run(args) }
}

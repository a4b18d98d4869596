//! The ratings, or scores, of pairs of a user and an item.

use megagrid_datasets::output::Column;
use megagrid_datasets::{Dictionary, Format};
use megagrid_partition::Side;
use megagrid_training::als::Recommender;
use megagrid_training::input::{Source, plain_pairs, plain_ratings};
use megagrid_training::model::Manifest;
use megagrid_training::{Error, Model};
use rayon::prelude::*;

use super::args::Args;
use crate::data::write_findings;
use crate::factors::{load, unclipped};
use crate::failure::usage;
use crate::progress::Progress;
use crate::rows::{ROWS, named};

/// Pairs in the order of the input.
struct Pairs {
    /// Each with its rating, which is anything where that is not asked for.
    pairs: Vec<(u32, u32, f32)>,
    names: [Dictionary; 2],
}

impl Pairs {
    fn read(args: &Args, manifest: &Manifest) -> anyhow::Result<Self> {
        let mut source = Source::as_trained(&args.input, &manifest.config);
        source.columns = args.columns.clone().or(source.columns);
        if args.quality && source.columns.is_none() && Format::detect(&args.input)? == Format::Edges {
            let problem = "pairs without ratings; for --quality each needs one, in a third column";
            return Err(Error::invalid(&args.input, problem).into());
        }
        let data = if args.quality { plain_ratings(&source)? } else { plain_pairs(source)? };
        let ends = data.edges.left.iter().zip(&data.edges.right).zip(&data.edges.data);
        let pairs = ends.map(|((&user, &item), &rating)| (user, item, rating)).collect();
        let names = [data.left_names.clone(), data.right_names().clone()];
        Ok(Self { pairs, names })
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let (mut factors, manifest) = load(&args.model)?;
    let is_implicit = manifest.kind == Recommender::KIND;
    if is_implicit && args.quality {
        let advice = "that of als is how it ranks: train it with --holdout-per-user and --ranking";
        return Err(usage(format!("--quality compares with ratings; {advice}")));
    }
    if args.no_clip {
        factors = unclipped(factors, &manifest)?;
    }
    let progress = Progress::spinner(false, "reading");
    let Pairs { pairs, names } = Pairs::read(args, &manifest)?;
    drop(progress);
    let [users, items] = [Side::Left, Side::Right].map(|side| {
        let known = factors.names.get(side)?;
        Ok::<_, Error>(names[side as usize].translate(&known))
    });
    let (users, items) = (users?, items?);
    let ends = |&(user, item, _): &(u32, u32, f32)| (users[user as usize], items[item as usize]);
    let unknown = pairs.iter().map(ends).filter(|(user, item)| user.is_none() || item.is_none()).count();
    if unknown > 0 {
        let what = if is_implicit { "their score is 0" } else { "what is known of the other counts" };
        let all = pairs.len();
        eprintln!("megagrid: {unknown} of {all} pairs have a user or an item that the model does not know; {what}");
    }
    let predicted = |pair: &(u32, u32, f32)| {
        let (user, item) = ends(pair);
        factors.predict(user, item)
    };
    if args.quality {
        let errors = |pair: &(u32, u32, f32)| f64::from(predicted(pair)) - f64::from(pair.2);
        let mean = |of: fn(f64) -> f64| pairs.iter().map(|pair| of(errors(pair))).sum::<f64>() / pairs.len() as f64;
        let (rmse, mae) = (mean(|error| error * error).sqrt(), mean(f64::abs));
        let found = serde_json::json!({ "rmse": rmse, "mae": mae, "pairs": pairs.len() });
        return write_findings(args.output.json.as_deref(), &found, &format!("rmse {rmse:.6}\nmae {mae:.6}\n"));
    }
    args.output.write(pairs.chunks(ROWS).map(|pairs| {
        let ends: [Vec<u32>; 2] =
            [pairs.iter().map(|pair| pair.0).collect(), pairs.iter().map(|pair| pair.1).collect()];
        Ok(vec![
            ("user", named(&names[0], &ends[0])),
            ("item", named(&names[1], &ends[1])),
            ("prediction", Column::F32(pairs.par_iter().map(predicted).collect::<Vec<f32>>().into())),
        ])
    }))
}

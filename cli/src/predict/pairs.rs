//! The ratings, or scores, of pairs of a user and an item.

use std::path::Path;

use megagrid_datasets::output::Column;
use megagrid_datasets::{Dictionary, Format, read_graph};
use megagrid_partition::Side;
use megagrid_training::als::Recommender;
use megagrid_training::{Error, Model, input};
use rayon::prelude::*;

use super::args::Args;
use crate::data::write_findings;
use crate::factors::{load, unclipped};
use crate::failure::usage;
use crate::rows::{ROWS, named};

/// Pairs in the order of the input.
struct Pairs {
    /// Each with its rating, which is 0 where there are none.
    pairs: Vec<(u32, u32, f32)>,
    names: [Dictionary; 2],
    has_ratings: bool,
}

impl Pairs {
    fn read(path: &Path) -> anyhow::Result<Self> {
        if Format::detect(path)? == Format::Edges {
            let data = read_graph(path, Some(Format::Edges))?;
            let pairs = data.edges.left.iter().zip(&data.edges.right).map(|(&user, &item)| (user, item, 0.0)).collect();
            let names = [data.left_names.clone(), data.right_names().clone()];
            return Ok(Self { pairs, names, has_ratings: false });
        }
        let data = input::plain_ratings(path)?;
        let ends = data.edges.left.iter().zip(&data.edges.right).zip(&data.edges.data);
        let pairs = ends.map(|((&user, &item), &rating)| (user, item, rating)).collect();
        let names = [data.left_names.clone(), data.right_names().clone()];
        Ok(Self { pairs, names, has_ratings: true })
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
    let Pairs { pairs, names, has_ratings } = Pairs::read(&args.input)?;
    if args.quality && !has_ratings {
        let problem = "pairs without ratings; for --quality each needs one, in a third column";
        return Err(Error::invalid(&args.input, problem).into());
    }
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

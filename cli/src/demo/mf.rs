//! `megagrid demo`: ratings with planted factors, and how near the noise the errors come.

use megagrid_datasets::synthetic::{RatingsSettings, RatingsTruth};
use megagrid_partition::Side;
use megagrid_training::mf::{FactorOptions, Factorization, Factors, Ratings, Recommendations};
use megagrid_training::record::Record;

use crate::common::Common;
use crate::curve::{Series, draw};

/// Part of the ratings that is tested on.
const HOLDOUT: f64 = 0.1;
/// How many recommendations are shown.
const SHOWN: usize = 5;

/// Ratings of which a good model comes close to the noise: many for each parameter.
fn ratings(seed: u64) -> RatingsSettings {
    RatingsSettings { num_users: 2500, num_items: 1200, num_ratings: 1_000_000, seed, ..RatingsSettings::default() }
}

/// Runs the demo.
pub fn run(common: &Common) -> anyhow::Result<()> {
    let planted = ratings(common.run.seed);
    let made = planted.generate()?;
    common.say(&format!(
        "Made {} ratings of {} items by {} users: {} planted factors, noise of {}.\n",
        planted.num_ratings, planted.num_items, planted.num_users, planted.latent_dim, planted.noise
    ))?;
    let options = FactorOptions {
        dims: planted.latent_dim,
        lambda: Some(0.01),
        init_std: 0.1,
        biases: false,
        ..FactorOptions::default()
    };
    let data = Ratings::new(made.data.in_degree_order(), Some(HOLDOUT), common.run.seed)?;
    let show = |record: &Record, model: &Factors| {
        let best = recommended(model, &made.truth)?;
        let next = "\nNext: megagrid mf YOUR-RATINGS.csv --holdout 0.1 --model movies\n";
        Ok(shown(record, made.truth.noise_floor) + &best + next)
    };
    let origin = serde_json::json!({ "holdout": HOLDOUT });
    super::show::train::<Factorization>(data, origin, options, common, &show)
}

/// Draws the learning curve and compares with the noise.
fn shown(record: &Record, noise_floor: f64) -> String {
    let of = |name: &str| -> Vec<f64> {
        record.iterations.iter().filter_map(|one| one.metrics.get(name)).copied().collect()
    };
    let (train, test) = (of("running_rmse"), of("test_rmse"));
    let plot = draw(&[Series { mark: '·', values: &train }, Series { mark: '●', values: &test }], noise_floor);
    let last = record.result.metrics.get("test_rmse").copied().unwrap_or(f64::NAN);
    let above = 100.0 * (last / noise_floor - 1.0);
    format!(
        "\nRMSE by iteration: ● unseen ratings, · training, before each step, ─ the noise, below which no model can stay\n{plot}\n\
         RMSE on unseen ratings {last:.4}, the noise planted {noise_floor:.4}: {above:.1} % above.\n"
    )
}

/// Lists what the first user should like, beside the truth.
fn recommended(model: &Factors, truth: &RatingsTruth) -> anyhow::Result<String> {
    let (users, items) = (model.names.get(Side::Left)?, model.names.get(Side::Right)?);
    let user = 0;
    let name = users.name(user);
    let mut text = format!("\nThe best of all items for user {name}, as predicted and as planted:\n");
    let best = Recommendations::new(&model.model, model.range).of(&[user], SHOWN, |_| &[]);
    for (at, (item, rating)) in best.into_iter().flatten().enumerate() {
        let item = items.name(item);
        // Names are the generator's numbers, from 1.
        let number = |name: &str| name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let (Some(user), Some(planted)) = (number(&name), number(&item)) {
            let planted = truth.predict(user, planted);
            text.push_str(&format!("{:>5}  item {item:<6} {rating:.2}  {planted:.2}\n", at + 1));
        }
    }
    Ok(text)
}

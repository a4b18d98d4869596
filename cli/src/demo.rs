//! `megagrid demo`: ratings with a known answer, trained on, and how near the result comes.

use megagrid_datasets::synthetic::{RatingsSettings, RatingsTruth};
use megagrid_datasets::{Names, Prepared, split};
use megagrid_partition::{EdgeSource, Side};

use crate::common::{self, Common};
use crate::curve::{Series, draw};
use crate::input::TestSet;
use crate::mf::saved::Saved;
use crate::mf::{self, Gradient, Job, Options, Trained};
use crate::record::{Phases, Record};
use crate::session;

/// Part of the ratings that is tested on.
const HOLDOUT: f64 = 0.1;
/// How many recommendations are shown.
const SHOWN: usize = 5;

/// Trains on generated data with a known answer, and shows how near the result comes. No file, no network.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid demo --workers 2 --report demo.html")]
pub struct Args {
    /// What to train.
    #[arg(long, value_enum, default_value = "mf")]
    algorithm: Algorithm,
    #[command(flatten)]
    common: Common,
}

/// What is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "lowercase")]
enum Algorithm {
    /// A recommender, on ratings with planted factors.
    Mf,
    /// Ranks, on a graph whose ranks are computed by the definition as well.
    #[value(name = "pagerank")]
    PageRank,
    /// Topics, on a corpus with planted topics.
    Lda,
    /// A click model, on clicks with planted weights.
    BlockPg,
}

/// Ratings of which a good model comes close to the noise: many for each parameter.
fn ratings(seed: u64) -> RatingsSettings {
    RatingsSettings { num_users: 2500, num_items: 1200, num_ratings: 1_000_000, seed, ..RatingsSettings::default() }
}

fn options(planted: &RatingsSettings) -> Options {
    Options {
        dims: planted.latent_dim,
        lambda: 0.01,
        step: 0.1,
        init_std: 0.1,
        plain_sgd: false,
        decay: None,
        biases: false,
        no_biases: true,
        mean: true,
        no_mean: false,
        gradient: Gradient::InPlace,
        iterations: 24,
        tolerance: 0.0,
        batch: None,
        work_per_clock: None,
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let advice = "is not for demo; train on a data set of `megagrid generate`";
    args.common.refuse(&["--virtual-workers"], advice)?;
    match args.algorithm {
        Algorithm::Mf => run_mf(args),
        Algorithm::PageRank => crate::pagerank::demo::run(&args.common),
        Algorithm::Lda => crate::lda::demo::run(&args.common),
        Algorithm::BlockPg => crate::blockpg::demo::run(&args.common),
    }
}

fn run_mf(args: &Args) -> anyhow::Result<()> {
    let (settings, resolved) = args.common.prepare()?;
    let planted = ratings(args.common.seed);
    let made = planted.generate()?;
    let say = |text: &str| if args.common.wants_summary() { common::print(text) } else { Ok(()) };
    say(&format!(
        "Made {} ratings of {} items by {} users: {} planted factors, noise of {}.\n",
        planted.num_ratings, planted.num_items, planted.num_users, planted.latent_dim, planted.noise
    ))?;

    let (train, test) = split(&made.data.in_degree_order(), HOLDOUT, args.common.seed)?;
    let ends = test.edges.left.iter().zip(&test.edges.right).zip(&test.edges.data);
    let known = ends.map(|((&user, &item), &rating)| (user, item, rating)).collect();
    let test = TestSet { known, others: Vec::new() };
    let options = options(&planted);
    let job = Job::new(Prepared::new(train, &[Side::Right]), test, options.config()?, &options, settings)?;
    let own = options.resolved(&job.config, job.batch, job.prepared.edges.num_edges());
    let config = common::join([own, serde_json::json!({ "holdout": HOLDOUT }), serde_json::to_value(&resolved)?]);
    let trained = mf::train(job, options.gradient, &args.common, config, Phases::default())?;
    if let Some(directory) = &args.common.model {
        trained.write(directory)?;
    }
    say(&session::summary(&trained.record))?;
    say(&shown(&trained.record, made.truth.noise_floor))?;
    session::write_record(&trained.record, &args.common)?;
    say(&recommended(trained, &made.truth)?)?;
    say("\nNext: megagrid mf YOUR-RATINGS.csv --holdout 0.1 --model movies\n")
}

/// Draws the learning curve and compares with the noise.
fn shown(record: &Record, noise_floor: f64) -> String {
    let of = |name: &str| -> Vec<f64> {
        record.iterations.iter().filter_map(|one| one.metrics.get(name)).copied().collect()
    };
    let (train, test) = (of("train_rmse"), of("test_rmse"));
    let plot = draw(&[Series { mark: '·', values: &train }, Series { mark: '●', values: &test }], noise_floor);
    let last = test.last().copied().unwrap_or(f64::NAN);
    let above = 100.0 * (last / noise_floor - 1.0);
    format!(
        "\nRMSE by iteration: ● unseen ratings, · training, ─ the noise, below which no model can stay\n{plot}\n\
         RMSE on unseen ratings {last:.4}, the noise planted {noise_floor:.4}: {above:.1} % above.\n"
    )
}

/// Lists what the first user should like, beside the truth.
fn recommended(trained: Trained, truth: &RatingsTruth) -> anyhow::Result<String> {
    let Trained { model, names, .. } = trained;
    let (users, items) = owned(&names)?;
    let saved = Saved { model, users, items };
    let user = 0;
    let name = saved.users.name(user);
    let mut text = format!("\nThe best of all items for user {name}, as predicted and as planted:\n");
    for (at, (item, rating)) in saved.best(user, SHOWN, |_| false).into_iter().enumerate() {
        let item = saved.items.name(item);
        // Names are the generator's numbers, from 1.
        let number = |name: &str| name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let (Some(user), Some(planted)) = (number(&name), number(&item)) {
            let planted = truth.predict(user, planted);
            text.push_str(&format!("{:>5}  item {item:<6} {rating:.2}  {planted:.2}\n", at + 1));
        }
    }
    Ok(text)
}

fn owned(names: &Names) -> anyhow::Result<(megagrid_datasets::Dictionary, megagrid_datasets::Dictionary)> {
    Ok((names.get(Side::Left)?.into_owned(), names.get(Side::Right)?.into_owned()))
}

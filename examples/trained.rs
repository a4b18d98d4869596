//! An algorithm of your own, trained as the built-in ones are: from a file, with ratings kept for testing, early stopping,
//! checkpoints, a record and a model; then once more with settings that find themselves.
//!
//!     cargo run --release -p megagrid-examples --example trained [RATINGS]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use megagrid::datasets::{Names, output};
use megagrid::prelude::*;
use megagrid::training::mf::{RatingOptions, Ratings};
use megagrid::training::model::{self, Manifest, Scored, best};
use megagrid::training::record::Metrics;
use megagrid::training::tune::{TuneOptions, tune};
use megagrid::training::{
    self, Algorithm, CheckpointOptions, Job, Knob, MakeForm, Measured, Model, Options, Processes, RunOptions, Trainer,
};
use serde::{Deserialize, Serialize};

vertex! { struct User { sync: f32, delta: f32, master: f32 } }
vertex! { struct Item { sync: f32, delta: f32, master: f32 } }
program! { struct Biases { left: User, right: Item, edge: f32, worker: f64 } }

fn tell_item(user: Read<User>, item: Add<Item>, rating: &f32) {
    *item.delta += *rating - *user.sync;
}

fn tell_user(user: Add<User>, item: Read<Item>, rating: &f32) {
    *user.delta += *rating - *item.sync;
}

/// Sets the bias that is best while those of the other side are fixed.
fn settle<V: Vertex<Sync = f32, Delta = f32, Master = f32>>(lambda: f32) -> impl Fn(Master<V>) + Send + Sync {
    move |vertex| *vertex.sync = *vertex.delta / (lambda + *vertex.master)
}

fn square(user: Read<User>, item: Read<Item>, rating: &f32, cx: &mut Context<Biases>) {
    *cx.worker += f64::from(*rating - *user.sync - *item.sync).powi(2);
}

/// What can be set, on the command line of a program or by `tune`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct BiasOptions {
    lambda: f32,
    iterations: u64,
}

impl Default for BiasOptions {
    fn default() -> Self {
        Self { lambda: 1.0, iterations: 30 }
    }
}

impl Options for BiasOptions {
    fn check(&self) -> Result<(), training::Error> {
        if self.lambda > 0.0 {
            return Ok(());
        }
        Err(training::Error::option(format!("lambda is {}; expected a number above 0", self.lambda)))
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }
}

/// Biases of users and items, by alternating least squares.
struct Fit {
    lambda: f32,
    mean: f32,
}

impl Algorithm for Fit {
    const NAME: &'static str = "biases";
    const ADVICE: &'static str = "try a larger lambda";
    const TESTED_BY: Option<&'static str> = Some("test_rmse");
    const KNOBS: &'static [Knob] = &[Knob { name: "lambda", is_layout: false, is_timed: false }];
    type Data = Ratings;
    type Options = BiasOptions;
    type Model = Found;

    fn form(_: &Ratings, _: &BiasOptions) -> MakeForm<Self> {
        training::form::<Self>
    }
}

impl Trainer for Fit {
    type Algorithm = Self;
    type Program = Biases;
    type Edge = f32;

    fn new(ratings: &Ratings, options: &BiasOptions, _: &Settings) -> Result<Self, training::Error> {
        Ok(Self { lambda: options.lambda, mean: ratings.digest.mean as f32 })
    }

    fn source<'d>(&'d self, ratings: &'d Ratings) -> Source<'d, f32, Biases> {
        Source::map(&ratings.edges, |rating| rating - self.mean)
    }

    fn sequence(&self) -> Sequence<Biases, impl Stages<Biases>> {
        Sequence::new()
            .exchange(tell_item)
            .apply(Right, settle::<Item>(self.lambda))
            .exchange(tell_user)
            .apply(Left, settle::<User>(self.lambda))
    }

    fn init(&self, ratings: &Ratings, engine: &mut Engine<Biases>) -> Result<(), training::Error> {
        let [users, items] = [Side::Left, Side::Right].map(|side| ratings.edges.offsets(side));
        let number = |offsets: &[u64], id: usize| (offsets[id + 1] - offsets[id]) as f32;
        engine.init(Left, |id, user| *user.master = number(users, id));
        engine.init(Right, |id, item| *item.master = number(items, id));
        Ok(())
    }

    fn measure(&mut self, _: &Ratings, engine: &mut Engine<Biases>) -> Result<Option<Measured>, training::Error> {
        let squares = engine.total(square)?;
        engine.collect()?;
        let penalty = |biases: f64, bias: &f32| biases + f64::from(bias * bias);
        let biases = engine.on(Left).iter().fold(0.0, penalty) + engine.on(Right).iter().fold(0.0, penalty);
        let objective = squares + f64::from(self.lambda) * biases;
        Ok(Some(Measured { objective, metrics: Metrics::new(), converged: None }))
    }

    fn test(&mut self, ratings: &Ratings, engine: &mut Engine<Biases>) -> Result<Metrics, training::Error> {
        if ratings.test.known().is_empty() {
            return Ok(Metrics::new());
        }
        engine.collect()?;
        let (users, items, test) = (engine.on(Left), engine.on(Right), ratings.test.known());
        let left = |&(user, item, rating): &(u32, u32, f32)| {
            rating - self.mean - users.sync(user as usize) - items.sync(item as usize)
        };
        let squares: f64 = test.iter().map(|rating| f64::from(left(rating)).powi(2)).sum();
        Ok(Metrics::from([("test_rmse".into(), (squares / test.len() as f64).sqrt())]))
    }

    fn model(&self, ratings: &Ratings, engine: &Engine<Biases>) -> Result<Found, training::Error> {
        let (users, items) = (engine.on(Left).iter().copied().collect(), engine.on(Right).iter().copied().collect());
        Ok(Found { users, items, names: Arc::clone(&ratings.names) })
    }
}

/// What was found: a directory of arrays that NumPy opens.
#[derive(Debug)]
struct Found {
    users: Vec<f32>,
    items: Vec<f32>,
    names: Arc<Names>,
}

impl Model for Found {
    const KIND: &'static str = Fit::NAME;
    /// How many of the best items.
    type Question = usize;
    type Answer = Vec<Scored>;

    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), training::Error> {
        for (name, side, biases) in [("users", Side::Left, &self.users), ("items", Side::Right, &self.items)] {
            output::write_vector(&into.join(format!("{name}.npy")), biases)?;
            manifest.shape(&format!("{name}.npy"), &[biases.len()]);
            model::write_names(&into.join(format!("{name}.parquet")), &*self.names.get(side)?)?;
        }
        Ok(())
    }

    fn read(from: &Path, _: &Manifest) -> Result<Self, training::Error> {
        let [users, items] = ["users", "items"].map(|name| {
            let names = model::read_names(&from.join(format!("{name}.parquet")))?;
            Ok::<_, training::Error>((output::read_npy(&from.join(format!("{name}.npy")), 1)?.values, names))
        });
        let ((users, user_names), (items, item_names)) = (users?, items?);
        Ok(Self { users, items, names: Arc::new(Names::new(user_names, Some(item_names))) })
    }

    fn answer(&self, number: &usize) -> Result<Vec<Scored>, training::Error> {
        let names = self.names.get(Side::Right)?;
        let best = best((0..).zip(self.items.iter().copied()), *number);
        let scored = |(item, score): (u32, f32)| Scored { name: names.name(item).into_owned(), score: score.into() };
        Ok(best.into_iter().map(scored).collect())
    }

    fn bytes(&self) -> u64 {
        (size_of_val(&self.users[..]) + size_of_val(&self.items[..])) as u64
    }
}

/// Trains on a file of ratings, a tenth of which is kept for testing, and writes checkpoints and the model into a directory.
fn run(ratings: PathBuf, directory: &Path) -> Result<(), Error> {
    let processes = Processes::default();
    let origin =
        (training::input::Source::new(ratings), &RatingOptions { holdout: Some(0.1), ..RatingOptions::default() });
    let checkpoints = CheckpointOptions {
        checkpoint: Some(directory.join("checkpoints")),
        checkpoint_every: Some(10),
        ..CheckpointOptions::default()
    };
    let run = RunOptions { checkpoints, ..RunOptions::default() };
    let job = Job::<Fit>::read(origin.clone(), BiasOptions::default(), &run, &processes)?;
    let trained = training::train(Job { is_kept: true, ..job }, &processes, &())?;
    let result = &trained.record.result;
    println!("lambda 1: test RMSE {:.4} after iteration {:?}", result.metrics["test_rmse"], result.best_iteration);

    let model = trained.model.ok_or_else(|| training::Error::Missing("this is not the first process".to_owned()))?;
    model::save(&model, &directory.join("model"), &trained.record, trained.checksum)?;
    let (model, _) = model::load::<Found>(&directory.join("model"))?;
    for Scored { name, score } in model.answer(&5)? {
        println!("item {name:>6}: {score:+.2}");
    }

    let job = Job::<Fit>::read(
        origin,
        BiasOptions { iterations: 100, ..BiasOptions::default() },
        &RunOptions::default(),
        &processes,
    )?;
    let wanted = TuneOptions { tune: vec!["lambda=log:0.1..100".to_owned()], ..TuneOptions::default() };
    let tuned = tune(job, &wanted, &processes, &())?;
    let rmse = tuned.trained.record.result.metrics["test_rmse"];
    println!("lambda {:.1}, which was found: test RMSE {rmse:.4}", tuned.options.lambda);
    Ok(())
}

/// Writes ratings with planted biases.
fn planted(path: &Path) -> std::io::Result<()> {
    let mut random = Random::new(1, 0);
    let biases: Vec<f64> = (0..3000).map(|_| random.unit() - 0.5).collect();
    let mut text = String::new();
    for _ in 0..20_000 {
        let (user, item) = (random.below(2000), random.below(1000));
        let rating = 3.0 + biases[user as usize] + biases[2000 + item as usize] + 3.0 * (random.unit() - 0.5);
        text += &format!("u{user}\ti{item}\t{rating:.3}\n");
    }
    std::fs::write(path, text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("megagrid-trained-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let ratings = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => {
            let path = directory.join("ratings.tsv");
            planted(&path)?;
            path
        }
    };
    run(ratings, &directory)?;
    println!("the model and checkpoints are in {}", directory.display());
    Ok(())
}

#[test]
fn it_trains_tests_saves_and_tunes() {
    let directory = tempfile::tempdir().expect("there is room");
    let ratings = directory.path().join("ratings.tsv");
    planted(&ratings).expect("there is room");
    run(ratings, directory.path()).expect("the ratings are good");
}

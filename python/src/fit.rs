//! What can be trained: arrays or a path, and options as the command has them, become a run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use megagrid_datasets::cache::EdgeData;
use megagrid_datasets::{Corpus, Dataset, Draw, Format, Labels, Roles, Samples as Labelled};
use megagrid_partition::EdgeList;
use megagrid_training::als::{Feedback, ImplicitFactorization};
use megagrid_training::blockpg::{Regression, Samples};
use megagrid_training::graph::Graph;
use megagrid_training::hits::{HubsAndAuthorities, Links};
use megagrid_training::input::{Source, parse_format};
use megagrid_training::lda::{Documents, TopicModels};
use megagrid_training::mf::{Factorization, RatingOptions, Ratings};
use megagrid_training::pagerank::{LinkOptions, RankOptions, Ranking, Web};
use megagrid_training::record::Phases;
use megagrid_training::tune::TuneOptions;
use megagrid_training::{Algorithm, Data, Error, Job, Processes, Reading, RunOptions, Trained, json, options};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::error::raise;
use crate::matrix::{Matrix, count, nonzero};
use crate::models;
use crate::names::numbered;
use crate::run::Run;

/// Where data comes from.
#[derive(FromPyObject)]
pub enum Input<'py> {
    Matrix(Matrix<'py>),
    Path(PathBuf),
}

/// All options of a run.
#[derive(clap::Args)]
struct Given<O: clap::Args, D: clap::Args> {
    #[command(flatten)]
    own: O,
    #[command(flatten)]
    data: D,
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    tuning: TuneOptions,
    /// Whether settings are found on the way.
    #[arg(long)]
    tuned: bool,
    /// Format of what a path names.
    #[arg(long, default_value = "auto", value_parser = parse_format)]
    format: std::option::Option<Format>,
    /// Which of its columns hold what.
    #[arg(long)]
    columns: Option<Roles>,
}

type DataOptions<A> = <<A as Algorithm>::Data as Data>::Options;
type Make<A> = Box<dyn FnOnce(&DataOptions<A>, &RunOptions) -> Result<<A as Algorithm>::Data, Error> + Send>;

/// What is trained on.
enum Place<A: Algorithm> {
    Path(PathBuf),
    /// What makes data of arrays that have been copied.
    Memory(Make<A>),
}

impl<A: Algorithm> Place<A> {
    /// Takes a path, or edges of which `data` makes what is trained on.
    fn new<T: Copy + Send + 'static>(
        py: Python<'_>,
        input: Input<'_>,
        (is_square, keep): (bool, impl Fn(f64) -> Option<T> + Send + Sync),
        data: impl FnOnce(EdgeList<T>, &DataOptions<A>, &RunOptions) -> Result<A::Data, Error> + Send + 'static,
    ) -> PyResult<Self> {
        Ok(match input {
            Input::Path(path) => Self::Path(path),
            Input::Matrix(matrix) => {
                let edges = matrix.edges(py, is_square, keep)?;
                Self::Memory(Box::new(move |how, run| data(edges, how, run)))
            }
        })
    }

    /// Begins to train as `words` say.
    fn train(
        self,
        words: Vec<OsString>,
        is_watched: bool,
        give: impl FnOnce(Python<'_>, Trained<A>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Run>
    where
        A::Options: clap::Args,
        DataOptions<A>: clap::Args,
    {
        self.train_on(words, is_watched, |_| Ok(()), give)
    }

    /// Begins to train as `words` say, on data that `settle` adds something to.
    fn train_on(
        self,
        words: Vec<OsString>,
        is_watched: bool,
        settle: impl FnOnce(&mut A::Data) -> Result<(), Error> + Send + 'static,
        give: impl FnOnce(Python<'_>, Trained<A>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Run>
    where
        A::Options: clap::Args,
        DataOptions<A>: clap::Args,
    {
        let given: Given<A::Options, DataOptions<A>> = raise(options(words))?;
        raise(megagrid_training::Options::check(&given.own))?;
        // A fit ends where `tol` says so: a plateau neither ends it nor has it tuned again.
        let tuning = given.tuned.then(|| TuneOptions { retune: false, ..given.tuning.clone() });
        if let Some(tuning) = &tuning {
            raise(tuning.check::<A>(&given.own))?;
        }
        let threads = given.run.workers;
        let job = move || {
            let mut job = self.job(given)?;
            settle(&mut job.data)?;
            Ok(job)
        };
        Run::begin(threads, is_watched, tuning, job, give)
    }

    fn job(
        self,
        Given { own, data, run, format, columns, .. }: Given<A::Options, DataOptions<A>>,
    ) -> Result<Job<A>, Error>
    where
        A::Options: clap::Args,
        DataOptions<A>: clap::Args,
    {
        let alone = Processes::default();
        let make = match self {
            Self::Path(path) => {
                return Job::read((Source { format, columns, ..Source::new(path) }, &data), own, &run, &alone);
            }
            Self::Memory(make) => make,
        };
        let begin = Instant::now();
        // What is in memory has no path: an update asks for one.
        let origin = json(&data)?;
        let made = make(&data, &run)?;
        let phases = Phases { partition: begin.elapsed().as_secs_f64(), ..Phases::default() };
        Ok(Job { phases, ..Job::new(made, origin, own, &run, &alone)? })
    }
}

/// Names rows and columns by their numbers, rows from `first`, and puts them in order of degree.
fn named<T>(edges: EdgeList<T>, first: u64) -> Dataset<T> {
    let right_names = (!edges.square).then(|| numbered(0, edges.num_right));
    Dataset { left_names: numbered(first, edges.num_left), right_names, edges }
}

/// Fits a sparse logistic regression to samples of so many classes, which are called by their numbers; labels of a path are in the file.
#[pyfunction]
pub fn regression(
    py: Python<'_>,
    input: Input<'_>,
    labels: Option<(PyReadonlyArray1<'_, u32>, u32)>,
    weights: Option<PyReadonlyArray1<'_, f32>>,
    words: Vec<OsString>,
    is_watched: bool,
) -> PyResult<Run> {
    let weights = weights.map(|array| array.as_array().to_vec());
    let labels = labels.map(|(of, classes)| Labels {
        classes: (0..classes).map(|class| class.to_string()).collect(),
        of: of.as_array().to_vec(),
    });
    let labels = labels.unwrap_or_default();
    let place = Place::<Regression>::new(py, input, (false, nonzero), move |edges, how, run| {
        let number = labels.of.len();
        let is_known = labels.of.iter().all(|&class| (class as usize) < labels.classes.len());
        let weights = weights.unwrap_or_default();
        if number != edges.num_left || !is_known || ![0, number].contains(&weights.len()) {
            return Err(Error::Missing(format!("{number} labels of {} samples", edges.num_left)));
        }
        let reading = Reading {
            command: Regression::NAME,
            seed: run.seed,
            degree_order: run.degree_order,
            cluster: None,
            readers: None,
        };
        // Samples are named by their number from 1.
        Samples::of(Labelled { data: named(edges, 1), labels, weights }, how, &reading)
    })?;
    place.train(words, is_watched, models::give_linear)
}

/// Finds topics of documents by words.
#[pyfunction]
pub fn topics(py: Python<'_>, input: Input<'_>, words: Vec<OsString>, is_watched: bool) -> PyResult<Run> {
    let place = Place::<TopicModels>::new(py, input, (false, count), |edges, how, run| {
        let corpus = Corpus::new(named(edges, 1).in_degree_order());
        if corpus.num_tokens == 0 {
            return Err(Error::Missing("the matrix has no count above 0".to_owned()));
        }
        Documents::new(corpus, how.holdout, run.seed)
    })?;
    place.train(words, is_watched, models::give_topics)
}

/// Returns what a value of a matrix says: what a dense one has none of is 0; what a sparse one holds is a rating, even if it is 0.
fn rating(input: &Input<'_>) -> impl Fn(f64) -> Option<f32> + Send + Sync + use<> {
    let is_dense = matches!(input, Input::Matrix(Matrix::Single(_) | Matrix::Double(_)));
    move |value: f64| if is_dense { nonzero(value) } else { Some(value as f32) }
}

/// Makes ratings of edges, with those that are kept for testing: the latest, where that is asked for and it is known when they were made.
fn ratings(
    edges: EdgeList<f32>,
    times: Option<&[f64]>,
    how: &RatingOptions,
    above: Option<f32>,
    run: &RunOptions,
) -> Result<Ratings, Error> {
    let is_timed = how.holdout_last.is_some();
    if is_timed && times.is_none() {
        return Err(Error::option("--holdout-last needs a column of times: (users, items, values, times), or a path"));
    }
    let ratings = named(edges, 0).in_degree_order();
    let draw = Draw { times: times.filter(|_| is_timed), above, seed: run.seed };
    Ratings::held_out(ratings, how.holdout(), draw)
}

/// Factorizes ratings of users by items.
#[pyfunction]
pub fn factors(py: Python<'_>, input: Input<'_>, words: Vec<OsString>, is_watched: bool) -> PyResult<Run> {
    let keep = rating(&input);
    let place = Place::<Factorization>::new(py, input, (false, keep), |edges, how, run| {
        ratings(edges, None, how, None, run)?.ranked(how.ranking)
    })?;
    place.train(words, is_watched, models::give_factors)
}

/// Factorizes implicit feedback of users on items, given at some times.
#[pyfunction]
pub fn implicit(
    py: Python<'_>,
    input: Input<'_>,
    times: Option<PyReadonlyArray1<'_, f64>>,
    words: Vec<OsString>,
    is_watched: bool,
) -> PyResult<Run> {
    let keep = rating(&input);
    let times = times.map(|times| times.as_array().to_vec());
    let place = Place::<ImplicitFactorization>::new(py, input, (false, keep), move |mut edges, how, run| {
        how.decay(&mut edges.data, times.as_deref())?;
        let ratings = ratings(edges, times.as_deref(), &how.ratings, Some(how.counts_above()), run)?;
        Feedback::new(ratings, how.bound())?.ranked(how.ratings.ranking)
    })?;
    place.train(words, is_watched, models::give_implicit)
}

fn graph<T: EdgeData>(edges: EdgeList<T>, undirected: bool) -> Graph<T> {
    let one_way = named(edges, 0);
    Graph::new(if undirected { one_way.both_ways() } else { one_way }.in_degree_order())
}

fn link(value: f64) -> Option<()> {
    (value != 0.0).then_some(())
}

/// Vertices to restart at, by their names and weights.
type Restart = Vec<(String, f64)>;

fn by_name(restart: &Restart) -> Vec<(&str, f64)> {
    restart.iter().map(|(name, weight)| (&name[..], *weight)).collect()
}

/// Ranks the vertices of a graph; the surfer restarts at those that `personalization` names with their weights, or at all. With `sets` there
/// is a rank for each.
#[pyfunction]
pub fn pagerank(
    py: Python<'_>,
    input: Input<'_>,
    personalization: Option<Restart>,
    sets: Option<Vec<Restart>>,
    words: Vec<OsString>,
    is_watched: bool,
) -> PyResult<Run> {
    let how = raise(options::<Given<RankOptions, LinkOptions>>(words.clone()))?.data;
    let place = if how.weights {
        let web = |edges, how: &LinkOptions, _: &_| Web::weighted(graph(edges, how.undirected));
        Place::<Ranking>::new(py, input, (true, nonzero), web)?
    } else {
        let web = |edges, how: &LinkOptions, _: &_| Ok(Web::new(graph(edges, how.undirected)));
        Place::<Ranking>::new(py, input, (true, link), web)?
    };
    let restart = move |web: &mut Web| match (&personalization, &sets) {
        (_, Some(sets)) => web.restart_at_each(sets.iter().map(by_name)),
        (Some(vertices), None) => web.restart_at(by_name(vertices)),
        (None, None) => Ok(()),
    };
    place.train_on(words, is_watched, restart, models::give_ranks)
}

/// Finds hubs and authorities of a graph.
#[pyfunction]
pub fn hits(py: Python<'_>, input: Input<'_>, words: Vec<OsString>, is_watched: bool) -> PyResult<Run> {
    let place =
        Place::<HubsAndAuthorities>::new(py, input, (true, link), |edges, _, _| Ok(Links(graph(edges, false))))?;
    place.train(words, is_watched, models::give_authorities)
}

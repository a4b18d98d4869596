//! Trained models as arrays, and arrays as the model directories of the command.

use std::path::PathBuf;
use std::sync::Arc;

use megagrid_algorithms::blockpg::Calibration;
use megagrid_algorithms::mf::Model;
use megagrid_datasets::{Dictionary, Labels, Names, Samples, read_unlabelled};
use megagrid_partition::Side;
use megagrid_training::als::{ImplicitFactorization, Recommender};
use megagrid_training::blockpg::{Linear, Regression};
use megagrid_training::graph::Ranked;
use megagrid_training::hits::HubsAndAuthorities;
use megagrid_training::input::Source;
use megagrid_training::lda::TopicModels;
use megagrid_training::mf::{Factorization, Factors};
use megagrid_training::model::{self, Model as _};
use megagrid_training::pagerank::Ranking;
use megagrid_training::words::WordOptions;
use megagrid_training::{Algorithm, Error, Trained};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::answers::{self, Rows, Scale};
use crate::directory::{loaded, save};
use crate::error::{raise, raised};
use crate::names::{Given, give, in_order, order};
use crate::topics::Topics;

/// Begins what Python gets of a run.
fn begin<A: Algorithm>(py: Python<'_>, trained: Trained<A>) -> PyResult<(Bound<'_, PyDict>, A::Model)> {
    let Trained { record, model, checksum } = trained;
    let found = PyDict::new(py);
    found.set_item("record", raise(megagrid_training::json(&record))?.to_string())?;
    found.set_item("checksum", checksum)?;
    let model = model.ok_or_else(|| raised(&Error::Missing("the run has no model".to_owned())))?;
    Ok((found, model))
}

fn set_linear(found: &Bound<'_, PyDict>, model: &Linear) -> PyResult<()> {
    let (py, order) = (found.py(), order(&model.features));
    found.set_item("names", give(py, &model.features, &order)?)?;
    let weights = (0..model.intercepts.len()).flat_map(|one| in_order(&order, 1, model.of(one))).collect();
    let weights = PyArray1::<f64>::from_vec(py, weights).reshape([model.intercepts.len(), order.len()])?;
    found.set_item("weights", weights)?;
    found.set_item("classes", &model.classes)?;
    let lines = model.calibration.iter().flat_map(|line| [line.slope, line.offset]).collect();
    let lines = PyArray1::<f64>::from_vec(py, lines).reshape([model.calibration.len(), 2])?;
    found.set_item("calibration", lines)?;
    found.set_item("intercepts", PyArray1::from_slice(py, &model.intercepts))
}

pub fn give_linear(py: Python<'_>, trained: Trained<Regression>) -> PyResult<Py<PyAny>> {
    let (found, model) = begin(py, trained)?;
    set_linear(&found, &model)?;
    found.set_item("path", raise(megagrid_training::json(&model.path))?.to_string())?;
    Ok(found.into_any().unbind())
}

pub fn give_topics(py: Python<'_>, trained: Trained<TopicModels>) -> PyResult<Py<PyAny>> {
    let (found, model) = begin(py, trained)?;
    Topics::set(&found, model)?;
    Ok(found.into_any().unbind())
}

fn set_factors(found: &Bound<'_, PyDict>, of: &Factors) -> PyResult<()> {
    let (py, Model { dims, mean, unit, users, items, user_biases, item_biases }) = (found.py(), &of.model);
    found.set_item("mean", mean)?;
    found.set_item("unit", unit)?;
    found.set_item("range", of.range)?;
    for (side, at, rows, biases) in
        [("user", Side::Left, users, user_biases), ("item", Side::Right, items, item_biases)]
    {
        let names = raise(of.names.get(at))?;
        let order = order(&names);
        let rows = PyArray1::from_vec(py, in_order(&order, *dims, rows)).reshape([order.len(), *dims])?;
        found.set_item(format!("{side}_factors"), rows)?;
        let biases = if biases.is_empty() { vec![0.0; order.len()] } else { in_order(&order, 1, biases) };
        found.set_item(format!("{side}_biases"), PyArray1::from_vec(py, biases))?;
        let squares = of.squares.as_ref().map(|both| in_order(&order, 1, &both[at as usize]));
        found.set_item(format!("{side}_squares"), squares.map(|squares| PyArray1::from_vec(py, squares)))?;
        found.set_item(format!("{side}_ids"), give(py, &names, &order)?)?;
    }
    Ok(())
}

pub fn give_factors(py: Python<'_>, trained: Trained<Factorization>) -> PyResult<Py<PyAny>> {
    let (found, model) = begin(py, trained)?;
    set_factors(&found, &model)?;
    Ok(found.into_any().unbind())
}

pub fn give_implicit(py: Python<'_>, trained: Trained<ImplicitFactorization>) -> PyResult<Py<PyAny>> {
    let (found, Recommender(model)) = begin(py, trained)?;
    set_factors(&found, &model)?;
    Ok(found.into_any().unbind())
}

fn set_ranked(found: &Bound<'_, PyDict>, of: &str, ranked: &Ranked) -> PyResult<()> {
    let (py, as_they_are) = (found.py(), (0..ranked.names.len() as u32).collect::<Vec<_>>());
    let names = give(py, &ranked.names, &as_they_are)?;
    found.set_item(of, (names, PyArray1::from_slice(py, &ranked.scores)))
}

pub fn give_ranks(py: Python<'_>, trained: Trained<Ranking>) -> PyResult<Py<PyAny>> {
    let (found, model) = begin(py, trained)?;
    set_ranked(&found, "ranks", &model.ranked)?;
    let of_vertex = |at: usize| model.sets.iter().map(move |scores| scores[at]);
    let sets: Vec<f32> = (0..model.ranked.scores.len()).flat_map(of_vertex).collect();
    found.set_item("sets", PyArray1::from_vec(py, sets).reshape([model.ranked.scores.len(), model.sets.len()])?)?;
    Ok(found.into_any().unbind())
}

pub fn give_authorities(py: Python<'_>, trained: Trained<HubsAndAuthorities>) -> PyResult<Py<PyAny>> {
    let (found, model) = begin(py, trained)?;
    set_ranked(&found, "hubs", &model.hubs)?;
    set_ranked(&found, "authorities", &model.authorities)?;
    Ok(found.into_any().unbind())
}

#[pyfunction]
pub fn save_linear(
    directory: PathBuf,
    record: &str,
    checksum: u64,
    names: Given<'_>,
    classes: Vec<String>,
    weights: PyReadonlyArray2<'_, f64>,
    intercepts_and_lines: (Vec<f64>, Vec<(f64, f64)>),
) -> PyResult<()> {
    let weights = weights.as_array().iter().copied().collect();
    let (intercepts, lines) = intercepts_and_lines;
    let mut model = raise(Linear::new(Arc::new(names.names()), classes, weights, intercepts))?;
    model.calibration = lines.into_iter().map(|(slope, offset)| Calibration { slope, offset }).collect();
    save(&directory, record, checksum, &model)
}

#[pyfunction]
pub fn load_linear(py: Python<'_>, directory: PathBuf) -> PyResult<Py<PyAny>> {
    let (model, manifest) = raise(model::load::<Linear>(&directory))?;
    let found = loaded(py, manifest)?;
    set_linear(&found, &model)?;
    Ok(found.into_any().unbind())
}

/// Returns the scores of samples in a file, in their order.
#[pyfunction]
pub fn scores_of_file<'py>(
    py: Python<'py>,
    path: PathBuf,
    names: Given<'_>,
    classes: Vec<String>,
    weights: PyReadonlyArray2<'_, f64>,
    intercepts: Vec<f64>,
    config: &str,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let config: serde_json::Value = serde_json::from_str(config).unwrap_or_default();
    let (features, models) = (Arc::new(names.names()), intercepts.len());
    let mut model = raise(Linear::new(features, classes, weights.as_array().iter().copied().collect(), intercepts))?;
    model.normalize = config.get("normalize").and_then(serde_json::Value::as_bool).unwrap_or_default();
    model.words = WordOptions::of(&config);
    model.hash_bits = config.get("hash_bits").and_then(serde_json::Value::as_u64).map(|bits| bits as u32);
    let scores = py.detach(move || -> Result<Vec<f64>, Error> {
        let layout = Source::as_trained(&path, &config).layout();
        let data = read_unlabelled(&path, layout, model.words.tokenizer(), &model.features)?;
        let order = order(&data.left_names);
        let (scores, _) = model.scores(Samples::new(data, Labels::default()))?;
        Ok(in_order(&order, models, &scores))
    });
    let scores = raise(scores)?;
    let rows = scores.len() / models;
    PyArray1::from_vec(py, scores).reshape([rows, models])
}

/// The names of a side, its rows, and the sums to which its steps adapt, where there are some.
type SavedSide<'py> = (Given<'py>, Rows<'py>, Option<PyReadonlyArray1<'py, f32>>);

#[pyfunction]
pub fn save_factors(
    kind: &str,
    directory: PathBuf,
    record: &str,
    checksum: u64,
    scale_and_range: (Scale, Option<[f32; 2]>),
    users: SavedSide<'_>,
    items: SavedSide<'_>,
) -> PyResult<()> {
    let ((scale, range), is_implicit) = (scale_and_range, kind == Recommender::KIND);
    let model = answers::model(scale, &users.1, &items.1, !is_implicit);
    let names: [Dictionary; 2] = [users.0.names(), items.0.names()];
    let squares = users.2.zip(items.2).map(|(users, items)| [users, items].map(|side| side.as_array().to_vec()));
    let [users, items] = names;
    let factors = Factors { model, names: Arc::new(Names::new(users, Some(items))), range, squares };
    if is_implicit {
        return save(&directory, record, checksum, &Recommender(factors));
    }
    save(&directory, record, checksum, &factors)
}

#[pyfunction]
pub fn load_factors(py: Python<'_>, kind: &str, directory: PathBuf) -> PyResult<Py<PyAny>> {
    let (model, manifest) = match kind == Recommender::KIND {
        true => raise(model::load::<Recommender>(&directory).map(|(model, manifest)| (model.0, manifest)))?,
        false => raise(model::load::<Factors>(&directory))?,
    };
    let found = loaded(py, manifest)?;
    set_factors(&found, &model)?;
    Ok(found.into_any().unbind())
}

#[pyfunction]
pub fn load_topics(py: Python<'_>, directory: PathBuf) -> PyResult<Py<PyAny>> {
    let (model, manifest) = raise(model::load(&directory))?;
    let found = loaded(py, manifest)?;
    Topics::set(&found, model)?;
    Ok(found.into_any().unbind())
}

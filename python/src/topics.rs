//! Topics: what a trained model says of documents.

use std::path::PathBuf;
use std::sync::Arc;

use megagrid_algorithms::lda::{FoldIn, Model as Counts, SparseCounts, Topics as Priors};
use megagrid_datasets::output::replace_text;
use megagrid_datasets::{Layout, Names};
use megagrid_partition::Side;
use megagrid_training::Error;
use megagrid_training::lda::{NewDocuments, TopicModel, layout_of_new};
use megagrid_training::words::WordOptions;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;

use crate::directory::save;
use crate::error::raise;
use crate::matrix::Matrix;
use crate::names::{Given, give, numbered, order};
use crate::run::pool;

/// Tokens of words and documents by topic: where rows begin, topics, tokens.
type Table<'py> = (PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u16>, PyReadonlyArray1<'py, u32>);

/// Words and documents by topic, in the order that Python has them in.
#[pyclass(frozen, module = "megagrid._megagrid")]
pub struct Topics(Counts);

impl Topics {
    /// Gives Python a model.
    pub fn set(found: &Bound<'_, PyDict>, model: TopicModel) -> PyResult<()> {
        let py = found.py();
        let (words, documents) = (raise(model.names.get(Side::Right))?, raise(model.names.get(Side::Left))?);
        let word_order = order(&words);
        found.set_item("names", give(py, &words, &word_order)?)?;
        let Counts { topics, words, documents: of_documents } = model.counts;
        let words = reordered(&words, &word_order);
        let documents = reordered(&of_documents, &order(&documents));
        found.set_item("topics", Bound::new(py, Self(Counts { topics, words, documents }))?)
    }
}

fn reordered(table: &SparseCounts, order: &[u32]) -> SparseCounts {
    let mut ordered = SparseCounts { offsets: vec![0], ..SparseCounts::default() };
    for &row in order {
        let entries = table.offsets[row as usize]..table.offsets[row as usize + 1];
        ordered.topics.extend_from_slice(&table.topics[entries.clone()]);
        ordered.counts.extend_from_slice(&table.counts[entries]);
        ordered.offsets.push(ordered.topics.len());
    }
    ordered
}

/// Tokens of a document at most, whose topics are drawn one by one.
const MOST_TOKENS: u64 = 1 << 24;

fn check_tokens(documents: &[Vec<(u32, u32)>]) -> PyResult<()> {
    let tokens = |words: &Vec<(u32, u32)>| words.iter().map(|&(_, count)| u64::from(count)).sum::<u64>();
    match documents.iter().map(tokens).max() {
        Some(tokens) if tokens > MOST_TOKENS => {
            let text =
                format!("a document has {tokens} words; expected {MOST_TOKENS} or fewer, each of which is looked at");
            raise(Err(Error::Missing(text)))
        }
        _ => Ok(()),
    }
}

fn table((offsets, topics, counts): Table<'_>) -> SparseCounts {
    SparseCounts {
        offsets: offsets.as_array().iter().map(|&at| at as usize).collect(),
        topics: topics.as_array().to_vec(),
        counts: counts.as_array().to_vec(),
    }
}

fn arrays<'py>(py: Python<'py>, table: &SparseCounts) -> PyResult<Bound<'py, PyAny>> {
    let offsets = PyArray1::from_iter(py, table.offsets.iter().map(|&at| at as u64));
    let (topics, counts) = (PyArray1::from_slice(py, &table.topics), PyArray1::from_slice(py, &table.counts));
    Ok((offsets, topics, counts).into_pyobject(py)?.into_any())
}

#[pymethods]
impl Topics {
    #[new]
    fn new(
        words: Table<'_>,
        documents: Table<'_>,
        totals: PyReadonlyArray1<'_, i64>,
        alpha: PyReadonlyArray1<'_, f32>,
        beta: f32,
    ) -> Self {
        let (words, documents) = (table(words), table(documents));
        let mut topics = Priors::new(&alpha.as_array().to_vec(), beta, words.len());
        topics.totals = totals.as_array().to_vec();
        Self(Counts { topics, words, documents })
    }

    /// Returns what `Topics` takes.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Counts { topics, words, documents } = &self.0;
        let totals = PyArray1::from_slice(py, &topics.totals);
        let alpha = PyArray1::from_slice(py, &topics.alpha[..topics.totals.len()]);
        let state = (arrays(py, words)?, arrays(py, documents)?, totals, alpha, topics.beta);
        Ok(state.into_pyobject(py)?.into_any())
    }

    /// Returns tokens of words by topic.
    #[getter]
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrays(py, &self.0.words)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        Ok((slf.get_type().into_any(), slf.get().state(slf.py())?))
    }

    /// Returns the chances of all topics in documents, `[documents][topics]`. A document's do not depend on the others.
    fn mixtures<'py>(
        &self,
        py: Python<'py>,
        documents: Matrix<'_>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let documents = documents.counts(py)?;
        self.mixtures_of(py, &documents, threads)
    }

    /// Returns the chances of all topics in the documents of a file, which is read as that of a run with this configuration.
    fn mixtures_of_file<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        words: Given<'_>,
        config: &str,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let config: serde_json::Value = serde_json::from_str(config).unwrap_or_default();
        let (known, advice) = (words.names(), "the model knows none of its words");
        let read = py.detach(move || {
            let layout = layout_of_new(&config, &path, Layout::default());
            NewDocuments::read(&path, layout, WordOptions::of(&config).tokenizer(), &known, advice)
        });
        self.mixtures_of(py, &raise(read)?.words, threads)
    }

    /// Returns the perplexity of documents: of one half of each, foreseen from the other.
    fn perplexity(&self, py: Python<'_>, documents: Matrix<'_>, threads: Option<usize>) -> PyResult<f64> {
        let documents = documents.counts(py)?;
        check_tokens(&documents)?;
        let threads = threads.unwrap_or_else(|| megagrid_engine::Topology::detect().num_cores());
        Ok(py.detach(|| FoldIn::default().perplexity(&self.0, &documents, threads)))
    }

    /// Returns the words of each topic with most tokens.
    fn top_words(&self, number: usize) -> Vec<Vec<u32>> {
        let top = self.0.top_words(number);
        top.iter().map(|words| words.iter().map(|&(word, _)| word).collect()).collect()
    }

    /// Writes a model directory.
    fn save(&self, directory: PathBuf, record: &str, checksum: u64, words: Given<'_>) -> PyResult<()> {
        save(&directory, record, checksum, &self.named(&words))
    }

    /// Writes a page that shows topics as a map.
    fn page(&self, py: Python<'_>, path: PathBuf, name: &str, words: Given<'_>) -> PyResult<()> {
        let named = self.named(&words);
        let page = raise(py.detach(|| named.page(name)))?;
        raise(replace_text(&path, &page))
    }
}

impl Topics {
    /// Returns the model with names; documents have numbers from 1.
    fn named(&self, words: &Given<'_>) -> TopicModel {
        let documents = numbered(1, self.0.documents.len());
        let names = Arc::new(Names::new(documents, Some(words.names())));
        TopicModel::new(self.0.clone(), names, 0)
    }

    fn mixtures_of<'py>(
        &self,
        py: Python<'py>,
        documents: &[Vec<(u32, u32)>],
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        check_tokens(documents)?;
        let (num_topics, fold_in, pool) = (self.0.topics.totals.len(), FoldIn::default(), pool(threads)?);
        let of = |words: &Vec<(u32, u32)>| {
            fold_in.chances(&self.0, words).into_iter().map(|chance| chance as f32).collect::<Vec<_>>()
        };
        let mixtures: Vec<f32> = py.detach(|| pool.install(|| documents.par_iter().flat_map_iter(of).collect()));
        PyArray1::from_vec(py, mixtures).reshape([documents.len(), num_topics])
    }
}

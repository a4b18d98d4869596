//! The model of topics, and its directory.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use megagrid_algorithms::lda::{FoldIn, Model as Counts, Occurrences, SparseCounts, Topics};
use megagrid_datasets::output::{Column, read_npy, write_table, write_vector};
use megagrid_datasets::{Dictionary, Names, Tokenizer};
use megagrid_partition::Side;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::model::{DAMAGED, Manifest, Model, columns, read_names, write_names};
use crate::record::Metrics;
use crate::words::WordOptions;

const ALPHA: &str = "alpha.npy";
const TOTALS: &str = "topic_tokens.npy";
const WORDS: &str = "words.parquet";
const DOCUMENTS: &str = "documents.parquet";
const WORD_TOPICS: &str = "word_topics.parquet";
const DOCUMENT_TOPICS: &str = "document_topics.parquet";
const TOPICS: &str = "topics.parquet";
/// Words of each topic in its table.
const TABLE_WORDS: usize = 50;
/// How many topics are shown, the largest first.
const SHOWN: usize = 20;

/// The top words of a topic and how often each has it, most first.
type TopWords = Vec<(u32, u32)>;

/// Topics of words and documents, with their names.
#[derive(Clone, Debug)]
pub struct TopicModel {
    /// The counts.
    pub counts: Counts,
    /// Names of documents and words.
    pub names: Arc<Names>,
    /// How the corpus was taken apart.
    pub tokenizer: Tokenizer,
    /// Whether words of few documents, or of most, were left out of the model that it began at, or of itself as it was read.
    pub(super) is_chosen: bool,
    top_words: usize,
    /// The coherence of each topic's top words, if it was measured.
    coherences: Option<Vec<f64>>,
}

impl TopicModel {
    /// Takes counts and names, and how many top words of each topic are shown.
    #[must_use]
    pub fn new(counts: Counts, names: Arc<Names>, top_words: usize) -> Self {
        let tokenizer = Tokenizer::default();
        Self { counts, names, tokenizer, is_chosen: false, top_words, coherences: None }
    }

    /// Takes other counts, whose coherences were not measured.
    pub(super) fn of(self, counts: Counts, names: Arc<Names>) -> Self {
        Self { counts, names, coherences: None, ..self }
    }

    /// Measures the coherence of each topic's top words.
    pub fn find_coherences(&mut self, occurrences: &Occurrences) {
        let of_topic = |words: &TopWords| {
            let words: Vec<u32> = words.iter().map(|&(word, _)| word).collect();
            occurrences.coherence(&words)
        };
        self.coherences = Some(self.counts.top_words(self.top_words).par_iter().map(of_topic).collect());
    }

    /// Returns the chances of all topics in new documents, of words by id: `[documents][topics]`.
    #[must_use]
    pub fn mixtures(&self, documents: &[Vec<(u32, u32)>]) -> Vec<Vec<f32>> {
        let fold_in = FoldIn::default();
        let mixture = |words: &Vec<(u32, u32)>| -> Vec<f32> {
            fold_in.chances(&self.counts, words).into_iter().map(|chance| chance as f32).collect()
        };
        documents.par_iter().map(mixture).collect()
    }
}

/// What is asked of topics.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    /// The top words of each topic: how many.
    Topics(usize),
    /// The topics of documents: the words of each, with how often they occur.
    Documents(Vec<Vec<(String, u32)>>),
}

/// What topics answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Found {
    /// The top words of each topic.
    Topics(Vec<Vec<String>>),
    /// The chances of all topics in each document, `[documents][topics]`.
    Documents(Vec<Vec<f32>>),
}

impl Model for TopicModel {
    const KIND: &'static str = "lda";
    type Question = Asked;
    type Answer = Found;

    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error> {
        let Counts { topics, words, documents } = &self.counts;
        let totals: Vec<u64> = topics.totals.iter().map(|&total| total.max(0) as u64).collect();
        let (document_names, word_names) = (self.names.get(Side::Left)?, self.names.get(Side::Right)?);
        write_vector(&into.join(ALPHA), &topics.alpha[..totals.len()])?;
        manifest.shape(ALPHA, &[totals.len()]);
        write_vector(&into.join(TOTALS), &totals)?;
        manifest.shape(TOTALS, &[totals.len()]);
        for (file, names) in [(WORDS, &word_names), (DOCUMENTS, &document_names)] {
            write_names(&into.join(file), names)?;
            manifest.shape(file, &[names.len()]);
        }
        write_counts(into, (WORD_TOPICS, "word"), words, manifest)?;
        write_counts(into, (DOCUMENT_TOPICS, "document"), documents, manifest)?;
        // After an update there are more than it was trained on.
        (manifest.data.left, manifest.data.right) = (document_names.len(), word_names.len());
        manifest.chosen_words = self.is_chosen || chooses(manifest);
        let rows = write_topics(&into.join(TOPICS), &self.counts, &word_names)?;
        manifest.shape(TOPICS, &[rows, 4]);
        Ok(())
    }

    fn read(from: &Path, manifest: &Manifest) -> Result<Self, Error> {
        let alpha = read_npy::<f32>(&from.join(ALPHA), 1)?.values;
        let totals = read_npy::<u64>(&from.join(TOTALS), 1)?.values;
        let (documents, words) = (read_names(&from.join(DOCUMENTS))?, read_names(&from.join(WORDS))?);
        let word_topics = read_counts(&from.join(WORD_TOPICS), words.len(), totals.len(), "words")?;
        let document_topics = read_counts(&from.join(DOCUMENT_TOPICS), documents.len(), totals.len(), "documents")?;
        let beta = manifest.option::<f64>("beta") as f32;
        let priors_fit =
            alpha.len() == totals.len() && alpha.iter().all(|&alpha| alpha >= 0.0 && alpha.is_finite()) && beta > 0.0;
        if totals.is_empty() || !priors_fit {
            let problem = format!("priors that do not fit {} topics; {DAMAGED}", totals.len());
            return Err(Error::invalid(from, problem));
        }
        let mut topics = Topics::new(&alpha, beta, words.len());
        topics.totals = totals.iter().map(|&total| total as i64).collect();
        let counts = Counts { topics, words: word_topics, documents: document_topics };
        let tokenizer = WordOptions::of(&manifest.config).tokenizer();
        let names = Arc::new(Names::new(documents, Some(words)));
        let is_chosen = manifest.chosen_words || chooses(manifest);
        Ok(Self { tokenizer, is_chosen, ..Self::new(counts, names, manifest.option("top_words")) })
    }

    fn answer(&self, asked: &Asked) -> Result<Found, Error> {
        let names = self.names.get(Side::Right)?;
        Ok(match asked {
            Asked::Topics(number) => {
                let named = |words: TopWords| words.iter().map(|&(word, _)| names.name(word).into_owned()).collect();
                Found::Topics(self.counts.top_words(*number).into_iter().map(named).collect())
            }
            Asked::Documents(documents) => {
                let known = |(word, count): &(String, u32)| Some((names.find(word)?, *count));
                let known: Vec<Vec<(u32, u32)>> =
                    documents.iter().map(|words| words.iter().filter_map(known).collect()).collect();
                Found::Documents(self.mixtures(&known))
            }
        })
    }

    fn bytes(&self) -> u64 {
        let table = |of: &SparseCounts| {
            size_of_val(&of.offsets[..]) + size_of_val(&of.topics[..]) + size_of_val(&of.counts[..])
        };
        (table(&self.counts.words) + table(&self.counts.documents)) as u64
    }

    fn metrics(&self) -> Metrics {
        let Some(coherences) = &self.coherences else { return Metrics::new() };
        // A topic of fewer than two words has none.
        let top = self.counts.top_words(self.top_words);
        let all = coherences.iter().zip(&top).filter(|(_, words)| words.len() > 1).map(|(coherence, _)| coherence);
        let number = all.clone().count();
        let mean = (number > 0).then(|| ("coherence_npmi".into(), all.sum::<f64>() / number as f64));
        mean.into_iter().collect()
    }

    fn findings(&self) -> String {
        let top = self.counts.top_words(self.top_words);
        let words = self.names.get(Side::Right);
        words.map(|words| listing(&self.counts, &top, self.coherences.as_deref(), &words, SHOWN)).unwrap_or_default()
    }
}

/// Tells whether a training's own options left words of few documents, or of most, out.
fn chooses(manifest: &Manifest) -> bool {
    let most = manifest.config.get("max_documents").and_then(serde_json::Value::as_f64).unwrap_or(1.0);
    manifest.option::<u64>("min_documents") > 1 || most < 1.0
}

/// Lists up to `shown` topics, the largest first: number, share of all tokens in percent, coherence, top words.
#[must_use]
pub fn listing(
    counts: &Counts,
    top: &[TopWords],
    coherences: Option<&[f64]>,
    words: &Dictionary,
    shown: usize,
) -> String {
    let totals = &counts.topics.totals;
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by_key(|&topic| std::cmp::Reverse(totals[topic]));
    let all = totals.iter().sum::<i64>().max(1) as f64;
    // Without the documents there are no coherences.
    let npmi = coherences.map_or("", |_| "  npmi");
    let mut text = format!("{:>6} {:>8} {npmi}  top words\n", "topic", "tokens");
    for &topic in order.iter().take(shown) {
        let share = 100.0 * totals[topic] as f64 / all;
        let coherence = coherences.map_or_else(String::new, |all| format!("{:>6.2}", all[topic]));
        let names: Vec<_> = top[topic].iter().map(|&(word, _)| words.name(word)).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{topic:>6} {share:>6.1} % {coherence}  {}", names.join(" "));
    }
    if shown < order.len() {
        let _ = writeln!(text, "       and {} more topics", order.len() - shown);
    }
    text
}

fn write_counts(
    into: &Path,
    (file, row): (&str, &str),
    table: &SparseCounts,
    manifest: &mut Manifest,
) -> Result<(), Error> {
    let rows = (0..table.len()).flat_map(|row| std::iter::repeat_n(row as u32, table.row(row).len()));
    let columns = [
        (row, Column::U32(rows.collect())),
        ("topic", Column::U32(table.topics.iter().map(|&topic| u32::from(topic)).collect())),
        ("tokens", Column::U32(table.counts.as_slice().into())),
    ];
    write_table(&into.join(file), &columns)?;
    manifest.shape(file, &[table.topics.len(), columns.len()]);
    Ok(())
}

/// Writes the top words of topics, and returns how many rows that makes.
fn write_topics(path: &Path, counts: &Counts, words: &Dictionary) -> Result<usize, Error> {
    let (mut topics, mut ranks, mut names, mut chances) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (topic, top) in counts.top_words(TABLE_WORDS).into_iter().enumerate() {
        for (rank, (word, count)) in (1..).zip(top) {
            topics.push(topic as u32);
            ranks.push(rank);
            names.push(words.name(word).into_owned());
            chances.push(counts.word_chance(topic, count) as f32);
        }
    }
    let rows = topics.len();
    let columns = [
        ("topic", Column::U32(topics.into())),
        ("rank", Column::U32(ranks.into())),
        ("word", Column::Strings(names.into())),
        ("probability", Column::F32(chances.into())),
    ];
    write_table(path, &columns)?;
    Ok(rows)
}

fn read_counts(path: &Path, num_rows: usize, num_topics: usize, of: &str) -> Result<SparseCounts, Error> {
    let refused = || Error::invalid(path, format!("not topic counts of {num_rows} {of}; {DAMAGED}"));
    let [rows, topics, counts] = columns(path, [&of[..of.len() - 1], "topic", "tokens"])?;
    let (Some(Column::U32(rows)), Some(Column::U32(topics)), Some(Column::U32(counts))) = (rows, topics, counts) else {
        return Err(refused());
    };
    let within = |limit: usize| move |&number: &u32| (number as usize) < limit;
    if !rows.is_sorted() || !rows.iter().all(within(num_rows)) || !topics.iter().all(within(num_topics)) {
        return Err(refused());
    }
    let offsets = (0..=num_rows).map(|row| rows.partition_point(|&of| (of as usize) < row)).collect();
    let topics = topics.iter().map(|&topic| topic as u16).collect();
    Ok(SparseCounts { offsets, topics, counts: counts.into_owned() })
}

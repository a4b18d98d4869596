//! Model directories of LDA.

use std::path::Path;

use anyhow::bail;
use megagrid_algorithms::lda::{Model, SparseCounts, Topics};
use megagrid_datasets::Dictionary;
use megagrid_datasets::output::{Column, read_npy, read_table, write_directory, write_table, write_vector};
use megagrid_partition::Side;

use super::train::Trained;
use crate::model::{self, Manifest};

const KIND: &str = "lda";
const ALPHA: &str = "alpha.npy";
const TOTALS: &str = "topic_tokens.npy";
const WORDS: &str = "words.parquet";
const DOCUMENTS: &str = "documents.parquet";
const WORD_TOPICS: &str = "word_topics.parquet";
const DOCUMENT_TOPICS: &str = "document_topics.parquet";
const TOPICS: &str = "topics.parquet";
/// Words of each topic in its table.
const TABLE_WORDS: usize = 50;

/// Writes a model.
pub fn write(directory: &Path, trained: &Trained, checksum: u64) -> anyhow::Result<()> {
    let Trained { record, model, names, .. } = trained;
    let totals: Vec<u64> = model.topics.totals.iter().map(|&total| total.max(0) as u64).collect();
    let num_topics = totals.len();
    let mut manifest = Manifest::new(KIND, record, checksum);
    let (document_names, words) = (names.get(Side::Left)?, names.get(Side::Right)?);
    write_directory(directory, |into| -> anyhow::Result<()> {
        write_vector(&into.join(ALPHA), &model.topics.alpha[..num_topics])?;
        manifest.shape(ALPHA, &[num_topics]);
        write_vector(&into.join(TOTALS), &totals)?;
        manifest.shape(TOTALS, &[num_topics]);
        write_table(&into.join(WORDS), &[("id", Column::Names(&words))])?;
        write_table(&into.join(DOCUMENTS), &[("id", Column::Names(&document_names))])?;
        write_counts(into, (WORD_TOPICS, "word"), &model.words, &mut manifest)?;
        write_counts(into, (DOCUMENT_TOPICS, "document"), &model.documents, &mut manifest)?;
        write_topics(&into.join(TOPICS), model, &words)?;
        manifest.write(into)
    })
}

fn write_counts(
    into: &Path,
    (file, row): (&str, &str),
    table: &SparseCounts,
    manifest: &mut Manifest,
) -> anyhow::Result<()> {
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

fn write_topics(path: &Path, model: &Model, words: &Dictionary) -> anyhow::Result<()> {
    let (mut topics, mut ranks, mut names, mut chances) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (topic, top) in model.top_words(TABLE_WORDS).into_iter().enumerate() {
        for (rank, (word, count)) in (1..).zip(top) {
            topics.push(topic as u32);
            ranks.push(rank);
            names.push(words.name(word).into_owned());
            chances.push(model.word_chance(topic, count) as f32);
        }
    }
    let columns = [
        ("topic", Column::U32(topics.into())),
        ("rank", Column::U32(ranks.into())),
        ("word", Column::Strings(names.into())),
        ("probability", Column::F32(chances.into())),
    ];
    Ok(write_table(path, &columns)?)
}

/// A model and the names of its words.
pub struct Saved {
    /// What it says about itself.
    pub manifest: Manifest,
    /// The model.
    pub model: Model,
    /// Its vocabulary.
    pub words: Dictionary,
}

/// Reads a model.
pub fn read(directory: &Path) -> anyhow::Result<Saved> {
    let manifest = Manifest::read(directory, KIND)?;
    let damaged = "the model is damaged, train it again";
    let alpha = read_npy::<f32>(&directory.join(ALPHA), 1)?.values;
    let totals = read_npy::<u64>(&directory.join(TOTALS), 1)?.values;
    let words = model::read_names(&directory.join(WORDS))?;
    let path = directory.join(WORD_TOPICS);
    let Some(table) = read_counts(&path, words.len(), totals.len())? else {
        bail!("{}: not topic counts of {} words; {damaged}", path.display(), words.len());
    };
    let beta = manifest.config.get("beta").and_then(serde_json::Value::as_f64).unwrap_or(0.0) as f32;
    let priors_fit = alpha.len() == totals.len() && alpha.iter().all(|&alpha| alpha >= 0.0) && beta > 0.0;
    if totals.is_empty() || !priors_fit {
        bail!("{}: priors that do not fit {} topics; {damaged}", directory.display(), totals.len());
    }
    let mut topics = Topics::new(&alpha, beta, words.len());
    topics.totals = totals.iter().map(|&total| total as i64).collect();
    Ok(Saved { manifest, model: Model { topics, words: table, documents: SparseCounts::default() }, words })
}

fn read_counts(path: &Path, num_words: usize, num_topics: usize) -> anyhow::Result<Option<SparseCounts>> {
    let columns: Vec<Column<'static>> = read_table(path)?.into_iter().map(|(_, column)| column).collect();
    let Ok([Column::U32(rows), Column::U32(topics), Column::U32(counts)]) = <[_; 3]>::try_from(columns) else {
        return Ok(None);
    };
    let within = |limit: usize| move |&number: &u32| (number as usize) < limit;
    if !rows.is_sorted() || !rows.iter().all(within(num_words)) || !topics.iter().all(within(num_topics)) {
        return Ok(None);
    }
    let offsets = (0..=num_words).map(|word| rows.partition_point(|&row| (row as usize) < word)).collect();
    let topics = topics.iter().map(|&topic| topic as u16).collect();
    Ok(Some(SparseCounts { offsets, topics, counts: counts.into_owned() }))
}

//! `megagrid lda`.

use megagrid_datasets::Label;
use megagrid_training::lda::{CorpusOptions, TopicModel, TopicModels};
use megagrid_training::record::Record;

use super::refuse_words;
use crate::curve::{Series, draw};
use crate::data::Kind;
use crate::entry::Trains;

impl Trains for TopicModels {
    const KIND: Kind = Kind::Corpus;
    const ABOUT: [&'static str; 2] = [
        "Finds the topics of a corpus: for each topic how likely its words are, for each document its mixture of topics",
        "Latent Dirichlet allocation by collapsed Gibbs sampling. The input is a UCI bag of words or LDA-C, with the vocabulary \
         in vocab.* beside it, a table of documents, words and counts, texts in a column of a table, JSON lines or Parquet, or plain text with \
         one document a line. The model holds topics.parquet (topic, rank, word, \
         probability), word_topics.parquet and document_topics.parquet (word or document, topic, tokens; the first is a row of \
         words.parquet or documents.parquet), topic_tokens.npy and alpha.npy ([topics]).",
    ];
    const ENDS: [Option<&'static str>; 2] = [None, Some("words")];
    const EXAMPLES: &'static str = "Examples:
  megagrid lda docword.kos.txt.gz --topics 50 --model kos
  megagrid lda posts.txt --lower-case --split punctuation --stop-words english --min-documents 5
  megagrid lda reviews.csv --columns document=id,text=body --lower-case --split punctuation";

    fn kept_positive(words: &CorpusOptions) -> anyhow::Result<Vec<Label>> {
        refuse_words(&words.words)?;
        Ok(Vec::new())
    }

    /// Lists the topics below a curve of the likelihood.
    fn findings(record: &Record, model: &TopicModel) -> String {
        curve(record) + &megagrid_training::Model::findings(model)
    }
}

/// Points of the curve, at most.
const POINTS: usize = 24;

/// Draws the log likelihood per token over iterations.
fn curve(record: &Record) -> String {
    let values: Vec<(u64, f64)> = record
        .iterations
        .iter()
        .filter_map(|one| one.metrics.get("per_token").map(|&value| (one.iteration, value)))
        .collect();
    let (Some(&(_, last)), true) = (values.last(), values.len() > 2) else { return String::new() };
    let step = values.len().div_ceil(POINTS);
    let drawn: Vec<f64> =
        values.iter().skip((values.len() - 1) % step).step_by(step).map(|&(_, value)| value).collect();
    let mut plot = draw(&[Series { mark: '●', values: &drawn }], last);
    // Its axis counts points, of which some iterations have none.
    plot.truncate(plot.trim_end().rfind('\n').unwrap_or(plot.len()));
    let (first, end) = (values[(values.len() - 1) % step].0, values[values.len() - 1].0);
    format!("\nLog likelihood per token, iterations {first} to {end}\n{plot}\n")
}

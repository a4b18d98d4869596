//! From CORPUS to documents that a grid can be built from, and documents to test on.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::bail;
use megagrid_datasets::cache::Cache;
use megagrid_datasets::{
    Corpus, Dictionary, Error, Format, Prepared, Split, StopWords, Tokenizer, WordFilter, read_corpus_with,
};
use megagrid_partition::{EdgeSource, Side};

use crate::common::{Common, Source};
use crate::failure::usage;
use crate::input::{is_cache, stated};
use crate::progress::Progress;
use crate::record::Phases;

/// Which words there are.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Words")]
pub struct Words {
    #[command(flatten)]
    pub text: TextOptions,
    /// Leave out words of fewer characters.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub min_word_length: usize,
    /// Leave out words: none, english (a built-in list), or those in a file.
    #[arg(long, value_name = "none|english|FILE", default_value = "none")]
    pub stop_words: PathBuf,
    /// Leave out words that occur in fewer documents; 0 keeps words of the vocabulary that do not occur.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub min_documents: u64,
    /// Leave out words that occur in more than this part of the documents: above 0, at most 1.
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true)]
    pub max_documents: f64,
}

/// How words are found in plain text.
#[derive(Clone, Debug, clap::Args)]
pub struct TextOptions {
    /// Take words in lower case (plain text).
    #[arg(long)]
    pub lower_case: bool,
    /// What separates words in plain text: space, or punctuation as well.
    #[arg(long, value_name = "space|punctuation", default_value = "space")]
    pub split: Split,
}

impl TextOptions {
    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> Tokenizer {
        Tokenizer { lower_case: self.lower_case, split: self.split }
    }
}

/// The name of a separator, as it stands in options and records.
pub fn split_name(split: Split) -> &'static str {
    match split {
        Split::Space => "space",
        Split::Punctuation => "punctuation",
    }
}

impl Words {
    /// Returns the words to keep.
    fn filter(&self) -> anyhow::Result<WordFilter> {
        if !(self.max_documents > 0.0 && self.max_documents <= 1.0) {
            let found = self.max_documents;
            return Err(usage(format!("max-documents is {found}; expected a number above 0 and at most 1")));
        }
        let stop_words = match self.stop_words.to_str() {
            Some("none") => StopWords::default(),
            Some("english") => StopWords::english(),
            _ => StopWords::read(&self.stop_words)?,
        };
        let Self { min_word_length: min_length, min_documents, max_documents, .. } = *self;
        Ok(WordFilter { min_length, stop_words, min_documents, max_documents })
    }

    /// Returns the options as they stand in a run record.
    pub fn resolved(&self) -> serde_json::Value {
        serde_json::json!({
            "lower_case": self.text.lower_case, "split": split_name(self.text.split),
            "min_word_length": self.min_word_length, "stop_words": self.stop_words,
            "min_documents": self.min_documents, "max_documents": self.max_documents,
        })
    }
}

/// Options about documents to test on.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Quality on unseen documents")]
pub struct Unseen {
    /// Documents whose other half is predicted from every other token, at each evaluation, in any text format.
    #[arg(long, value_name = "FILE", conflicts_with = "holdout")]
    pub test: Option<PathBuf>,
    /// Part of the documents, above 0 and below 1, to keep for that.
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    pub holdout: Option<f64>,
}

impl Unseen {
    /// Checks the ranges of the options.
    pub fn check(&self) -> anyhow::Result<()> {
        match self.holdout {
            Some(part) if !(part > 0.0 && part < 1.0) => Err(Error::HoldoutRange(part).into()),
            _ => Ok(()),
        }
    }

    /// Returns the options as they stand in a run record.
    pub fn resolved(&self) -> serde_json::Value {
        serde_json::json!({ "test": self.test, "holdout": self.holdout })
    }
}

/// Documents in the numbering of a model's words.
#[derive(Clone, Debug)]
pub struct NewDocuments {
    /// Names of the documents.
    pub names: Dictionary,
    /// Words of each document, and how often they occur.
    pub words: Vec<Vec<(u32, u32)>>,
    /// Pairs of a document and a word.
    pub num_edges: usize,
    /// Tokens of words that the model knows.
    pub tokens: u64,
    /// Tokens of words that it does not know.
    pub unknown: u64,
}

impl NewDocuments {
    /// Groups a corpus, whose words are numbered as the model's, by documents.
    pub fn new(corpus: Corpus, unknown: u64) -> Self {
        let Corpus { data, num_tokens } = corpus;
        let edges = &data.edges;
        let mut words = vec![Vec::new(); edges.num_left];
        for ((&document, &word), &count) in edges.left.iter().zip(&edges.right).zip(&edges.data) {
            words[document as usize].push((word, count));
        }
        Self { names: data.left_names, words, num_edges: edges.num_edges(), tokens: num_tokens, unknown }
    }

    /// Reads documents, and finds their words by name.
    pub fn read(path: &Path, format: Option<Format>, tokenizer: Tokenizer, known: &Dictionary) -> anyhow::Result<Self> {
        if is_cache(path, format)? {
            return Err(usage("documents are taken as text, and this is a .mgrid cache"));
        }
        let (corpus, unknown) = read_corpus_with(path, format, tokenizer)?.with_words(known);
        Ok(Self::new(corpus, unknown))
    }
}

/// Loads documents, and those to test on.
pub fn load(
    source: &Source,
    words: &Words,
    unseen: &Unseen,
    options: &Common,
    phases: &mut Phases,
) -> anyhow::Result<(Prepared<u32>, Option<NewDocuments>)> {
    let _progress = Progress::spinner(options.quiet, "loading");
    let begin = Instant::now();
    let filter = words.filter()?;
    let format = stated(source, Format::Text)?;
    let cached = is_cache(&source.input, format)?;
    if cached && unseen.holdout.is_none() {
        let prepared = Prepared::open(&source.input)?;
        let all_occur = prepared.edges.offsets(Side::Right).windows(2).all(|ends| ends[0] < ends[1]);
        let min_documents = if all_occur && filter.min_documents == 1 { 0 } else { filter.min_documents };
        let rest = WordFilter { min_documents, ..filter.clone() };
        if rest.keeps_all() {
            let test = test_set(unseen, words, &prepared)?;
            phases.load = begin.elapsed().as_secs_f64();
            return Ok((prepared, test));
        }
    }
    let corpus = match cached {
        true => Corpus::new(Cache::open(&source.input)?.to_dataset()?),
        false => read_corpus_with(&source.input, format, words.text.tokenizer())?,
    };
    phases.load = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let corpus = corpus.keep_words(&filter);
    if corpus.num_tokens == 0 {
        bail!("{}: no word is left of it; leave out fewer", source.input.display());
    }
    let corpus = match cached || options.no_degree_order {
        true => corpus,
        false => Corpus::new(corpus.data.in_degree_order()),
    };
    let (corpus, held_out) = match unseen.holdout {
        Some(part) => corpus.split_documents(part, options.seed).map(|(train, test)| (train, Some(test)))?,
        None => (corpus, None),
    };
    let prepared = Prepared::new(corpus.data, &[Side::Right]);
    phases.partition = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let test = match held_out {
        Some(corpus) => Some(NewDocuments::new(corpus, 0)),
        None => test_set(unseen, words, &prepared)?,
    };
    phases.load += begin.elapsed().as_secs_f64();
    Ok((prepared, test))
}

fn test_set(unseen: &Unseen, words: &Words, prepared: &Prepared<u32>) -> anyhow::Result<Option<NewDocuments>> {
    let Some(path) = &unseen.test else { return Ok(None) };
    let known = prepared.names.get(Side::Right)?;
    let documents = NewDocuments::read(path, None, words.text.tokenizer(), &known)?;
    if documents.tokens == 0 {
        bail!("{}: none of its words is in the corpus; is it in the same language?", path.display());
    }
    Ok(Some(documents))
}

//! Documents to train on, and those to test on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use megagrid_algorithms::lda::Tokens;
use megagrid_datasets::cache::Cache;
use megagrid_datasets::{
    Corpus, Dataset, Dictionary, Edges, Format, Layout, Names, Prepared, Role, StopWords, WordFilter, read_corpus_with,
};
use megagrid_partition::{EdgeList, EdgeSource, Side};
use serde::{Deserialize, Serialize};

use super::new_documents::{NewDocuments, format_of_new};
use super::start::Start;
use crate::Error;
use crate::data::{Data, Reading};
use crate::error::reading;
use crate::input::{Source, Stopwatch, digest, no_edges, open, phases};
use crate::options::{check_holdout, lossy};
use crate::record::{InputSizes, Phases};
use crate::room;
use crate::words::WordOptions;

/// Which documents and words there are.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct CorpusOptions {
    /// How words are found in texts.
    #[command(flatten)]
    #[serde(flatten)]
    pub words: WordOptions,
    /// Whether what is read is a part that arrived, under the options of the whole.
    #[arg(skip)]
    #[serde(skip)]
    pub is_part: bool,
    /// Leave out words of fewer characters.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Words")]
    pub min_word_length: usize,
    /// Leave out words: none, english (a built-in list), or those in a file.
    #[arg(long, value_name = "none|english|FILE", default_value = "none", help_heading = "Words")]
    #[serde(serialize_with = "lossy")]
    pub stop_words: PathBuf,
    /// Leave out words that occur in fewer documents; 0 keeps words of the vocabulary that do not occur.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Words")]
    pub min_documents: u64,
    /// Leave out words that occur in more than this part of the documents: above 0, at most 1.
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true, help_heading = "Words")]
    pub max_documents: f64,
    /// Documents of which one half, drawn token by token, is predicted from the other, at each evaluation, in any text format.
    #[arg(long, value_name = "FILE", conflicts_with = "holdout", help_heading = "Quality on unseen documents")]
    #[serde(serialize_with = "lossy")]
    pub test: Option<PathBuf>,
    /// Part of the documents, above 0 and below 1, to keep for that.
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Quality on unseen documents")]
    pub holdout: Option<f64>,
}

impl CorpusOptions {
    fn filter(&self) -> Result<WordFilter, Error> {
        if !(self.max_documents > 0.0 && self.max_documents <= 1.0) {
            let found = self.max_documents;
            return Err(Error::option(format!("max-documents is {found}; expected a number above 0 and at most 1")));
        }
        let stop_words = match self.stop_words.to_str() {
            Some("none") => StopWords::default(),
            Some("english") => StopWords::english(),
            _ => StopWords::read(&self.stop_words)?,
        };
        let Self { min_word_length: min_length, min_documents, max_documents, .. } = *self;
        Ok(WordFilter { min_length, stop_words, min_documents, max_documents })
    }

    /// Tells that words which are counted already stay as they are, where options say how they are found in texts.
    fn tell_counted(&self) {
        if !self.is_part && self.words != WordOptions::default() {
            tracing::warn!(
                "the words of this input are counted already, and stay as they are: --lower-case, --split and --bigrams only hold for texts \
                 that the model is asked about"
            );
        }
    }
}

/// Says of how many documents none is left; the reader counts edges.
fn of_documents(error: megagrid_datasets::Error, documents: usize) -> Error {
    match error {
        megagrid_datasets::Error::HoldoutEmpty { holdout, part, .. } => Error::Missing(format!(
            "holdout {holdout} of {documents} documents leaves none with words for {part}; expected another fraction or more documents"
        )),
        error => error.into(),
    }
}

/// Tells whether documents are called by their places, from 1 on, as far as a cache says.
fn are_places(names: &Dictionary) -> bool {
    let is_place = |name: &str| name.parse::<usize>().is_ok_and(|place| (1..=names.len()).contains(&place));
    names.iter().all(|name| is_place(&name))
}

/// Documents and their words.
#[derive(Debug)]
pub struct Documents {
    /// How often words occur in documents, grouped by words.
    pub edges: Edges<u32>,
    /// Names of documents and words.
    pub names: Arc<Names>,
    /// Documents to test on.
    pub test: Option<NewDocuments>,
    /// The model that these documents are added to.
    pub start: Option<Start>,
    /// Whether documents are named by their places in the input.
    pub are_numbered: bool,
    /// Tokens of documents and words.
    pub tokens: Arc<Tokens>,
    checksum: u64,
}

impl Documents {
    /// Takes a corpus in memory, and keeps a part of its documents for testing, which follows from the seed.
    ///
    /// # Errors
    /// A part out of range, or of which nothing is left to train on.
    pub fn new(corpus: Corpus, holdout: Option<f64>, seed: u64) -> Result<Self, Error> {
        check_holdout(holdout)?;
        let (train, test) = match holdout {
            Some(part) => {
                let documents = corpus.data.edges.num_left;
                let split = corpus.split_documents(part, seed).map_err(|error| of_documents(error, documents));
                split.map(|(train, test)| (train, Some(test)))?
            }
            None => (corpus, None),
        };
        let prepared = Prepared::new(train.data, &[Side::Right]);
        Self::of(prepared, test.map(|test| NewDocuments::new(test, 0)))
    }

    /// Takes documents that are prepared, and those to test on.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn of(prepared: Prepared<u32>, test: Option<NewDocuments>) -> Result<Self, Error> {
        let Prepared { edges, names, .. } = prepared;
        let tokens = Arc::new(Tokens::count(&edges).map_err(reading)?);
        let checksum = digest(&edges, |&count| f64::from(count))?.checksum;
        Ok(Self { edges, names: Arc::new(names), test, start: None, are_numbered: true, tokens, checksum })
    }

    /// Returns the same documents without the words that a model does not know.
    ///
    /// # Errors
    /// None is left; edges that cannot be read.
    pub(super) fn of_words(&self, known: &Dictionary) -> Result<Self, Error> {
        let names = |side| Ok::<_, Error>(self.names.get(side)?.into_owned());
        let mut edges = EdgeList::with_capacity(self.edges.num_edges());
        for word in 0..self.edges.num_vertices(Side::Right) {
            let push = &mut |documents: &[u32], counts: &[u32]| {
                documents.iter().zip(counts).for_each(|(&document, &count)| edges.push(document, word as u32, count));
            };
            self.edges.visit_rows(Side::Right, word..word + 1, push).map_err(reading)?;
        }
        (edges.num_left, edges.num_right) = (self.tokens.of_documents.len(), self.tokens.of_words.len());
        let data = Dataset { edges, left_names: names(Side::Left)?, right_names: Some(names(Side::Right)?) };
        let (corpus, _) = Corpus::new(data).with_words(known);
        let corpus = corpus.keep_words(&WordFilter { min_documents: 1, ..WordFilter::default() });
        if corpus.num_tokens == 0 {
            return Err(Error::Missing("none of the words of the new documents is in it".to_owned()));
        }
        let are_numbered = self.are_numbered;
        Ok(Self { are_numbered, ..Self::of(Prepared::new(corpus.data, &[Side::Right]), None)? })
    }

    /// Opens a cache, if it is taken as it is.
    fn open(path: &Path, filter: &WordFilter) -> Result<Option<Prepared<u32>>, Error> {
        let prepared = open::<u32>(path, None)?;
        let all_occur = prepared.edges.offsets(Side::Right).windows(2).all(|ends| ends[0] < ends[1]);
        let min_documents = if all_occur && filter.min_documents == 1 { 0 } else { filter.min_documents };
        let rest = WordFilter { min_documents, ..filter.clone() };
        Ok(rest.keeps_all().then_some(prepared))
    }
}

impl Data for Documents {
    type Options = CorpusOptions;
    const FIXED: &'static [&'static str] = &["test", "holdout"];

    fn read(source: &mut Source, options: &CorpusOptions, how: &Reading<'_>) -> Result<(Self, Phases), Error> {
        let CorpusOptions { test, holdout, .. } = options;
        if !source.changes.is_empty() {
            let message = "a topic model goes on with documents that arrive only; leave --data and --remove out, or train on all again";
            return Err(Error::option(message));
        }
        check_holdout(*holdout)?;
        let mut clock = Stopwatch::start();
        let filter = options.filter()?;
        let of_corpus = source.layout().of_corpus(&source.input)?;
        if !of_corpus.roles.is_empty() {
            source.columns = Some(of_corpus.roles);
        }
        let layout = source.find(Format::Text)?;
        let format = source.format;
        room::check(source, 1)?;
        let path = &source.input;
        if format == Some(Format::Edges) {
            let problem = "all lines have two fields; say --format text if they are documents, --columns text=COLUMN if a column holds texts, \
                           or --columns document=COLUMN,word=COLUMN,count=none if each is a word of a document";
            return Err(Error::invalid(path, problem));
        }
        let has_texts = layout.roles.has(Role::Text);
        if !has_texts && format != Some(Format::Text) {
            options.tell_counted();
        }
        let is_cache = source.is_cache();
        how.begin(is_cache, *holdout)?;
        let test_set = |names: &Names| {
            let read = |path: &PathBuf| {
                let same = Layout { format: format_of_new(format, path), ..layout.clone() };
                let advice = "none of its words is in the corpus";
                NewDocuments::read(path, same, options.words.tokenizer(), &*names.get(Side::Right)?, advice)
            };
            test.as_ref().map(read).transpose()
        };
        let opened = if is_cache && holdout.is_none() { Self::open(path, &filter)? } else { None };
        if let Some(prepared) = opened {
            let test = test_set(&prepared.names)?;
            let are_numbered = are_places(&*prepared.names.get(Side::Left)?);
            return Ok((Self { are_numbered, ..Self::of(prepared, test)? }, phases(clock.lap(), 0.0)));
        }
        let corpus = match is_cache {
            true => Corpus::new(Cache::open(path)?.to_dataset()?),
            false => read_corpus_with(path, &layout, options.words.tokenizer(), how.readers)?,
        };
        let mut load = clock.lap();
        let corpus = corpus.keep_words(&filter);
        if corpus.num_tokens == 0 {
            return Err(Error::invalid(path, "no word is left of it; leave out fewer"));
        }
        let corpus = match is_cache || !how.degree_order {
            true => corpus,
            false => Corpus::new(corpus.data.in_degree_order()),
        };
        let are_numbered = match format {
            _ if has_texts => !layout.roles.has(Role::Document),
            Some(Format::Counts | Format::JsonLines | Format::Parquet) => false,
            Some(Format::Cache) => are_places(&corpus.data.left_names),
            _ => true,
        };
        let mut documents = Self { are_numbered, ..Self::new(corpus, *holdout, how.seed)? };
        let partition = clock.lap();
        if test.is_some() {
            documents.test = test_set(&documents.names)?;
            load += clock.lap();
        }
        Ok((documents, phases(load, partition)))
    }

    fn sizes(&self) -> InputSizes {
        let Tokens { of_documents, of_words, edges, .. } = &*self.tokens;
        let test_edges = self.test.as_ref().map_or(0, |test| test.num_edges);
        InputSizes {
            left: of_documents.len(),
            right: of_words.len(),
            edges: *edges as usize,
            test_edges,
            ..InputSizes::default()
        }
    }

    fn checksum(&self) -> Result<u64, Error> {
        Ok(self.checksum)
    }

    /// Which words are in few documents, or in most, is told by all of them.
    fn of_part(options: CorpusOptions) -> CorpusOptions {
        CorpusOptions { min_documents: 1, max_documents: 1.0, is_part: true, ..options }
    }

    fn release(&mut self) {
        self.edges = no_edges();
    }
}

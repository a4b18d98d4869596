//! Where training of topics starts: at the counts of an earlier model, to which new documents are added.
//!
//! A token's topic is drawn given those of all others, earlier ones among them, whose topics stay (Canini, Shi and Griffiths 2009, "Online
//! inference of topics with latent Dirichlet allocation", has this as incremental Gibbs sampling). So only the new documents
//! and their words are in the engine.

use std::sync::Arc;

use megagrid_algorithms::lda::{Model, SparseCounts, Tokens, Topics, log_likelihood_of_words};
use megagrid_datasets::{Dictionary, Names};
use megagrid_partition::Side;

use super::model::TopicModel;
use crate::Error;

/// An earlier model, and where the words of new documents are in it.
#[derive(Debug)]
pub struct Start {
    model: TopicModel,
    /// Names of the model's documents and of the new ones.
    documents: Dictionary,
    /// Names of the model's words and of new ones.
    words: Dictionary,
    /// Which of these each word of the new documents is.
    ids: Vec<u32>,
}

impl Start {
    /// Finds the words of new documents in a model. Documents that have numbers go on from the largest of the model's.
    ///
    /// # Errors
    /// Another number of topics; a document that the model has; names that cannot be read.
    pub fn new(model: TopicModel, names: &Names, num_topics: usize) -> Result<Self, Error> {
        let found = model.counts.topics.num_topics();
        if found != num_topics {
            let problem = format!("it has {found} topics, and now there are to be {num_topics}; give --topics {found}");
            return Err(Error::Missing(problem));
        }
        let documents = appended(&*model.names.get(Side::Left)?, &*names.get(Side::Left)?)?;
        let (words, ids) = model.names.get(Side::Right)?.extended(&*names.get(Side::Right)?);
        Ok(Self { model, documents, words, ids })
    }

    /// Returns the topics and counts of a word of the new documents, if the model knows it.
    #[must_use]
    pub fn row(&self, word: usize) -> Option<impl ExactSizeIterator<Item = (u16, u32)>> {
        let row = self.ids[word] as usize;
        (row < self.model.counts.words.len()).then(|| self.model.counts.words.row(row))
    }

    /// Returns the context to begin with: totals and the document prior of the model.
    #[must_use]
    pub fn topics(&self, beta: f32) -> Topics {
        let Topics { alpha, totals, .. } = &self.model.counts.topics;
        let mut topics = Topics::new(&alpha[..totals.len()], beta, self.words.len());
        topics.totals.clone_from(totals);
        topics
    }

    /// Adds the earlier tokens of words to those of the new documents.
    #[must_use]
    pub fn with_earlier(&self, new: &Tokens) -> Tokens {
        let earlier =
            |word: usize| self.row(word).into_iter().flatten().map(|(_, count)| u64::from(count)).sum::<u64>();
        let of_words: Vec<u64> = new.of_words.iter().enumerate().map(|(word, tokens)| tokens + earlier(word)).collect();
        Tokens { total: of_words.iter().sum(), of_words, ..new.clone() }
    }

    /// Returns the log likelihood of the earlier tokens, as far as new documents change it.
    #[must_use]
    pub fn log_likelihood(&self, beta: f32) -> f64 {
        log_likelihood_of_words(&self.topics(beta), (0..self.ids.len()).filter_map(|word| self.row(word)))
    }

    /// Puts the words that were counted in their places, and the new documents behind the earlier ones.
    #[must_use]
    pub fn with(&self, trained: TopicModel) -> TopicModel {
        let (before, now) = (&self.model.counts, &trained.counts);
        let mut row_of = vec![None; self.words.len()];
        self.ids.iter().enumerate().for_each(|(word, &id)| row_of[id as usize] = Some(word));
        let mut words = SparseCounts::default();
        for (id, row) in row_of.into_iter().enumerate() {
            match row {
                Some(row) => words.push(now.words.row(row)),
                None => words.push(before.words.row(id)),
            }
        }
        let mut documents = before.documents.clone();
        (0..now.documents.len()).for_each(|document| documents.push(now.documents.row(document)));
        let counts = Model { topics: now.topics.clone(), words, documents };
        let names = Arc::new(Names::new(self.documents.clone(), Some(self.words.clone())));
        trained.of(counts, names)
    }
}

/// Returns the names of a model's documents and of new ones behind them.
fn appended(old: &Dictionary, new: &Dictionary) -> Result<Dictionary, Error> {
    if let (Some(old), Some(new)) = (old.as_integers(), new.as_integers()) {
        let last = old.iter().max().copied().unwrap_or(0);
        let all = old.iter().copied().chain(new.iter().map(|number| last.saturating_add(*number)));
        return Ok(Dictionary::from_integers(all.collect()));
    }
    if let Some(name) = new.iter().find(|name| old.find(name).is_some()) {
        return Err(Error::Missing(format!("document {name} is in it already; leave it out of the new ones")));
    }
    Ok(old.extended(new).0)
}

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
    /// Finds the words of new documents in a model. `are_numbered`: documents are named by their places, and go on from the largest
    /// number of the model's.
    ///
    /// # Errors
    /// Another number of topics; a document that the model has; a word that stands twice; names that cannot be read.
    pub fn new(model: TopicModel, names: &Names, are_numbered: bool, num_topics: usize) -> Result<Self, Error> {
        let found = model.counts.topics.num_topics();
        if found != num_topics {
            let problem = format!("it has {found} topics, and now there are to be {num_topics}; give --topics {found}");
            return Err(Error::Missing(problem));
        }
        let documents = appended(&*model.names.get(Side::Left)?, &*names.get(Side::Left)?, are_numbered)?;
        let (words, ids) = model.names.get(Side::Right)?.extended(&*names.get(Side::Right)?);
        let mut is_there = vec![false; words.len()];
        if let Some(&id) = ids.iter().find(|id| std::mem::replace(&mut is_there[**id as usize], true)) {
            let problem = format!("word {} stands twice in the vocabulary of the new documents", words.name(id));
            return Err(Error::Missing(problem));
        }
        let known = model.counts.words.len();
        let is_number = |id: u32| words.name(id).bytes().all(|byte| byte.is_ascii_digit());
        if !ids.is_empty() && ids.iter().all(|&id| id as usize >= known && is_number(id)) {
            let first = words.name(ids[0]);
            let problem =
                format!("it has none of the words of the new documents, {first} say; is their vocabulary beside them?");
            return Err(Error::Missing(problem));
        }
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
        let mut all = trained.of(counts, names);
        all.is_chosen |= self.model.is_chosen;
        all
    }
}

/// Returns the names of a model's documents and of new ones behind them. Those that are named by their places go on from the largest number.
fn appended(old: &Dictionary, new: &Dictionary, are_numbered: bool) -> Result<Dictionary, Error> {
    let numbers = new.as_integers().filter(|_| are_numbered);
    let renamed = numbers.map(|numbers| {
        let last = match old.as_integers() {
            Some(old) => old.iter().max().copied(),
            None => old.iter().filter_map(|name| name.parse().ok()).max(),
        };
        Dictionary::from_integers(numbers.iter().map(|number| last.unwrap_or(0).saturating_add(*number)).collect())
    });
    let new = renamed.as_ref().unwrap_or(new);
    if let Some(at) = new.translate(old).iter().position(Option::is_some) {
        let name = new.name(at as u32);
        return Err(Error::Missing(format!("document {name} is in it already; leave it out of the new ones")));
    }
    Ok(old.extended(new).0)
}

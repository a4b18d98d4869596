//! Models of `lda`: the topics of texts, and the words of topics.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use megagrid_datasets::{Dictionary, Lookup};
use megagrid_partition::Side;
use megagrid_training::lda::TopicModel;
use megagrid_training::model::best;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::questions::{Answer, Answers, Share, checked_number, checked_together, parsed, ten};
use crate::{Error, Refusal};

/// Topics, whose words are found by name.
pub struct OfTopics {
    model: TopicModel,
    words: Arc<Dictionary>,
    lookup: Lookup,
    name: String,
    /// What the map shows; found when somebody looks, as it takes the words of each two topics.
    map: OnceLock<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfTexts {
    texts: Vec<String>,
    /// How many topics of each.
    #[serde(default = "ten")]
    number: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    /// How many words of each topic.
    #[serde(default = "ten")]
    number: usize,
}

impl OfTopics {
    /// Takes a model and what it is called.
    ///
    /// # Errors
    /// Names that cannot be read.
    pub fn new(model: TopicModel, name: String) -> Result<Self, Error> {
        let words = model.names.get(Side::Right).map_err(megagrid_training::Error::from)?;
        let (lookup, words) = (words.lookup(), Arc::new((*words).clone()));
        Ok(Self { model, words, lookup, name, map: OnceLock::new() })
    }

    fn topics(&self, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        let OfTexts { texts, number } = parsed(body)?;
        let number = checked_number(number)?.min(self.model.counts.topics.totals.len());
        checked_together("the number of texts", texts.len(), number)?;
        let bags: Vec<Vec<(u32, u32)>> = texts.iter().map(|text| self.bag(text)).collect();
        if bags.iter().all(|bag| bag.is_empty()) {
            return Err(Refusal::Unknown("no text has a word that the model knows".to_owned()));
        }
        let of_text = |(bag, mixture): (&Vec<(u32, u32)>, Vec<f32>)| {
            let topic = |(topic, share): (u32, f32)| Share { share: share.into(), topic };
            // Of a text without a known word nothing is known.
            let number = if bag.is_empty() { 0 } else { number };
            best((0..).zip(mixture), number).into_iter().map(topic).collect()
        };
        Ok(Answer::Topics(bags.iter().zip(self.model.mixtures(&bags)).map(of_text).collect()))
    }

    /// Counts the words of a text that the model knows.
    fn bag(&self, text: &str) -> Vec<(u32, u32)> {
        let mut counts: HashMap<u32, u32> = HashMap::new();
        let words = self.model.tokenizer.words(text);
        words.iter().filter_map(|word| self.lookup.find(word)).for_each(|word| *counts.entry(word).or_default() += 1);
        let mut bag: Vec<(u32, u32)> = counts.into_iter().collect();
        bag.sort_unstable();
        bag
    }

    fn map(&self, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        let Nothing {} = parsed(body)?;
        if let Some(map) = self.map.get() {
            return Ok(Answer::Kept(map));
        }
        // Names were read when the model was loaded.
        let map = self.model.explored(&self.name).map_err(|error| Refusal::Unknown(error.to_string()))?;
        Ok(Answer::Kept(self.map.get_or_init(|| map)))
    }

    fn words(&self, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        let Words { number } = parsed(body)?;
        let totals = &self.model.counts.topics.totals;
        let all = totals.iter().sum::<i64>().max(1) as f64;
        let number = checked_number(number)?.min(self.words.len());
        checked_together("the number of topics", totals.len(), number)?;
        let top = self.model.counts.top_words(number);
        let topic = |(topic, words): (usize, Vec<(u32, u32)>)| {
            let words: Vec<_> = words.iter().map(|&(word, _)| self.words.name(word)).collect();
            json!({ "topic": topic, "share": totals[topic] as f64 / all, "words": words })
        };
        Ok(Answer::Other(top.into_iter().enumerate().map(topic).collect()))
    }
}

impl Answers for OfTopics {
    fn questions(&self) -> &'static [&'static str] {
        &["topics", "words", "map"]
    }

    fn answer(&self, question: &str, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        match question {
            "topics" => self.topics(body),
            "map" => self.map(body),
            _ => self.words(body),
        }
    }
}

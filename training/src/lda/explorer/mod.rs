//! A page that shows topics as a map, with their words and documents, as LDAvis does (Sievert and Shirley 2014).

use megagrid_algorithms::lda::TopicMap;
use megagrid_partition::Side;
use rayon::prelude::*;
use serde_json::{Value, json};

use super::TopicModel;
use crate::Error;
use crate::page;

/// The function `topicExplorer`, which makes an element from what [`TopicModel::explored`] returns, with [`page::SCRIPT`].
pub const SCRIPT: &str = include_str!("explorer.js");
/// Words of a topic that are shown at once, as the script has it.
const WORDS: usize = 30;
/// The weights of relevance that the script's slider has.
const LAMBDAS: [f64; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
const DOCUMENTS: usize = 5;
/// A word is said to be in topics that have at least one of this many of its tokens.
const LEAST_PART: u64 = 100;

impl TopicModel {
    /// Describes topics for a map, the largest first: places, words that are among the most relevant at some weight, documents. Time: the
    /// words that each two topics have.
    ///
    /// # Errors
    /// Names that cannot be read.
    pub fn explored(&self, name: &str) -> Result<Value, Error> {
        let (documents, words) = (self.names.get(Side::Left)?, self.names.get(Side::Right)?);
        let map = TopicMap::new(&self.counts);
        let totals = &self.counts.topics.totals;
        let all = map.totals().iter().sum::<u64>();
        let relevant: Vec<_> =
            (0..totals.len()).into_par_iter().map(|topic| map.relevant(topic, WORDS, &LAMBDAS)).collect();
        let mut shown: Vec<u32> = relevant.iter().flatten().map(|word| word.word).collect();
        shown.sort_unstable();
        shown.dedup();
        let index = |word: u32| shown.partition_point(|&before| before < word);
        let best = self.best_documents();
        let places = map.places();
        let topic = |topic: usize| {
            let of_document =
                |&(share, document): &(f64, u32)| json!({ "name": documents.name(document), "share": share });
            json!({
                "topic": topic, "tokens": totals[topic], "share": totals[topic] as f64 / all.max(1) as f64, "place": places[topic],
                "words": relevant[topic].iter().map(|word| (index(word.word), word.count)).collect::<Vec<_>>(),
                "documents": best[topic].iter().map(of_document).collect::<Vec<_>>(),
            })
        };
        let word = |&word: &u32| {
            let tokens = map.totals()[word as usize];
            let is_part = |&(_, count): &(u16, u32)| u64::from(count) * LEAST_PART >= tokens;
            let mut topics: Vec<(u16, u32)> = self.counts.words.row(word as usize).filter(is_part).collect();
            topics.sort_unstable_by_key(|&(topic, count)| (std::cmp::Reverse(count), topic));
            json!({ "name": words.name(word), "tokens": tokens, "topics": topics })
        };
        let mut order: Vec<usize> = (0..totals.len()).collect();
        order.sort_by_key(|&topic| std::cmp::Reverse(totals[topic]));
        Ok(json!({
            "name": name, "tokens": all, "vocabulary": words.len(), "documents": documents.len(), "beta": self.counts.topics.beta,
            "topics": order.into_iter().map(topic).collect::<Vec<_>>(),
            "words": shown.iter().map(word).collect::<Vec<_>>(),
        }))
    }

    /// Returns the documents of each topic with the largest shares of it, largest first: share and document.
    fn best_documents(&self) -> Vec<Vec<(f64, u32)>> {
        let topics = &self.counts.topics;
        let alpha: Vec<f64> = topics.alpha[..topics.num_topics()].iter().map(|&alpha| f64::from(alpha)).collect();
        let prior: f64 = alpha.iter().sum();
        let mut best = vec![Vec::with_capacity(DOCUMENTS + 1); topics.num_topics()];
        for document in 0..self.counts.documents.len() {
            let tokens: u64 = self.counts.documents.row(document).map(|(_, count)| u64::from(count)).sum();
            for (topic, count) in self.counts.documents.row(document) {
                let share = (f64::from(count) + alpha[usize::from(topic)]) / (tokens as f64 + prior);
                let best: &mut Vec<(f64, u32)> = &mut best[usize::from(topic)];
                let at = best.partition_point(|other| other.0 >= share);
                if at < DOCUMENTS {
                    best.insert(at, (share, document as u32));
                    best.truncate(DOCUMENTS);
                }
            }
        }
        best
    }

    /// Returns a page of HTML that shows topics as a map, without anything from elsewhere.
    ///
    /// # Errors
    /// Names that cannot be read.
    pub fn page(&self, name: &str) -> Result<String, Error> {
        let data = page::json(&self.explored(name)?);
        let (style, helpers) = (page::STYLE, page::SCRIPT);
        Ok(format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Topics</title>\n<style>\n{style}</style>\n\
             <h1></h1>\n<p class=\"weak\"></p>\n<main></main>\n<script type=\"application/json\">{data}</script>\n<script>\n{helpers}{SCRIPT}\
             const data = JSON.parse(document.querySelector(\"script\").textContent);\n\
             document.title = document.querySelector(\"h1\").textContent = `Topics of ${{data.name}}`;\n\
             document.querySelector(\"p\").textContent = `${{data.topics.length}} topics, ${{data.documents}} documents, \
             ${{data.tokens}} tokens of ${{data.vocabulary}} words`;\n\
             document.querySelector(\"main\").append(topicExplorer(data));\n</script>\n</html>\n"
        ))
    }
}

//! `megagrid demo --algorithm lda`: a corpus with planted topics, and how many of these are found.

use std::fmt::Write;

use megagrid_algorithms::lda::Model;
use megagrid_datasets::synthetic::{CorpusSettings, CorpusTruth};
use megagrid_datasets::{Corpus, Dictionary};
use megagrid_partition::Side;
use megagrid_training::lda::{Alpha, Documents, PriorChoice, TopicModel, TopicModels, TopicOptions};
use megagrid_training::record::Record;

use crate::common::Common;

/// Part of the documents that is tested on.
const HOLDOUT: f64 = 0.1;
/// A topic is found if one of the model is as near: the cosine of their chances of words.
const NEAR: f64 = 0.9;
/// Iterations from one look at the likelihood to the next.
const EVERY: u64 = 10;
/// How many words of a topic are shown.
const SHOWN: usize = 8;

/// Runs the demo.
pub fn run(common: &Common) -> anyhow::Result<()> {
    let planted = CorpusSettings {
        num_documents: 2500,
        num_words: 2000,
        num_topics: 20,
        mean_length: 150.0,
        word_exponent: 0.4,
        seed: common.run.seed,
        ..CorpusSettings::default()
    };
    let made = planted.generate()?;
    common.say(&format!(
        "Made {} documents of {} tokens and {} words: {} planted topics.\n",
        planted.num_documents, made.corpus.num_tokens, planted.num_words, planted.num_topics
    ))?;
    let options = TopicOptions {
        topics: planted.num_topics,
        extra_topics: planted.num_topics / 2,
        alpha: Some(Alpha { weight: planted.alpha, shared: false }),
        beta: planted.beta as f32,
        prior: PriorChoice::Fixed,
        iterations: 120,
        top_words: SHOWN,
        ..TopicOptions::default()
    };
    let corpus = Corpus::new(made.corpus.data.in_degree_order());
    let data = Documents::new(corpus, Some(HOLDOUT), common.run.seed)?;
    let show = |_: &Record, model: &TopicModel| {
        let next = "\nNext: megagrid lda YOUR-POSTS.txt --lower-case --split punctuation --stop-words english --model topics\n";
        Ok(found(&model.counts, &*model.names.get(Side::Right)?, &made.truth) + next)
    };
    let origin = serde_json::json!({ "holdout": HOLDOUT });
    let mut common = common.clone();
    common.run.evaluate_every = EVERY;
    super::show::train::<TopicModels>(data, origin, options, &common, &show)
}

/// Lists the planted topics with the nearest of the model, and says how many are found.
fn found(model: &Model, words: &Dictionary, truth: &CorpusTruth) -> String {
    let num_words = truth.topics.len() / truth.num_topics;
    let learnt = chances(model, words, num_words);
    let planted: Vec<&[f32]> = truth.topics.chunks_exact(num_words).collect();
    let nearest = matches(&planted, &learnt);
    let mut text = "\nEach planted topic, the nearest topic of the model, and the cosine between them\n".to_owned();
    for (at, &(topic, cosine)) in nearest.iter().enumerate() {
        let mut order: Vec<usize> = (0..num_words).collect();
        order.sort_by(|&a, &b| planted[at][b].total_cmp(&planted[at][a]));
        // Words are named by the generator: word and their number, from 1.
        let names: Vec<String> = order.iter().take(SHOWN).map(|word| format!("word{}", word + 1)).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{at:>6} {topic:>4}  {cosine:.3}  {}", names.join(" "));
    }
    let near = nearest.iter().filter(|(_, cosine)| *cosine > NEAR).count();
    let _ = writeln!(text, "{near} of {} planted topics found: cosine above {NEAR}.", truth.num_topics);
    text
}

/// Returns the chance of each of the generator's words in each topic.
fn chances(model: &Model, words: &Dictionary, num_words: usize) -> Vec<Vec<f32>> {
    let topics = 0..model.topics.num_topics();
    let mut chances: Vec<Vec<f32>> = topics.map(|topic| vec![model.word_chance(topic, 0) as f32; num_words]).collect();
    for word in 0..words.len() {
        let name = words.name(word as u32);
        let number = name.strip_prefix("word").and_then(|number| number.parse::<usize>().ok());
        let Some(at) = number.and_then(|number| number.checked_sub(1)).filter(|&at| at < num_words) else { continue };
        for (topic, count) in model.words.row(word) {
            let topic = usize::from(topic);
            chances[topic][at] = model.word_chance(topic, count) as f32;
        }
    }
    chances
}

/// Matches each planted topic with one of the model, none twice, nearest pairs first.
fn matches(planted: &[&[f32]], learnt: &[Vec<f32>]) -> Vec<(usize, f64)> {
    let mut pairs = Vec::new();
    for (at, planted) in planted.iter().enumerate() {
        pairs.extend(learnt.iter().enumerate().map(|(topic, learnt)| (cosine(planted, learnt), at, topic)));
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut nearest, mut taken) = (vec![None; planted.len()], vec![false; learnt.len()]);
    for (cosine, at, topic) in pairs {
        if nearest[at].is_none() && !taken[topic] {
            nearest[at] = Some((topic, cosine));
            taken[topic] = true;
        }
    }
    nearest.into_iter().map(Option::unwrap_or_default).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

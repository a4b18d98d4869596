//! `lda`: new documents are added to the counts of a model.

use std::fmt::Write;

use megagrid_partition::{Side, SplitMix};
use megagrid_training::input::Source;
use megagrid_training::lda::{CorpusOptions, PriorChoice, Sampler, TopicModel, TopicModels, TopicOptions};
use megagrid_training::{RunOptions, Trained};

use super::{Desk, added, by_default, refused, removed, run};

const TOPICS: usize = 4;

/// Documents of one or two of four topics, each of which has 25 words; `words` are those that a topic has in addition.
fn documents(number: usize, seed: u64, words: &[&str]) -> Vec<String> {
    let document = |at: usize| {
        let mut random = SplitMix::new(seed, at as u64);
        let topics = [random.below(TOPICS as u64), random.below(TOPICS as u64)];
        let mut line = String::new();
        for _ in 0..40 {
            let topic = topics[random.below(2) as usize];
            match random.below(50) as usize {
                0 if !words.is_empty() => write!(line, " {}{topic}", words[random.below(words.len() as u64) as usize]),
                word => write!(line, " w{topic}x{}", word / 2),
            }
            .unwrap();
        }
        line + "\n"
    };
    (0..number).map(document).collect()
}

fn options(sampler: Sampler) -> TopicOptions {
    TopicOptions { topics: TOPICS, beta: 0.1, sampler, iterations: 60, annealing: None, ..TopicOptions::default() }
}

fn desk(sampler: Sampler) -> Desk<TopicModels> {
    Desk::new(options(sampler), by_default::<CorpusOptions>)
}

/// Tokens of each topic by rows, and in all.
fn totals(model: &TopicModel) -> [Vec<i64>; 3] {
    let of = |table: &megagrid_algorithms::lda::SparseCounts| {
        let mut totals = vec![0; TOPICS];
        (0..table.len())
            .flat_map(|row| table.row(row))
            .for_each(|(topic, count)| totals[topic as usize] += i64::from(count));
        totals
    };
    [of(&model.counts.words), of(&model.counts.documents), model.counts.topics.totals.clone()]
}

#[test]
fn every_token_is_counted_once_and_earlier_ones_stay_as_they_were() {
    for sampler in [Sampler::Dense, Sampler::Sparse, Sampler::Mh] {
        let desk = desk(sampler);
        let (directory, Trained { model, .. }) = desk.train(&desk.write("old.txt", &documents(300, 1, &[])));
        let (before, new) = (model.unwrap(), documents(30, 2, &["new"]));
        let updated = desk.update(&directory, &added(desk.write("new.txt", &new))).unwrap();
        let after = updated.model.unwrap();
        let [of_words, of_documents, of_topics] = totals(&after);
        assert_eq!((&of_words, &of_documents), (&of_topics, &of_topics));
        assert_eq!(of_topics.iter().sum::<i64>(), 330 * 40);
        let names = |model: &TopicModel, side| {
            model.names.get(side).unwrap().iter().map(|name| name.into_owned()).collect::<Vec<_>>()
        };
        for side in [Side::Left, Side::Right] {
            let (old, all) = (names(&before, side), names(&after, side));
            assert_eq!(all[..old.len()], old);
            assert!(all.len() > old.len());
        }
        assert_eq!(names(&after, Side::Left).len(), 330);
        assert!((0..300).all(|row| after.counts.documents.row(row).eq(before.counts.documents.row(row))));
        // A word of the new documents has the tokens that it had, and theirs.
        let tokens = |model: &TopicModel, name: &str| -> u32 {
            let row = model.names.get(Side::Right).unwrap().find(name);
            row.map_or(0, |row| model.counts.words.row(row as usize).map(|(_, count)| count).sum())
        };
        for word in ["w0x3", "w3x7", "new1"] {
            let added = new.iter().flat_map(|line| line.split_whitespace()).filter(|found| *found == word).count();
            assert!(added > 0, "{word}");
            assert_eq!(tokens(&after, word), tokens(&before, word) + added as u32, "{word}");
        }
        // Once more, onto the model that was updated.
        let updated = desk.update(&directory, &added(desk.write("third.txt", &documents(10, 3, &["third"])))).unwrap();
        assert_eq!(totals(&updated.model.unwrap())[0].iter().sum::<i64>(), 340 * 40);
    }
}

/// One token of a word by itself has a topic with the chance alpha_k (n_wk + beta) / (n_k + V beta), whatever came before.
#[test]
fn a_topic_is_drawn_given_those_of_earlier_tokens() {
    const DRAWS: usize = 3000;
    for sampler in [Sampler::Dense, Sampler::Sparse] {
        let mut desk = desk(sampler);
        desk.options.prior = PriorChoice::Asymmetric;
        desk.options.beta = 5.0;
        let (directory, Trained { model, .. }) = desk.train(&desk.write("old.txt", &documents(60, 4, &[])));
        let counts = model.unwrap().counts;
        // Each of the new documents is one token of a word of its own, which the vocabulary has beside the earlier ones.
        let new: Vec<String> = (0..DRAWS).map(|at| format!("n{at}\n")).collect();
        let updated = desk.update(&directory, &added(desk.write("new.txt", &new))).unwrap().model.unwrap();
        let (beta, words) = (5.0, (counts.words.len() + DRAWS) as f64);
        let mut found = [0.0; TOPICS];
        for row in counts.words.len()..updated.counts.words.len() {
            let (topic, count) = updated.counts.words.row(row).next().unwrap();
            assert_eq!(count, 1);
            found[usize::from(topic)] += 1.0 / DRAWS as f64;
        }
        // Totals change by the draws themselves: an earlier one is part of what a later one is given.
        let weight = |topic: usize| {
            let total = counts.topics.totals[topic] as f64 + found[topic] * DRAWS as f64;
            f64::from(counts.topics.alpha[topic]) * beta / (total + words * beta)
        };
        let sum: f64 = (0..TOPICS).map(weight).sum();
        for topic in 0..TOPICS {
            let (chance, found) = (weight(topic) / sum, found[topic]);
            let deviation = (chance * (1.0 - chance) / DRAWS as f64).sqrt();
            assert!((found - chance).abs() < 5.0 * deviation, "topic {topic}: {found}, expected {chance}");
        }
    }
}

#[test]
fn words_that_were_chosen_stay_chosen_in_all_that_begins_there() {
    let lines =
        |seed, more: &str| documents(100, seed, &[]).iter().map(|line| format!("the{more}{line}")).collect::<Vec<_>>();
    let chosen = Desk::<TopicModels>::new(options(Sampler::Auto), || CorpusOptions {
        min_documents: 2,
        max_documents: 0.9,
        ..by_default()
    });
    let (first, _) = chosen.train(&chosen.write("old.txt", &lines(11, "")));
    let desk = desk(Sampler::Auto);
    let more = Source::new(desk.write("more.txt", &lines(12, "")));
    let (directory, _) = desk.train_on(more, &RunOptions { from: Some(first), ..run() });
    for (name, word) in [("new.txt", " rare"), ("newer.txt", " scarce")] {
        let new = desk.write(name, &lines(13, word));
        let updated = desk.update(&directory, &added(new)).unwrap().model.unwrap();
        let names = updated.names.get(Side::Right).unwrap();
        assert!(names.find("w0x3").is_some());
        assert_eq!((names.find("the"), names.find(word.trim())), (None, None));
    }
}

#[test]
fn unseen_documents_are_as_likely_as_by_training_on_all() {
    let desk = desk(Sampler::Auto);
    let (old, new) = (documents(600, 5, &[]), documents(60, 6, &["new", "late"]));
    let (directory, _) = desk.train(&desk.write("old.txt", &old));
    let full = desk.train(&desk.write("all.txt", &[old, new.clone()].concat())).1.model.unwrap();
    let updated = desk.update(&directory, &added(desk.write("new.txt", &new))).unwrap().model.unwrap();
    let unseen = documents(300, 7, &["new", "late"]);
    let per_token = |model: &TopicModel| {
        let names = model.names.get(Side::Right).unwrap();
        let words: Vec<Vec<(u32, u32)>> = unseen
            .iter()
            .map(|line| line.split_whitespace().filter_map(|word| Some((names.find(word)?, 1))).collect())
            .collect();
        megagrid_algorithms::lda::FoldIn::default().perplexity(&model.counts, &words, 2).ln()
    };
    let (found, expected) = (per_token(&updated), per_token(&full));
    assert!(found < 1.005 * expected, "{found} a token, {expected} by training on all");
}

#[test]
fn what_cannot_be_gone_on_with_is_refused() {
    let desk = desk(Sampler::Auto);
    let old = desk.write("old.txt", &documents(100, 8, &[]));
    let (directory, _) = desk.train(&old);
    assert!(refused(desk.update(&directory, &removed(old))).contains("documents that arrive only"));
    let new = desk.write("new.txt", &documents(10, 9, &[]));
    let run = RunOptions { from: Some(directory), ..run() };
    let other =
        Desk::<TopicModels>::new(TopicOptions { topics: 5, ..options(Sampler::Auto) }, by_default::<CorpusOptions>);
    let said = refused(other.job(&new, &run));
    assert!(said.contains("4 topics") && said.contains("--topics 4"), "{said}");
}

#[test]
fn one_document_of_few_tokens_is_enough() {
    let desk =
        Desk::<TopicModels>::new(TopicOptions { topics: 100, ..options(Sampler::Auto) }, by_default::<CorpusOptions>);
    let (directory, _) = desk.train(&desk.write("old.txt", &documents(100, 10, &[])));
    let updated = desk.update(&directory, &added(desk.write("new.txt", &["rare\n".to_owned()]))).unwrap();
    assert_eq!(updated.model.unwrap().counts.documents.len(), 101);
}

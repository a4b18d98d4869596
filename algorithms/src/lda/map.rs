//! Topics as a map: how far they are from each other, and which words tell them apart, as LDAvis defines both (Sievert and Shirley,
//! "LDAvis: A method for visualizing and interpreting topics", 2014).

use rayon::prelude::*;

use super::Model;
use crate::scaling;

/// A word that tells a topic from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relevant {
    /// The word.
    pub word: u32,
    /// Its tokens in the topic.
    pub count: u32,
}

/// Words of topics, with what it takes to compare them.
#[derive(Debug)]
pub struct TopicMap<'m> {
    model: &'m Model,
    /// Words of each topic, ascending.
    words: Vec<Vec<(u32, u32)>>,
    /// Tokens of each word in all topics, `[num_words]`.
    totals: Vec<u64>,
    num_tokens: f64,
}

impl<'m> TopicMap<'m> {
    /// Takes a model apart by topic. The words' counts are copied: 8 bytes each.
    #[must_use]
    pub fn new(model: &'m Model) -> Self {
        let of_word = |word| model.words.row(word).map(|(_, count)| u64::from(count)).sum();
        let totals: Vec<u64> = (0..model.words.len()).map(of_word).collect();
        let num_tokens = totals.iter().sum::<u64>() as f64;
        Self { model, words: model.words_of_topics(), totals, num_tokens }
    }

    /// Returns the tokens of each word in all topics, `[num_words]`.
    #[must_use]
    pub fn totals(&self) -> &[u64] {
        &self.totals
    }

    /// Returns the Jensen–Shannon divergence of each two topics' distributions over words, in nats: `[num_topics * num_topics]`,
    /// symmetric. Time: the words that each two topics have.
    #[must_use]
    pub fn divergences(&self) -> Vec<f64> {
        let len = self.words.len();
        let entropies: Vec<f64> = (0..len).into_par_iter().map(|topic| self.entropy_between(topic, topic)).collect();
        let row = |a: usize| {
            let entropies = &entropies;
            (0..a).map(move |b| (self.entropy_between(a, b) - f64::midpoint(entropies[a], entropies[b])).max(0.0))
        };
        let rows: Vec<Vec<f64>> = (0..len).into_par_iter().map(|a| row(a).collect()).collect();
        let mut all = vec![0.0; len * len];
        for (a, row) in rows.iter().enumerate() {
            for (b, &divergence) in row.iter().enumerate() {
                (all[a * len + b], all[b * len + a]) = (divergence, divergence);
            }
        }
        all
    }

    /// Returns a place in the plane for each topic, `[num_topics]`, so that topics with like words are near each other: classical
    /// scaling of the divergences.
    #[must_use]
    pub fn places(&self) -> Vec<[f64; 2]> {
        scaling::places(&self.divergences(), self.words.len())
    }

    /// Returns the entropy of the mean of two topics' distributions over words.
    fn entropy_between(&self, a: usize, b: usize) -> f64 {
        let unseen = f64::midpoint(self.model.word_chance(a, 0), self.model.word_chance(b, 0));
        let (mut entropy, mut seen) = (0.0, 0_usize);
        let (mut left, mut right) = (self.words[a].as_slice(), self.words[b].as_slice());
        // The next word of either; past the last, a word after all.
        let first = |words: &[(u32, u32)]| words.first().copied().unwrap_or((u32::MAX, 0));
        while !left.is_empty() || !right.is_empty() {
            let ((of_left, in_a), (of_right, in_b)) = (first(left), first(right));
            let word = of_left.min(of_right);
            let (has_a, has_b) = (of_left == word, of_right == word);
            let chance_in_a = self.model.word_chance(a, if has_a { in_a } else { 0 });
            let chance_in_b = self.model.word_chance(b, if has_b { in_b } else { 0 });
            entropy += surprise(f64::midpoint(chance_in_a, chance_in_b));
            seen += 1;
            left = &left[usize::from(has_a && !left.is_empty())..];
            right = &right[usize::from(has_b && !right.is_empty())..];
        }
        entropy + surprise(unseen) * (self.totals.len() - seen) as f64
    }

    /// Returns a topic's relevance of a word at a weight λ: `λ log φ + (1 - λ) log (φ / p)`, with φ the word's chance in the topic and p
    /// its share of all tokens (section 3.1). A λ of 1 orders by chance, one of 0 by how much likelier the word is here than elsewhere.
    #[must_use]
    pub fn relevance(&self, topic: usize, word: Relevant, lambda: f64) -> f64 {
        let chance = self.model.word_chance(topic, word.count).ln();
        chance - (1.0 - lambda) * (self.totals[word.word as usize] as f64 / self.num_tokens).ln()
    }

    /// Returns the words of a topic that are among its `top` most relevant at any of the weights, ascending by word.
    #[must_use]
    pub fn relevant(&self, topic: usize, top: usize, lambdas: &[f64]) -> Vec<Relevant> {
        let words: Vec<Relevant> = self.words[topic].iter().map(|&(word, count)| Relevant { word, count }).collect();
        let mut chosen = Vec::new();
        for &lambda in lambdas {
            let mut scored: Vec<(f64, u32)> =
                words.iter().map(|&word| (self.relevance(topic, word, lambda), word.word)).collect();
            let order = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            if scored.len() > top {
                scored.select_nth_unstable_by(top, order);
                scored.truncate(top);
            }
            chosen.extend(scored.iter().map(|scored| scored.1));
        }
        chosen.sort_unstable();
        chosen.dedup();
        let known = |word: u32| words[words.partition_point(|known| known.word < word)];
        chosen.into_iter().map(known).collect()
    }
}

fn surprise(chance: f64) -> f64 {
    -chance * chance.ln()
}

#[cfg(test)]
mod tests {
    use super::super::{SparseCounts, Topics};
    use super::*;

    /// Counts of words by topic, `[num_words][num_topics]`.
    fn model(counts: &[&[u32]]) -> Model {
        let num_topics = counts[0].len();
        let mut words = SparseCounts { offsets: vec![0], ..SparseCounts::default() };
        let mut topics = Topics::new(&vec![0.1; num_topics], 0.5, counts.len());
        for row in counts {
            for (topic, &count) in row.iter().enumerate().filter(|(_, count)| **count > 0) {
                words.topics.push(topic as u16);
                words.counts.push(count);
                topics.totals[topic] += i64::from(count);
            }
            words.offsets.push(words.topics.len());
        }
        Model { topics, words, documents: SparseCounts { offsets: vec![0], ..SparseCounts::default() } }
    }

    #[test]
    fn divergences_are_those_of_the_dense_distributions() {
        let counts: [&[u32]; 6] = [&[5, 0, 1], &[0, 7, 2], &[3, 3, 0], &[0, 0, 9], &[1, 0, 0], &[0, 0, 0]];
        let model = model(&counts);
        let chances = |topic: usize| counts.map(|row| model.word_chance(topic, row[topic]));
        let found = TopicMap::new(&model).divergences();
        for a in 0..3 {
            for b in 0..3 {
                let to_mean = |(p, q): (f64, f64)| p * (p / f64::midpoint(p, q)).ln();
                let pairs = || chances(a).into_iter().zip(chances(b));
                let naive: f64 = pairs().map(|(p, q)| f64::midpoint(to_mean((p, q)), to_mean((q, p)))).sum();
                assert!((found[a * 3 + b] - naive).abs() < 1e-12, "{a} {b}: {} against {naive}", found[a * 3 + b]);
            }
        }
    }

    #[test]
    fn topics_of_like_words_are_near_each_other() {
        let model = model(&[&[9, 8, 0], &[7, 9, 0], &[0, 1, 9], &[1, 0, 9]]);
        let places = TopicMap::new(&model).places();
        let distance = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
        assert!(distance(places[0], places[1]) < 0.3 * distance(places[0], places[2]), "{places:?}");
    }

    #[test]
    fn relevance_turns_from_common_words_to_words_of_the_topic() {
        // The first word is everywhere, the second only in topic 0.
        let model = model(&[&[20, 30], &[10, 0], &[1, 9]]);
        let map = TopicMap::new(&model);
        let best = |lambda: f64| map.relevant(0, 1, &[lambda])[0].word;
        assert_eq!((best(1.0), best(0.0)), (0, 1));
        let both: Vec<u32> = map.relevant(0, 1, &[0.0, 1.0]).iter().map(|word| word.word).collect();
        assert_eq!(both, [0, 1]);
        let word = Relevant { word: 1, count: 10 };
        let (chance, share) = (10.5 / 32.5_f64, 10.0 / 70.0_f64);
        assert!((map.relevance(0, word, 0.4) - (0.4 * chance.ln() + 0.6 * (chance / share).ln())).abs() < 1e-6);
    }
}

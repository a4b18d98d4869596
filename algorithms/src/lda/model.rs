//! The trained model: counts of words and documents, priors, and what follows from them.

use super::counts::TopicCounts;
use super::likelihood::Vertices;
use super::program::Topics;

/// A trained model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Topic totals and priors.
    pub topics: Topics,
    /// Tokens of each word in each topic, `[num_words, num_topics]`.
    pub words: SparseCounts,
    /// Tokens of each document in each topic, `[num_documents, num_topics]`.
    pub documents: SparseCounts,
}

/// A table of counts by row: those of row i are at `offsets[i]..offsets[i + 1]`, topics ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseCounts {
    /// Where rows begin, and the end of the last.
    pub offsets: Vec<usize>,
    /// Topic of each entry.
    pub topics: Vec<u16>,
    /// Count of each entry.
    pub counts: Vec<u32>,
}

impl SparseCounts {
    /// Copies the counts of vertices; `numbers` says what number each topic gets, if any, `[num_topics]`.
    fn new<'v, S: TopicCounts + ?Sized>(numbers: &[Option<u16>], vertices: &Vertices<impl Fn(usize) -> &'v S>) -> Self {
        // Counted first: a list that grows takes up to three times its bytes.
        let mut num_entries = 0;
        for id in 0..vertices.len {
            (vertices.counts)(id).each(numbers.len(), |topic, _| num_entries += usize::from(numbers[topic].is_some()));
        }
        let (topics, counts) = (Vec::with_capacity(num_entries), Vec::with_capacity(num_entries));
        let mut table = Self { offsets: Vec::with_capacity(vertices.len + 1), topics, counts };
        table.offsets.push(0);
        let mut row = Vec::new();
        for id in 0..vertices.len {
            row.clear();
            (vertices.counts)(id).each(numbers.len(), |topic, count| {
                row.extend(numbers[topic].map(|number| (number, count)));
            });
            row.sort_unstable_by_key(|entry| entry.0);
            table.topics.extend(row.iter().map(|entry| entry.0));
            table.counts.extend(row.iter().map(|entry| entry.1));
            table.offsets.push(table.topics.len());
        }
        table
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Tells whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a row behind the others, of topics that ascend.
    pub fn push(&mut self, row: impl Iterator<Item = (u16, u32)>) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        for (topic, count) in row {
            self.topics.push(topic);
            self.counts.push(count);
        }
        self.offsets.push(self.topics.len());
    }

    /// Returns a row's topics and counts.
    #[must_use]
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = (u16, u32)> {
        let entries = self.offsets[row]..self.offsets[row + 1];
        self.topics[entries.clone()].iter().copied().zip(self.counts[entries].iter().copied())
    }
}

impl Model {
    /// Takes the model out of vertices, without the topics that were given up.
    pub fn new<'v, D: TopicCounts + ?Sized, W: TopicCounts + ?Sized>(
        topics: &Topics,
        documents: &Vertices<impl Fn(usize) -> &'v D>,
        words: &Vertices<impl Fn(usize) -> &'v W>,
    ) -> Self {
        let kept: Vec<usize> = (0..topics.num_topics()).filter(|&topic| topics.is_kept(topic)).collect();
        // Of those that were given up rounding may have drawn one token in millions, which is left out.
        let mut numbers = vec![None; topics.num_topics()];
        kept.iter().zip(0..).for_each(|(&topic, number)| numbers[topic] = Some(number));
        Self {
            topics: topics.only(&kept),
            words: SparseCounts::new(&numbers, words),
            documents: SparseCounts::new(&numbers, documents),
        }
    }

    /// Returns the chance of a word in a topic that it has `count` tokens of.
    #[must_use]
    pub fn word_chance(&self, topic: usize, count: u32) -> f64 {
        (f64::from(count) + f64::from(self.topics.beta)) / self.tokens_with_prior(topic)
    }

    /// Returns `n_k + V beta`.
    pub(super) fn tokens_with_prior(&self, topic: usize) -> f64 {
        self.topics.totals[topic] as f64 + f64::from(self.topics.beta) * self.topics.num_words as f64
    }

    /// Returns the chances of all topics in a document of the corpus, `[num_topics]`; those of the prior without words.
    #[must_use]
    pub fn document_chances(&self, document: usize) -> Vec<f64> {
        mixture(&self.topics, self.documents.row(document))
    }

    /// Returns the words that each topic has tokens of, ascending: `[num_topics]` lists of word and count.
    #[must_use]
    pub fn words_of_topics(&self) -> Vec<Vec<(u32, u32)>> {
        let mut words = vec![Vec::new(); self.topics.num_topics()];
        for word in 0..self.words.len() {
            for (topic, count) in self.words.row(word) {
                words[usize::from(topic)].push((word as u32, count));
            }
        }
        words
    }

    /// Returns the words of each topic with the most tokens, most first, at most `top` each: `[num_topics]` lists of word
    /// and count. Words that the topic has no token of are left out.
    #[must_use]
    pub fn top_words(&self, top: usize) -> Vec<Vec<(u32, u32)>> {
        let mut words = self.words_of_topics();
        for list in &mut words {
            list.sort_unstable_by_key(|&(word, count)| (std::cmp::Reverse(count), word));
            list.truncate(top);
        }
        words
    }
}

/// Returns `(n_k + alpha_k) / (n + A)` for each topic.
pub(super) fn mixture(topics: &Topics, counts: impl Iterator<Item = (u16, u32)>) -> Vec<f64> {
    let mut weights: Vec<f64> = topics.alpha[..topics.num_topics()].iter().map(|&alpha| f64::from(alpha)).collect();
    counts.for_each(|(topic, count)| weights[usize::from(topic)] += f64::from(count));
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

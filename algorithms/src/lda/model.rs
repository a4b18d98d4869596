//! The trained model: counts of words and documents, priors, and what follows from them.

use megagrid_partition::parallel::{consume, fill};

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

/// Rows of a piece of work.
const ROWS: usize = 512;

impl SparseCounts {
    /// Copies the counts of vertices, on all threads; `numbers` says what number each topic gets, if any, `[num_topics]`.
    fn new<S: TopicCounts + ?Sized>(numbers: &[Option<u16>], vertices: &Vertices<'_, S>) -> Self {
        // Counted first: a list that grows takes up to three times its bytes.
        let lens = fill(vertices.len, |id| {
            let mut len = 0;
            each_kept((vertices.counts)(id), numbers, |_, _| len += 1);
            len
        });
        let mut offsets = vec![0];
        offsets.extend(lens.iter().scan(0, |end, len| {
            *end += len;
            Some(*end)
        }));
        let num_entries: usize = lens.iter().sum();
        let (mut topics, mut counts) = (vec![0; num_entries], vec![0; num_entries]);
        let mut rest = (&mut topics[..], &mut counts[..]);
        let room = |first: usize| {
            let last = (first + ROWS).min(vertices.len);
            let (topics, counts) = std::mem::take(&mut rest);
            let at = offsets[last] - offsets[first];
            let ((topics, later_topics), (counts, later_counts)) = (topics.split_at_mut(at), counts.split_at_mut(at));
            rest = (later_topics, later_counts);
            (first..last, topics.iter_mut().zip(counts))
        };
        consume((0..vertices.len).step_by(ROWS).map(room).collect(), |(rows, mut room)| {
            let mut row = Row { occurs: vec![0; numbers.len().div_ceil(64)], counts: vec![0; numbers.len()] };
            for id in rows {
                each_kept((vertices.counts)(id), numbers, |topic, count| row.set(topic, count));
                row.take(|entry| room.next().into_iter().for_each(|(topic, count)| (*topic, *count) = entry));
            }
        });
        Self { offsets, topics, counts }
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

/// Puts the topics of a row in order.
struct Row {
    /// A bit for each topic.
    occurs: Vec<u64>,
    /// Those of topics whose bit is set.
    counts: Vec<u32>,
}

impl Row {
    fn set(&mut self, topic: u16, count: u32) {
        self.occurs[usize::from(topic) / 64] |= 1 << (topic % 64);
        self.counts[usize::from(topic)] = count;
    }

    /// Calls `visit` with the topics, ascending, and their counts; nothing is left.
    fn take(&mut self, mut visit: impl FnMut((u16, u32))) {
        for (word, bits) in self.occurs.iter_mut().enumerate() {
            while *bits != 0 {
                let topic = 64 * word + bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                visit((topic as u16, self.counts[topic]));
            }
        }
    }
}

/// Calls `visit` with the number of each topic that is kept and occurs at a vertex, and how often.
#[inline]
fn each_kept<S: TopicCounts + ?Sized>(counts: &S, numbers: &[Option<u16>], mut visit: impl FnMut(u16, u32)) {
    counts.each(numbers.len(), |topic, count| {
        if let Some(number) = numbers[topic] {
            visit(number, count);
        }
    });
}

impl Model {
    /// Takes the model out of vertices, without the topics that were given up.
    pub fn new<D: TopicCounts + ?Sized, W: TopicCounts + ?Sized>(
        topics: &Topics,
        documents: &Vertices<'_, D>,
        words: &Vertices<'_, W>,
    ) -> Self {
        let documents = SparseCounts::new(&numbers(topics), documents);
        Self { documents, ..Self::of_words(topics, words) }
    }

    /// The same without documents: all that new ones need.
    pub fn of_words<W: TopicCounts + ?Sized>(topics: &Topics, words: &Vertices<'_, W>) -> Self {
        let words = SparseCounts::new(&numbers(topics), words);
        Self { topics: topics.only(&kept(topics)), words, documents: SparseCounts::default() }
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

/// Returns the topics that were not given up.
fn kept(topics: &Topics) -> Vec<usize> {
    (0..topics.num_topics()).filter(|&topic| topics.is_kept(topic)).collect()
}

/// Returns the number of each topic among those that were not given up. Of others rounding may have drawn one token in millions, which is left
/// out.
fn numbers(topics: &Topics) -> Vec<Option<u16>> {
    let mut numbers = vec![None; topics.num_topics()];
    kept(topics).into_iter().zip(0..).for_each(|(topic, number)| numbers[topic] = Some(number));
    numbers
}

/// Returns `(n_k + alpha_k) / (n + A)` for each topic.
pub(super) fn mixture(topics: &Topics, counts: impl Iterator<Item = (u16, u32)>) -> Vec<f64> {
    let mut weights: Vec<f64> = topics.alpha[..topics.num_topics()].iter().map(|&alpha| f64::from(alpha)).collect();
    counts.for_each(|(topic, count)| weights[usize::from(topic)] += f64::from(count));
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

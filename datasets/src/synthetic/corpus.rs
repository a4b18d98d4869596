//! Corpora with planted topics, made as latent Dirichlet allocation has it [Blei, Ng, Jordan: Latent Dirichlet
//! Allocation, JMLR 2003]: a document draws its mixture of topics, every token a topic from it and a word from that.

use std::io::Write;
use std::path::{Path, PathBuf};

use megagrid_partition::{EdgeList, parallel};
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, Poisson};

use super::random::{Random, alias_table, lengths, zipf};
use super::writer::write_text;
use super::{check, check_count, numbered};
use crate::output::write_matrix;
use crate::{Corpus, Dataset, Dictionary, Error};

/// What corpus to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorpusSettings {
    /// Documents.
    pub num_documents: usize,
    /// Words of the vocabulary, of which some may not occur.
    pub num_words: usize,
    /// Planted topics.
    pub num_topics: usize,
    /// Tokens per document; lengths are Poisson distributed, 1 at least.
    pub mean_length: f64,
    /// Concentration of each topic in a document.
    pub alpha: f64,
    /// Mean concentration of a word in a topic.
    pub beta: f64,
    /// Concentrations of words are proportional to `rank^-exponent`: 0 makes all words as frequent.
    pub word_exponent: f64,
    /// Picks one of the corpora of these settings.
    pub seed: u64,
}

impl Default for CorpusSettings {
    /// 1,000 documents of 100 tokens, 2,000 words, 10 topics; alpha 0.1, beta 0.05, exponent 0.8, seed 1.
    fn default() -> Self {
        Self {
            num_documents: 1000,
            num_words: 2000,
            num_topics: 10,
            mean_length: 100.0,
            alpha: 0.1,
            beta: 0.05,
            word_exponent: 0.8,
            seed: 1,
        }
    }
}

/// A corpus and what it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticCorpus {
    /// The corpus, document after document, words ascending. Documents are named by their number from 1.
    pub corpus: Corpus,
    /// What was planted.
    pub truth: CorpusTruth,
}

/// The planted model.
#[derive(Clone, Debug, PartialEq)]
pub struct CorpusTruth {
    /// Chance of each word in each topic, `[num_topics, num_words]`.
    pub topics: Vec<f32>,
    /// Chance of each topic in each document, `[num_documents, num_topics]`.
    pub mixtures: Vec<f32>,
    /// Number of topics.
    pub num_topics: usize,
}

/// Streams of one item: see [`Random::new`].
const WORDS_OF_TOPIC: u64 = 1;
const TOKENS_OF_DOCUMENT: u64 = 2;

impl CorpusSettings {
    /// Makes the corpus.
    ///
    /// # Errors
    /// Where a setting is out of range.
    ///
    /// # Examples
    /// ```
    /// let made = megagrid_datasets::synthetic::CorpusSettings::default().generate()?;
    /// let counts = &made.corpus.data.edges.data;
    /// assert_eq!(made.corpus.num_tokens, counts.iter().map(|&count| u64::from(count)).sum::<u64>());
    /// # Ok::<(), megagrid_datasets::Error>(())
    /// ```
    pub fn generate(&self) -> Result<SyntheticCorpus, Error> {
        self.check()?;
        let mean_length = lengths("mean length", self.mean_length)?;
        let concentrations: Vec<f64> = zipf(self.num_words, self.word_exponent)
            .iter()
            .map(|weight| self.beta * self.num_words as f64 * weight)
            .collect();
        let topic = |topic| Random::new(self.seed, WORDS_OF_TOPIC, topic).dirichlet(&concentrations);
        let topics: Vec<Vec<f64>> = parallel::map(self.num_topics, topic);
        let planted: Vec<f32> = topics.iter().flatten().map(|&chance| chance as f32).collect();
        let topics = parallel::map(topics.len(), |topic| alias_table(topics[topic].clone()));
        let documents = parallel::map(self.num_documents, |id| self.document(id, &topics, &mean_length));
        let mut edges = EdgeList { num_left: self.num_documents, num_right: self.num_words, ..EdgeList::default() };
        let mut truth = CorpusTruth { topics: planted, mixtures: Vec::new(), num_topics: self.num_topics };
        for (id, mut document) in documents.into_iter().enumerate() {
            edges.right.append(&mut document.words);
            edges.data.append(&mut document.counts);
            edges.left.resize(edges.right.len(), id as u32);
            truth.mixtures.extend(document.mixture.iter().map(|&chance| chance as f32));
        }
        let num_tokens = edges.data.iter().map(|&count| u64::from(count)).sum();
        let words = Dictionary::from_strings((1..=self.num_words).map(|number| format!("word{number}")));
        let data = Dataset { edges, left_names: numbered(self.num_documents), right_names: Some(words) };
        Ok(SyntheticCorpus { corpus: Corpus { data, num_tokens }, truth })
    }

    fn check(&self) -> Result<(), Error> {
        check_count("documents", self.num_documents)?;
        check_count("words", self.num_words)?;
        check((1..=1 << 20).contains(&self.num_topics), "topics", self.num_topics as f64, "1 to 1048576")?;
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            check((1e-6..=1e6).contains(&value), name, value, "0.000001 to 1000000")?;
        }
        check((0.0..=10.0).contains(&self.word_exponent), "word exponent", self.word_exponent, "0 to 10")
    }

    fn document(&self, id: usize, topics: &[WeightedAliasIndex<f64>], length: &Poisson<f64>) -> Document {
        let mut random = Random::new(self.seed, TOKENS_OF_DOCUMENT, id);
        let mixture = random.dirichlet(&vec![self.alpha; self.num_topics]);
        let of_token = alias_table(mixture.clone());
        let num_tokens = length.sample(&mut random).max(1.0) as usize;
        let mut token = || {
            let topic = random.pick(&of_token);
            random.pick(&topics[topic]) as u32
        };
        let mut tokens: Vec<u32> = (0..num_tokens).map(|_| token()).collect();
        tokens.sort_unstable();
        let (words, counts) = tokens.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).unzip();
        Document { mixture, words, counts }
    }
}

struct Document {
    mixture: Vec<f64>,
    words: Vec<u32>,
    counts: Vec<u32>,
}

impl CorpusTruth {
    /// Writes the chances as `topics.npy` and `mixtures.npy` into a directory that exists.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        let num_words = self.topics.len() / self.num_topics;
        for (name, chances, columns) in
            [("topics.npy", &self.topics, num_words), ("mixtures.npy", &self.mixtures, self.num_topics)]
        {
            write_matrix(&directory.join(name), columns, chances.chunks_exact(columns))?;
        }
        Ok(())
    }
}

impl SyntheticCorpus {
    /// Writes the corpus as a UCI bag of words, and its vocabulary to [`vocabulary_path`](Self::vocabulary_path).
    ///
    /// # Errors
    /// Where something is in the place of one of them already or the system refuses.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let data = &self.corpus.data;
        let words = data.right_names();
        write_text(&Self::vocabulary_path(path), "", words.len(), |text, id| {
            writeln!(text, "{}", words.name(id as u32))
        })?;
        let edges = &data.edges;
        let header = format!("{}\n{}\n{}\n", edges.num_left, edges.num_right, edges.num_edges());
        write_text(path, &header, edges.num_edges(), |text, edge| {
            let (document, word) = (u64::from(edges.left[edge]) + 1, u64::from(edges.right[edge]) + 1);
            writeln!(text, "{document} {word} {}", edges.data[edge])
        })
    }

    /// Returns where the vocabulary of a corpus is: `vocab.X.txt` beside `docword.X.txt`, `vocab.Y.txt` beside `Y.txt`.
    #[must_use]
    pub fn vocabulary_path(corpus: &Path) -> PathBuf {
        let name = corpus.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_prefix("docword.").unwrap_or(&name);
        let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
        corpus.with_file_name(format!("vocab.{stem}.txt"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_frequent_as_topics_and_mixtures_say() {
        let settings =
            CorpusSettings { num_words: 30, num_topics: 3, num_documents: 2000, ..CorpusSettings::default() };
        let made = settings.generate().unwrap();
        let edges = &made.corpus.data.edges;
        let num_tokens = made.corpus.num_tokens as f64;
        assert!((num_tokens / 2000.0 - 100.0).abs() < 1.0);
        let mut lengths = vec![0.0; 2000];
        let mut found = vec![0.0; 30];
        for ((&document, &word), &count) in edges.left.iter().zip(&edges.right).zip(&edges.data) {
            lengths[document as usize] += f64::from(count);
            found[word as usize] += f64::from(count);
        }
        let mut expected = vec![0.0; 30];
        for (length, mixture) in lengths.iter().zip(made.truth.mixtures.chunks(3)) {
            for (share, topic) in mixture.iter().zip(made.truth.topics.chunks(30)) {
                topic.iter().zip(&mut expected).for_each(|(chance, sum)| *sum += length * f64::from(share * chance));
            }
        }
        for (found, expected) in found.iter().zip(&expected) {
            // Six deviations of a binomial count.
            assert!((found - expected).abs() < 6.0 * expected.sqrt() + 1.0, "{found}, expected {expected}");
        }
    }

    #[test]
    fn topics_differ_and_mixtures_are_sparse() {
        let made = CorpusSettings::default().generate().unwrap();
        let sums = made.truth.topics.chunks(2000).map(|topic| topic.iter().sum::<f32>());
        assert!(sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-3));
        let dominant = made.truth.mixtures.chunks(10).filter(|mixture| mixture.iter().any(|&share| share > 0.5));
        assert!(dominant.count() > 500);
    }

    #[test]
    fn vocabularies_lie_beside_their_corpora() {
        for (corpus, vocabulary) in [
            ("a/docword.kos.txt", "a/vocab.kos.txt"),
            ("a/docword.kos.txt.gz", "a/vocab.kos.txt"),
            ("bag.txt", "vocab.bag.txt"),
            ("bag", "vocab.bag.txt"),
        ] {
            assert_eq!(SyntheticCorpus::vocabulary_path(Path::new(corpus)), Path::new(vocabulary));
        }
    }
}

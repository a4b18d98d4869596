//! What is done with a corpus before it is trained on: words left out, documents held out, words of another vocabulary.

use megagrid_partition::EdgeList;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{Corpus, Dataset, Dictionary, Error, StopWords, split};

/// Which words of a corpus are kept.
#[derive(Clone, Debug)]
pub struct WordFilter {
    /// Characters of a word at least.
    pub min_length: usize,
    /// Words to leave out.
    pub stop_words: StopWords,
    /// Documents that a word has to occur in.
    pub min_documents: u64,
    /// Part of the documents, above 0 and at most 1, that a word may occur in.
    pub max_documents: f64,
}

impl Default for WordFilter {
    /// Keeps all words, those that do not occur as well.
    fn default() -> Self {
        Self { min_length: 0, stop_words: StopWords::default(), min_documents: 0, max_documents: 1.0 }
    }
}

impl WordFilter {
    /// Tells whether every word is kept.
    #[must_use]
    pub fn keeps_all(&self) -> bool {
        self.min_length == 0 && self.stop_words.is_empty() && self.min_documents == 0 && self.max_documents >= 1.0
    }

    fn keeps(&self, word: &str, documents: u64, num_documents: usize) -> bool {
        documents >= self.min_documents
            && documents as f64 <= self.max_documents * num_documents as f64
            && (self.min_length == 0 || word.chars().take(self.min_length).count() == self.min_length)
            // A bigram has two words.
            && !word.split(' ').any(|word| self.stop_words.contains(word))
    }
}

impl Corpus {
    /// Makes a corpus from its documents and words.
    #[must_use]
    pub fn new(data: Dataset<u32>) -> Self {
        let num_tokens = data.edges.data.iter().map(|&count| u64::from(count)).sum();
        Self { data, num_tokens }
    }

    /// Leaves out the words that a filter does not keep; the others keep their order. Documents stay, without words if
    /// need be.
    #[must_use]
    pub fn keep_words(self, filter: &WordFilter) -> Self {
        if filter.keeps_all() {
            return self;
        }
        let Dataset { edges, left_names, right_names } = self.data;
        let names = right_names.unwrap_or_else(|| left_names.clone());
        let mut documents = vec![0_u64; edges.num_right];
        edges.right.iter().for_each(|&word| documents[word as usize] += 1);
        let kept = |&word: &u32| filter.keeps(&names.name(word), documents[word as usize], edges.num_left);
        let kept: Vec<u32> = (0..edges.num_right as u32).filter(kept).collect();
        let mut new_ids = vec![None; edges.num_right];
        kept.iter().enumerate().for_each(|(new, &old)| new_ids[old as usize] = Some(new as u32));
        let mut of_kept = EdgeList { num_left: edges.num_left, num_right: kept.len(), ..EdgeList::default() };
        for ((left, right), count) in edges.left.into_iter().zip(edges.right).zip(edges.data) {
            if let Some(word) = new_ids[right as usize] {
                of_kept.push(left, word, count);
            }
        }
        Self::new(Dataset { edges: of_kept, left_names, right_names: Some(names.reorder(&kept)) })
    }

    /// Takes about the fraction `holdout` of the documents out: returns the others, and those. Where a document goes
    /// follows from the seed and its name. Both parts have the whole vocabulary.
    ///
    /// # Errors
    /// Where `holdout` is not above 0 and below 1, or leaves no word in one of the parts.
    pub fn split_documents(self, holdout: f64, seed: u64) -> Result<(Self, Self), Error> {
        let bound = split::bound(holdout)?;
        let Dataset { edges, left_names, right_names } = self.data;
        let held: Vec<bool> = left_names.iter().map(|name| xxh3_64_with_seed(name.as_bytes(), seed) < bound).collect();
        let [train, test] = edges.parts_by_left(&held);
        split::check_parts(holdout, [&train, &test])?;
        let named = |(edges, part): (EdgeList<u32>, bool)| {
            let ids: Vec<u32> = (0..).zip(&held).filter(|(_, held)| **held == part).map(|(id, _)| id).collect();
            Self::new(Dataset { edges, left_names: left_names.reorder(&ids), right_names: right_names.clone() })
        };
        Ok((named((train, false)), named((test, true))))
    }

    /// Renumbers words as in `known`, and leaves out the others: see [`Dataset::with_right_names`]. Returns also how
    /// many tokens were of words left out.
    #[must_use]
    pub fn with_words(self, known: &Dictionary) -> (Self, u64) {
        let before = self.num_tokens;
        let corpus = Self::new(self.data.with_right_names(known).0);
        let unknown = before - corpus.num_tokens;
        (corpus, unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Tokenizer, parse_corpus};

    fn corpus() -> Corpus {
        parse_corpus(b"the cat the dog\ncat and dog\nthe zoo\n", Format::Text, None).unwrap()
    }

    fn words(corpus: &Corpus) -> Vec<String> {
        corpus.data.right_names().iter().map(|name| name.into_owned()).collect()
    }

    #[test]
    fn words_are_left_out_by_length_list_and_documents() {
        let all = WordFilter::default();
        assert_eq!(corpus().keep_words(&all), corpus());
        let english = corpus().keep_words(&WordFilter { stop_words: StopWords::english(), ..all.clone() });
        assert_eq!(words(&english), ["cat", "dog", "zoo"]);
        assert_eq!(english.num_tokens, 5);
        assert_eq!(english.data.edges.num_left, 3);
        assert_eq!(english.data.edges.right, [0, 1, 0, 1, 2]);
        let frequent = corpus().keep_words(&WordFilter { min_documents: 2, ..all.clone() });
        assert_eq!(words(&frequent), ["the", "cat", "dog"]);
        let rare = corpus().keep_words(&WordFilter { max_documents: 0.4, ..all.clone() });
        assert_eq!(words(&rare), ["and", "zoo"]);
        assert_eq!(rare.data.edges.num_left, 3, "documents stay");
        assert!(words(&corpus().keep_words(&WordFilter { min_length: 4, ..all })).is_empty());
    }

    #[test]
    fn documents_are_held_out_whole() {
        let text: String = (0..200).map(|n| format!("a{} b c{}\n", n % 7, n % 3)).collect();
        let all = parse_corpus(text.as_bytes(), Format::Text, None).unwrap();
        let (train, test) = all.clone().split_documents(0.25, 3).unwrap();
        assert_eq!(train.num_tokens + test.num_tokens, all.num_tokens);
        assert_eq!(train.data.edges.num_left + test.data.edges.num_left, 200);
        assert!((30..70).contains(&test.data.edges.num_left), "{}", test.data.edges.num_left);
        for part in [&train, &test] {
            assert_eq!(words(part), words(&all));
            for document in 0..part.data.edges.num_left as u32 {
                let number: usize = part.data.left_names.name(document).parse().unwrap();
                let of = |corpus: &Corpus, id: u32| -> Vec<u32> {
                    let ends = corpus.data.edges.left.iter().zip(&corpus.data.edges.right);
                    ends.filter(|(left, _)| **left == id).map(|(_, &right)| right).collect()
                };
                assert_eq!(of(part, document), of(&all, number as u32 - 1));
            }
        }
        assert!(matches!(all.clone().split_documents(1.0, 1), Err(Error::HoldoutRange(_))));
        assert!(matches!(all.split_documents(1e-12, 1), Err(Error::HoldoutEmpty { part: "testing", .. })));
    }

    #[test]
    fn words_of_another_vocabulary_are_counted() {
        let (known, unknown) = corpus().with_words(&Dictionary::from_strings(["dog", "horse", "the"]));
        assert_eq!(unknown, 4);
        assert_eq!(known.data.edges.num_right, 3);
        assert_eq!((known.num_tokens, known.data.edges.num_left), (5, 3));
    }

    #[test]
    fn text_is_taken_apart_as_asked_for() {
        let tokenizer = Tokenizer { lower_case: true, split: crate::Split::Punctuation, ..Tokenizer::default() };
        let read = crate::parse_text(b"The cat, the dog.\n...\n", tokenizer).unwrap();
        assert_eq!(words(&read), ["the", "cat", "dog"]);
        assert_eq!(read.data.edges.num_left, 2, "a document without words is kept");
        let pairs =
            crate::parse_text(b"The cat, the dog.\ncat dog\n", Tokenizer { bigrams: true, ..tokenizer }).unwrap();
        assert_eq!(words(&pairs), ["the", "cat", "the cat", "cat the", "dog", "the dog", "cat dog"]);
        let english = WordFilter { stop_words: StopWords::english(), ..WordFilter::default() };
        assert_eq!(words(&pairs.keep_words(&english)), ["cat", "dog", "cat dog"]);
    }
}

//! Topic coherence: whether the top words of a topic occur in the same documents.

/// The documents that each word of a corpus occurs in: what coherence asks for when edges are long gone. A document takes a
/// byte for every seven bits of the difference to the one before it, so one or two mostly.
#[derive(Clone, Debug)]
pub struct Occurrences {
    num_documents: usize,
    differences: Vec<u8>,
    /// Where each word's differences end.
    ends: Vec<usize>,
}

impl Occurrences {
    /// Begins without words.
    #[must_use]
    pub fn new(num_documents: usize) -> Self {
        Self { num_documents, differences: Vec::new(), ends: Vec::new() }
    }

    /// Appends the next word, with its documents in ascending order.
    pub fn push(&mut self, documents: &[u32]) {
        let mut last = 0;
        for &document in documents {
            let mut rest = document - last;
            while rest >= 0x80 {
                self.differences.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            self.differences.push(rest as u8);
            last = document;
        }
        self.ends.push(self.differences.len());
    }

    /// Gives unused memory back.
    pub fn shrink(&mut self) {
        self.differences.shrink_to_fit();
    }

    fn documents(&self, word: u32) -> Documents {
        let mut set = Documents(vec![0; self.num_documents.div_ceil(64)]);
        let begin = (word as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        let (mut document, mut difference, mut shift) = (0, 0, 0);
        for &byte in &self.differences[begin..self.ends[word as usize]] {
            difference |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                document += difference;
                set.insert(document);
                (difference, shift) = (0, 0);
            }
        }
        set
    }

    /// Returns the mean normalized pointwise mutual information (NPMI, Bouma 2009; Lau et al. 2014) over all pairs of a
    /// topic's top words, by their occurrence in documents: 1 always together, 0 independent, −1 never. A topic of fewer than
    /// two words has 0.
    ///
    /// # Complexity
    /// O(documents of the words + pairs · documents / 64): a word's documents become a set of bits.
    ///
    /// # Panics
    /// For a word that was not appended.
    #[must_use]
    pub fn coherence(&self, top_words: &[u32]) -> f64 {
        let documents: Vec<Documents> = top_words.iter().map(|&word| self.documents(word)).collect();
        let counts: Vec<f64> = documents.iter().map(|set| set.shared(set) as f64).collect();
        let (mut sum, mut pairs) = (0.0, 0.0);
        for (n, a) in documents.iter().enumerate() {
            for (m, b) in documents.iter().enumerate().skip(n + 1) {
                sum += npmi(self.num_documents as f64, counts[n], counts[m], a.shared(b) as f64);
                pairs += 1.0;
            }
        }
        if pairs == 0.0 { 0.0 } else { sum / pairs }
    }
}

fn npmi(documents: f64, a: f64, b: f64, both: f64) -> f64 {
    if both == 0.0 {
        return -1.0;
    }
    if both == documents {
        return 1.0;
    }
    (both * documents / (a * b)).ln() / (documents / both).ln()
}

/// A set of documents, one bit each.
struct Documents(Vec<u64>);

impl Documents {
    fn insert(&mut self, document: usize) {
        self.0[document / 64] |= 1 << (document % 64);
    }

    fn shared(&self, other: &Self) -> u64 {
        self.0.iter().zip(&other.0).map(|(a, b)| u64::from((a & b).count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_together_independent_and_apart() {
        // Of eight documents: words 0 and 1 in the same four, 2 in half of these and of the others, 3 in the other four.
        let documents = [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 4, 5], [4, 5, 6, 7]];
        let mut occurrences = Occurrences::new(8);
        documents.iter().for_each(|documents| occurrences.push(documents));
        let found = [&[0, 1][..], &[0, 2], &[0, 3], &[0]].map(|words| occurrences.coherence(words));
        assert_eq!(found, [1.0, 0.0, -1.0, 0.0]);
    }
    #[test]
    fn documents_come_back_whatever_their_distances() {
        let words: [&[u32]; 4] = [&[], &[0, 1, 128, 129, 16_513, 2_113_666], &[127, 127, 3_000_000], &[2_999_999]];
        let mut occurrences = Occurrences::new(3_000_001);
        words.iter().for_each(|documents| occurrences.push(documents));
        for (word, documents) in (0..).zip(words) {
            let mut expected = Documents(vec![0; 3_000_001_usize.div_ceil(64)]);
            documents.iter().for_each(|&document| expected.insert(document as usize));
            assert!(occurrences.documents(word).0 == expected.0, "word {word}");
        }
    }
}

//! Topic coherence: whether the top words of a topic occur in the same documents.

/// Returns the mean normalized pointwise mutual information (NPMI, Bouma 2009; Lau et al. 2014) over all pairs of each
/// topic's top words, by their occurrence in the documents of the corpus: 1 always together, 0 independent, −1 never.
///
/// `documents_of` calls back with the documents of a word, in any order and in any number of parts; `top_words` are word
/// ids by topic. A topic of fewer than two words has 0.
///
/// # Complexity
/// O(documents of the words + pairs · documents / 64): a word's documents are a set of bits.
pub fn coherence(
    num_documents: usize,
    top_words: &[Vec<u32>],
    mut documents_of: impl FnMut(u32, &mut dyn FnMut(&[u32])),
) -> Vec<f64> {
    let mut of_topic = |words: &Vec<u32>| {
        let documents: Vec<Documents> = words
            .iter()
            .map(|&word| {
                let mut set = Documents::none_of(num_documents);
                documents_of(word, &mut |documents| set.insert(documents));
                set
            })
            .collect();
        let counts: Vec<f64> = documents.iter().map(|set| set.shared(set) as f64).collect();
        let (mut sum, mut pairs) = (0.0, 0.0);
        for (n, a) in documents.iter().enumerate() {
            for (m, b) in documents.iter().enumerate().skip(n + 1) {
                sum += npmi(num_documents as f64, counts[n], counts[m], a.shared(b) as f64);
                pairs += 1.0;
            }
        }
        if pairs == 0.0 { 0.0 } else { sum / pairs }
    };
    top_words.iter().map(&mut of_topic).collect()
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
    fn none_of(num_documents: usize) -> Self {
        Self(vec![0; num_documents.div_ceil(64)])
    }

    fn insert(&mut self, documents: &[u32]) {
        for &document in documents {
            self.0[document as usize / 64] |= 1 << (document % 64);
        }
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
        let documents = [vec![0, 1, 2, 3], vec![0, 1, 2, 3], vec![0, 1, 4, 5], vec![4, 5, 6, 7]];
        let found =
            coherence(8, &[vec![0, 1], vec![0, 2], vec![0, 3], vec![0]], |word, see| see(&documents[word as usize]));
        assert_eq!(found, [1.0, 0.0, -1.0, 0.0]);
    }
}

//! Giving topics up: those whose tokens can go to another topic at the least loss.
//!
//! Gibbs sampling may stay with two true topics in one of its own and another in halves: each token by itself would lose by the
//! way out. A few topics more than are wanted give all true ones room; then the halves are found by what the joint likelihood
//! says of having each pair of topics as one.

use super::counts::TopicCounts;
use super::likelihood::{RisingLogs, TABLE, Vertices};
use super::program::Topics;

/// Up to this many topics some can be given up: pairs of them are compared.
pub const MERGE_UP_TO: usize = 4096;

/// Gives up topics until `wanted` are left: of the pair whose union gains the joint likelihood most, or loses it least, the topic
/// with fewer tokens, and so on with other pairs. Its prior weight becomes 0, and the next iteration draws its tokens to
/// other topics, by their chances.
///
/// # Complexity
/// O(pairs of topics that occur together, over all documents and words). Memory: K²/2 numbers.
#[must_use]
pub fn merge_topics<D: TopicCounts + ?Sized, W: TopicCounts + ?Sized>(
    topics: &Topics,
    documents: &Vertices<'_, D>,
    words: &Vertices<'_, W>,
    wanted: usize,
) -> Topics {
    let (mut left, mut num_left) = (topics.clone(), topics.num_kept());
    for (a, b) in best_unions(topics, documents, words) {
        if num_left > wanted && left.is_kept(a) && left.is_kept(b) {
            let less = if topics.totals[a] < topics.totals[b] { a } else { b };
            left.alpha[less] = 0.0;
            num_left -= 1;
        }
    }
    left
}

/// Returns all pairs of topics, the one first whose union gains most.
fn best_unions<D: TopicCounts + ?Sized, W: TopicCounts + ?Sized>(
    topics: &Topics,
    documents: &Vertices<'_, D>,
    words: &Vertices<'_, W>,
) -> Vec<(usize, usize)> {
    let num_topics = topics.num_topics();
    let alpha = topics.alpha.iter().map(|&alpha| f64::from(alpha)).sum::<f64>() / topics.num_kept().max(1) as f64;
    let beta = f64::from(topics.beta);
    let mut gains = vec![0.0; num_topics * num_topics.saturating_sub(1) / 2];
    add_gains(&mut gains, num_topics, documents, &RisingLogs::new(alpha, TABLE));
    add_gains(&mut gains, num_topics, words, &RisingLogs::new(beta, TABLE));
    let of_total = RisingLogs::new(topics.num_words as f64 * beta, 0);
    let total = |topic: usize| topics.totals[topic].max(0) as u64;
    let mut pairs = Vec::with_capacity(gains.len());
    for a in 0..num_topics {
        for b in 0..a {
            let apart = of_total.of(total(a)) + of_total.of(total(b));
            pairs.push((gains[pair(a, b)] + apart - of_total.of(total(a) + total(b)), a, b));
        }
    }
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
    pairs.into_iter().map(|(_, a, b)| (a, b)).collect()
}

/// Returns the place of a pair of topics, the larger first.
fn pair(a: usize, b: usize) -> usize {
    a * (a - 1) / 2 + b
}

/// Adds what the terms of one side's vertices gain by the union of each pair of topics.
fn add_gains<S: TopicCounts + ?Sized>(
    gains: &mut [f64],
    num_topics: usize,
    vertices: &Vertices<'_, S>,
    logs: &RisingLogs,
) {
    let mut found = Vec::new();
    for id in 0..vertices.len {
        found.clear();
        (vertices.counts)(id).each(num_topics, |topic, count| {
            let count = u64::from(count);
            found.push((topic, count, logs.of(count)));
        });
        found.sort_unstable_by_key(|&(topic, ..)| topic);
        for (n, &(a, count_a, log_a)) in found.iter().enumerate() {
            for &(b, count_b, log_b) in &found[..n] {
                gains[pair(a, b)] += logs.of(count_a + count_b) - log_a - log_b;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lda::log_likelihood;
    use megagrid_stages::row_width;

    /// Six documents of six words; topics 0 and 2 are halves of one, topic 1 is another.
    const DOCUMENTS: [[f32; 3]; 3] = [[3.0, 0.0, 2.0], [2.0, 0.0, 3.0], [0.0, 5.0, 0.0]];
    const WORDS: [[f32; 3]; 3] = [[3.0, 0.0, 3.0], [2.0, 1.0, 2.0], [0.0, 4.0, 0.0]];

    fn rows(of: &[[f32; 3]]) -> Vec<Vec<f32>> {
        let padded = |row: &[f32; 3]| row.iter().copied().chain(std::iter::repeat(0.0)).take(row_width(3)).collect();
        of.iter().map(padded).collect()
    }

    fn topics() -> Topics {
        Topics { totals: vec![5, 5, 5], ..Topics::new(&[0.1; 3], 0.01, 3) }
    }

    #[test]
    fn halves_of_a_topic_become_one() {
        let (documents, words) = (rows(&DOCUMENTS), rows(&WORDS));
        let documents = Vertices { len: 3, counts: &|id| &documents[id][..] };
        let words = Vertices { len: 3, counts: &|id| &words[id][..] };
        let left = merge_topics(&topics(), &documents, &words, 2);
        assert_eq!(left.num_kept(), 2);
        assert!(left.is_kept(1) && left.is_kept(0) != left.is_kept(2));
        let none = merge_topics(&topics(), &documents, &words, 3);
        assert_eq!(none, topics());
    }

    /// The gain of a union is the difference of two joint likelihoods, but for the documents' normalizing term.
    #[test]
    fn gains_are_differences_of_the_likelihood() {
        let of = |documents: &[[f32; 3]], words: &[[f32; 3]], totals: Vec<i64>| {
            let (documents, words) = (rows(documents), rows(words));
            let documents = Vertices { len: 3, counts: &|id| &documents[id][..] };
            let words = Vertices { len: 3, counts: &|id| &words[id][..] };
            let topics = Topics { totals, ..topics() };
            log_likelihood(&topics, &documents, &words, 1)
        };
        let apart = of(&DOCUMENTS, &WORDS, vec![5; 3]);
        let unite = |rows: &[[f32; 3]; 3]| rows.map(|[a, b, c]| [a + c, b, 0.0]);
        let united = of(&unite(&DOCUMENTS), &unite(&WORDS), vec![10, 5, 0]);

        let (documents, words) = (rows(&DOCUMENTS), rows(&WORDS));
        let (documents, words) =
            (Vertices { len: 3, counts: &|id| &documents[id][..] }, Vertices { len: 3, counts: &|id| &words[id][..] });
        let mut gains = vec![0.0; 3];
        add_gains(&mut gains, 3, &documents, &RisingLogs::new(f64::from(0.1_f32), TABLE));
        add_gains(&mut gains, 3, &words, &RisingLogs::new(f64::from(0.01_f32), TABLE));
        let of_total = RisingLogs::new(3.0 * f64::from(0.01_f32), 0);
        let found = gains[pair(2, 0)] + 2.0 * of_total.of(5) - of_total.of(10);
        assert!((found - (united - apart)).abs() < 1e-9, "{found}, expected {}", united - apart);
    }
}

//! The objective: the full collapsed joint log likelihood of words and topics.
//!
//! ```text
//! log p(w, z) =  sum_d [ lgamma(A) - lgamma(n_d + A) + sum_k lgamma(n_dk + alpha_k) - lgamma(alpha_k) ]
//!              + sum_k [ lgamma(V beta) - lgamma(n_k + V beta) + sum_w lgamma(n_wk + beta) - lgamma(beta) ]
//! ```

use super::counts::TopicCounts;
use super::program::Topics;

/// Vertices whose counts are looked at: how many, and the counts of each.
pub struct Vertices<'v, C: ?Sized> {
    /// Vertices.
    pub len: usize,
    /// Views a vertex's counts by id. One call for each vertex, so that what looks at counts is compiled once for each form of them.
    pub counts: &'v (dyn Fn(usize) -> &'v C + Sync),
}

/// Returns the natural logarithm of the gamma function of a positive number, to about 14 digits (Stirling's series).
#[must_use]
pub fn ln_gamma(x: f64) -> f64 {
    // Shifted to where the series is exact; the product of what was shifted over costs one logarithm.
    let (mut at, mut product) = (x, 1.0);
    while at < 10.0 {
        product *= at;
        at += 1.0;
    }
    let inverse = 1.0 / at;
    let square = inverse * inverse;
    let series = inverse
        * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0))));
    (at - 0.5) * at.ln() - at + 0.5 * std::f64::consts::TAU.ln() + series - product.ln()
}

/// `lgamma(n + prior) - lgamma(prior)`, tabulated for small n.
pub(super) struct RisingLogs {
    prior: f64,
    at_prior: f64,
    table: Vec<f64>,
}

impl RisingLogs {
    pub(super) fn new(prior: f64, entries: usize) -> Self {
        let mut sum = 0.0;
        let mut next = |n: usize| {
            let before = sum;
            sum += (prior + n as f64).ln();
            before
        };
        Self { prior, at_prior: ln_gamma(prior), table: (0..entries).map(&mut next).collect() }
    }

    #[inline]
    pub(super) fn of(&self, n: u64) -> f64 {
        self.table.get(n as usize).copied().unwrap_or_else(|| ln_gamma(n as f64 + self.prior) - self.at_prior)
    }
}

pub(super) const TABLE: usize = 4096;

/// Returns the joint log likelihood of all tokens with a topic. Runs on `threads` threads; the sum is the same on any number.
///
/// # Complexity
/// O(topics that occur, over all documents and words).
pub fn log_likelihood<D: TopicCounts + ?Sized, W: TopicCounts + ?Sized>(
    topics: &Topics,
    documents: &Vertices<'_, D>,
    words: &Vertices<'_, W>,
    threads: usize,
) -> f64 {
    let num_topics = topics.num_topics();
    let alpha: Vec<f64> = topics.alpha[..num_topics].iter().map(|&alpha| f64::from(alpha)).collect();
    // Topics that were given up have weight 0 and, but for rounding, no tokens.
    let mut kept = alpha.iter().copied().filter(|&alpha| alpha > 0.0);
    let first = kept.next().unwrap_or(1.0);
    let symmetric = kept.all(|alpha| alpha == first);
    let entries = if symmetric { TABLE } else { 64 };
    let table = |alpha: f64| RisingLogs::new(if alpha > 0.0 { alpha } else { first }, entries);
    let of_topic: Vec<_> = if symmetric { vec![table(first)] } else { alpha.iter().copied().map(table).collect() };
    let of_document = RisingLogs::new(alpha.iter().sum(), TABLE);
    let document = |id: usize| {
        let (mut sum, mut tokens) = (0.0, 0);
        (documents.counts)(id).each(num_topics, |topic, count| {
            tokens += u64::from(count);
            sum += of_topic[if symmetric { 0 } else { topic }].of(u64::from(count));
        });
        sum - of_document.of(tokens)
    };
    let beta = f64::from(topics.beta);
    let of_word = RisingLogs::new(beta, TABLE);
    let word = |id: usize| {
        let mut sum = 0.0;
        (words.counts)(id).each(num_topics, |_, count| sum += of_word.of(u64::from(count)));
        sum
    };
    parallel_sum(documents.len, threads, document) + parallel_sum(words.len, threads, word) - of_totals(topics)
}

/// Returns the part of the joint log likelihood that is of words, whose counts by topic are given.
pub fn log_likelihood_of_words<R: Iterator<Item = (u16, u32)>>(topics: &Topics, words: impl Iterator<Item = R>) -> f64 {
    let of_word = RisingLogs::new(f64::from(topics.beta), TABLE);
    words.flatten().map(|(_, count)| of_word.of(u64::from(count))).sum::<f64>() - of_totals(topics)
}

fn of_totals(topics: &Topics) -> f64 {
    let of_totals = RisingLogs::new(topics.num_words as f64 * f64::from(topics.beta), 0);
    topics.totals.iter().map(|&total| of_totals.of(total.max(0) as u64)).sum()
}

/// Vertices whose terms are summed by themselves, so that the total does not depend on the number of threads.
const PART: usize = 1024;

fn parallel_sum(len: usize, threads: usize, term: impl Fn(usize) -> f64 + Sync) -> f64 {
    let parts = len.div_ceil(PART);
    let sum = |part: usize| (part * PART..len.min((part + 1) * PART)).map(&term).sum::<f64>();
    let threads = threads.clamp(1, parts.max(1));
    let mut sums = vec![0.0; parts];
    std::thread::scope(|scope| {
        for (first, sums) in sums.chunks_mut(parts.div_ceil(threads).max(1)).enumerate() {
            let (begin, sum) = (first * parts.div_ceil(threads), &sum);
            scope.spawn(move || sums.iter_mut().enumerate().for_each(|(n, total)| *total = sum(begin + n)));
        }
    });
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_gamma_equals_sums_of_logarithms_and_known_values() {
        let mut factorial = 0.0;
        for n in 1..200 {
            assert!((ln_gamma(f64::from(n)) - factorial).abs() < 1e-11 * (1.0 + factorial), "{n}");
            factorial += f64::from(n).ln();
        }
        assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-12);
        assert!((ln_gamma(0.01) - 4.599_479_878_042_022).abs() < 1e-11);
    }
}

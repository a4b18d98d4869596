//! How topics are shown: top words, coherence, the curve of the likelihood.

use std::fmt::Write;

use megagrid_algorithms::lda::{Model, Occurrences};
use megagrid_datasets::{Dictionary, Edges};
use megagrid_partition::{EdgeSource, Side};
use rayon::prelude::*;

use crate::curve::{Series, draw};
use crate::record::Record;

/// How many topics a summary shows, the largest first.
pub const SHOWN: usize = 20;
/// Points of the curve, at most.
const POINTS: usize = 24;

/// The top words of a topic and how often each has it, most first.
pub type TopWords = Vec<(u32, u32)>;

/// Takes down which documents each word is in, from edges that are grouped by words.
pub fn occurrences(edges: &Edges<u32>) -> anyhow::Result<Occurrences> {
    let mut occurrences = Occurrences::new(edges.num_vertices(Side::Left));
    for word in 0..edges.num_vertices(Side::Right) {
        edges.visit_rows(Side::Right, word..word + 1, &mut |documents, _| occurrences.push(documents))?;
    }
    occurrences.shrink();
    Ok(occurrences)
}

/// Returns the coherence of each topic's top words.
pub fn coherences(occurrences: &Occurrences, top: &[TopWords]) -> Vec<f64> {
    let of_topic = |words: &TopWords| {
        let words: Vec<u32> = words.iter().map(|&(word, _)| word).collect();
        occurrences.coherence(&words)
    };
    top.par_iter().map(of_topic).collect()
}

/// Lists up to `shown` topics, the largest first: number, share of all tokens in percent, coherence, top words.
pub fn listing(
    model: &Model,
    top: &[TopWords],
    coherences: Option<&[f64]>,
    words: &Dictionary,
    shown: usize,
) -> String {
    let totals = &model.topics.totals;
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by_key(|&topic| std::cmp::Reverse(totals[topic]));
    let all = totals.iter().sum::<i64>().max(1) as f64;
    let mut text = format!("{:>6} {:>8} {:>6}  top words\n", "topic", "tokens", "npmi");
    for &topic in order.iter().take(shown) {
        let share = 100.0 * totals[topic] as f64 / all;
        let coherence = coherences.map_or("-".to_owned(), |all| format!("{:.2}", all[topic]));
        let names: Vec<_> = top[topic].iter().map(|&(word, _)| words.name(word)).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{topic:>6} {share:>6.1} % {coherence:>6}  {}", names.join(" "));
    }
    if shown < order.len() {
        let _ = writeln!(text, "       and {} more topics", order.len() - shown);
    }
    text
}

/// Draws the log likelihood per token over iterations.
pub fn curve(record: &Record) -> String {
    let values: Vec<(u64, f64)> = record
        .iterations
        .iter()
        .filter_map(|one| one.metrics.get("per_token").map(|&value| (one.iteration, value)))
        .collect();
    let (Some(&(_, last)), true) = (values.last(), values.len() > 2) else { return String::new() };
    let step = values.len().div_ceil(POINTS);
    let drawn: Vec<f64> =
        values.iter().skip((values.len() - 1) % step).step_by(step).map(|&(_, value)| value).collect();
    let mut plot = draw(&[Series { mark: '●', values: &drawn }], last);
    // Its axis counts points, of which some iterations have none.
    plot.truncate(plot.trim_end().rfind('\n').unwrap_or(plot.len()));
    let (first, end) = (values[(values.len() - 1) % step].0, values[values.len() - 1].0);
    format!("\nLog likelihood per token, iterations {first} to {end}\n{plot}\n")
}

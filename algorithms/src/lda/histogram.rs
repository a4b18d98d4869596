//! What the fit of the document prior counts.

use megagrid_stages::Combine;
use serde::{Deserialize, Serialize};

/// How many documents have a topic how often, and how long documents are.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// `[topic][count]`: documents.
    pub(super) topics: Vec<Vec<u32>>,
    /// `[tokens]`: documents.
    pub(super) lengths: Vec<u32>,
}

impl Histogram {
    /// Counts a document; `each` calls back with its topics and how many tokens they have.
    pub(super) fn document(&mut self, num_topics: usize, each: impl FnOnce(&mut dyn FnMut(usize, usize))) {
        self.topics.resize_with(num_topics, Vec::new);
        let mut length = 0;
        each(&mut |topic, count| {
            length += count;
            Self::count(&mut self.topics[topic], count);
        });
        Self::count(&mut self.lengths, length);
    }

    pub(super) fn count(row: &mut Vec<u32>, at: usize) {
        if row.len() <= at {
            row.resize(at + 1, 0);
        }
        row[at] += 1;
    }
}

fn move_sums(into: &mut Vec<u32>, from: &mut [u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    into.iter_mut().zip(from).for_each(|(sum, part)| sum.combine(part));
}

impl Combine for Histogram {
    fn combine(&mut self, from: &mut Self) {
        if self.topics.len() < from.topics.len() {
            self.topics.resize_with(from.topics.len(), Vec::new);
        }
        self.topics.iter_mut().zip(&mut from.topics).for_each(|(sum, part)| move_sums(sum, part));
        move_sums(&mut self.lengths, &mut from.lengths);
    }
}

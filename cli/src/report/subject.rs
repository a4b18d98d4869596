//! What a page shows.

use megagrid_training::record::{self, Record};

/// What a page shows: the runs of one system.
pub struct Subject<'r> {
    /// The system.
    pub name: &'r str,
    /// Its runs, at least one.
    pub runs: Vec<&'r Record>,
}

impl Subject<'_> {
    /// Returns the run whose training time is the median, or the shorter of the two in the middle.
    pub fn shown(&self) -> &Record {
        let mut runs = self.runs.clone();
        runs.sort_by(|a, b| a.phases.train.total_cmp(&b.phases.train));
        runs[(runs.len() - 1) / 2]
    }

    /// Returns the median over iterations of each run.
    pub fn medians<'s>(
        &'s self,
        of: impl Fn(&record::Iteration) -> f64 + Copy + 's,
    ) -> impl Iterator<Item = f64> + Clone + 's {
        self.runs.iter().filter_map(move |run| record::median(run.iterations.iter().map(of)))
    }
}

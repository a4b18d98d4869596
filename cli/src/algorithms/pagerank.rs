//! Options of `megagrid pagerank`.

use megagrid_algorithms::pagerank::Damping;
use megagrid_training::input;
use megagrid_training::pagerank::{RankOptions, Ranking};

use crate::data::Kind;
use crate::entry::Trains;
use crate::source::Source;

/// Ranks the vertices of a directed graph: how often a surfer is on each page who follows links.
///
/// A graph of more than 4 million links is ranked batch by batch, each from the scores of those before it (block
/// Gauss–Seidel), a smaller one all at once (Jacobi). Scores sum to 1. The model holds scores.parquet (id, score; best first)
/// and scores.npy in the same order.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid pagerank web-graph.txt.gz --model ranks --report ranks.html")]
pub struct Options {
    /// The chance of following a link instead of restarting, above 0 and below 1.
    #[arg(long, default_value_t = Damping::DEFAULT.get(), allow_negative_numbers = true)]
    pub damping: f64,
    /// Restart at these vertices only, by their names in the input (personalized).
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub restart: Vec<String>,
    /// Iterations at most.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when an iteration changes the scores by no more than this, in total (L1).
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Part of an iteration between two clocks; PageRank takes 1 only.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_name = "X", help_heading = "Consistency")]
    pub work_per_clock: f64,
}

impl Trains for Options {
    type Algorithm = Ranking;
    const KIND: Kind = Kind::Graph;

    fn options(&self) -> anyhow::Result<RankOptions> {
        let Self { damping, restart, iterations, tolerance, work_per_clock } = self.clone();
        Ok(RankOptions { damping, restart, iterations, tolerance, work_per_clock })
    }

    fn origin(&self, source: &Source) -> input::Source {
        source.to_read()
    }
}

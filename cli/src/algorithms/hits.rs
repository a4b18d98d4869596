//! Options of `megagrid hits`.

use megagrid_training::hits::{HitsOptions, HubsAndAuthorities};
use megagrid_training::input;

use crate::data::Kind;
use crate::entry::Trains;
use crate::source::Source;

/// Finds the hubs and authorities of a directed graph: an authority is what good hubs link to, a hub links to good authorities.
///
/// The squares of the scores of all authorities, and of all hubs, sum to 1. The model holds authorities.parquet and hubs.parquet
/// (id, score; best first), and authorities.npy and hubs.npy in the same order.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid hits web-graph.txt.gz --model pages\n  megagrid top pages --hubs")]
pub struct Options {
    /// Iterations at most.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when an iteration changes the unit vectors of hubs and authorities by no more than this (L2).
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub tolerance: f64,
}

impl Trains for Options {
    type Algorithm = HubsAndAuthorities;
    const KIND: Kind = Kind::Graph;

    fn options(&self) -> anyhow::Result<HitsOptions> {
        Ok(HitsOptions { iterations: self.iterations, tolerance: self.tolerance })
    }

    fn origin(&self, source: &Source) -> input::Source {
        source.to_read()
    }
}

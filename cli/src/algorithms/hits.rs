//! `megagrid hits`.

use clap::Command;
use megagrid_training::hits::HubsAndAuthorities;

use crate::common::without;
use crate::data::Kind;
use crate::entry::Trains;

impl Trains for HubsAndAuthorities {
    const KIND: Kind = Kind::Graph;
    const ABOUT: [&'static str; 2] = [
        "Finds the hubs and authorities of a directed graph: an authority is what good hubs link to, a hub links to good authorities",
        "The squares of the scores of all authorities, and of all hubs, sum to 1. The model holds authorities.parquet and hubs.parquet \
         (id, score; best first), and authorities.npy and hubs.npy in the same order.",
    ];
    const ENDS: [Option<&'static str>; 2] = [Some("vertices"), None];
    const EXAMPLES: &'static str =
        "Example:\n  megagrid hits web-graph.txt.gz --model pages\n  megagrid top pages --hubs";

    fn with_more(command: Command) -> Command {
        // Training of it cannot begin at an earlier model, and has no test data.
        without(command, &["--from", "--patience"])
    }
}

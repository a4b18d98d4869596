//! `megagrid pagerank`.

use clap::Command;
use megagrid_datasets::Label;
use megagrid_training::pagerank::{LinkOptions, Ranking};
use serde_json::Value;

use crate::common::without;
use crate::data::Kind;
use crate::entry::{Spelling, Trains};
use crate::failure::usage;

impl Trains for Ranking {
    const KIND: Kind = Kind::Graph;
    const ABOUT: [&'static str; 2] = [
        "Ranks the vertices of a directed graph: how often a surfer is on each page who follows links",
        "A graph of more than 4 million links is ranked batch by batch, each from the scores of those before it (block \
         Gauss–Seidel), a smaller one all at once (Jacobi). Scores sum to 1. The model holds scores.parquet (id, score; best first) \
         and scores.npy in the same order; of --restart-sets a column score_N for each set too, and sets.npy [vertices, sets].",
    ];
    const ENDS: [Option<&'static str>; 2] = [Some("vertices"), None];
    const EXAMPLES: &'static str = "Examples:
  megagrid pagerank web-graph.txt.gz --model ranks --report ranks.html
  megagrid pagerank calls.csv --columns from=caller,to=called,weight=minutes --weights --undirected
  megagrid pagerank web-graph.txt.gz --restart pages-that-i-like.txt --model near
  megagrid pagerank web-graph.txt.gz --restart-sets interests.txt --model near-each";

    /// There are no test data.
    fn with_more(command: Command) -> Command {
        without(command, &["--patience"])
    }

    fn kept_positive(links: &LinkOptions) -> anyhow::Result<Vec<Label>> {
        if links.weights {
            return Err(usage("--cache keeps links without their weights; leave out --cache or --weights"));
        }
        Ok(Vec::new())
    }

    /// What follows from the file of --restart is not said.
    fn spell(name: &str, _: &Value, _: &Value) -> Spelling {
        if name == "restart_checksum" { Spelling::Absent } else { Spelling::Usual }
    }
}

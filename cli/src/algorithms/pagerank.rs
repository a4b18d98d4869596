//! `megagrid pagerank`.

use megagrid_training::pagerank::Ranking;

use crate::data::Kind;
use crate::entry::Trains;

impl Trains for Ranking {
    const KIND: Kind = Kind::Graph;
    const ABOUT: [&'static str; 2] = [
        "Ranks the vertices of a directed graph: how often a surfer is on each page who follows links",
        "A graph of more than 4 million links is ranked batch by batch, each from the scores of those before it (block \
         Gauss–Seidel), a smaller one all at once (Jacobi). Scores sum to 1. The model holds scores.parquet (id, score; best first) \
         and scores.npy in the same order.",
    ];
    const EXAMPLES: &'static str = "Example:\n  megagrid pagerank web-graph.txt.gz --model ranks --report ranks.html";
}

//! `megagrid demo --algorithm pagerank`: a graph whose ranks the definition gives as well, in a short program.

use std::fmt::Write;

use megagrid_algorithms::pagerank::Damping;
use megagrid_datasets::synthetic::RmatSettings;
use megagrid_datasets::{Dataset, Dictionary};
use megagrid_partition::EdgeList;
use megagrid_training::graph::Graph;
use megagrid_training::pagerank::{RankOptions, Ranking, Ranks, Web};
use megagrid_training::record::Record;

use crate::common::Common;
use crate::curve::{Series, draw};

/// What is checked against the definition, which is iterated this often: 0.85^200 is below 1e-14.
const STEPS: usize = 200;
/// How many of the best are shown.
const SHOWN: usize = 10;

/// Runs the demo.
pub fn run(common: &Common) -> anyhow::Result<()> {
    let planted = RmatSettings { scale: 15, edge_factor: 16, seed: common.run.seed, ..RmatSettings::default() };
    let edges = planted.generate()?;
    let left_names = Dictionary::from_integers((0..edges.num_left as u64).collect());
    let graph = Dataset { edges, left_names, right_names: None }.in_degree_order();
    let (vertices, links) = (graph.edges.num_left, graph.edges.num_edges());
    common.say(&format!("Made a graph of {vertices} vertices and {links} links, a few of which have many.\n"))?;
    let expected = by_definition(&graph.edges, Damping::DEFAULT.get());
    let names = graph.left_names.clone();
    let show = |record: &Record, ranks: &Ranks| {
        let next = "\nNext: megagrid pagerank YOUR-LINKS.txt --model ranks\n";
        Ok(curve(record) + &compared(ranks, &names, &expected) + next)
    };
    let (data, options) = (Web::new(Graph::new(graph)), RankOptions::default());
    super::show::train::<Ranking>(data, serde_json::json!({}), options, common, &show)
}

/// Lists the best vertices beside the definition's scores.
fn compared(ranks: &Ranks, names: &Dictionary, expected: &[f64]) -> String {
    let ids = ranks.ranked.names.translate(names);
    let found =
        ids.iter().zip(&ranks.ranked.scores).filter_map(|(id, &score)| Some(((*id)? as usize, f64::from(score))));
    let found: Vec<(usize, f64)> = found.collect();
    let mut text = "\nThe best vertices: score as computed, and by the definition in a short program\n".to_owned();
    for (at, &(id, score)) in found.iter().take(SHOWN).enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>5}  vertex {:<8} {score:.6e}  {:.6e}", at + 1, names.name(id as u32), expected[id]);
    }
    let apart: f64 = found.iter().map(|&(id, score)| (score - expected[id]).abs()).sum();
    let _ = writeln!(text, "All scores together are {apart:.1e} apart; they sum to 1.");
    text
}

/// Ranks by the definition, from uniform scores.
fn by_definition(edges: &EdgeList<()>, damping: f64) -> Vec<f64> {
    let num_vertices = edges.num_left;
    let mut degrees = vec![0_u32; num_vertices];
    edges.left.iter().for_each(|&from| degrees[from as usize] += 1);
    let uniform = 1.0 / num_vertices as f64;
    let mut scores = vec![uniform; num_vertices];
    for _ in 0..STEPS {
        let dangling: f64 =
            scores.iter().zip(&degrees).filter(|(_, degree)| **degree == 0).map(|(score, _)| score).sum();
        let mut next = vec![(1.0 - damping + damping * dangling) * uniform; num_vertices];
        for (&from, &to) in edges.left.iter().zip(&edges.right) {
            next[to as usize] += damping * scores[from as usize] / f64::from(degrees[from as usize]);
        }
        scores = next;
    }
    scores
}

/// Draws how fast the scores settle.
fn curve(record: &Record) -> String {
    let digits: Vec<f64> = record
        .iterations
        .iter()
        .filter_map(|one| one.metrics.get("residual"))
        .map(|residual| residual.log10())
        .collect();
    let plot = draw(&[Series { mark: '●', values: &digits }], -6.0);
    format!("\nChange of the scores by iteration, as a power of ten; ─ where it ends\n{plot}")
}

//! `megagrid topics`: the top words of a trained topic model, and the topics of new documents.

use std::path::{Path, PathBuf};

use anyhow::bail;
use megagrid_algorithms::lda::FoldIn;
use megagrid_datasets::output::{Column, write_directory, write_matrix, write_table};
use megagrid_datasets::{Split, Tokenizer};
use rayon::prelude::*;

use crate::common::{self, FormatChoice, parse_format};
use crate::lda::corpus::NewDocuments;
use crate::lda::saved::{self, Saved};
use crate::lda::topics::listing;

/// Lists the topics of a model of `lda`, the largest first: number, share of the tokens, top words. With --documents,
/// finds the topics of new documents instead.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  megagrid topics kos -n 15\n  megagrid topics kos --documents new.txt --output new-topics"
)]
pub struct Args {
    /// The directory that `lda --model` wrote.
    model: PathBuf,
    /// How many words of each topic, or topics of each document.
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N", conflicts_with = "output", value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
    /// Documents to find the topics of; words are found by name, in plain text as the model's corpus was read.
    #[arg(long, value_name = "NEW")]
    documents: Option<PathBuf>,
    /// Format of the documents: auto, bow, lda-c, text.
    #[arg(long, default_value = "auto", value_parser = parse_format, requires = "documents")]
    format: FormatChoice,
    /// Instead of listing them, write mixtures.npy ([documents, topics], f32) and documents.parquet to a new directory.
    #[arg(long, value_name = "DIR", requires = "documents")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(output) = &args.output {
        megagrid_datasets::output::check_target(output)?;
    }
    let saved = saved::read(&args.model)?;
    match &args.documents {
        Some(path) => fold_in(args, &saved, path),
        None => {
            let top = saved.model.top_words(args.number as usize);
            common::print(&listing(&saved.model, &top, None, &saved.words, top.len()))
        }
    }
}

fn fold_in(args: &Args, saved: &Saved, path: &Path) -> anyhow::Result<()> {
    let documents = NewDocuments::read(path, args.format.0, tokenizer(saved), &saved.words)?;
    if documents.tokens == 0 {
        bail!("{}: the model knows none of its words; is it in the same language?", path.display());
    }
    let fold_in = FoldIn::default();
    let mixture = |(at, words): (usize, &Vec<(u32, u32)>)| -> Vec<f32> {
        fold_in.chances(&saved.model, at as u64, words).into_iter().map(|chance| chance as f32).collect()
    };
    let mixtures: Vec<Vec<f32>> = documents.words.par_iter().enumerate().map(mixture).collect();
    if documents.unknown > 0 {
        let all = documents.tokens + documents.unknown;
        eprintln!("megagrid: {} of {all} words are not in the model's vocabulary and were left out", documents.unknown);
    }
    match &args.output {
        Some(output) => write(output, &documents, &mixtures),
        None => common::print(&listed(&documents, &mixtures, args.number as usize)),
    }
}

/// Returns how the corpus of a model was taken apart.
fn tokenizer(saved: &Saved) -> Tokenizer {
    let config = &saved.manifest.config;
    let lower_case = config.get("lower_case").and_then(serde_json::Value::as_bool).unwrap_or(false);
    let split = config.get("split").and_then(serde_json::Value::as_str).and_then(|name| name.parse().ok());
    Tokenizer { lower_case, split: split.unwrap_or(Split::Space) }
}

/// Lists the best topics of each document.
fn listed(documents: &NewDocuments, mixtures: &[Vec<f32>], number: usize) -> String {
    let line = |(document, mixture): (usize, &Vec<f32>)| {
        let mut order: Vec<usize> = (0..mixture.len()).collect();
        order.sort_by(|&a, &b| mixture[b].total_cmp(&mixture[a]).then(a.cmp(&b)));
        let topics: Vec<String> =
            order.iter().take(number).map(|&topic| format!("{topic}:{:.3}", mixture[topic])).collect();
        format!("{}  {}\n", documents.names.name(document as u32), topics.join(" "))
    };
    mixtures.iter().enumerate().map(line).collect()
}

fn write(output: &Path, documents: &NewDocuments, mixtures: &[Vec<f32>]) -> anyhow::Result<()> {
    let num_topics = mixtures.first().map_or(0, Vec::len);
    write_directory(output, |into| {
        write_matrix(&into.join("mixtures.npy"), num_topics, mixtures.iter().map(Vec::as_slice))?;
        write_table(&into.join("documents.parquet"), &[("id", Column::Names(&documents.names))])
    })?;
    Ok(())
}

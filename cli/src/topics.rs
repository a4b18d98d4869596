//! `megagrid topics`: the top words of a trained topic model, and the topics of new documents.

use std::path::{Path, PathBuf};

use megagrid_datasets::output::{Column, write_directory, write_matrix, write_table};
use megagrid_datasets::{Dictionary, Format};
use megagrid_partition::Side;
use megagrid_training::input::parse_format;
use megagrid_training::lda::{NewDocuments, TopicModel, listing};
use megagrid_training::model;

use crate::output;

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
    /// Format of the documents: auto, bow, lda-c, counts, text, jsonl, parquet.
    #[arg(long, default_value = "auto", value_parser = parse_format, requires = "documents")]
    format: std::option::Option<Format>,
    /// Instead of listing them, write mixtures.npy ([documents, topics], f32) and documents.parquet to a new directory.
    #[arg(long, value_name = "DIR", requires = "documents")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(output) = &args.output {
        megagrid_datasets::output::check_target(output)?;
    }
    let (model, _) = model::load::<TopicModel>(&args.model)?;
    let words = model.names.get(Side::Right)?;
    match &args.documents {
        Some(path) => fold_in(args, &model, &words, path),
        None => {
            let top = model.counts.top_words(args.number as usize);
            output::print(&listing(&model.counts, &top, None, &words, top.len()))
        }
    }
}

fn fold_in(args: &Args, model: &TopicModel, words: &Dictionary, path: &Path) -> anyhow::Result<()> {
    let advice = "the model knows none of its words";
    let documents = NewDocuments::read(path, args.format, model.tokenizer, words, advice)?;
    let mixtures = model.mixtures(&documents.words);
    if documents.unknown > 0 {
        let all = documents.tokens + documents.unknown;
        eprintln!("megagrid: {} of {all} words are not in the model's vocabulary and were left out", documents.unknown);
    }
    match &args.output {
        Some(output) => write(output, &documents, &mixtures),
        None => output::print(&listed(&documents, &mixtures, args.number as usize)),
    }
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

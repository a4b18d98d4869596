//! `megagrid topics`: the top words of a trained topic model, a page that shows them, and the topics of new documents.

use std::path::{Path, PathBuf};

use megagrid_datasets::output::{Column, write_directory, write_matrix, write_table};
use megagrid_datasets::{Dictionary, Format, Layout, Roles};
use megagrid_partition::Side;
use megagrid_training::input::parse_format;
use megagrid_training::lda::{NewDocuments, TopicModel, layout_of_new, listing};
use megagrid_training::model::{self, Model, best};
use serde_json::{Value, json};

use crate::kinds;
use crate::output;
use crate::progress::{Progress, counted};
use crate::rows::shortest;

/// Lists the topics of a model of `lda`, the largest first: number, share of the tokens, top words. With --documents,
/// finds the topics of new documents instead. With --page, writes a page that shows topics as a map.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  megagrid topics kos -n 15\n  megagrid topics kos --documents new.txt --output new-topics\n  megagrid topics kos --page topics.html"
)]
pub struct Args {
    /// The directory that `lda --model` wrote.
    model: PathBuf,
    /// How many words of each topic, or topics of each document.
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N", conflicts_with = "output", value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
    /// Documents to find the topics of; words are found by name, in texts as the model's corpus was read.
    #[arg(long, value_name = "NEW")]
    documents: Option<PathBuf>,
    /// Format of the documents: auto, bow, lda-c, counts, table, text, jsonl, parquet; auto takes plain text for text if the model's corpus was.
    #[arg(long, default_value = "auto", value_parser = parse_format, requires = "documents")]
    format: std::option::Option<Format>,
    /// Where in a table of documents is what, by number or name: document=3,word=1 or text=body [default: as the model's corpus was].
    #[arg(long, value_name = "ROLE=COLUMN,...", requires = "documents")]
    columns: Option<Roles>,
    /// Instead of listing them, write mixtures.npy ([documents, topics], f32) and documents.parquet to a new directory.
    #[arg(long, value_name = "DIR", requires = "documents")]
    output: Option<PathBuf>,
    /// Instead of listing them, write a page of HTML that shows topics as a map, with their words and documents: one file, without
    /// anything from elsewhere.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["documents", "json", "number"])]
    page: Option<PathBuf>,
    /// Write topics, or documents with their topics, as JSON, an object a line; "-" is stdout.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    json: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(output) = &args.output {
        megagrid_datasets::output::check_target(output)?;
    }
    let kind = model::manifest(&args.model)?.kind;
    if kind != TopicModel::KIND {
        return Err(kinds::refused(&args.model, &kind, TopicModel::KIND));
    }
    let (model, manifest) = model::load::<TopicModel>(&args.model)?;
    if let Some(page) = &args.page {
        return output::write_text(page, &model.page(&model::name(&args.model))?);
    }
    let words = model.names.get(Side::Right)?;
    match &args.documents {
        Some(path) => {
            let stated =
                Layout { format: args.format, roles: args.columns.clone().unwrap_or_default(), ..Layout::default() };
            fold_in(args, &model, &words, (path, layout_of_new(&manifest.config, path, stated)))
        }
        None => {
            let top = model.counts.top_words(args.number as usize);
            if let Some(path) = &args.json {
                return write_lines(path, topics(&model, &top, &words));
            }
            output::print(&listing(&model.counts, &top, None, &words, top.len()))
        }
    }
}

fn fold_in(args: &Args, model: &TopicModel, words: &Dictionary, (path, layout): (&Path, Layout)) -> anyhow::Result<()> {
    let advice = "the model knows none of its words";
    let progress = Progress::spinner(false, "reading");
    let documents = NewDocuments::read(path, layout, model.tokenizer, words, advice)?;
    progress.say("finding topics");
    let mixtures = model.mixtures(&documents.words);
    drop(progress);
    if documents.unknown > 0 {
        let all = documents.tokens + documents.unknown;
        eprintln!("megagrid: {} of {all} words are not in the model's vocabulary and were left out", documents.unknown);
    }
    let strange = documents.words.iter().filter(|words| words.is_empty()).count();
    if strange > 0 {
        eprintln!(
            "megagrid: {} without a word that the model knows, which tells nothing of their topics",
            counted(strange, "document")
        );
    }
    let number = args.number as usize;
    match (&args.output, &args.json) {
        (Some(output), _) => write(output, &documents, &mixtures),
        (None, Some(path)) => write_lines(path, of_documents(&documents, &mixtures, number)),
        (None, None) => output::print(&listed(&documents, &mixtures, number)),
    }
}

/// Describes topics, the largest first.
fn topics(model: &TopicModel, top: &[Vec<(u32, u32)>], words: &Dictionary) -> impl Iterator<Item = Value> {
    let totals = &model.counts.topics.totals;
    let all = totals.iter().sum::<i64>().max(1) as f64;
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by_key(|&topic| std::cmp::Reverse(totals[topic]));
    order.into_iter().map(move |topic| {
        let names: Vec<_> = top[topic].iter().map(|&(word, _)| words.name(word)).collect();
        json!({ "topic": topic, "share": totals[topic] as f64 / all, "words": names })
    })
}

/// Describes documents by their best topics.
fn of_documents(documents: &NewDocuments, mixtures: &[Vec<f32>], number: usize) -> impl Iterator<Item = Value> {
    (0..).zip(mixtures).map(move |(document, mixture)| {
        let topic = |(topic, share)| json!({ "topic": topic, "share": shortest(share) });
        let best: Vec<Value> = best_of(documents, document, mixture, number).into_iter().map(topic).collect();
        json!({ "document": documents.names.name(document), "topics": best })
    })
}

fn write_lines(path: &Path, objects: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    output::write_text(path, &objects.map(|object| format!("{object}\n")).collect::<String>())
}

/// Returns the best topics of a document; none if no word of it tells any.
fn best_of(documents: &NewDocuments, document: u32, mixture: &[f32], number: usize) -> Vec<(u32, f32)> {
    match documents.words[document as usize].is_empty() {
        true => Vec::new(),
        false => best((0..).zip(mixture.iter().copied()), number),
    }
}

/// Lists the best topics of each document.
fn listed(documents: &NewDocuments, mixtures: &[Vec<f32>], number: usize) -> String {
    let line = |(document, mixture): (u32, &Vec<f32>)| {
        let topic = |(topic, share): (u32, f32)| format!("{topic}:{share:.3}");
        let topics: Vec<String> = best_of(documents, document, mixture, number).into_iter().map(topic).collect();
        format!("{}  {}\n", documents.names.name(document), topics.join(" "))
    };
    (0..).zip(mixtures).map(line).collect()
}

fn write(output: &Path, documents: &NewDocuments, mixtures: &[Vec<f32>]) -> anyhow::Result<()> {
    let num_topics = mixtures.first().map_or(0, Vec::len);
    write_directory(output, |into| {
        write_matrix(&into.join("mixtures.npy"), num_topics, mixtures.iter().map(Vec::as_slice))?;
        write_table(&into.join("documents.parquet"), &[("id", Column::Names(&documents.names))])
    })?;
    Ok(())
}

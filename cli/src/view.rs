//! `megagrid view`: runs beside each other, from their records.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use megagrid_training::Error;
use megagrid_training::record::Record;
use serde_json::Value;

use crate::failure::usage;
use crate::output;
use crate::progress::{bytes, engineering};
use crate::report::{self, Subject, Table, precise, seconds};

/// Compares runs of one command by the records that --json wrote: which options differ, and what came of it.
///
/// A directory stands for all records in it. Iterations 5+4 are those of a run that went on after 5 of an earlier one: its times are of 4.
/// With --output a page also has their curves.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  megagrid view runs\n  megagrid view first.json second.json --output runs.html")]
pub struct Args {
    /// Records, and directories of them.
    #[arg(required = true)]
    records: Vec<PathBuf>,
    /// Write a page with the table and the curves of all runs, one HTML file; "-" is stdout.
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
}

/// Options that say where something is written, and do not change a run.
const PLACES: [&str; 8] = ["json", "report", "trace", "model", "live", "quiet", "cache", "checkpoint"];

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let runs = read(&args.records)?;
    let table = table(&runs);
    if let Some(path) = &args.output {
        let subjects: Vec<Subject<'_>> =
            runs.iter().map(|(name, record)| Subject { name, runs: vec![record] }).collect();
        let json = serde_json::to_string(&runs.iter().map(|(_, record)| record).collect::<Vec<_>>())?;
        let title = format!("megagrid {}: {} runs", runs[0].1.command, runs.len());
        let notes = ["Options stand in the table where runs differ in them.".to_owned()];
        output::write_text(path, &report::comparison(&title, std::slice::from_ref(&table), &notes, &subjects, &json)?)?;
        if path == Path::new("-") {
            return Ok(());
        }
    }
    output::print(&table.text())
}

/// Reads records, by the names of their files; those of directories in the order of their names.
fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, Record)>> {
    let mut runs: Vec<(String, Record)> = Vec::new();
    for path in paths {
        let is_directory = path.is_dir();
        let files = if is_directory { records_in(path)? } else { vec![path.clone()] };
        for file in files {
            let text = match fs::read_to_string(&file) {
                Err(_) if is_directory => continue,
                text => text.map_err(Error::io(&file))?,
            };
            match serde_json::from_str::<Record>(&text) {
                Ok(record) => runs.push((name(&file, &runs), record)),
                // There may be other files of JSON beside records.
                Err(_) if is_directory => {}
                Err(_) if is_of_comparison(&text) => {
                    let problem = "is a record of megagrid compare, and view reads those that --json of a training wrote; \
                                   the page of a comparison is what its --report writes";
                    return Err(Error::invalid(&file, problem).into());
                }
                Err(error) => {
                    let problem = format!("{error}; expected a record that --json of a training wrote");
                    return Err(Error::invalid(&file, problem).into());
                }
            }
        }
    }
    let Some((_, first)) = runs.first() else {
        return Err(usage(format!("{} has no record; --json of a training writes one", paths[0].display())));
    };
    if let Some((name, other)) = runs.iter().find(|(_, record)| record.command != first.command) {
        let problem =
            format!("{name} is of {}, {} of {}; name records of one command", other.command, runs[0].0, first.command);
        return Err(usage(problem));
    }
    Ok(runs)
}

/// Tells whether a text is what --json of a comparison wrote.
fn is_of_comparison(text: &str) -> bool {
    let command = |record: Value| record.get("command")?.as_str().map(|command| command.starts_with("compare "));
    serde_json::from_str(text).ok().and_then(command) == Some(true)
}

fn records_in(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let path = entry.map_err(Error::io(directory))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort_by_cached_key(|file| (words_and_numbers(file), file.clone()));
    Ok(files)
}

/// Returns a path's parts, so that those of run-2 come before those of run-10.
fn words_and_numbers(path: &Path) -> Vec<(String, Option<u128>)> {
    let text: Vec<char> = path.to_string_lossy().chars().collect();
    let parts = text.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()).map(String::from_iter);
    parts
        .map(|part: String| part.parse().map_or((part.clone(), None), |number| (String::new(), Some(number))))
        .collect()
}

/// Returns a file's name without its ending, or the whole path where another has that name.
fn name(file: &Path, before: &[(String, Record)]) -> String {
    let short = file.file_stem().map_or_else(|| file.to_string_lossy(), |stem| stem.to_string_lossy()).into_owned();
    if before.iter().any(|(name, _)| *name == short) { file.to_string_lossy().into_owned() } else { short }
}

/// Makes the table: a run a row; options that differ, and what came of them.
fn table(runs: &[(String, Record)]) -> Table {
    let options = differing(runs);
    let metrics: BTreeSet<&str> =
        runs.iter().flat_map(|(_, record)| record.result.metrics.keys().map(AsRef::as_ref)).collect();
    let mut columns = vec!["run".to_owned()];
    columns.extend(options.iter().map(|&option| option.to_owned()));
    let processes = |record: &Record| record.machine.processes;
    let shows_processes = runs.iter().any(|(_, record)| processes(record) != processes(&runs[0].1));
    columns.extend(shows_processes.then(|| "processes".to_owned()));
    columns.extend(["iterations", "ended by", "train", "edges/s", "peak", "objective"].map(str::to_owned));
    columns.extend(metrics.iter().map(|&metric| metric.to_owned()));
    let row = |(name, record): &(String, Record)| {
        let result = &record.result;
        let mut cells = vec![name.clone()];
        cells.extend(options.iter().map(|&option| record.config.get(option).map_or_else(|| "-".to_owned(), shown)));
        cells.extend(shows_processes.then(|| processes(record).unwrap_or(1).to_string()));
        let before = result.done_before.map_or(String::new(), |done| format!("{done}+"));
        cells.push(format!("{before}{}", result.iterations.saturating_sub(result.done_before.unwrap_or(0))));
        cells.push(result.ended_by.to_string());
        cells.push(seconds(record.phases.train));
        cells.push(result.edges_per_second.map_or_else(|| "-".to_owned(), engineering));
        cells.push(record.peak_rss_bytes.map_or_else(|| "-".to_owned(), bytes));
        cells.push(result.objective.map_or_else(|| "-".to_owned(), precise));
        let of_metric =
            |&metric: &&str| result.metrics.get(metric).map_or_else(|| "-".to_owned(), |&value| precise(value));
        cells.extend(metrics.iter().map(of_metric));
        cells.into_iter().map(|cell| (cell, String::new())).collect()
    };
    Table { columns, rows: runs.iter().map(row).collect() }
}

/// Returns the options that runs differ in, but for where they write.
fn differing(runs: &[(String, Record)]) -> Vec<&str> {
    let names: BTreeSet<&str> = runs
        .iter()
        .filter_map(|(_, record)| record.config.as_object())
        .flat_map(|all| all.keys().map(String::as_str))
        .collect();
    let differs = |name: &&str| runs.iter().any(|(_, record)| record.config.get(*name) != runs[0].1.config.get(*name));
    names.into_iter().filter(|name| !PLACES.contains(name)).filter(differs).collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

//! Draws the log likelihood per token of topic models against the time they were trained for:
//! `plot-likelihood OUT.svg TITLE NAME=RECORD.json...`, the records being those of `megagrid lda --json`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use megagrid_benches::plot::{Line, Plot};
use serde_json::Value;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match draw(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("plot-likelihood: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn draw(arguments: &[String]) -> Result<(), String> {
    let [out, title, records @ ..] = arguments else {
        return Err("OUT.svg, TITLE and NAME=RECORD.json... are needed".into());
    };
    let lines = records.iter().map(|record| line(record)).collect::<Result<_, _>>()?;
    let (x_name, y_name) = ("seconds of training", "log likelihood per token");
    let plot = Plot { title: title.clone(), x_name, y_name, log: false, lines };
    std::fs::write(out, plot.svg()).map_err(|error| format!("{out}: {error}"))
}

/// Reads a line's name and points.
fn line(record: &str) -> Result<Line, String> {
    let (name, path) = record.split_once('=').ok_or_else(|| format!("{record} is not NAME=RECORD.json"))?;
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let record: Value = serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
    let iterations = record["iterations"].as_array().ok_or_else(|| format!("{path} is not a run record"))?;
    let point = |one: &Value| Some((one["train_seconds"].as_f64()?, one["metrics"]["per_token"].as_f64()?));
    Ok((name.to_owned(), iterations.iter().filter_map(point).collect()))
}

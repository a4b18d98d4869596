//! The run record as a page: one HTML file with inline plots, no script and no network.

mod plot;

use anyhow::Context;

use crate::progress;
use crate::record::{Iteration, Record};
use plot::{Line, bars, escape, lines, precise, short};

const STYLE: &str = include_str!("style.css");

/// Makes the page.
pub fn page(record: &Record) -> anyhow::Result<String> {
    let json = serde_json::to_string(record).context("writing the report")?;
    let title = format!("megagrid {}", record.command);
    let sections = [
        format!("<h1>{}</h1>\n{}", escape(&title), tiles(record)),
        format!("<h2>Objective and metrics</h2>\n<div class=plots>{}</div>", curves(record)),
        format!("<h2>Time</h2>\n<div class=plots>{}</div>", times(record)),
        format!("<h2>Staleness</h2>\n<div class=plots>{}</div>", staleness(record)),
        format!("<h2>Configuration</h2>\n{}", configuration(&record.config)),
    ];
    Ok(format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n<body>\n{}\n\
         <script type=\"application/json\" id=record>{}</script>\n</body>\n</html>\n",
        escape(&title),
        sections.join("\n"),
        // Inside a script element only its end tag would be taken for markup.
        json.replace("</", "<\\/"),
    ))
}

fn tiles(record: &Record) -> String {
    let sizes = &record.input;
    let mut tiles = vec![
        ("vertices".to_owned(), format!("{} × {}", sizes.left, sizes.right)),
        ("edges".to_owned(), sizes.edges.to_string()),
        ("iterations".to_owned(), record.result.iterations.to_string()),
        ("ended by".to_owned(), record.result.ended_by.to_owned()),
        ("train seconds".to_owned(), short(record.phases.train)),
        ("workers".to_owned(), format!("{} ({})", record.machine.workers, record.machine.vector)),
    ];
    tiles.extend(record.result.edges_per_second.map(|rate| ("edges/s".to_owned(), progress::engineering(rate))));
    tiles.extend(record.peak_rss_bytes.map(|peak| ("peak memory".to_owned(), progress::bytes(peak))));
    tiles.extend(record.result.metrics.iter().map(|(name, value)| ((*name).to_owned(), precise(*value))));
    let tile =
        |(name, value): (String, String)| format!("<div><b>{}</b><span>{}</span></div>", escape(&value), escape(&name));
    format!("<div class=tiles>{}</div>", tiles.into_iter().map(tile).collect::<String>())
}

/// Draws objective and metrics against iterations and against time. What falls over decades is drawn on a logarithm.
fn curves(record: &Record) -> String {
    let evaluated = || record.iterations.iter().filter(|one| one.objective.is_some());
    let names: Vec<&str> = evaluated().next().map_or(Vec::new(), |first| first.metrics.keys().copied().collect());
    // Errors share a plot, so that training and unseen data can be compared.
    let (errors, others): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| name.ends_with("rmse"));
    let mut groups = vec![("objective".to_owned(), vec!["objective"])];
    if !errors.is_empty() {
        groups.push(("rmse".to_owned(), errors));
    }
    groups.extend(others.into_iter().map(|name| (name.to_owned(), vec![name])));
    let mut plots = String::new();
    for (title, names) in &groups {
        for (x_name, x_of) in [("iteration", by_iteration as fn(&Iteration) -> f64), ("train seconds", by_time)] {
            let line = |name: &&str| Line {
                name: (*name).to_owned(),
                points: evaluated().map(|one| (x_of(one), value(one, name))).collect(),
            };
            let drawn: Vec<Line> = names.iter().map(line).collect();
            plots.push_str(&lines(title, x_name, &drawn, falls_far(&drawn)));
        }
    }
    plots
}

fn by_iteration(one: &Iteration) -> f64 {
    one.iteration as f64
}

fn by_time(one: &Iteration) -> f64 {
    one.train_seconds
}

fn value(one: &Iteration, name: &str) -> f64 {
    let metric = if name == "objective" { one.objective } else { one.metrics.get(name).copied() };
    metric.unwrap_or(f64::NAN)
}

fn falls_far(drawn: &[Line]) -> bool {
    let values = drawn.iter().flat_map(|line| &line.points).map(|point| point.1).filter(|value| value.is_finite());
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    low > 0.0 && high / low > 100.0
}

fn times(record: &Record) -> String {
    let parts = ["compute", "sync", "wait", "evaluate"];
    let stack = |one: &Iteration| {
        let seconds = vec![one.compute_seconds, one.sync_seconds, one.wait_seconds, one.evaluate_seconds];
        (one.iteration as f64, seconds)
    };
    let by_iteration: Vec<_> = record.iterations.iter().map(stack).collect();
    let phases = &record.phases;
    let names = ["load", "partition", "plan", "train", "evaluate"];
    let seconds = [phases.load, phases.partition, phases.plan, phases.train, phases.evaluate];
    let rows = names.iter().zip(seconds).map(|(name, time)| format!("<tr><th>{name}<td>{time:.4} s"));
    let table = format!("<table>{}</table>", rows.collect::<String>());
    bars("seconds, mean of workers", "iteration", &parts, &by_iteration) + &table
}

fn staleness(record: &Record) -> String {
    let stacks: Vec<_> = record.staleness.iter().map(|(&age, &reads)| (age as f64, vec![reads as f64])).collect();
    bars("reads by age minus clock; −1 is fresh", "staleness in clocks", &["reads"], &stacks)
}

fn configuration(config: &serde_json::Value) -> String {
    let mut rows = String::new();
    if let serde_json::Value::Object(fields) = config {
        for (name, value) in fields {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            rows.push_str(&format!("<tr><th>{}<td>{}", escape(name), escape(&value)));
        }
    }
    format!("<table>{rows}</table>")
}

//! Run records as a page: one HTML file with inline plots, no script and no network. The same page shows one run, or the runs
//! of several systems.

mod plot;
mod sections;
mod subject;
mod table;
mod tuning;

use anyhow::Context;

use crate::progress;
use megagrid_training::record::Record;
use plot::{escape, short};

pub use plot::{precise, seconds};
pub use subject::Subject;
pub use table::Table;

const STYLE: &str = include_str!("style.css");

/// Makes the page of a run.
pub fn page(record: &Record) -> anyhow::Result<String> {
    let json = serde_json::to_string(record).context("writing the report")?;
    let subjects = [Subject { name: &record.command, runs: vec![record] }];
    let head = tiles(record);
    assemble(&format!("megagrid {}", record.command), &head, &subjects, &json)
}

/// Makes the page of several systems' runs of the same job, with tables and what is to be said about them.
pub fn comparison(
    title: &str,
    tables: &[Table],
    notes: &[String],
    subjects: &[Subject<'_>],
    json: &str,
) -> anyhow::Result<String> {
    let notes: String = notes.iter().map(|note| format!("<p class=note>{}</p>", escape(note))).collect();
    let tables: String = tables.iter().map(Table::html).collect();
    let head = format!("{}{tables}{notes}", job(subjects));
    assemble(title, &head, subjects, json)
}

fn assemble(title: &str, head: &str, subjects: &[Subject<'_>], json: &str) -> anyhow::Result<String> {
    let title = escape(title);
    let sections: String = sections::all(subjects)
        .into_iter()
        .filter(|(_, content)| !content.is_empty())
        .map(|(name, content)| format!("<h2>{name}</h2>\n<div class=plots>{content}</div>\n"))
        .collect();
    let configuration = subjects.first().map_or(String::new(), |subject| configuration(&subject.shown().config));
    // Inside a script element only its end tag would be taken for markup.
    let json = json.replace("</", "<\\/");
    Ok(format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n<body>\n<h1>{title}</h1>\n{head}\n{sections}<h2>Configuration</h2>\n{configuration}\n\
         <script type=\"application/json\" id=record>{json}</script>\n</body>\n</html>\n",
    ))
}

fn tiles(record: &Record) -> String {
    let mut tiles = sizes(record);
    tiles.push(("iterations".to_owned(), record.result.iterations.to_string()));
    tiles.push(("ended by".to_owned(), record.result.ended_by.to_string()));
    tiles.push(("train seconds".to_owned(), short(record.phases.train)));
    tiles.extend(record.result.edges_per_second.map(|rate| ("edges/s".to_owned(), progress::engineering(rate))));
    tiles.extend(record.peak_rss_bytes.map(|peak| ("peak memory".to_owned(), progress::bytes(peak))));
    tiles.extend(record.result.metrics.iter().map(|(name, value)| (name.to_string(), precise(*value))));
    tiles_of(tiles)
}

/// Tells what the job of all systems is.
fn job(subjects: &[Subject<'_>]) -> String {
    let Some(first) = subjects.first() else { return String::new() };
    let mut tiles = sizes(first.shown());
    tiles.push(("rounds".to_owned(), first.runs.len().to_string()));
    tiles_of(tiles)
}

fn sizes(record: &Record) -> Vec<(String, String)> {
    let (sizes, machine) = (&record.input, &record.machine);
    let processes = machine.processes.map_or(String::new(), |processes| format!("{processes} × "));
    vec![
        ("vertices".to_owned(), format!("{} × {}", sizes.left, sizes.right)),
        ("edges".to_owned(), sizes.edges.to_string()),
        ("workers".to_owned(), format!("{processes}{} ({})", machine.workers, machine.vector)),
    ]
}

fn tiles_of(tiles: Vec<(String, String)>) -> String {
    let tile =
        |(name, value): (String, String)| format!("<div><b>{}</b><span>{}</span></div>", escape(&value), escape(&name));
    format!("<div class=tiles>{}</div>\n", tiles.into_iter().map(tile).collect::<String>())
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

#[cfg(test)]
mod tests {
    use super::*;
    use megagrid_engine::{Traffic, WorkerSeconds};
    use megagrid_training::record::{InputSizes, Iteration, Machine, Outcome, Phases};

    /// A run that takes `seconds` an iteration, on two workers.
    fn run(seconds: f64, has_workers: bool) -> Record {
        let worker = |wait: f64| WorkerSeconds { begin: 0.0, seconds, compute: seconds - wait, sync: 0.0, wait };
        let iteration = |at: u64| Iteration {
            iteration: at,
            seconds,
            train_seconds: seconds * at as f64,
            evaluate_seconds: 0.01,
            objective: Some(1000.0 + 5000.0 / at as f64),
            metrics: [("train_rmse".into(), 1.0 / at as f64)].into(),
            compute_seconds: seconds * 0.7,
            wait_seconds: seconds * 0.2,
            sync_seconds: seconds * 0.1,
            imbalance: Some(1.1),
            workers: if has_workers { vec![worker(0.0), worker(seconds * 0.3)] } else { Vec::new() },
            sent_bytes: (1e6 * seconds) as u64,
            sent: Traffic::default(),
            process_bytes: Vec::new(),
            unacknowledged_bytes: 0,
            updates: 1000,
        };
        let placement = Some(megagrid_engine::plan::Quality { replication_factor: 1.5, ..Default::default() }.into());
        let machine = Machine { workers: 2, memory_bytes: 1 << 20, placement, ..Machine::default() };
        Record {
            megagrid: "0".into(),
            command: "mf".into(),
            config: serde_json::json!({ "dims": 32, "note": "</script><b>" }),
            input: InputSizes { left: 9, right: 7, edges: 20, ..InputSizes::default() },
            machine,
            phases: Phases { train: seconds * 20.0, ..Phases::default() },
            iterations: (1..=20).map(iteration).collect(),
            staleness: [(-1, 30), (-2, 10)].into(),
            result: Outcome { iterations: 20, ended_by: "iterations".into(), ..Outcome::default() },
            tuning: None,
            peak_rss_bytes: Some(50 << 20),
        }
    }

    fn is_whole(page: &str) {
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        assert!(
            !page.contains("http://") && !page.contains("https://") && !page.contains("src=") && !page.contains("url(")
        );
        assert!(!page.contains("NaN") && !page.contains("inf,") && !page.contains("<b></script>"));
        assert_eq!(page.matches("<figure>").count(), page.matches("</figure>").count());
        assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
    }

    #[test]
    fn seven_systems_share_a_page() {
        let names = ["megagrid", "gas", "gas-faithful", "ps-naive", "lazytable", "essp", "iterstore"];
        let times = [0.002, 0.004, 0.05, 0.4, 0.02, 0.018, 0.008];
        let runs: Vec<Vec<Record>> =
            times.iter().map(|time| [1.0, 1.1, 0.9].map(|noise| run(time * noise, *time < 0.003)).into()).collect();
        let subjects: Vec<Subject<'_>> =
            names.iter().zip(&runs).map(|(name, runs)| Subject { name, runs: runs.iter().collect() }).collect();
        assert_eq!(subjects[0].shown().phases.train, 0.04);
        let cell = |text: &str| (text.to_owned(), "1–2".to_owned());
        let table = Table {
            columns: vec!["system".into(), "s".into()],
            rows: names.iter().map(|name| vec![cell(name), cell("1")]).collect(),
        };
        let page = comparison("compare", &[table], &["a < b".to_owned()], &subjects, "{}").unwrap();
        is_whole(&page);
        for (style, name) in names.iter().enumerate() {
            assert!(page.contains(&format!("line s{style}")), "{name}");
            assert!(page.matches(&format!(">{name}<")).count() >= 5, "{name}");
        }
        for section in ["Objective", "Time", "Staleness", "Workers", "Messages and memory", "Configuration"] {
            assert!(page.contains(&format!("<h2>{section}")), "{section}");
        }
        assert!(page.contains("a &lt; b"));
    }

    #[test]
    fn what_only_a_later_run_has_measured_is_drawn_too() {
        let (first, mut second) = (run(0.1, false), run(0.2, false));
        for one in &mut second.iterations {
            one.metrics.insert("test_rmse".into(), 2.0 / one.iteration as f64);
        }
        let subject = |name, record| Subject { name, runs: vec![record] };
        let page = comparison("view", &[], &[], &[subject("first", &first), subject("second", &second)], "{}").unwrap();
        let plots: Vec<&str> = page.split("<figure>").filter(|plot| plot.contains("test_rmse by ")).collect();
        assert_eq!(plots.len(), 2, "{page}");
        for plot in plots {
            // Points are said to be of a run.
            assert!(plot.contains("second ") && !plot.contains("first "), "{plot}");
        }
    }

    #[test]
    fn a_run_without_iterations_has_a_page() {
        let mut record = run(0.1, true);
        record.iterations.clear();
        record.staleness.clear();
        is_whole(&page(&record).unwrap());
    }
}

//! The sections of a page. Each is the same for one run and for several systems; a section with nothing to show is empty.

use std::collections::{BTreeMap, BTreeSet};

use super::plot::{
    Labels, Line, Scale, Series, Stretch, escape, grouped, lines, seconds, shares, short, stacked, timeline, values,
};
use super::subject::Subject;
use super::tuning;
use crate::progress;
use megagrid_training::record::{Iteration, Record, Spread};

/// Parts of an iteration, by the colours of the style sheet.
const PARTS: [&str; 4] = ["compute", "sync", "wait", "evaluate"];
/// Iterations on a timeline.
const ITERATIONS_SHOWN: usize = 8;
/// Time axes are logarithmic where the longest run takes this many times as long as the shortest.
const FAR_APART: f64 = 8.0;

/// Makes all sections: names and content.
pub fn all(subjects: &[Subject<'_>]) -> Vec<(&'static str, String)> {
    vec![
        ("Objective and metrics", curves(subjects)),
        ("Tuning", tuning::section(subjects)),
        ("Time", times(subjects)),
        ("Staleness", staleness(subjects)),
        ("Workers", workers(subjects)),
        ("Messages and memory", messages(subjects)),
    ]
}

/// Draws objective and metrics against iterations and against time.
fn curves(subjects: &[Subject<'_>]) -> String {
    let time_scale = match Scale::of(subjects.iter().map(|one| one.shown().phases.train), FAR_APART) {
        Scale::Log if subjects.len() > 1 => Scale::Log,
        _ => Scale::Linear,
    };
    let axes = [
        ("iteration", by_iteration as fn(&Iteration) -> f64, Scale::Linear),
        ("training time, s", by_time, time_scale),
    ];
    let mut plots = String::new();
    for (title, names) in groups(subjects) {
        for (x, x_of, x_scale) in axes {
            let drawn: Vec<Line> =
                subjects.iter().flat_map(|subject| of_subject(subject, &names, x_of, subjects.len() > 1)).collect();
            plots.push_str(&lines(
                &Labels { title: &format!("{title} by {}", x.split(',').next().unwrap_or(x)), x, y: &title },
                &drawn,
                x_scale,
            ));
        }
    }
    plots
}

/// Returns what is drawn in one plot each: its title and its metrics.
fn groups(subjects: &[Subject<'_>]) -> Vec<(String, Vec<String>)> {
    // Not all are known after every iteration, nor of every run: some may have test data and others none.
    let iterations = subjects.iter().flat_map(|one| &one.shown().iterations);
    let names: BTreeSet<String> = iterations.flat_map(|one| one.metrics.keys().map(ToString::to_string)).collect();
    // Errors of one run share a plot, so that training and unseen data can be compared.
    let (errors, others): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| name.ends_with("rmse") && subjects.len() == 1);
    let mut groups = vec![("objective".to_owned(), vec!["objective".to_owned()])];
    if !errors.is_empty() {
        groups.push(("rmse".to_owned(), errors));
    }
    groups.extend(others.into_iter().map(|name| (name.clone(), vec![name])));
    groups
}

fn of_subject(subject: &Subject<'_>, names: &[String], x_of: fn(&Iteration) -> f64, by_system: bool) -> Vec<Line> {
    let iterations = &subject.shown().iterations;
    let line = |name: &String| Line {
        name: if by_system { subject.name.to_owned() } else { name.clone() },
        points: iterations.iter().filter_map(|one| Some((x_of(one), value(one, name)?))).collect(),
    };
    names.iter().map(line).collect()
}

fn by_iteration(one: &Iteration) -> f64 {
    one.iteration as f64
}

fn by_time(one: &Iteration) -> f64 {
    one.train_seconds
}

fn value(one: &Iteration, name: &str) -> Option<f64> {
    if name == "objective" { one.objective } else { one.metrics.get(name).copied() }
}

fn times(subjects: &[Subject<'_>]) -> String {
    let mut plots = match subjects {
        [one] => of_iterations(one.shown()),
        _ => by_system(
            "seconds of an iteration: medians, with their range over rounds",
            subjects,
            |one| one.seconds,
            seconds,
        ),
    };
    let parts = |one: &Iteration| [one.compute_seconds, one.sync_seconds, one.wait_seconds];
    let share = |subject: &Subject<'_>| {
        let sum = |part: usize| subject.shown().iterations.iter().map(|one| parts(one)[part]).sum();
        (subject.name.to_owned(), (0..3).map(sum).collect())
    };
    let rows: Vec<(String, Vec<f64>)> = subjects.iter().map(share).collect();
    plots.push_str(&shares("share of the workers' time", &PARTS[..3], &rows));
    if let [one] = subjects {
        plots.push_str(&phases(one.shown()));
    }
    plots
}

fn of_iterations(record: &Record) -> String {
    let stack = |one: &Iteration| vec![one.compute_seconds, one.sync_seconds, one.wait_seconds, one.evaluate_seconds];
    let stacks: Vec<_> = record.iterations.iter().map(stack).collect();
    let labels = Labels { title: "seconds of an iteration, mean of workers", x: "iteration", y: "seconds" };
    stacked(&labels, &PARTS, &stacks)
}

fn phases(record: &Record) -> String {
    let phases = &record.phases;
    let names = ["load", "partition", "plan", "train", "evaluate"];
    let times = [phases.load, phases.partition, phases.plan, phases.train, phases.evaluate];
    let rows = names.iter().zip(times).map(|(name, time)| format!("<tr><th>{name}<td>{}", seconds(time)));
    format!("<table>{}</table>", rows.collect::<String>())
}

fn by_system(
    title: &str,
    subjects: &[Subject<'_>],
    of: impl Fn(&Iteration) -> f64 + Copy,
    write: fn(f64) -> String,
) -> String {
    let row = |subject: &Subject<'_>| Some((subject.name.to_owned(), Spread::of(subject.medians(of))?));
    let rows: Vec<(String, Spread)> = subjects.iter().filter_map(row).collect();
    values(title, &rows, write)
}

fn staleness(subjects: &[Subject<'_>]) -> String {
    let series = |(style, subject): (usize, &Subject<'_>)| {
        let ages: &BTreeMap<i64, u64> = &subject.shown().staleness;
        let reads = ages.values().sum::<u64>().max(1) as f64;
        let bars = ages.iter().map(|(&age, &of_age)| (age, of_age as f64 / reads * 100.0)).collect();
        Series { name: subject.name.to_owned(), style, bars }
    };
    let drawn: Vec<Series> = subjects.iter().enumerate().map(series).filter(|one| !one.bars.is_empty()).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let title = "reads by age minus the reader's clock; −1 is fresh";
    grouped(&Labels { title, x: "staleness, clocks", y: "% of reads" }, &drawn)
}

/// Draws for each subject what its workers did in the first iterations after the first.
fn workers(subjects: &[Subject<'_>]) -> String {
    subjects.iter().map(|subject| of_workers(subject, subjects.len() > 1)).collect()
}

fn of_workers(subject: &Subject<'_>, named: bool) -> String {
    let iterations = &subject.shown().iterations;
    let skipped = usize::from(iterations.len() > 1);
    let shown = &iterations[skipped..iterations.len().min(skipped + ITERATIONS_SHOWN)];
    let num_workers = shown.iter().map(|one| one.workers.len()).min().unwrap_or(0);
    let (Some(first), Some(last), true) = (shown.first(), shown.last(), num_workers > 0) else { return String::new() };
    let start = |one: &Iteration| one.train_seconds - one.seconds - (first.train_seconds - first.seconds);
    let stretch = |one: &Iteration, worker: usize| {
        let times = one.workers[worker];
        Stretch { begin: (start(one) + times.begin).max(0.0), parts: vec![times.compute, times.sync, times.wait] }
    };
    let rows: Vec<Vec<Stretch>> =
        (0..num_workers).map(|worker| shown.iter().map(|one| stretch(one, worker)).collect()).collect();
    let mut bounds: Vec<f64> = shown.iter().map(start).collect();
    bounds.push(start(last) + last.seconds);
    let of = if named { format!("{}: ", subject.name) } else { String::new() };
    let title = format!(
        "{of}iterations {} to {}; the order of parts within one is not recorded",
        first.iteration, last.iteration
    );
    timeline(&title, &PARTS[..3], &rows, &bounds)
}

fn messages(subjects: &[Subject<'_>]) -> String {
    let of_iterations = |title: &str, of: fn(&Iteration) -> f64, write: fn(f64) -> String| {
        let any = subjects.iter().any(|one| one.medians(of).any(|value| value > 0.0));
        if any { by_system(title, subjects, of, write) } else { String::new() }
    };
    let mut plots = of_iterations("bytes sent in an iteration", |one| one.sent_bytes as f64, bytes);
    plots.push_str(&of_iterations(
        "messages in an iteration",
        |one| one.sent.total().messages as f64,
        progress::engineering,
    ));
    let of_runs = |title: &str, of: fn(&Record) -> Option<f64>, write: fn(f64) -> String| {
        let row = |subject: &Subject<'_>| {
            let found: Vec<f64> = subject.runs.iter().filter_map(|run| of(run)).collect();
            Some((subject.name.to_owned(), Spread::of(found.into_iter())?))
        };
        let rows: Vec<(String, Spread)> = subjects.iter().filter_map(row).collect();
        values(title, &rows, write)
    };
    let replicas = |run: &Record| run.machine.placement.map(|placement| placement.replication_factor);
    if subjects.iter().flat_map(|one| &one.runs).any(|run| replicas(run).is_some_and(|all| all != 1.0)) {
        plots.push_str(&of_runs("replicas, masters among them, a vertex", replicas, short));
    }
    plots.push_str(&of_runs("bytes of data structures", |run| Some(run.machine.memory_bytes as f64), bytes));
    plots.push_str(&of_runs("peak memory of the process", |run| run.peak_rss_bytes.map(|peak| peak as f64), bytes));
    if let [one] = subjects {
        plots.push_str(&traffic(one.shown()));
    }
    plots
}

/// Lists what was sent, by kind.
fn traffic(record: &Record) -> String {
    let Some(last) = record.iterations.last().filter(|last| last.sent_bytes > 0) else { return String::new() };
    let amounts = last.sent.amounts();
    let kinds = megagrid_engine::Traffic::NAMES.iter().zip(amounts).filter(|(_, amount)| amount.messages > 0);
    let row = |(kind, amount): (&&str, megagrid_engine::Amount)| {
        format!("<tr><th>{}<td>{} messages<td>{}", escape(kind), amount.messages, bytes(amount.bytes as f64))
    };
    format!("<table><caption>sent in the last iteration</caption>{}</table>", kinds.map(row).collect::<String>())
}

fn bytes(number: f64) -> String {
    progress::bytes(number as u64)
}

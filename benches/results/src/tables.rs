//! Markdown of results.

use std::fmt::Write;

use crate::results::{Results, Row};

/// Width at which prose folds.
const FOLD: usize = 140;

/// A line of README's table: its text, and how the rows that it shows begin: table, measure and peer.
struct Headline {
    text: &'static str,
    table: &'static str,
    what: &'static str,
    peer: &'static str,
}

const HEADLINES: [Headline; 6] = [
    Headline {
        text: "PageRank, 65 M edges, an iteration, against the crate `graph`",
        table: "PageRank, RMAT",
        what: "ms per iteration",
        peer: "graph",
    },
    Headline {
        text: "matrix factorization, 9 M ratings, k = 32, an iteration, against LIBMF built with AVX",
        table: "Matrix factorization, k = 32",
        what: "s per iteration",
        peer: "libmf 0.9.2 (AVX build)",
    },
    Headline {
        text: "the same with k = 100",
        table: "Matrix factorization, k = 100",
        what: "s per iteration",
        peer: "libmf 0.9.2 (AVX build)",
    },
    Headline {
        text: "topic model, 3 M tokens, K = 100, to a likelihood, against tomotopy",
        table: "LDA, corpus-3m.bow, K = 100:",
        what: "s to its LL at iteration 200",
        peer: "tomotopy",
    },
    Headline {
        text: "the same with K = 1000",
        table: "LDA, corpus-3m.bow, K = 1000:",
        what: "s to its LL at iteration 100",
        peer: "tomotopy",
    },
    Headline {
        text: "sparse logistic regression, 10 M values, to a gap of 1e-5, against liblinear (one thread)",
        table: "L1 logistic regression, clicks",
        what: "s to gap 1e-5",
        peer: "liblinear",
    },
];

/// A document with the tables of results between its markers `<!-- benchmarks: NAME -->` and `<!-- end -->`.
pub fn fill(document: &str, results: &Results) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), document);
    while let Some((before, after)) = rest.split_once("<!-- benchmarks: ") {
        let (name, after) = after.split_once(" -->").ok_or("a marker has no `-->`")?;
        let (_, after) = after.split_once("<!-- end -->").ok_or(format!("{name} has no `<!-- end -->`"))?;
        let table = match name {
            "summary" => summary(results),
            "tables" => all(results),
            _ => return Err(format!("there is no table {name}; expected summary or tables")),
        };
        write!(filled, "{before}<!-- benchmarks: {name} -->\n{table}<!-- end -->").unwrap();
        rest = after;
    }
    Ok(filled + rest)
}

fn summary(results: &Results) -> String {
    let mut table = format!(
        "\n| {}, {} cores, {}: how many times as long the other takes | 1 thread | 2 threads |\n|---|---|---|\n",
        results.machine.processor, results.machine.cores, results.date
    );
    for Headline { text, table: name, what, peer } in HEADLINES {
        let shows = |row: &&Row| row.table.starts_with(name) && row.what == what && row.peer.starts_with(peer);
        let ratio = |threads| results.rows.iter().filter(shows).find(|row| row.threads == threads)?.ratio;
        let ratios = [1, 2].map(ratio);
        // What was not measured has no line.
        if ratios.iter().any(Option::is_some) {
            let shown = ratios.map(|ratio| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.1}")));
            writeln!(table, "| {text} | {} |", shown.join(" | ")).unwrap();
        }
    }
    table + "\n"
}

fn all(results: &Results) -> String {
    let Results { date, commit, machine, notes, rows } = results;
    let about = format!("Measured on {date}: {}, {} cores; commit {commit}. ", machine.processor, machine.cores);
    let mut text = format!("\n{}", fold(&(about + &notes.join(" "))));
    for name in distinct(rows.iter().map(|row| &row.table)) {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.table == *name).collect();
        let rounds = distinct(rows.iter().map(|row| &row.rounds));
        let rounds = rounds.iter().map(|rounds| rounds.to_string()).collect::<Vec<_>>().join(" or ");
        let commands = distinct(rows.iter().map(|row| &row.command));
        let commands = commands.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ");
        let plural = if rounds == "1" { "" } else { "s" };
        write!(text, "\n{}\n{}", fold(&format!("**{name}** ({rounds} round{plural}; {commands})")), pivot(&rows))
            .unwrap();
    }
    text + "\n"
}

/// A line for each system and a column for each measure and number of threads. A cell is a median, and its ratio.
fn pivot(rows: &[&Row]) -> String {
    let columns = distinct(rows.iter().map(|row| (&row.what, row.threads)));
    let mut lines = vec!["| system |".to_owned(), "|---|".to_owned(), "| megagrid |".to_owned()];
    for &(what, threads) in &columns {
        let plural = if threads == 1 { "" } else { "s" };
        let ours = rows.iter().find(|row| (&row.what, row.threads) == (what, threads)).and_then(|row| row.ours);
        write!(lines[0], " {what}, {threads} thread{plural} |").unwrap();
        lines[1] += "---|";
        write!(lines[2], " {} |", number(ours)).unwrap();
    }
    for peer in distinct(rows.iter().map(|row| &row.peer)) {
        let mut line = format!("| {peer} |");
        for &(what, threads) in &columns {
            match rows.iter().find(|row| (&row.peer, &row.what, row.threads) == (peer, what, threads)) {
                None => line += " |",
                Some(Row { theirs, ratio: None, .. }) => write!(line, " {} |", number(*theirs)).unwrap(),
                Some(Row { theirs, ratio, .. }) => {
                    write!(line, " {} ({}) |", number(*theirs), number(*ratio)).unwrap();
                }
            }
        }
        lines.push(line);
    }
    lines.join("\n") + "\n"
}

/// Three digits, or all that are before the point; `-` where a goal was not reached.
fn number(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let before = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    format!("{value:.*}", if value == 0.0 { 0 } else { (3 - before).max(0) as usize })
}

/// Each value once, in the order of first appearance.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Prose in lines of at most [`FOLD`] characters, ended by a line break.
fn fold(prose: &str) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for word in prose.split_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > FOLD {
            (text, width) = (text + "\n", 0);
        }
        if width > 0 {
            (text, width) = (text + " ", width + 1);
        }
        (text, width) = (text + word, width + length);
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;

    fn row(what: &str, peer: &str, threads: u32, theirs: Option<f64>) -> Row {
        let [table, command] = ["Sums", "run"].map(str::to_owned);
        let ratio = theirs.map(|theirs| theirs / 2.0);
        let (what, peer) = (what.to_owned(), peer.to_owned());
        Row { table, what, command, peer, threads, rounds: 5, ours: Some(2.0), theirs, ratio }
    }

    #[test]
    fn measures_and_threads_are_columns_and_systems_lines() {
        let rows = [row("s", "a", 1, Some(4.0)), row("s", "a", 2, None), row("s", "b", 2, Some(12.345))];
        let expected = "| system | s, 1 thread | s, 2 threads |\n|---|---|---|\n| megagrid | 2.00 | 2.00 |\n\
                        | a | 4.00 (2.00) | - |\n| b | | 12.3 (6.17) |\n";
        assert_eq!(pivot(&rows.iter().collect::<Vec<_>>()), expected);
    }

    #[test]
    fn a_document_keeps_what_is_outside_of_its_markers() {
        let machine = Machine { processor: "P".into(), cores: 2 };
        let results = Results { date: "D".into(), commit: "C".into(), machine, notes: Vec::new(), rows: Vec::new() };
        let filled = fill("a\n<!-- benchmarks: tables -->old<!-- end -->\nb\n", &results).unwrap();
        let tables = "\nMeasured on D: P, 2 cores; commit C.\n\n";
        assert_eq!(filled, format!("a\n<!-- benchmarks: tables -->\n{tables}<!-- end -->\nb\n"));
        assert_eq!(fill(&filled, &results).unwrap(), filled);
        assert!(fill("<!-- benchmarks: other --><!-- end -->", &results).unwrap_err().contains("no table other"));
        assert!(fill("<!-- benchmarks: tables -->", &results).unwrap_err().contains("no `<!-- end -->`"));
    }

    #[test]
    fn three_digits_of_numbers() {
        let shown = [0.0, 0.01234, 1.0, 12.345, 9990.4].map(|value| number(Some(value)));
        assert_eq!(shown, ["0", "0.0123", "1.00", "12.3", "9990"]);
        assert_eq!(number(None), "-");
    }
}

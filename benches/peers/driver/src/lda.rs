//! Topic models: time to the joint log likelihood that tomotopy has after some iterations.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::curve::{Curve, reach};
use crate::process::{number, pinned, run_megagrid, run_peer};
use crate::summary::{MEGAGRID, Table};
use crate::texts::{Source, Text, corpus_shape, prepare};
use crate::{Options, Programs};

pub const TOMOTOPY: &str = "tomotopy 0.14.0";
pub const BETA: &str = "0.01";
/// Between what tomotopy prints and what its own assignments give.
pub const MAX_DIFFERENCE: f64 = 1e-3;
/// tomotopy's likelihood is read after each of this many iterations; all levels are multiples.
const STEP: u32 = 5;
const PER_ITERATION: &str = "s per iteration";
const PEAK_MEMORY: &str = "peak memory, MB";

/// One corpus at one number of topics.
struct Case {
    text: Text,
    topics: u32,
    alpha: &'static str,
    threads: &'static [u32],
    /// Iterations of tomotopy whose likelihoods are the goals.
    levels: [u32; 3],
}

const CASES: [Case; 4] = [
    Case { text: GENERATED, topics: 100, alpha: "0.1", threads: &[1, 2], levels: [50, 100, 200] },
    Case { text: NEWSGROUPS, topics: 100, alpha: "0.1", threads: &[1, 2], levels: [50, 100, 200] },
    Case { text: GENERATED, topics: 1000, alpha: "0.05", threads: &[1, 2], levels: [20, 50, 100] },
    Case { text: LARGE, topics: 1000, alpha: "0.05", threads: &[2], levels: [5, 10, 20] },
];
const QUICK: [Case; 1] = [Case { text: SMALL, topics: 100, alpha: "0.1", threads: &[1, 2], levels: [10, 20, 50] }];

/// 3 M tokens.
const GENERATED: Text = Text {
    name: "corpus-3m.bow",
    source: Source::Generated(
        "corpus",
        &["--documents", "19600", "--vocabulary", "20000", "--topics", "100", "--mean-length", "153"],
    ),
    action: "words",
};
/// 30 M tokens.
const LARGE: Text = Text {
    name: "corpus-30m.bow",
    source: Source::Generated(
        "corpus",
        &["--documents", "196000", "--vocabulary", "20000", "--topics", "100", "--mean-length", "153"],
    ),
    action: "words",
};
const SMALL: Text = Text {
    name: "corpus-small.bow",
    source: Source::Generated("corpus", &["--documents", "1000", "--vocabulary", "2000", "--topics", "20"]),
    action: "words",
};
const NEWSGROUPS: Text =
    Text { name: "20newsgroups.bow", source: Source::Real("20newsgroups/docword.20ng-train.txt.gz"), action: "words" };

/// Runs all rounds of every corpus and number of topics that the options leave.
pub fn measure(programs: &Programs, options: &Options) -> Result<Vec<Table>> {
    let cases: &[Case] = if options.quick { &QUICK } else { &CASES };
    let mut tables = Vec::new();
    for case in cases.iter().filter(|case| options.topics.contains(&case.topics) && options.wants(case.text.name)) {
        if let Some(corpus) = prepare(programs, &case.text)? {
            tables.push(measure_case(programs, options, case, &corpus)?);
        }
    }
    Ok(tables)
}

/// One trial of either system.
struct Trial {
    tokens: f64,
    /// Minus the joint log likelihood per token, over seconds of training.
    curve: Curve,
    seconds_per_iteration: f64,
    peak_bytes: f64,
}

fn measure_case(programs: &Programs, options: &Options, case: &Case, corpus: &Path) -> Result<Table> {
    let Case { text, topics, alpha, threads, levels } = case;
    let title = format!("LDA, {}, K = {topics}: alpha {alpha}, beta {BETA}", text.name);
    let mut table = Table::new(title, format!("benches/peers/run lda --topics {topics} --inputs {}", text.name));
    for round in 1..=options.rounds {
        for &threads in *threads {
            eprintln!("lda, {}, K = {topics}, round {round} of {}, {threads} threads", text.name, options.rounds);
            let peer = tomotopy(programs, case, corpus, threads)?;
            let ours = megagrid(programs, case, corpus, threads)?;
            let mut goals = Vec::new();
            for level in levels {
                // The peer's time is that of the iteration itself, whatever the likelihood was in other rounds.
                let (seconds, goal) = peer.curve[(level / STEP) as usize - 1];
                let measure = format!("s to its LL at iteration {level}");
                table.add(TOMOTOPY, threads, &measure, Some(seconds));
                table.add(MEGAGRID, threads, &measure, reach(&ours.curve, goal));
                goals.push(format!("{:.4}", -goal));
            }
            for (system, trial) in [(TOMOTOPY, &peer), (MEGAGRID, &ours)] {
                table.add(system, threads, PER_ITERATION, Some(trial.seconds_per_iteration));
                table.add(system, threads, PEAK_MEMORY, Some(trial.peak_bytes / 1e6));
            }
            if round == options.rounds {
                let goals = goals.join(", ");
                let rates = [&peer, &ours].map(|trial| trial.tokens / trial.seconds_per_iteration / 1e6);
                let last = ours.curve.last().map_or(f64::NAN, |point| -point.1);
                table.note(format!(
                    "last round, {threads} threads: LL per token of tomotopy at those iterations {goals}; megagrid ended \
                     at {last:.4}; M tokens/s: tomotopy {:.1}, megagrid {:.1}",
                    rates[0], rates[1]
                ));
            }
        }
    }
    table.note("LL: joint log p(words, topics) per token; evaluation is not in the times".to_owned());
    Ok(table)
}

fn tomotopy(programs: &Programs, case: &Case, corpus: &Path, threads: u32) -> Result<Trial> {
    let python = programs.python.as_deref().context("no Python")?;
    let mut command = pinned(threads, python);
    command.arg(&programs.tomotopy_runner).arg(corpus).args([&case.topics.to_string(), case.alpha, BETA]);
    let trial = run_peer(command.args([threads, case.levels[2], STEP].map(|number| number.to_string())))?;
    let shape = corpus_shape(corpus)?;
    let words = number(&trial, "/vocabulary")? as u64;
    ensure!(words == shape.words, "tomotopy knows {words} words, expected {}", shape.words);
    let curve = read_curve(&trial, "curve", "/per_token")?;
    let (printed, joint) = (curve.last().map_or(f64::NAN, |point| -point.1), number(&trial, "/joint_per_token")?);
    ensure!(
        (printed - joint).abs() < MAX_DIFFERENCE,
        "tomotopy prints {printed} per token, its assignments give {joint}"
    );
    // The first step sets up.
    let steps = (curve.len() - 1) as f64 * f64::from(STEP);
    Ok(Trial {
        tokens: number(&trial, "/tokens")?,
        seconds_per_iteration: (curve[curve.len() - 1].0 - curve[0].0) / steps,
        peak_bytes: number(&trial, "/peak_rss_bytes")?,
        curve,
    })
}

/// A quarter more iterations than the peer has, so that a curve that lags behind still reaches the goals.
fn megagrid(programs: &Programs, case: &Case, corpus: &Path, threads: u32) -> Result<Trial> {
    let mut command = pinned(threads, &programs.megagrid);
    command.arg("lda").arg(corpus).args(["--evaluate-every", "1", "--topics", &case.topics.to_string()]);
    command.args([
        "--alpha",
        case.alpha,
        "--prior",
        "fixed",
        "--beta",
        BETA,
        "--seed",
        "1",
        "-w",
        &threads.to_string(),
    ]);
    command.args(["--iterations", &(case.levels[2] * 5 / 4).to_string()]);
    let trial = run_megagrid(&mut command, &programs.work.join("lda.json"))?;
    let shape = corpus_shape(corpus)?;
    let found = (number(&trial, "/input/left")? as u64, number(&trial, "/input/right")? as u64);
    let expected = (shape.documents, shape.words);
    ensure!(found == expected, "megagrid: (documents, words) are {found:?}, expected {expected:?}");
    let tokens = number(&trial, "/result/metrics/log_likelihood")? / number(&trial, "/result/metrics/per_token")?;
    Ok(Trial {
        tokens,
        curve: read_curve(&trial, "iterations", "/metrics/per_token")?,
        seconds_per_iteration: tokens / number(&trial, "/result/edges_per_second")?,
        peak_bytes: number(&trial, "/peak_rss_bytes")?,
    })
}

/// Iterations without a likelihood are left out.
fn read_curve(trial: &Value, name: &str, per_token: &str) -> Result<Curve> {
    let steps = trial[name].as_array().with_context(|| format!("no {name}"))?.iter();
    let steps = steps.filter(|step| step.pointer(per_token).is_some_and(Value::is_number));
    let curve: Curve =
        steps.map(|step| Ok((number(step, "/train_seconds")?, -number(step, per_token)?))).collect::<Result<_>>()?;
    ensure!(curve.len() > 1, "fewer than two likelihoods in {name}");
    Ok(curve)
}

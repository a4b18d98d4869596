//! Topic models: the joint log likelihood after as many iterations, seed by seed.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::lda::{BETA, MAX_DIFFERENCE, TOMOTOPY};
use crate::process::{number, pinned, run_megagrid, run_peer};
use crate::summary::{MEGAGRID, Table};
use crate::texts::{Source, Text, prepare};
use crate::{Options, Programs};

const TOPICS: &str = "50";
const ALPHA: &str = "0.1";
const ITERATIONS: &str = "200";
const THREADS: u32 = 2;

const CORPORA: [Text; 3] = [
    Text { name: "uci-kos.bow", source: Source::Real("uci-kos/docword.kos.txt.gz"), action: "words" },
    Text { name: "associated-press.bow", source: Source::Real("associated-press/ap.dat.gz"), action: "terms" },
    Text { name: "20newsgroups.bow", source: Source::Real("20newsgroups/docword.20ng-train.txt.gz"), action: "words" },
];

/// How the document prior is treated: what it is called, tomotopy's interval of optimization, Megagrid's options.
const PRIORS: [(&str, &str, [&str; 4]); 2] = [
    ("fixed", "0", ["--prior", "fixed", "--optimize-every", "1"]),
    ("asymmetric", "10", ["--prior", "asymmetric", "--optimize-every", "10"]),
];

/// Runs one seed a round, on every corpus that the options leave.
pub fn measure(programs: &Programs, options: &Options) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for text in CORPORA.iter().filter(|text| options.wants(text.name)) {
        let Some(corpus) = prepare(programs, text)? else { continue };
        let title = format!("LDA, {}, K = {TOPICS}, {ITERATIONS} iterations, alpha {ALPHA}, beta {BETA}", text.name);
        let mut table = Table::new(title, "benches/peers/run lda-quality".to_owned());
        for seed in 1..=options.rounds {
            eprintln!("lda-quality, {}, seed {seed} of {}", text.name, options.rounds);
            for (prior, interval, own) in &PRIORS {
                let measure = format!("-LL per token, {prior}");
                let mut add = |system, value| table.add(system, THREADS, &measure, Some(value));
                add(TOMOTOPY, tomotopy(programs, &corpus, seed, interval)?);
                for sampler in ["dense", "sparse"] {
                    let value = megagrid(programs, &corpus, seed, sampler, own)?;
                    // Ratios are taken to the default, which is dense at so few topics.
                    add(if sampler == "dense" { MEGAGRID } else { "megagrid, sparse" }, value);
                }
            }
        }
        table.note("LL: joint log p(words, topics); a seed a round; a ratio above 1: worse than megagrid".to_owned());
        tables.push(table);
    }
    Ok(tables)
}

fn tomotopy(programs: &Programs, corpus: &Path, seed: u32, interval: &str) -> Result<f64> {
    let python = programs.python.as_deref().context("no Python")?;
    let mut command = pinned(THREADS, python);
    command.arg(&programs.tomotopy_runner).arg(corpus).args([TOPICS, ALPHA, BETA, &THREADS.to_string(), ITERATIONS]);
    let trial = run_peer(command.args([ITERATIONS, &seed.to_string(), interval]))?;
    let (printed, joint) = (number(&trial, "/curve/0/per_token")?, number(&trial, "/joint_per_token")?);
    ensure!((printed - joint).abs() < MAX_DIFFERENCE, "tomotopy prints {printed}, its assignments give {joint}");
    Ok(-joint)
}

fn megagrid(programs: &Programs, corpus: &Path, seed: u32, sampler: &str, own: &[&str]) -> Result<f64> {
    let mut command = pinned(THREADS, &programs.megagrid);
    command.arg("lda").arg(corpus).args(["--topics", TOPICS, "--alpha", ALPHA, "--beta", BETA, "--sampler", sampler]);
    command.args(own).args(["--seed", &seed.to_string(), "-w", &THREADS.to_string(), "--iterations", ITERATIONS]);
    command.args(["--evaluate-every", ITERATIONS]);
    let trial = run_megagrid(&mut command, &programs.work.join("lda-quality.json"))?;
    Ok(-number(&trial, "/result/metrics/per_token")?)
}

//! Measures Megagrid against its peers in one interleaved run; see `../README.md`.
//!
//! Every trial is a process of its own, pinned to as many cores as it has threads. A round runs
//! each system once, and rounds follow one another, so that slow minutes of a shared machine fall
//! on all systems alike.

#![forbid(unsafe_code)]

mod blockpg;
mod compare;
mod curve;
mod inputs;
mod lda;
mod lda_quality;
mod mf;
mod pagerank;
mod process;
mod summary;
mod texts;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Error, Result, anyhow};
use clap::{Parser, ValueEnum};
use megagrid_results::Results;
use serde_json::json;

/// Measure Megagrid against its peers in one interleaved run: medians, spread and ratios.
#[derive(Parser)]
#[command(name = "run", after_help = "Example: benches/peers/run lda blockpg --rounds 3 --json peers.json")]
struct Options {
    /// What to measure [default: all].
    algorithms: Vec<Algorithm>,
    /// Rounds; each runs every system once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Smallest useful sizes and one round: shows that everything runs, not how fast.
    #[arg(long)]
    quick: bool,
    /// RMAT scale: 2^scale vertices before isolated ones are dropped, 16 edges each.
    #[arg(long, default_value_t = 22, value_parser = clap::value_parser!(u32).range(8..=26))]
    scale: u32,
    /// Rank a lattice of N by N vertices, a graph without hubs, in the place of RMAT.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(8..=16_384))]
    lattice: Option<u32>,
    /// Latent dimensions of MF to measure.
    #[arg(long, value_delimiter = ',', default_values_t = [32, 100])]
    dims: Vec<u32>,
    /// Numbers of topics of LDA to measure.
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [100, 1000])]
    topics: Vec<u32>,
    /// Inputs of lda, blockpg and compare to measure, by the start of their names: corpus-3m, 20newsgroups, corpus-30m;
    /// clicks, news20, a9a; movielens-100k, uci-kos, soc-Epinions1 [default: all].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    inputs: Vec<String>,
    /// Folder of the real data sets; those that are not there are left out.
    #[arg(long, value_name = "DIR", env = "MEGAGRID_PEERS_DATA")]
    data: PathBuf,
    /// Write every trial and the summary to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The commit that is measured.
    #[arg(long, env = "MEGAGRID_PEERS_COMMIT", hide = true)]
    commit: String,
    /// Folder with the programs that `run` built; inputs are made there too.
    #[arg(long, env = "MEGAGRID_PEERS_WORK", hide = true)]
    work: PathBuf,
}

impl Options {
    fn measures(&self, algorithm: Algorithm) -> bool {
        (self.algorithms.is_empty() && algorithm != Algorithm::LdaQuality) || self.algorithms.contains(&algorithm)
    }

    fn wants(&self, input: &str) -> bool {
        self.inputs.is_empty() || self.inputs.iter().any(|start| input.starts_with(start.as_str()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Algorithm {
    Pagerank,
    Mf,
    Lda,
    /// The likelihood after as many iterations; only where it is named.
    LdaQuality,
    Blockpg,
    /// Megagrid's own baselines, by its command `compare`.
    Compare,
}

/// The programs of one run, as `run` leaves them in the work folder.
struct Programs {
    work: PathBuf,
    /// The real data sets.
    data: PathBuf,
    megagrid: PathBuf,
    naive: PathBuf,
    /// The crate `graph`, built for any processor and for this one.
    graph: [(&'static str, PathBuf); 2],
    /// Python with the packages to measure; absent where `run` found no Python.
    python: Option<PathBuf>,
    libmf_runner: PathBuf,
    tomotopy_runner: PathBuf,
    logistic_runner: PathBuf,
    prepare: PathBuf,
    /// The same LIBMF sources, compiled with AVX.
    libmf_avx: Option<PathBuf>,
}

impl Programs {
    fn find(work: PathBuf, data: PathBuf) -> Result<Self> {
        let there = |path: PathBuf| path.exists().then_some(path);
        let must = |path: PathBuf| {
            there(path.clone()).with_context(|| format!("{} is missing; start `run`, which builds it", path.display()))
        };
        Ok(Programs {
            megagrid: must(work.join("bin/megagrid"))?,
            naive: must(work.join("bin/naive"))?,
            graph: [
                ("default", must(work.join("bin/graph_default"))?),
                ("native", must(work.join("bin/graph_native"))?),
            ],
            python: there(work.join("venv/bin/python")),
            libmf_runner: must(work.join("bin/libmf_runner.py"))?,
            tomotopy_runner: must(work.join("bin/tomotopy_runner.py"))?,
            logistic_runner: must(work.join("bin/logistic_runner.py"))?,
            prepare: must(work.join("bin/prepare.py"))?,
            libmf_avx: there(work.join("libmf_avx.so")),
            data,
            work,
        })
    }

    /// Whether the peers of an algorithm are there that are packages of Python. Fails without Megagrid's own command.
    fn can_measure(&self, command: &str) -> Result<bool> {
        process::run(Command::new(&self.megagrid).args([command, "--help"])).map_err(|_| {
            anyhow!("{} has no `{command}` command; MEGAGRID_BIN names another binary", self.megagrid.display())
        })?;
        if self.python.is_none() {
            eprintln!("no Python here: {command} is left out, whose peers are packages of Python");
        }
        Ok(self.python.is_some())
    }
}

fn main() -> Result<()> {
    let mut options = Options::parse();
    if options.quick {
        (options.rounds, options.scale, options.dims, options.topics) = (1, 14, vec![32], vec![100]);
    }
    let programs = Programs::find(options.work.clone(), options.data.clone())?;
    // Before anything is measured, because a missing command ends the run.
    let measures = |algorithm, command| Ok::<_, Error>(options.measures(algorithm) && programs.can_measure(command)?);
    let (lda, blockpg) = (measures(Algorithm::Lda, "lda")?, measures(Algorithm::Blockpg, "blockpg")?);
    let lda_quality = measures(Algorithm::LdaQuality, "lda")?;
    let mut tables = Vec::new();
    if options.measures(Algorithm::Pagerank) {
        tables.push(pagerank::measure(&programs, &options)?);
    }
    if options.measures(Algorithm::Mf) {
        for &dims in &options.dims {
            tables.push(mf::measure(&programs, &options, dims)?);
        }
    }
    if lda {
        tables.extend(lda::measure(&programs, &options)?);
    }
    if lda_quality {
        tables.extend(lda_quality::measure(&programs, &options)?);
    }
    if blockpg {
        tables.extend(blockpg::measure(&programs, &options)?);
    }
    if options.measures(Algorithm::Compare) {
        tables.extend(compare::measure(&programs, &options)?);
    }
    for table in &tables {
        println!("{table}");
    }
    let results = Results {
        date: process::run(Command::new("date").arg("+%F"))?.trim().to_owned(),
        commit: options.commit,
        machine: process::machine(),
        notes: vec![format!("`benches/peers/run` with {} rounds.", options.rounds)],
        rows: tables.iter().flat_map(summary::Table::rows).collect(),
    };
    let file = results.write(&options.work.join("results"))?;
    eprintln!("{}: to publish it, copy it to docs/benchmarks/results and run `cargo benchmarks`", file.display());
    if let Some(path) = &options.json {
        let tables: Vec<_> = tables.iter().map(summary::Table::to_json).collect();
        let record = json!({ "rounds": options.rounds, "machine": process::machine(), "tables": tables });
        std::fs::write(path, format!("{record:#}\n")).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

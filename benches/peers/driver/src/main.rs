//! Measures Megagrid against its peers in one interleaved run; see `../README.md`.
//!
//! Every trial is a process of its own, pinned to as many cores as it has threads. A round runs
//! each system once, and rounds follow one another, so that slow minutes of a shared machine fall
//! on all systems alike.

#![forbid(unsafe_code)]

mod inputs;
mod mf;
mod pagerank;
mod process;
mod summary;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use serde_json::json;

/// Measure Megagrid against its peers in one interleaved run: medians, spread and ratios.
#[derive(Parser)]
#[command(name = "run", after_help = "Example: benches/peers/run --only pagerank --rounds 3 --json peers.json")]
struct Options {
    /// Rounds; each runs every system once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Smallest useful sizes and one round: shows that everything runs, not how fast.
    #[arg(long)]
    quick: bool,
    /// Measure one algorithm alone.
    #[arg(long)]
    only: Option<Algorithm>,
    /// RMAT scale: 2^scale vertices before isolated ones are dropped, 16 edges each.
    #[arg(long, default_value_t = 22, value_parser = clap::value_parser!(u32).range(8..=26))]
    scale: u32,
    /// Latent dimensions to measure.
    #[arg(long, value_delimiter = ',', default_values_t = [32, 100])]
    dims: Vec<u32>,
    /// Write every trial and the summary to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Folder with the programs that `run` built; inputs are made there too.
    #[arg(long, env = "MEGAGRID_PEERS_WORK", hide = true)]
    work: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Algorithm {
    Pagerank,
    Mf,
}

/// The programs of one run, as `run` leaves them in the work folder.
struct Programs {
    work: PathBuf,
    megagrid: PathBuf,
    naive: PathBuf,
    /// The crate `graph`, built for any processor and for this one.
    graph: [(&'static str, PathBuf); 2],
    /// Python with PyPI libmf; absent where `run` found no Python.
    python: Option<PathBuf>,
    libmf_runner: PathBuf,
    /// The same LIBMF sources, compiled with AVX.
    libmf_avx: Option<PathBuf>,
}

impl Programs {
    fn find(work: PathBuf) -> Result<Self> {
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
            libmf_avx: there(work.join("libmf_avx.so")),
            work,
        })
    }
}

fn main() -> Result<()> {
    let mut options = Options::parse();
    if options.quick {
        (options.rounds, options.scale, options.dims) = (1, 14, vec![32]);
    }
    let programs = Programs::find(options.work.clone())?;
    let mut tables = Vec::new();
    if options.only != Some(Algorithm::Mf) {
        tables.push(pagerank::measure(&programs, &options)?);
    }
    if options.only != Some(Algorithm::Pagerank) {
        for &dims in &options.dims {
            tables.push(mf::measure(&programs, &options, dims)?);
        }
    }
    for table in &tables {
        println!("{table}");
    }
    if let Some(path) = &options.json {
        let tables: Vec<_> = tables.iter().map(summary::Table::to_json).collect();
        let record = json!({ "rounds": options.rounds, "machine": process::machine(), "tables": tables });
        std::fs::write(path, format!("{record:#}\n")).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

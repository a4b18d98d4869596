//! PageRank: time of an iteration over 20 fixed ones, and time to an L1 residual of 1e-6.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::inputs::{self, GraphInput};
use crate::process::{number, pinned, run_megagrid, run_peer};
use crate::summary::{MEGAGRID, Table};
use crate::{Options, Programs};

const THREADS: [u32; 2] = [1, 2];
const ITERATIONS: &str = "20";
const TOLERANCE: &str = "1e-6";
const PER_ITERATION: &str = "ms per iteration";
const TO_TOLERANCE: &str = "s to residual 1e-6";

/// Runs all rounds.
pub fn measure(programs: &Programs, options: &Options) -> Result<Table> {
    let input = inputs::graph(programs, options)?;
    let (graph, more) = match options.lattice {
        Some(side) => (format!("lattice of {side} by {side}"), format!(" --lattice {side}")),
        None => (format!("RMAT scale {}", options.scale), String::new()),
    };
    let title = format!("PageRank, {graph}: {} vertices, {} edges", input.num_vertices, input.num_edges);
    let mut table = Table::new(title, format!("benches/peers/run pagerank{more}"));
    let builds = best_builds(programs, &input, &mut table)?;
    let mut counts = Vec::new();
    for round in 1..=options.rounds {
        eprintln!("pagerank, round {round} of {}", options.rounds);
        let naive = naive(programs, &input)?;
        counts = vec![("naive".to_owned(), number(&naive, "/tolerance_iterations")?)];
        add(&mut table, "naive", 1, &naive)?;
        for (threads, build) in THREADS.into_iter().zip(&builds) {
            let ours = megagrid(programs, &input, threads, &mut table)?;
            counts.push((format!("megagrid, {threads} threads"), ours));
            let peer = run_peer(pinned(threads, build).arg(&input.binary))?;
            verify_graph(&peer, &naive, &input)?;
            counts.push((format!("graph, {threads} threads"), number(&peer, "/tolerance_iterations")?));
            add(&mut table, "graph 0.3.2", threads, &peer)?;
        }
    }
    let counts: Vec<String> = counts.iter().map(|(system, count)| format!("{system} {count}")).collect();
    table.note(format!("iterations to the residual: {}", counts.join("; ")));
    table.note(
        "graph drops the mass of dangling vertices and updates in place; megagrid and naive spread it (Jacobi),"
            .to_owned(),
    );
    table.note("which needs fewer iterations by itself: compare the time to the residual with that in mind".to_owned());
    Ok(table)
}

/// The faster build of the crate at each thread count, by one trial each.
fn best_builds(programs: &Programs, input: &GraphInput, table: &mut Table) -> Result<Vec<PathBuf>> {
    let mut best = Vec::new();
    for threads in THREADS {
        let mut trials = Vec::new();
        for (name, build) in &programs.graph {
            let trial = run_peer(pinned(threads, build).arg(&input.binary))?;
            trials.push((number(&trial, "/ms_per_iteration")?, *name, build.clone()));
        }
        trials.sort_by(|a, b| a.0.total_cmp(&b.0));
        let ((fast, name, build), (slow, other, _)) = (&trials[0], &trials[1]);
        table.note(format!("graph, {threads} threads: {name} build ({fast:.1} ms) kept over {other} ({slow:.1} ms)"));
        best.push(build.clone());
    }
    Ok(best)
}

fn naive(programs: &Programs, input: &GraphInput) -> Result<Value> {
    let trial = run_peer(pinned(1, &programs.naive).arg("pagerank").arg(&input.binary).args([ITERATIONS, TOLERANCE]))?;
    verify_shape(&trial, "/vertices", input)?;
    let sum = number(&trial, "/sum")?;
    ensure!((sum - 1.0).abs() < 1e-4, "naive: scores sum to {sum}, expected 1");
    Ok(trial)
}

fn add(table: &mut Table, system: &str, threads: u32, trial: &Value) -> Result<()> {
    table.add(system, threads, PER_ITERATION, Some(number(trial, "/ms_per_iteration")?));
    table.add(system, threads, TO_TOLERANCE, Some(number(trial, "/tolerance_seconds")?));
    Ok(())
}

/// Runs both measurements; returns the iterations to the tolerance.
fn megagrid(programs: &Programs, input: &GraphInput, threads: u32, table: &mut Table) -> Result<f64> {
    let record = programs.work.join("pagerank.json");
    let solve = |iterations: &str, tolerance: &str| {
        let mut command = pinned(threads, &programs.megagrid);
        command.arg("pagerank").arg(&input.mgrid).args(["-w", &threads.to_string()]);
        command.args(["--iterations", iterations, "--tolerance", tolerance]);
        let trial = run_megagrid(&mut command, &record)?;
        verify_shape(&trial, "/input/left", input)?;
        let sum = number(&trial, "/result/metrics/sum")?;
        ensure!((sum - 1.0).abs() < 1e-5, "megagrid: scores sum to {sum}, expected 1");
        let last = trial["iterations"].as_array().map_or(0, Vec::len).saturating_sub(1);
        Ok::<_, anyhow::Error>((number(&trial, &format!("/iterations/{last}/train_seconds"))?, trial))
    };
    let (seconds, trial) = solve(ITERATIONS, "0")?;
    table.add(MEGAGRID, threads, PER_ITERATION, Some(seconds * 1e3 / number(&trial, "/result/iterations")?));
    let (seconds, trial) = solve("500", TOLERANCE)?;
    let residual = number(&trial, "/result/metrics/residual")?;
    ensure!(residual <= 1e-6, "megagrid: residual {residual:e}, expected at most 1e-6");
    table.add(MEGAGRID, threads, TO_TOLERANCE, Some(seconds));
    number(&trial, "/result/iterations")
}

fn verify_shape(trial: &Value, vertices: &str, input: &GraphInput) -> Result<()> {
    let edges = if vertices == "/vertices" { "/edges" } else { "/input/edges" };
    let found = (number(trial, vertices)? as u64, number(trial, edges)? as u64);
    let expected = (input.num_vertices, input.num_edges);
    ensure!(found == expected, "(vertices, edges) are {found:?}, expected {expected:?}");
    Ok(())
}

/// With uniform restart, dropping the dangling mass only scales the scores: divided by their sum
/// they are those of the problem with the mass spread.
fn verify_graph(peer: &Value, naive: &Value, input: &GraphInput) -> Result<()> {
    verify_shape(peer, "/vertices", input)?;
    let found = number(peer, "/top_score")? / number(peer, "/sum")?;
    let expected = number(naive, "/top_score")?;
    ensure!((found / expected - 1.0).abs() < 1e-3, "graph: top score {found}, expected {expected}");
    Ok(())
}

//! LazyTable, Table 2: bytes of a client in an iteration of topic modelling, at an equal bound on staleness. Exact counters.

use std::ops::Range;

use megagrid_algorithms::lda::Config;

use crate::job::{self, Shape, Topics};
use megagrid_benches::findings::Findings;

/// Iterations of a clock and slack, each with a bound of 3 iterations.
const SETTINGS: [(u64, u64); 3] = [(4, 0), (2, 1), (1, 3)];
/// Iterations, and those that are counted: while most words' topics still change. Later, how many do differs from chain to chain
/// (from the 13th to the 28th a worker sends 2.3 and 1.6 times as much under essp).
const ITERATIONS: u64 = 16;
const COUNTED: Range<usize> = 4..12;

pub fn run(findings: &mut Findings) {
    let edges = job::corpus(3000, 1000, 10);
    println!("  {}", Shape::clocks(1.0).describe());
    let mut lines = Vec::new();
    for (name, lazy) in [("ssp", true), ("essp", false)] {
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for (work, slack) in SETTINGS {
            let config = Config { alpha: 0.1, clocks: 1, passes_per_clock: work, annealing: 0, ..Config::new(20) };
            let shape = Shape { slack, lazy, passes: work, look_every: ITERATIONS, ..Shape::clocks(work as f64) };
            let ran = Topics { config, iterations: ITERATIONS }.run(&edges, &shape);
            let (to, from) = ran.bytes(shape.workers, COUNTED);
            println!("    {name:<5}{{{work},{slack}}}  {:.1} kB sent, {:.1} kB received", 1e-3 * to, 1e-3 * from);
            sent.push((work as f64, 1e-6 * to));
            received.push((work as f64, 1e-6 * from));
        }
        // Under ssp the plan sends rows when they would be too old, every work · (slack + 1) units, so that a bound costs the
        // same however it is made up: the paper's clients ask anew.
        let held = [("sends", &sent, 1.6), ("receives", &received, 1.4)];
        for (what, points, least) in held.into_iter().filter(|(what, ..)| !lazy || *what == "sends") {
            let ratios: Vec<f64> = points.windows(2).map(|pair| pair[1].1 / pair[0].1).collect();
            let holds = ratios.iter().all(|ratio| (least..=2.0 + 1e-3).contains(ratio));
            let shown: Vec<_> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
            let claim = format!("{name}: a worker {what} {least} to 2 times as much when work per clock is halved");
            findings.check(format!("{claim}: {}", shown.join(", then ")), holds);
        }
        lines.push((format!("{name}, sent"), sent));
        lines.push((format!("{name}, received"), received));
    }
    println!(
        "    By a worker in an iteration. Rows come back when they would be too old (ssp) or after every clock (essp)."
    );
    findings.cannot(
        "what ssp receives: rows come back when the bound asks for them, so that equal bounds receive the same",
    );
    let axes = ["iterations of a clock", "MB of a worker in an iteration"];
    findings.plot("row-11-bytes", "Bytes at an equal bound (LazyTable, Table 2)", axes, lines);
}

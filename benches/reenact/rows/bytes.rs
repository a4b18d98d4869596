//! LazyTable, Table 2: bytes of a client in an iteration of topic modelling, at an equal bound on staleness. Exact counters.

use megagrid_algorithms::lda::Config;

use crate::Findings;
use crate::job::{Shape, Topics};
use crate::plot::Plot;

/// Units of a pass.
const UNITS: u64 = 64;
/// Work per clock and slack, each with a bound of 3 units.
const SETTINGS: [(u64, u64); 3] = [(4, 0), (2, 1), (1, 3)];

pub fn run(findings: &mut Findings) {
    let edges = super::work::documents();
    println!("  {}; ssp; a unit is 1/{UNITS} of a pass", Shape::clocks(1.0).describe());
    let mut points = Vec::new();
    for (work, slack) in SETTINGS {
        let config = Config { alpha: 0.1, clocks: UNITS / work, annealing: 0, ..Config::new(20) };
        let shape = Shape { slack, ..Shape::clocks(1.0) };
        let bytes = Topics { config, iterations: 3 }.run(&edges, &shape).bytes() as f64 / shape.workers as f64;
        println!("    {{{work},{slack}}}  {:.2} MB sent, and as much received, by a worker in a pass", 1e-6 * bytes);
        points.push((work as f64, 1e-6 * bytes));
    }
    for pair in points.windows(2) {
        let ratio = pair[1].1 / pair[0].1;
        let what = format!("halving work per clock from {} sends 1.6 to 2 times as much: {ratio:.2}", pair[0].0);
        findings.check(what, (1.6..=2.0).contains(&ratio));
    }
    let title = "Bytes at an equal bound (LazyTable, Table 2)".to_owned();
    let lines = vec![("LDA".to_owned(), points)];
    findings.plot(
        "row-11-bytes",
        Plot { title, x_name: "units of work per clock", y_name: "MB sent by a worker in a pass", log: false, lines },
    );
}

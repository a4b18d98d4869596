//! LazyTable, Figure 6: each of 8 machines in turn sleeps; how much longer an iteration takes, and what slack hides.
//!
//! An iteration takes every worker 4.2 s, as in the paper; a clock has one or two. Costs are given, not calibrated: what is looked at
//! is waiting. Factorization in place, and by batch gradients, whose sums slack lets be applied in parts.

use megagrid_engine::Injection;
use megagrid_partition::GroupedEdges;

use crate::job::{Factorize, Shape, ratings};
use megagrid_benches::findings::Findings;

const SECONDS: f64 = 4.2;
const ITERATIONS: usize = 240;
/// Work per clock and slack.
const SETTINGS: [(u64, u64); 5] = [(1, 0), (2, 0), (1, 1), (1, 3), (2, 1)];
const DELAYS: [f64; 8] = [0.0, 2.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0];

pub fn run(findings: &mut Findings) {
    let edges = ratings(600, 6, 1200);
    println!("  {}", Shape::clocks(SECONDS).describe());
    let time = |(work, slack): (u64, u64), delay: f64| {
        let inject = (delay > 0.0).then_some(Injection::Delay { seconds: delay, turns: work });
        let shape = Shape { slack, passes: work, inject, ..Shape::clocks(SECONDS * work as f64) };
        Factorize::unmeasured(&edges, ITERATIONS, &shape).seconds(ITERATIONS) / ITERATIONS as f64
    };
    let ideal = |delay: f64| SECONDS + delay / 8.0;
    println!("  seconds of an iteration by delay: {{work per clock, slack}}");
    let mut curves = Vec::new();
    for setting in SETTINGS {
        let name = format!("{{{},{}}}", setting.0, setting.1);
        let points: Vec<(f64, f64)> = DELAYS.iter().map(|&delay| (delay, time(setting, delay))).collect();
        let shown: Vec<_> = points.iter().map(|(delay, seconds)| format!("{delay}: {seconds:.2}")).collect();
        println!("    {name}  {}", shown.join("  "));
        curves.push((name, points));
    }
    let (bulk, stale) = (&curves[1].1, &curves[2].1);
    let slope = slope(bulk);
    let what = "{2,0} (A-BSP) grows by 0.5 ± 0.03 of the delay";
    findings.check(format!("{what}: {slope:.3}"), (slope - 0.5).abs() <= 0.03);
    let hidden = stale.iter().filter(|(delay, _)| *delay <= 1.4 * SECONDS);
    let worst = hidden.map(|(delay, seconds)| (seconds / ideal(*delay) - 1.0).abs()).fold(0.0, f64::max);
    let what = "{1,1} (SSP) is within 4 % of the ideal up to a delay of 1.4 iterations";
    findings.check(format!("{what}: {:.1} %", 100.0 * worst), worst <= 0.04);
    let gap = bulk[6].1 - stale[6].1;
    let what = "beyond, {1,1} stays 1.5 to 2.5 s below {2,0}";
    findings.check(format!("{what}: {gap:.2} s at 12 s"), (1.5..=2.5).contains(&gap));
    by_gradients(findings, &edges);
    curves.push(("ideal".to_owned(), DELAYS.iter().map(|&delay| (delay, ideal(delay))).collect()));
    let axes = ["delay, s", "seconds of an iteration"];
    findings.plot("row-8-delays", "Delayed workers (LazyTable, Figure 6)", axes, curves);
}

/// The same by batch gradients: within the slack a delay is felt by the worker that is delayed, without slack by all.
fn by_gradients(findings: &mut Findings, edges: &GroupedEdges<f32>) {
    let time = |slack: u64, delay: f64| {
        let inject = (delay > 0.0).then_some(Injection::Delay { seconds: delay, turns: 1 });
        let shape = Shape { slack, inject, ..Shape::clocks(SECONDS) };
        Factorize::by_gradients(edges, ITERATIONS, &shape).seconds(ITERATIONS) / ITERATIONS as f64
    };
    let [bulk, stale] = [0, 3].map(|slack| {
        let points: Vec<(f64, f64)> = DELAYS.iter().map(|&delay| (delay, time(slack, delay))).collect();
        let shown: Vec<_> = points.iter().map(|(delay, seconds)| format!("{delay}: {seconds:.2}")).collect();
        println!("    by batch gradients {{1,{slack}}}  {}", shown.join("  "));
        slope(&points)
    });
    let holds = (bulk - 1.0).abs() <= 0.03 && (stale - 0.125).abs() <= 0.03;
    findings
        .check(format!("by gradients: {{1,0}} grows by the delay, {{1,3}} by 1/8 of it: {bulk:.3}, {stale:.3}"), holds);
}

/// Returns the slope of the line through points, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0 / n, sum.1 + one.1 / n));
    let (xy, xx) =
        points.iter().fold((0.0, 0.0), |sum, one| (sum.0 + (one.0 - x) * (one.1 - y), sum.1 + (one.0 - x).powi(2)));
    xy / xx
}

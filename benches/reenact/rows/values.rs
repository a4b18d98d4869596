//! ESSP, section on VAP: a bound on values under way asks for as much communication as strong consistency, for waiting until all have the
//! changes of a clock, and how long depends on the bound, which has to fit the problem.

use megagrid_algorithms::mf;

use crate::job::{Factorize, Ran, Shape, ratings};
use megagrid_benches::findings::Findings;

const RATINGS: usize = 50_000;
const PASSES: usize = 8;
const CLOCKS: u64 = 20;
const CLOCK: f64 = 0.1;
/// Half a clock from one worker to another, so that changes are under way for a while.
const LATENCY: f64 = 0.05;
const SLACK: u64 = 3;
const BOUNDS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 100.0];

/// Seconds, seconds of waiting and megabytes of a pass, and the loss at the end.
struct Cost {
    seconds: f64,
    waits: f64,
    sent: f64,
    loss: f64,
}

impl Cost {
    fn of(name: &str, ran: &Ran) -> Self {
        let mean = |sum: f64| sum / ran.reports.len() as f64;
        let cost = Self {
            seconds: mean(ran.seconds(ran.reports.len())),
            waits: mean(ran.reports.iter().map(|report| report.wait_seconds).sum()),
            sent: mean(ran.reports.iter().map(|report| report.sent.total().bytes as f64 / 1e6).sum()),
            loss: ran.objectives.last().copied().unwrap_or(f64::NAN),
        };
        let Self { seconds, waits, sent, loss } = cost;
        println!("    {name:<14} {seconds:.2} s a pass, {waits:.2} s waiting, {sent:.1} MB; squared error {loss:.0}");
        cost
    }
}

pub fn run(findings: &mut Findings) {
    let edges = ratings(1000, 500, RATINGS);
    let config = mf::Config {
        dims: 20,
        lambda: 0.1,
        optimizer: mf::Optimizer::Sgd,
        step: 0.01,
        decay: 0.0,
        ..mf::Config::default()
    };
    let job = Factorize { config, batch: RATINGS as u64 / CLOCKS, iterations: PASSES as u64 };
    let mut bulk = Shape::clocks(CLOCK);
    (bulk.model.jitter, bulk.model.link.latency_seconds) = (0.1, LATENCY);
    println!("  {}; MF, {CLOCKS} clocks a pass", bulk.describe());
    let stale = |lazy| Shape { slack: SLACK, lazy, ..bulk.clone() };
    let bsp = Cost::of("bsp", &job.run(&edges, &bulk));
    let ssp = Cost::of("ssp, slack 3", &job.run(&edges, &stale(true)));
    let essp = Cost::of("essp, slack 3", &job.run(&edges, &stale(false)));
    let vap = BOUNDS.map(|bound| {
        let shape = Shape { first_bound: Some(bound), ..bulk.clone() };
        Cost::of(&format!("vap, v0 {bound}"), &job.run(&edges, &shape))
    });
    let [tight, .., loose] = &vap;
    let what = "a tight bound sends as much as strong consistency, or more";
    findings.check(format!("{what}: {:.1} against {:.1} MB a pass", tight.sent, bsp.sent), tight.sent >= bsp.sent);
    let what = "more than SSP and ESSP";
    let holds = tight.sent > ssp.sent && tight.sent > essp.sent;
    findings.check(format!("{what}: {:.1} against {:.1} and {:.1} MB", tight.sent, ssp.sent, essp.sent), holds);
    let waits = 2.0 * LATENCY * CLOCKS as f64;
    let what = format!("and waits in each clock until all have its changes, {waits:.1} s a pass or more");
    findings.check(format!("{what}: {:.2} s", tight.waits), tight.waits >= 0.95 * waits);
    let what = "ESSP waits less than half of that";
    findings.check(format!("{what}: {:.2} s", essp.waits), essp.waits < 0.5 * waits);
    let what = "throughput falls with the bound";
    let falls = vap.windows(2).all(|two| two[0].seconds >= 0.999 * two[1].seconds) && tight.seconds > loose.seconds;
    findings.check(format!("{what}: {:.2} to {:.2} s", loose.seconds, tight.seconds), falls);
    let points = BOUNDS.iter().zip(&vap).map(|(bound, cost)| (*bound, cost.seconds)).collect();
    let level = |cost: &Cost| BOUNDS.iter().map(|bound| (*bound, cost.seconds)).collect();
    let lines = vec![("VAP".to_owned(), points), ("BSP".to_owned(), level(&bsp)), ("ESSP".to_owned(), level(&essp))];
    findings.log_plot("row-25-values", "A bound on values (ESSP, VAP)", ["v0", "seconds of a pass"], lines);
}

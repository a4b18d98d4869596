//! TuX², Figures 10 to 12: what slack and the size of mini-batches do to matrix factorization and to block proximal gradient.

use megagrid_algorithms::mf;
use megagrid_partition::GroupedEdges;

use crate::findings::Findings;
use crate::job::{self, Factorize, Ran, Select, Shape};
use megagrid_benches::plot::Plot;

const RATINGS: usize = 100_000;
const SLACKS: [u64; 6] = [0, 1, 2, 4, 8, 16];

pub fn ratings() -> GroupedEdges<f32> {
    job::ratings(2000, 400, RATINGS)
}

pub fn samples() -> GroupedEdges<f32> {
    job::samples(4000, 1000)
}

/// Factorization in so many clocks a pass.
pub fn factorization(clocks: usize) -> Factorize {
    let config = mf::Config { dims: 16, adaptive: false, step: 0.02, decay: 0.0, ..mf::Config::default() };
    Factorize { config, batch: (RATINGS / clocks) as u64, iterations: 12 }
}

/// Selection of features in blocks of so many thousand values.
pub fn selection(thousands: u64) -> Select {
    Select { l1: 4.0, batch: 1000 * thousands, iterations: 20 }
}

fn less(objective: f64, target: f64) -> bool {
    objective <= target
}

/// The slowest and least stable workers wait for: some jitter, without which nobody waits.
fn shape(slack: u64) -> Shape {
    let mut shape = Shape { slack, lazy: false, ..Shape::calibrated() };
    shape.model.jitter = 0.3;
    shape
}

fn curve(ran: &Ran) -> Vec<(f64, f64)> {
    ran.objectives.iter().enumerate().map(|(at, &objective)| (ran.seconds(at + 1), objective)).collect()
}

fn shown(seconds: Option<(f64, f64)>) -> String {
    seconds.map_or("never".to_owned(), |(seconds, iterations)| format!("{:.0} ms ({iterations:.1})", 1e3 * seconds))
}

/// By how much a time has to be less for it to count.
const NOTABLY: f64 = 0.98;

/// Tells whether some time is notably less than the first and the last.
fn is_interior(times: &[Option<(f64, f64)>]) -> bool {
    let seconds = |time: &Option<(f64, f64)>| time.map_or(f64::INFINITY, |time| time.0);
    let [first, between @ .., last] = times else { return false };
    let best = between.iter().map(seconds).fold(f64::INFINITY, f64::min);
    best < NOTABLY * seconds(first) && best < NOTABLY * seconds(last)
}

pub fn run(findings: &mut Findings) {
    println!("  {}; essp", shape(0).describe());
    let edges = ratings();
    let swept: Vec<Ran> = SLACKS.iter().map(|&slack| factorization(64).run(&edges, &shape(slack))).collect();
    let target = 1.02 * swept[0].objectives[11];
    let times: Vec<_> = swept.iter().map(|ran| ran.reaches(target, less)).collect();
    println!("  MF, 64 clocks a pass, virtual time (passes) to a squared error of {target:.0} by slack");
    SLACKS.iter().zip(&times).for_each(|(slack, time)| println!("    {slack:>2}  {}", shown(*time)));
    let with_slack = times[1..].iter().flatten().map(|time| time.0).fold(f64::INFINITY, f64::min);
    findings.check("MF: some slack reaches it sooner than none", times[0].is_some_and(|none| with_slack < none.0));
    let lines = SLACKS.iter().zip(&swept).map(|(slack, ran)| (format!("slack {slack}"), curve(ran))).collect();
    let (x_name, title) = ("virtual seconds", "MF by slack (TuX², Figure 10)".to_owned());
    findings.plot("row-3-mf-slack", Plot { title, x_name, y_name: "squared error", log: true, lines });

    println!("  MF, slack 4, squared error after 12 passes by the ratings of a mini-batch");
    let mut sizes = Vec::new();
    for clocks in [200, 100, 50, 20, 10] {
        let ran = factorization(clocks).run(&edges, &shape(4));
        println!(
            "    {:>6}  {:.0} in {:.0} ms",
            RATINGS / clocks,
            ran.objectives.last().unwrap_or(&f64::NAN),
            1e3 * ran.seconds(ran.reports.len())
        );
        sizes.push((RATINGS / clocks, ran));
    }
    let end = |at: usize| sizes[at].1.objectives.last().copied().filter(|end| end.is_finite()).unwrap_or(f64::INFINITY);
    findings.check("MF: mini-batches of 10,000 ratings end worse than of 1,000", end(4) > end(1));
    let lines = sizes.iter().map(|(size, ran)| (format!("{size} ratings"), curve(ran))).collect();
    let title = "MF by mini-batch, slack 4 (TuX², Figure 12)".to_owned();
    findings.plot("row-3-mf-batch", Plot { title, x_name, y_name: "squared error", log: true, lines });

    let edges = samples();
    let swept: Vec<Ran> = SLACKS.iter().map(|&slack| selection(1).run(&edges, &shape(slack))).collect();
    let target = swept[0].objectives[19] * 1.001;
    let times: Vec<_> = swept.iter().map(|ran| ran.reaches(target, less)).collect();
    println!("  BlockPG, blocks of 1,000 values, virtual time (iterations) to an objective of {target:.2} by slack");
    SLACKS.iter().zip(&times).for_each(|(slack, time)| println!("    {slack:>2}  {}", shown(*time)));
    findings.check("BlockPG: neither no slack nor the most is best", is_interior(&times));
    let lines = SLACKS.iter().zip(&swept).map(|(slack, ran)| (format!("slack {slack}"), curve(ran))).collect();
    let title = "BlockPG by slack (TuX², Figure 11)".to_owned();
    findings.plot("row-3-blockpg-slack", Plot { title, x_name, y_name: "objective", log: true, lines });

    println!("  BlockPG, slack 4, virtual time (iterations) to the same by the values of a block");
    let sizes = [1, 2, 4, 8, 16];
    let swept: Vec<Ran> = sizes.iter().map(|&thousands| selection(thousands).run(&edges, &shape(4))).collect();
    let times: Vec<_> = swept.iter().map(|ran| ran.reaches(target, less)).collect();
    sizes.iter().zip(&times).for_each(|(size, time)| println!("    {:>6}  {}", 1000 * size, shown(*time)));
    let largest = times[4].map_or(f64::INFINITY, |time| time.1);
    findings.check("BlockPG: the largest blocks take more iterations", times[0].is_some_and(|least| least.1 < largest));
    let lines = sizes.iter().zip(&swept).map(|(size, ran)| (format!("{size},000 values"), curve(ran))).collect();
    let title = "BlockPG by block, slack 4 (TuX², Figure 12)".to_owned();
    findings.plot("row-3-blockpg-block", Plot { title, x_name, y_name: "objective", log: true, lines });
}

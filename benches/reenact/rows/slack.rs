//! TuX², Figures 10 to 12: what slack and the size of mini-batches do to matrix factorization and to block proximal gradient.

use megagrid_algorithms::mf;
use megagrid_partition::GroupedEdges;

use crate::job::{self, Factorize, Ran, Select, Shape};
use megagrid_benches::findings::Findings;

const RATINGS: usize = 100_000;
const SLACKS: [u64; 6] = [0, 1, 2, 4, 8, 16];

pub fn ratings() -> GroupedEdges<f32> {
    job::ratings(2000, 400, RATINGS)
}

pub fn samples() -> GroupedEdges<f32> {
    job::samples(4000, 1000)
}

/// Factorization in `clocks` clocks a pass.
pub fn factorization(clocks: usize) -> Factorize {
    let config =
        mf::Config { dims: 16, optimizer: mf::Optimizer::Sgd, step: 0.02, decay: 0.0, ..mf::Config::default() };
    Factorize { config, batch: (RATINGS / clocks) as u64, iterations: 12 }
}

/// Selection of features in blocks of some thousand values.
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

/// Runs by the names of their settings.
struct Sweep(Vec<(String, Ran)>);

impl Sweep {
    fn objective(&self, at: usize) -> f64 {
        self.0[at].1.objectives.last().copied().filter(|end| end.is_finite()).unwrap_or(f64::INFINITY)
    }

    /// Shows virtual seconds and iterations to a target, and returns them.
    fn times(&self, target: f64) -> Vec<Option<(f64, f64)>> {
        let times: Vec<_> = self.0.iter().map(|(_, ran)| ran.reaches(target, less)).collect();
        self.0.iter().zip(&times).for_each(|((name, _), time)| println!("    {name:>12}  {}", shown(*time)));
        times
    }

    fn plot(self, findings: &mut Findings, name: &'static str, title: &str, y_name: &'static str) {
        let lines = self.0.into_iter().map(|(name, ran)| (name, curve(&ran))).collect();
        findings.log_plot(name, title, ["virtual seconds", y_name], lines);
    }
}

pub fn run(findings: &mut Findings) {
    println!("  {}; essp", shape(0).describe());
    let edges = ratings();
    let by_slack = |run: &dyn Fn(&Shape) -> Ran| {
        Sweep(SLACKS.iter().map(|&slack| (format!("slack {slack}"), run(&shape(slack)))).collect())
    };
    let swept = by_slack(&|shape| factorization(64).run(&edges, shape));
    let target = 1.02 * swept.0[0].1.objectives[11];
    println!("  MF, 64 clocks a pass, virtual time (passes) to a squared error of {target:.0} by slack");
    let times = swept.times(target);
    let with_slack = times[1..].iter().flatten().map(|time| time.0).fold(f64::INFINITY, f64::min);
    findings.check("MF: some slack reaches it sooner than none", times[0].is_some_and(|none| with_slack < none.0));
    let most = times.last().copied().flatten();
    let holds = times[0].zip(most).is_some_and(|(none, most)| most.0 < none.0);
    findings.check("MF: the most slack does so too", holds);
    swept.plot(findings, "row-3-mf-slack", "MF by slack (TuX², Figure 10)", "squared error");

    println!("  MF, slack 4, squared error after 12 passes by the ratings of a mini-batch");
    let of_batch = |clocks: usize| {
        let (ran, size) = (factorization(clocks).run(&edges, &shape(4)), RATINGS / clocks);
        let (last, ms) = (ran.objectives.last().unwrap_or(&f64::NAN), 1e3 * ran.seconds(ran.reports.len()));
        println!("    {size:>6}  {last:.0} in {ms:.0} ms");
        (format!("{size} ratings"), ran)
    };
    let swept = Sweep([200, 100, 50, 20, 10].map(of_batch).into());
    let worse = swept.objective(4) > swept.objective(1);
    findings.check("MF: mini-batches of 10,000 ratings end worse than of 1,000", worse);
    swept.plot(findings, "row-3-mf-batch", "MF by mini-batch, slack 4 (TuX², Figure 12)", "squared error");

    let edges = samples();
    let swept = by_slack(&|shape| selection(1).run(&edges, shape));
    let target = swept.0[0].1.objectives[19] * 1.001;
    println!("  BlockPG, blocks of 1,000 values, virtual time (iterations) to an objective of {target:.2} by slack");
    findings.check("BlockPG: neither no slack nor the most is best", is_interior(&swept.times(target)));
    swept.plot(findings, "row-3-blockpg-slack", "BlockPG by slack (TuX², Figure 11)", "objective");

    println!("  BlockPG, slack 4, virtual time (iterations) to the same by the values of a block");
    let of_block = |thousands| (format!("{thousands},000 values"), selection(thousands).run(&edges, &shape(4)));
    let swept = Sweep([1, 2, 4, 8, 16].map(of_block).into());
    let times = swept.times(target);
    let largest = times[4].map_or(f64::INFINITY, |time| time.1);
    findings.check("BlockPG: the largest blocks take more iterations", times[0].is_some_and(|least| least.1 < largest));
    swept.plot(findings, "row-3-blockpg-block", "BlockPG by block, slack 4 (TuX², Figure 12)", "objective");
}

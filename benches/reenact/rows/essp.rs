//! ESSP, Figure 3: factorization and topic modelling under SSP and ESSP, by slack and mini-batch.

use megagrid_algorithms::lda::Config;
use megagrid_algorithms::mf;

use crate::Findings;
use crate::job::{Factorize, Ran, Shape, Topics, ratings};
use megagrid_benches::plot::Plot;

const SLACKS: [u64; 3] = [3, 10, 20];
const SEEDS: u64 = 5;
const RATINGS: usize = 50_000;
const PASSES: u64 = 8;

fn shape(slack: u64, lazy: bool, seed: u64) -> Shape {
    let mut shape = Shape { slack, lazy, seed, ..Shape::calibrated() };
    (shape.model.jitter, shape.model.seed) = (0.1, seed);
    shape
}

fn job(clocks: usize, step: f32) -> Factorize {
    let config = mf::Config { dims: 20, lambda: 0.1, adaptive: false, step, decay: 0.0, ..mf::Config::default() };
    Factorize { config, batch: (RATINGS / clocks) as u64, iterations: PASSES }
}

/// Returns the last loss; one that is no number, or above the first, has diverged.
fn end(ran: &Ran) -> f64 {
    let end = *ran.objectives.last().unwrap_or(&f64::NAN);
    if end.is_finite() && end <= 1.5 * ran.objectives[0] { end } else { f64::INFINITY }
}

pub fn run(findings: &mut Findings) {
    println!("  {}", shape(0, true, 1).describe());
    let edges = ratings(1000, 500, RATINGS);
    let mut lines = Vec::new();
    let (mut holds, mut pairs, mut only_ssp, mut waits) = (0, 0, 0, (0.0, 0.0));
    for (clocks, part) in [(100, "1 %"), (10, "10 %")] {
        // The largest step that converges with the least slack: without any, shards travel, no two workers ever change a
        // row at a time, and steps converge that do with no parameter server.
        let steps = [0.2, 0.1, 0.07, 0.05, 0.035, 0.025, 0.017, 0.0125, 0.009, 0.006];
        let converges = |step: &f32| end(&job(clocks, *step).run(&edges, &shape(1, false, 1))).is_finite();
        let step = steps.into_iter().find(converges).unwrap_or(0.006);
        println!(
            "  MF, {part} of a pass in a clock, step {step} (the largest that converges under ESSP with slack 1), squared error after {PASSES} passes, {SEEDS} seeds"
        );
        for slack in SLACKS {
            let ran = |lazy| {
                (1..=SEEDS).map(|seed| job(clocks, step).run(&edges, &shape(slack, lazy, seed))).collect::<Vec<_>>()
            };
            let (ssp, essp) = (ran(true), ran(false));
            let ends = |all: &[Ran]| all.iter().map(end).collect::<Vec<f64>>();
            let show = |ends: &[f64]| {
                ends.iter()
                    .map(|end| if end.is_finite() { format!("{end:>7.0}") } else { "  diverges".to_owned() })
                    .collect::<String>()
            };
            println!("    slack {slack:>2}  SSP{}   ESSP{}", show(&ends(&ssp)), show(&ends(&essp)));
            let both = ends(&ssp).into_iter().zip(ends(&essp));
            for (ssp, essp) in both.filter(|(ssp, essp)| ssp.is_finite() || essp.is_finite()) {
                pairs += 1;
                holds += usize::from(essp <= ssp);
                only_ssp += usize::from(!ssp.is_finite());
            }
            let wait =
                |all: &[Ran]| all.iter().flat_map(|ran| &ran.reports).map(|report| report.wait_seconds).sum::<f64>();
            waits = (waits.0 + wait(&ssp), waits.1 + wait(&essp));
            for (name, all) in [("SSP", &ssp), ("ESSP", &essp)] {
                let points = all[0].objectives.iter().enumerate().map(|(at, &loss)| (at as f64 + 1.0, loss)).collect();
                if clocks == 100 {
                    lines.push((format!("{name}, slack {slack}"), points));
                }
            }
        }
    }
    let of = format!("of {pairs} pairs of which one converges");
    findings.check(format!("MF: ESSP ends at most at SSP's loss, {of}: {holds}"), pairs > 0 && holds == pairs);
    findings.check(format!("MF: SSP diverges where ESSP does not, {of}: {only_ssp}"), only_ssp > 0);
    findings.check(format!("MF: ESSP waits less: {:.2} against {:.2} s", waits.1, waits.0), waits.1 < waits.0);
    let title = "MF, 1 % of a pass in a clock (ESSP, Figure 3)".to_owned();
    findings.plot("row-13-mf", Plot { title, x_name: "passes", y_name: "squared error", log: true, lines });

    println!("  LDA, half a pass in a clock, log likelihood after 20 passes, mean of {SEEDS} seeds");
    let documents = super::work::documents();
    let config = Config { alpha: 0.1, clocks: 2, annealing: 0, ..Config::new(20) };
    let mean = |slack, lazy| {
        let ends = (1..=SEEDS)
            .map(|seed| end_of_topics(&Topics { config, iterations: 20 }.run(&documents, &shape(slack, lazy, seed))));
        ends.sum::<f64>() / SEEDS as f64
    };
    let mut below = 0;
    for slack in SLACKS {
        let (ssp, essp) = (mean(slack, true), mean(slack, false));
        println!("    slack {slack:>2}  SSP {ssp:.0}   ESSP {essp:.0}");
        below += usize::from(essp >= ssp);
    }
    findings.check(
        format!("LDA: ESSP ends at least at SSP's likelihood, of {} slacks: {below}", SLACKS.len()),
        below == SLACKS.len(),
    );
    findings.cannot(
        "LDA by slack above 1: a pass has two clocks and slack acts within a pass, so that more slack changes nothing",
    );
}

fn end_of_topics(ran: &Ran) -> f64 {
    *ran.objectives.last().unwrap_or(&f64::NAN)
}

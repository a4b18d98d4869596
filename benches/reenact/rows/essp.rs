//! ESSP, Figure 3: factorization and topic modelling under SSP and ESSP, by slack and mini-batch.

use megagrid_algorithms::lda::Config;
use megagrid_algorithms::mf;

use crate::job::{Factorize, Ran, Shape, Topics, ratings};
use megagrid_benches::findings::Findings;

const SLACKS: [u64; 3] = [3, 10, 20];
const SEEDS: u64 = 5;
const RATINGS: usize = 50_000;
const PASSES: u64 = 8;
/// ESSP converges faster than SSP or about as fast (section Experiments).
const COMPARABLE: f64 = 1.01;
/// Clocks of a pass of topic modelling: slack acts within a pass.
const TOPIC_CLOCKS: u64 = 32;

/// Seconds of a clock: long against what it sends, as in the paper. Where sending takes as long, what ESSP sends in addition
/// makes its rows older than SSP's.
const CLOCK: f64 = 0.1;

fn shape(slack: u64, lazy: bool, seed: u64) -> Shape {
    let mut shape = Shape { slack, lazy, seed, ..Shape::clocks(CLOCK) };
    (shape.model.jitter, shape.model.seed) = (0.05, seed);
    shape
}

fn job(clocks: usize, step: f32) -> Factorize {
    let config =
        mf::Config { dims: 20, lambda: 0.1, optimizer: mf::Optimizer::Sgd, step, decay: 0.0, ..mf::Config::default() };
    Factorize { config, batch: (RATINGS / clocks) as u64, iterations: PASSES }
}

/// Returns the last loss; one that is no number, or above the first, has diverged.
fn end(ran: &Ran) -> f64 {
    let end = *ran.objectives.last().unwrap_or(&f64::NAN);
    if end.is_finite() && end <= 1.5 * ran.objectives[0] { end } else { f64::INFINITY }
}

/// Returns the mean seconds of waiting in a pass; what diverged has fewer.
fn waited(all: &[Ran]) -> f64 {
    let passes = all.iter().flat_map(|ran| &ran.reports);
    passes.clone().map(|report| report.wait_seconds).sum::<f64>() / passes.count() as f64
}

pub fn run(findings: &mut Findings) {
    println!("  {}", shape(0, true, 1).describe());
    let edges = ratings(1000, 500, RATINGS);
    let mut lines = Vec::new();
    let (mut holds, mut settings, mut only_ssp, mut waits) = (0, 0, 0, (0.0, 0.0));
    for (clocks, part) in [(100, "1 %"), (10, "10 %")] {
        // The largest step that converges with the least slack: without any, shards travel, no two workers ever change a
        // row at a time, and steps converge that do with no parameter server.
        let steps = [0.2, 0.1, 0.07, 0.05, 0.035, 0.025, 0.017, 0.0125, 0.009, 0.006];
        let converges = |step: &f32| {
            (1..=SEEDS).all(|seed| end(&job(clocks, *step).run(&edges, &shape(1, false, seed))).is_finite())
        };
        let largest = steps.into_iter().find(converges).unwrap_or(0.006);
        // At the edge the loss is chance.
        let step = 0.7 * largest;
        println!(
            "  MF, {part} of a pass in a clock, step {step:.4} (0.7 of the largest that converges under ESSP with slack 1), squared error after {PASSES} passes, {SEEDS} seeds"
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
            let mean = |all: &[Ran]| ends(all).iter().sum::<f64>() / SEEDS as f64;
            // What diverges is infinite.
            if mean(&essp).is_finite() || mean(&ssp).is_finite() {
                settings += 1;
                holds += usize::from(mean(&essp) <= COMPARABLE * mean(&ssp));
                only_ssp += usize::from(!mean(&ssp).is_finite());
            }
            waits = (waits.0 + waited(&ssp), waits.1 + waited(&essp));
            for (name, all) in [("SSP", &ssp), ("ESSP", &essp)] {
                let points = all[0].objectives.iter().enumerate().map(|(at, &loss)| (at as f64 + 1.0, loss)).collect();
                if clocks == 100 {
                    lines.push((format!("{name}, slack {slack}"), points));
                }
            }
        }
    }
    let of = format!("of {settings} settings in which one converges");
    let what = format!("MF: ESSP's mean loss is at most {COMPARABLE} of SSP's, {of}: {holds}");
    findings.check(what, settings > 0 && holds == settings);
    findings.check(format!("MF: SSP diverges where ESSP does not, {of}: {only_ssp}"), only_ssp > 0);
    findings.check(format!("MF: ESSP waits less: {:.2} against {:.2} s a pass", waits.1, waits.0), waits.1 < waits.0);
    let axes = ["passes", "squared error"];
    findings.log_plot("row-13-mf", "MF, 1 % of a pass in a clock (ESSP, Figure 3)", axes, lines);

    println!("  LDA, 1/{TOPIC_CLOCKS} of a pass in a clock, log likelihood after 20 passes, mean of {SEEDS} seeds");
    let documents = super::work::documents();
    let config = Config { alpha: 0.1, clocks: TOPIC_CLOCKS, annealing: 0, ..Config::new(20) };
    let run = |slack, lazy| {
        (1..=SEEDS).map(|seed| Topics { config, iterations: 20 }.run(&documents, &shape(slack, lazy, seed))).collect()
    };
    let mean = |all: &[Ran], of: fn(&Ran) -> f64| all.iter().map(of).sum::<f64>() / SEEDS as f64;
    let (mut worst, mut seconds) = (0.0f64, Vec::new());
    for slack in SLACKS {
        let (ssp, essp): (Vec<Ran>, Vec<Ran>) = (run(slack, true), run(slack, false));
        let likelihood = [mean(&ssp, end_of_topics), mean(&essp, end_of_topics)];
        let time = [mean(&ssp, |ran| ran.seconds(20)), mean(&essp, |ran| ran.seconds(20))];
        let ([of_ssp, of_essp], [ssp, essp]) = (likelihood, time);
        println!("    slack {slack:>2}  SSP {of_ssp:.0} in {ssp:.1} s   ESSP {of_essp:.0} in {essp:.1} s");
        worst = worst.max(1.0 - of_ssp / of_essp);
        seconds.push(time);
    }
    let what = "LDA: ESSP ends above SSP's likelihood or within 1 % of it";
    findings.check(format!("{what}: {:.2} % below at most", 100.0 * worst), worst <= 0.01);
    let gain = [0, 1].map(|at| seconds[0][at] / seconds[SLACKS.len() - 1][at]);
    let [ssp, essp] = gain;
    let what = format!("LDA: slack 20 in place of 3 helps SSP more: {ssp:.3} against {essp:.3} times faster");
    findings.check(what, ssp > essp);
    findings.cannot("LDA with half a pass in a clock, as in the paper: slack acts within a pass");
}

fn end_of_topics(ran: &Ran) -> f64 {
    *ran.objectives.last().unwrap_or(&f64::NAN)
}

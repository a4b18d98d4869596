//! LazyTable, Figure 7: in a tenth of all time slots a machine has half its processor; how much longer an iteration takes, by
//! the length of slots.

use megagrid_engine::Injection;

use crate::job::{Factorize, Shape, ratings};
use megagrid_benches::findings::Findings;

const SECONDS: f64 = 4.2;
const ITERATIONS: usize = 160;
/// What an iteration takes more where half the speed in a tenth of the time is shared by all, in percent.
const IDEAL: f64 = 5.0;
const WORKERS: usize = 32;
/// Work per clock and slack: BSP, and A-BSP and SSP of the same bound.
const SETTINGS: [(u64, u64, &str); 3] = [(1, 0, "BSP {1,0}"), (2, 0, "A-BSP {2,0}"), (1, 1, "SSP {1,1}")];
const SLOTS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

pub fn run(findings: &mut Findings) {
    let edges = ratings(600, 6, 1600);
    println!("  {}; disrupted with probability 0.1", Shape { workers: WORKERS, ..Shape::clocks(SECONDS) }.describe());
    let time = |(work, slack, _): (u64, u64, &str), slot: Option<f64>| {
        let inject = slot.map(|slot_seconds| Injection::Disrupt { probability: 0.1, slot_seconds });
        let shape = Shape { workers: WORKERS, slack, passes: work, inject, ..Shape::clocks(SECONDS * work as f64) };
        Factorize::unmeasured(&edges, ITERATIONS, &shape).seconds(ITERATIONS) / ITERATIONS as f64
    };
    println!("  increase of an iteration by the length of slots; ideal 5 %");
    let mut curves = Vec::new();
    for setting in SETTINGS {
        let calm = time(setting, None);
        let points: Vec<_> =
            SLOTS.iter().map(|&slot| (slot, 100.0 * (time(setting, Some(slot)) / calm - 1.0))).collect();
        let shown: Vec<_> = points.iter().map(|(slot, more)| format!("{slot} s: {more:.1} %")).collect();
        println!("    {:<12}{}", setting.2, shown.join("  "));
        curves.push((setting.2.to_owned(), points));
    }
    let less = curves[1].1.iter().zip(&curves[2].1).all(|(bulk, stale)| stale.1 < bulk.1);
    findings.check("SSP suffers less than A-BSP of the same bound at every length", less);
    let bulk = curves[0].1.iter().zip(&curves[2].1).all(|(bulk, stale)| stale.1 < bulk.1);
    findings.check("and less than BSP", bulk);
    let short = curves[2].1.iter().filter(|(slot, _)| *slot <= SECONDS).map(|point| point.1).fold(0.0, f64::max);
    let what = "SSP is close to the ideal, at most twice it, where slots are no longer than an iteration";
    findings.check(format!("{what}: {short:.1} %"), short <= 2.0 * IDEAL);
    curves.push(("ideal".to_owned(), SLOTS.iter().map(|&slot| (slot, IDEAL)).collect()));
    let axes = ["slot, s", "increase, %"];
    findings.plot("row-9-disruptions", "Disrupted workers (LazyTable, Figure 7)", axes, curves);
}

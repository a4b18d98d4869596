//! ESSP, Figure 2: how old the parameters are that workers read, counted from the reader's clock: −1 is fresh.

use megagrid_algorithms::mf;

use crate::job::{Factorize, Shape, ratings};
use megagrid_benches::findings::Findings;

const CLOCKS: usize = 100;
const SLACK: u64 = 10;
/// The claim needs clocks of about the same length: with much jitter workers drift apart under ESSP as well.
const JITTER: f64 = 0.03;

pub fn run(findings: &mut Findings) {
    let edges = ratings(400, 100, 100 * CLOCKS);
    let of = |slack, lazy| {
        let mut shape = Shape { workers: 16, slack, lazy, ..Shape::clocks(1.0) };
        shape.model.jitter = JITTER;
        if slack == 0 {
            println!("  {}", shape.describe());
        }
        let config = mf::Config { dims: 1, ..mf::Config::default() };
        let all = Factorize { config, batch: 100, iterations: 1 }.run(&edges, &shape).staleness();
        let reads: u64 = all.values().sum();
        all.into_iter().map(|(age, n)| (age, n as f64 / reads as f64)).collect::<Vec<_>>()
    };
    let (bulk, stale, eager) = (of(0, true), of(SLACK, true), of(SLACK, false));
    println!("  share of reads by age minus clock, {CLOCKS} clocks, slack {SLACK}");
    for (name, shares) in [("BSP", &bulk), ("SSP", &stale), ("ESSP", &eager)] {
        let shown: Vec<_> = shares.iter().map(|(age, share)| format!("{age}: {share:.3}")).collect();
        println!("    {name:<5}{}", shown.join("  "));
    }
    let bins = -(SLACK as i64 + 1)..=-2;
    let share = |age| stale.iter().find(|(at, _)| *at == age).map_or(0.0, |(_, share)| *share);
    let even = bins.clone().all(|age| (0.05..=0.15).contains(&share(age)));
    findings.check(format!("SSP reads every age from {} to −2 in 5 to 15 % of the cases", bins.start()), even);
    let mean = eager.iter().map(|(age, share)| *age as f64 * share).sum::<f64>();
    findings.check(format!("ESSP reads at an age of −3 or fresher in the mean: {mean:.2}"), mean >= -3.0);
    findings.check("BSP reads only at −1", bulk.len() == 1 && bulk[0].0 == -1);
    let line = |name: &str, shares: &[(i64, f64)]| {
        (name.to_owned(), shares.iter().map(|&(age, share)| (age as f64, share)).collect())
    };
    let lines = vec![line("BSP", &bulk), line("SSP", &stale), line("ESSP", &eager)];
    let axes = ["age minus clock", "share of reads"];
    findings.plot("row-12-staleness", "Staleness of what is read (ESSP, Figure 2)", axes, lines);
}

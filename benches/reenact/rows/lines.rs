//! TuX², Table 2: lines of code of an algorithm in the stage model, and as an application of the parameter server.

use megagrid_baselines::System;
use megagrid_baselines::lines::{PROGRAMS, Program};

use megagrid_benches::findings::Findings;

/// Shows what `cargo test -p megagrid-baselines lines` counts in the sources.
pub fn run(findings: &mut Findings) {
    println!("  lines of code; whole: with dealing data to workers, first values, reading the objective");
    println!("                    stages       whole  parameter server      stages       whole   own parts");
    for program in &PROGRAMS {
        let (ours, theirs) = (program.megagrid, program.on(System::IterStore));
        let over = |ours: usize, theirs: usize| ours as f64 / theirs as f64;
        let of_stages = over(program.stages, theirs.whole());
        let (of_whole, of_own) = (over(ours.whole(), theirs.whole()), over(ours.own, theirs.own));
        let Program { name, stages, .. } = program;
        let [ours, theirs] = [ours, theirs].map(|lines| lines.to_string());
        println!("    {name:<10}{stages:>12}{ours:>12}{theirs:>18}{of_stages:>12.2}{of_whole:>12.2}{of_own:>12.2}");
        let what = "stages take at most half the lines of the parameter server's program";
        findings.check(format!("{name}: {what}: {of_stages:.2}"), of_stages <= 0.5);
    }
    println!(
        "    a + b: for this system only, and functions that both use; then Megagrid's lines by the parameter server's"
    );
}

//! TuX², Table 2: lines of code of an algorithm in the stage model, and as an application of the parameter server.

use megagrid_baselines::System;
use megagrid_baselines::lines::PROGRAMS;

use crate::findings::Findings;

/// Shows what `cargo test -p megagrid-baselines lines` counts in the sources.
pub fn run(findings: &mut Findings) {
    println!("  lines of code; whole: with dealing data to workers, first values, reading the objective");
    println!(
        "    {:<10}{:>12}{:>12}{:>18}{:>12}{:>12}{:>12}",
        "", "stages", "whole", "parameter server", "stages", "whole", "own parts"
    );
    for program in &PROGRAMS {
        let (ours, theirs) = (program.megagrid, program.on(System::IterStore));
        let over = |ours: usize, theirs: usize| ours as f64 / theirs as f64;
        let of_stages = over(program.stages, theirs.whole());
        println!(
            "    {:<10}{:>12}{:>12}{:>18}{of_stages:>12.2}{:>12.2}{:>12.2}",
            program.name,
            program.stages,
            format!("{ours}"),
            format!("{theirs}"),
            over(ours.whole(), theirs.whole()),
            over(ours.own, theirs.own),
        );
        findings.check(
            format!(
                "{}: stages take at most half the lines of the parameter server's program: {of_stages:.2}",
                program.name
            ),
            of_stages <= 0.5,
        );
    }
    println!(
        "    a + b: for this system alone, and functions that both use; then Megagrid's lines by the parameter server's"
    );
}

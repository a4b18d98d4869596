//! What several processes cost, against the floors that were set: two processes against one with two threads, an empty clock
//! against a round of timely alone, and how much is synced in a second.
//!
//!     cargo build --release -p megagrid-cli && cargo processes
//!
//! The command is the release build beside this one, or `MEGAGRID_BIN`. Names of parts as arguments choose: `jobs`, `clock`,
//! `rate`. Fails if a floor is missed. Without `--bench` (as `cargo test` runs it) it does nothing.

mod jobs;
#[path = "../../engine/tests/all/processes/local.rs"]
mod local;
mod wire;

use std::error::Error;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What was to be reached.
#[derive(Default)]
struct Floors {
    missed: Vec<String>,
}

impl Floors {
    /// Takes a figure that is to be small.
    fn at_most(&mut self, name: &str, found: f64, most: f64) {
        self.take(name, found <= most, &format!("{found:.2} (at most {most})"));
    }

    /// Takes a figure that is to be large.
    fn at_least(&mut self, name: &str, found: f64, least: f64) {
        self.take(name, found >= least, &format!("{found:.2} (at least {least})"));
    }

    fn take(&mut self, name: &str, passed: bool, figures: &str) {
        println!("  {} {name}: {figures}", if passed { "PASS" } else { "FAIL" });
        if !passed {
            self.missed.push(name.to_owned());
        }
    }

    /// Fails where one was missed.
    fn end(self) -> Result<()> {
        if self.missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", self.missed.join("; ")).into()) }
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let chosen: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let is_chosen = |part: &str| chosen.is_empty() || chosen.iter().any(|chosen| *chosen == part);
    let mut floors = Floors::default();
    if is_chosen("clock") {
        wire::measure_clock(&mut floors);
    }
    if is_chosen("rate") {
        wire::measure_rate(&mut floors);
    }
    if is_chosen("jobs") {
        jobs::measure_all(&mut floors)?;
    }
    floors.end()
}

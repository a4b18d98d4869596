//! What several processes cost, against the floors that were set: two processes against one with two threads, an empty clock
//! against a round of timely alone, and how much is synced in a second.
//!
//!     cargo build --release -p megagrid-cli && cargo processes
//!
//! The command is the release build beside this one, or `MEGAGRID_BIN`. Names of parts as arguments choose: `jobs`, `clock`,
//! `rate`. Fails if a floor is missed. Without `--bench` (as `cargo test` runs it) it does nothing.

mod floors;
mod jobs;
#[path = "../../engine/tests/all/processes/local.rs"]
mod local;
mod wire;

use floors::{Floors, Result};

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

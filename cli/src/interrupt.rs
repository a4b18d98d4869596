//! Ctrl-C and requests to end (SIGTERM, SIGHUP).
//!
//! While a run iterates, the first ends it after the current iteration, the second at once. Before, nothing is lost, so
//! it ends at once. Afterwards the results are being written, which is let finish.

use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::Context;

/// The exit code of an interrupted command: 128 + SIGINT.
pub const EXIT_CODE: i32 = 130;

const IDLE: u8 = 0;
const ITERATING: u8 = 1;
const ASKED: u8 = 2;
const WRITING: u8 = 3;

/// The state is all that is shared, so `Relaxed` suffices.
static STATE: AtomicU8 = AtomicU8::new(IDLE);

/// Begins to catch interrupts.
pub fn install() -> anyhow::Result<()> {
    ctrlc::set_handler(|| match STATE.load(Ordering::Relaxed) {
        ITERATING => {
            // A run that has just ended is writing: then this fails, as it should.
            let _ = STATE.compare_exchange(ITERATING, ASKED, Ordering::Relaxed, Ordering::Relaxed);
            eprintln!("megagrid: ending after this iteration; once more ends at once");
        }
        WRITING => eprintln!("megagrid: the results are being written"),
        _ => std::process::exit(EXIT_CODE),
    })
    .context("catching interrupts")
}

/// Says that iterations begin.
pub fn iterations_begin() {
    STATE.store(ITERATING, Ordering::Relaxed);
}

/// Tells whether the run is to end after this iteration.
pub fn asked() -> bool {
    STATE.load(Ordering::Relaxed) == ASKED
}

/// Says that iterations are over and results are written.
pub fn iterations_end() {
    STATE.store(WRITING, Ordering::Relaxed);
}

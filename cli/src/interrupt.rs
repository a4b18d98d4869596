//! Ctrl-C and requests to end (SIGTERM, SIGHUP).
//!
//! While a run iterates, the first ends it after the current iteration, another that comes later at once: `timeout` asks a command and its
//! group, which is twice at a time. Before, nothing is lost, so
//! it ends at once. Afterwards the results are being written, which is let finish. A terminal that hangs up (SIGHUP) ends nothing
//! under `nohup`, nor in processes that `launch` started here, which end when that does.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

/// The exit code of an interrupted command: 128 + SIGINT.
pub const EXIT_CODE: i32 = 130;

const IDLE: u8 = 0;
const ITERATING: u8 = 1;
const ASKED: u8 = 2;
const WRITING: u8 = 3;
const COUNTING: u8 = 4;
const WAITING: u8 = 5;

/// Requests within this time of the first are the same one.
const AT_A_TIME: Duration = Duration::from_millis(300);

/// The state is all that is shared, so `Relaxed` suffices.
static STATE: AtomicU8 = AtomicU8::new(IDLE);
/// How often it was asked, where interrupts are counted.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// When the run was asked to end.
static ASKED_AT: OnceLock<Instant> = OnceLock::new();

/// Begins to catch interrupts. Threads that were started before may end the command where a terminal hangs up.
///
/// `is_launched`: another process started this one here, and ends it.
pub fn install(is_launched: bool) -> anyhow::Result<()> {
    #[cfg(not(unix))]
    let _ = is_launched;
    #[cfg(unix)]
    if is_launched || ignores_hangup() {
        use nix::sys::signal::{SigSet, Signal};
        // What catches it would take the place of what ignores it. All threads that are started from now on inherit this.
        SigSet::from(Signal::SIGHUP).thread_block().context("ignoring that the terminal hangs up")?;
    }
    ctrlc::set_handler(|| match STATE.load(Ordering::Relaxed) {
        ITERATING => {
            // A run that has just ended is writing: then this fails, as it should.
            let _ = STATE.compare_exchange(ITERATING, ASKED, Ordering::Relaxed, Ordering::Relaxed);
            ASKED_AT.get_or_init(Instant::now);
            eprintln!("megagrid: ending after this iteration; once more ends at once");
        }
        COUNTING => {
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
        // Nothing has begun that an end would cut off.
        WAITING => std::process::exit(0),
        ASKED if ASKED_AT.get().is_some_and(|at| at.elapsed() < AT_A_TIME) => {}
        WRITING => eprintln!("megagrid: the results are being written"),
        _ => std::process::exit(EXIT_CODE),
    })
    .context("catching interrupts")
}

/// Tells whether the command was started with SIGHUP ignored, as `nohup` does; where the system says nothing of that, it was not.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is that of the signal 1.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
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

/// Says that the command waits for something to begin with: to be asked to end meanwhile is an end as any.
#[cfg(feature = "serve")]
pub fn may_end() {
    STATE.store(WAITING, Ordering::Relaxed);
}

/// From now on interrupts are counted, and end nothing.
pub fn count_only() {
    STATE.store(COUNTING, Ordering::Relaxed);
}

/// Tells how many interrupts have been counted.
pub fn count() -> u32 {
    COUNT.load(Ordering::Relaxed)
}

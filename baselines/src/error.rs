//! What can go wrong in a baseline.

/// Why a baseline does not run, or does not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system that there is none of.
    #[error("no system is called {0}; there are gas, gas-faithful, ps-naive, lazytable, essp and iterstore")]
    UnknownSystem(String),
    /// What a system cannot run.
    #[error("{system} does not run {what}; {advice}")]
    Unsupported {
        /// The system.
        system: &'static str,
        /// What was asked.
        what: &'static str,
        /// What to ask instead.
        advice: &'static str,
    },
    /// A setting out of range.
    #[error("{name} is {found}; expected {expected}")]
    Setting {
        /// Which.
        name: &'static str,
        /// Its value.
        found: u64,
        /// What it may be.
        expected: &'static str,
    },
    /// An objective that is no number.
    #[error("the objective became {objective} in iteration {iteration}; try a smaller step")]
    Diverged {
        /// When.
        iteration: u64,
        /// What it became.
        objective: f64,
    },
    /// A worker that panicked.
    #[error("worker {worker} panicked; see its message above")]
    WorkerPanicked {
        /// Which.
        worker: usize,
    },
    /// Parameters that an algorithm refuses.
    #[error(transparent)]
    Algorithm(#[from] megagrid_algorithms::Error),
    /// Edges that cannot be read, or connections that break.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

//! What can be wrong with a search.

/// Why there is no search, or no result of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tunable that makes no sense.
    #[error("tune {name}: {problem}; expected {expected}")]
    Tunable {
        /// Its name, or the text.
        name: String,
        /// What is wrong with it.
        problem: String,
        /// What would be right.
        expected: &'static str,
    },
    /// There is nothing to tune.
    #[error("there is nothing to tune; name a tunable with two values or more")]
    NothingToTune,
    /// The budget ended before a first trial could.
    #[error("a budget of {budget} is too small for one trial, which takes {needed}; give more, or none")]
    Budget {
        /// What may be spent.
        budget: f64,
        /// What a clock of the first trial took.
        needed: f64,
    },
    /// A run to go on with that was tuned otherwise.
    #[error("the run was tuned otherwise; use the same --tune, or start anew")]
    OtherSpace,
    /// A setting to begin with that cannot be searched from.
    #[error("the run is to begin with {0}, which is not among the values that are tuned")]
    Initial(String),
    /// No setting can be used.
    #[error("all {trials} settings that were tried diverged; the least bad was {least_bad}; try smaller values")]
    AllDiverged {
        /// Settings tried.
        trials: usize,
        /// The one that lasted longest and came lowest.
        least_bad: String,
    },
}

/// What a search ends with if it fails: its own error, or the trainer's.
#[derive(Debug, thiserror::Error)]
pub enum Failure<E> {
    /// The search failed.
    #[error(transparent)]
    Tuning(#[from] Error),
    /// The trainer failed.
    #[error("{0}")]
    Trainer(E),
}

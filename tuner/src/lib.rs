//! Training that tunes itself: MLtuner of Cui's thesis, chapter 5. Knows its trainer by fork, schedule, free and reported
//! progress only ([`Trainer`]), so that it can drive any. Trials are compared by their losses. A run is tuned again where the
//! error on held-out data falls no further, or the loss where the trainer reports no such error ([`Options`]).
//!
//! | module | what |
//! |---|---|
//! | `space` | what can be tuned: lists, ranges, ranges by their logarithm |
//! | `progress` | how fast a branch converges, from what it reported |
//! | [`searcher`] | what to try next: random, grid, TPE, Gaussian process |
//! | `search` | one search: how long a trial takes, and the best of the trials |
//! | `tuner` | a run: search, go on, search again when progress stops |
//! | [`baselines`] | tuners to compare with: Spearmint-like, Hyperband |
#![forbid(unsafe_code)]

pub mod baselines;
mod branches;
mod error;
mod history;
mod progress;
mod search;
pub mod searcher;
mod section;
mod space;
mod trainer;
mod tuner;

pub use branches::{Event, Watch};
pub use error::{Error, Failure};
pub use history::{Branch, Ended, Progress, ROOT, Stalled, Step, Trial, Tuned};
pub use progress::{Label, Noise, Summary};
pub use space::{Setting, Space, Tunable, Value, Values};
pub use trainer::{Clock, Trainer};
pub use tuner::{Options, Plateau, resume, tune};

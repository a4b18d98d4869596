//! Options of PageRank.

use megagrid_algorithms::pagerank::Damping;
use serde::{Deserialize, Serialize};

use crate::options::{by_default, check_tolerance};
use crate::{Error, Options};

/// Options of PageRank.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct RankOptions {
    /// The chance of following a link instead of restarting, above 0 and below 1.
    #[arg(long, default_value_t = Damping::DEFAULT.get(), allow_negative_numbers = true)]
    pub damping: f64,
    /// Iterations at most.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when an iteration changes the scores by no more than this, in total (L1).
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Part of an iteration between two clocks; PageRank takes 1 only.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_name = "X", help_heading = "Consistency")]
    pub work_per_clock: f64,
    /// Follows from the data: a checksum of where the surfer restarts.
    #[arg(skip)]
    pub restart_checksum: Option<String>,
}

impl Default for RankOptions {
    fn default() -> Self {
        by_default()
    }
}

impl Options for RankOptions {
    const FREE: &'static [&'static str] = &["iterations", "tolerance", "work_per_clock"];

    fn check(&self) -> Result<(), Error> {
        Damping::new(self.damping)?;
        check_tolerance(self.tolerance)?;
        if self.work_per_clock != 1.0 {
            let found = self.work_per_clock;
            let message = format!("work-per-clock is {found}; PageRank settles all scores at once and takes 1 only");
            return Err(Error::option(message));
        }
        Ok(())
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }
}

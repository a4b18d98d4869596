//! What is known after an iteration: what was measured, and whether training goes on.

use crate::error::Error;
use crate::record::{Metrics, Name};

/// What was measured after an iteration.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What training minimizes, or maximizes.
    pub objective: f64,
    /// Other values, but those on test data.
    pub metrics: Metrics,
    /// Whether this is the end; `None`: it is where the objective changes by no more than the tolerance.
    pub converged: Option<bool>,
}

impl Measured {
    /// Takes a residual, which is the objective of what ends where it is within a tolerance.
    #[must_use]
    pub fn residual(residual: f64, tolerance: f64) -> Self {
        let metrics = Metrics::from([("residual".into(), residual)]);
        Self { objective: residual, metrics, converged: Some(residual <= tolerance) }
    }
}

/// All that is known after an iteration.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// What training minimizes, or maximizes, where it was measured.
    pub objective: Option<f64>,
    /// See [`Measured::converged`].
    pub converged: Option<bool>,
    /// Other values: running ones, those on test data, and what was measured with the objective. One that is no number is left out.
    pub metrics: Metrics,
    /// The objective or a running value that is no number any more, and what it is.
    diverged: Option<(Name, f64)>,
}

impl Found {
    /// Returns the value on test data that early stopping is to make small, by its name; where more is better, its negative.
    #[must_use]
    pub fn tested(&self, by: Option<&'static str>, grows: bool) -> Option<f64> {
        let value = *self.metrics.get(by?)?;
        Some(if grows { -value } else { value })
    }

    /// Puts together running values, what was `measured`, and values on test data.
    #[must_use]
    pub fn new(running: Metrics, measured: Option<Measured>, tested: Metrics) -> Self {
        let mut found = Self::default();
        let mut trained = running.clone();
        found.metrics = running;
        found.metrics.extend(tested);
        if let Some(Measured { objective, metrics, converged }) = measured {
            (found.objective, found.converged) = (Some(objective), converged);
            found.metrics.extend(metrics);
            trained.insert("the objective".into(), objective);
        }
        found.metrics.retain(|_, value| value.is_finite());
        found.diverged = trained.into_iter().find(|(_, value)| !value.is_finite());
        found
    }

    /// Refuses an objective and running values that are no numbers. Other values may be none: a user's on test data, say.
    ///
    /// # Errors
    /// The first, and what to do.
    pub fn check(&self, iteration: u64, advice: &'static str) -> Result<(), Error> {
        match self.diverged.clone() {
            Some((name, value)) => Err(Error::Diverged { name, value, iteration, advice }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics<const N: usize>(values: [(&'static str, f64); N]) -> Metrics {
        Metrics::from(values.map(|(name, value)| (Name::from(name), value)))
    }

    #[test]
    fn only_the_objective_and_running_values_end_a_run_as_diverged() {
        let measured = |objective| {
            let metrics = metrics([("train_rmse", 2.0)]);
            Some(Measured { objective, metrics, converged: None })
        };
        let running = |value| metrics([("running_rmse", value)]);
        let said = |found: &Found| found.check(3, "advice").map_err(|error| error.to_string());
        let found = Found::new(running(1.0), measured(4.0), metrics([("users_own", f64::NAN), ("test_rmse", 3.0)]));
        assert_eq!(said(&found), Ok(()));
        assert_eq!(found.metrics, metrics([("running_rmse", 1.0), ("test_rmse", 3.0), ("train_rmse", 2.0)]));
        let ended = said(&Found::new(running(1.0), measured(f64::INFINITY), Metrics::new())).unwrap_err();
        assert!(ended.starts_with("the objective became inf in iteration 3"), "{ended}");
        let ended = said(&Found::new(running(f64::NAN), None, Metrics::new())).unwrap_err();
        assert!(ended.starts_with("running_rmse became NaN in iteration 3"), "{ended}");
    }
}

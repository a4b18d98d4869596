//! What is known of the models of a path of penalties.

use megagrid_algorithms::blockpg::Certificate;
use serde::{Deserialize, Serialize};

use crate::record::Metrics;

/// What tells how well the class that is being fitted is told from the rest, where there are more than two.
pub(super) const CLASS_TESTED_BY: &str = "test_class_log_loss";
/// What tells how well all classes are told apart.
pub(super) const TESTED_BY: &str = "test_log_loss";

/// What is known of the model of an l1; where each class is told from the rest, of the models of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfPenalty {
    /// The penalty.
    pub l1: f64,
    /// How near the optimum the model is.
    pub certificate: Certificate,
    /// Whether that is as near as was asked for.
    pub has_converged: bool,
    /// Iterations at this l1.
    pub iterations: u64,
    /// What was measured on samples to test on, where there are some and penalties are several.
    pub tested: Metrics,
}

impl OfPenalty {
    /// Returns the log loss on samples to test on: of a class against the rest, mean over classes, where each is told from the rest.
    pub(super) fn loss(&self) -> Option<f64> {
        [CLASS_TESTED_BY, TESTED_BY].iter().find_map(|&name| self.tested.get(name)).copied()
    }

    /// Says it in a line; `is_one` of several.
    fn finding(&self, is_one: bool) -> String {
        let Certificate { objective, bound, gap, violation, nonzeros, .. } = self.certificate;
        let mut text = format!(
            "  l1 {}: objective {objective:.6}, no model below {bound:.6} (gap {gap:.1e}), {nonzeros} weights, \
             largest violation {violation:.1e}",
            self.l1
        );
        if is_one {
            text.push_str(&format!(", {} iterations", self.iterations));
            self.tested.iter().for_each(|(name, value)| text.push_str(&format!(", {name} {value:.6}")));
        }
        text + "\n"
    }

    /// Adds what is known of another class's model.
    pub(super) fn join(&mut self, other: Self) {
        self.certificate.join(&other.certificate);
        self.has_converged &= other.has_converged;
        self.iterations += other.iterations;
        for (name, value) in other.tested {
            *self.tested.entry(name).or_insert(0.0) += value;
        }
    }
}

/// Says in a line each what is known, and of several with samples to test on which is the model.
pub(super) fn findings(path: &[OfPenalty], l1: Option<f64>) -> String {
    let mut text: String = path.iter().map(|one| one.finding(path.len() > 1)).collect();
    let chosen = path.iter().position(|one| path.len() > 1 && Some(one.l1) == l1);
    if let Some((at, loss)) = chosen.and_then(|at| Some((at, path[at].loss()?))) {
        let end = if at + 1 == path.len() { "; a smaller l1 may be better" } else { "" };
        text.push_str(&format!(
            "  the model is that of l1 {}, the best on test data, with a log loss of {loss:.6}{end}\n",
            path[at].l1
        ));
    }
    text
}

//! What is known of the models of a path of penalties.

use megagrid_algorithms::blockpg::Certificate;
use serde::{Deserialize, Serialize};

use crate::record::Metrics;

/// What tells how well the class that is being fitted is told from the rest, where there are more than two.
pub(super) const CLASS_TESTED_BY: &str = "test_class_log_loss";

/// What is known of the model of an l1; where each class is told from the rest, of the models of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfPenalty {
    /// The penalty.
    pub l1: f64,
    /// How near the optimum the model is.
    pub certificate: Certificate,
    /// Iterations at this l1.
    pub iterations: u64,
    /// What was measured on samples to test on, where there are some and penalties are several.
    pub tested: Metrics,
}

impl OfPenalty {
    /// Returns the log loss on samples to test on: of a class against the rest, mean over classes, where each is told from the rest.
    fn loss(&self) -> Option<f64> {
        ["test_log_loss", CLASS_TESTED_BY].iter().find_map(|&name| self.tested.get(name)).copied()
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
}

/// Adds what is known of a model to what is known of others with the same l1.
pub(super) fn note(path: &mut Vec<OfPenalty>, one: OfPenalty) {
    let Some(all) = path.iter_mut().find(|all| all.l1 == one.l1) else { return path.push(one) };
    all.certificate.join(&one.certificate);
    all.iterations += one.iterations;
    for (name, value) in one.tested {
        *all.tested.entry(name).or_insert(0.0) += value;
    }
}

/// Says in a line each what is known, and of several with samples to test on which was the best.
pub(super) fn findings(path: &[OfPenalty]) -> String {
    let mut text: String = path.iter().map(|one| one.finding(path.len() > 1)).collect();
    let tested = path.iter().filter_map(|one| Some((one.l1, one.loss()?)));
    let best = tested.min_by(|(_, a), (_, b)| a.total_cmp(b)).filter(|_| path.len() > 1);
    if let Some((l1, loss)) = best {
        let end = match path.last() {
            Some(last) if last.l1 == l1 => "that of the model",
            _ => "leave out smaller ones to have its model",
        };
        text.push_str(&format!("  l1 {l1} was the best on test data, with a log loss of {loss:.6}: {end}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(l1: f64, name: &'static str, loss: f64) -> OfPenalty {
        let tested = Metrics::from([(name.into(), loss)]);
        OfPenalty { l1, certificate: Certificate { nonzeros: 2, ..Certificate::default() }, iterations: 3, tested }
    }

    #[test]
    fn the_best_of_a_path_is_that_of_the_least_loss_on_test_data() {
        let mut path = vec![one(4.0, "test_log_loss", 0.5), one(2.0, "test_log_loss", 0.25)];
        let text = findings(&path);
        assert!(text.contains("2 weights") && text.contains("3 iterations, test_log_loss 0.500000"), "{text}");
        assert!(
            text.ends_with("l1 2 was the best on test data, with a log loss of 0.250000: that of the model\n"),
            "{text}"
        );
        path.push(one(1.0, "test_log_loss", 0.3));
        assert!(findings(&path).ends_with("leave out smaller ones to have its model\n"));
        assert_eq!(findings(&path[..1]).lines().count(), 1);
    }

    #[test]
    fn what_classes_have_apart_is_added_up() {
        let mut path = Vec::new();
        [one(4.0, CLASS_TESTED_BY, 0.25), one(2.0, CLASS_TESTED_BY, 0.2), one(4.0, CLASS_TESTED_BY, 0.5)]
            .into_iter()
            .for_each(|one| note(&mut path, one));
        assert_eq!(
            path.iter().map(|one| (one.iterations, one.loss())).collect::<Vec<_>>(),
            [(6, Some(0.75)), (3, Some(0.2))]
        );
        assert_eq!(path[0].certificate.nonzeros, 4);
    }
}

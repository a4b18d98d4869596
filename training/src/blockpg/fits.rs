//! The models of a path of penalties that have been fitted, and which one is the model.

use serde::{Deserialize, Serialize};

use super::data::Samples;
use super::model::Linear;
use super::path::OfPenalty;
use super::weights::model_of;
use crate::Error;

/// The models of a path that have been fitted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Fits {
    /// Whether there are several l1, one of which is the model's.
    is_path: bool,
    /// What is known of them, in the order of the path.
    known: Vec<OfPenalty>,
    /// How many models of each l1 are fitted: of many classes each has its own.
    models: Vec<usize>,
    /// Their weights, `[penalty][model]`, of a path.
    weights: Vec<Vec<Sparse>>,
}

/// Weights that are not zero, with their features.
type Sparse = Vec<(u32, f64)>;

fn sparse(weights: &[f64]) -> Sparse {
    weights.iter().enumerate().filter(|(_, w)| **w != 0.0).map(|(feature, &w)| (feature as u32, w)).collect()
}

fn dense(weights: &Sparse, features: usize) -> Vec<f64> {
    let mut all = vec![0.0; features];
    weights.iter().for_each(|&(feature, w)| all[feature as usize] = w);
    all
}

impl Fits {
    /// Begins with none, of as many penalties.
    pub(super) fn of(penalties: usize) -> Self {
        Self { is_path: penalties > 1, ..Self::default() }
    }

    /// Takes what is known of a model, or of one of several classes, and its weights, `[models][features]`.
    pub(super) fn note<'w>(&mut self, one: OfPenalty, weights: impl IntoIterator<Item = &'w [f64]>) {
        let at = self.known.iter().position(|known| known.l1 == one.l1).unwrap_or(self.known.len());
        match self.known.get_mut(at) {
            Some(known) => known.join(one),
            None => {
                self.known.push(one);
                self.models.push(0);
                self.weights.push(Vec::new());
            }
        }
        for weights in weights {
            self.models[at] += 1;
            self.weights[at].extend(self.is_path.then(|| sparse(weights)));
        }
    }

    /// Returns the l1 whose models did best on samples to test on, if there are some and all `models` are fitted; of equal ones the largest.
    fn best(&self, models: usize) -> Option<usize> {
        let tested = self.known.iter().zip(&self.models).enumerate();
        let tested = tested.filter(|(_, (_, number))| self.is_path && **number == models);
        let losses = tested.filter_map(|(at, (known, _))| Some((at, known.loss()?)));
        losses.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(at, _)| at)
    }

    /// Has a model, which is of an `l1`, know of the path, and be the one that did best on samples to test on if there are some. Classes that are
    /// told apart one after the other have the weights of the same l1, though some have come further.
    pub(super) fn settle(mut self, samples: &Samples, model: &mut Linear, l1: f64) -> Result<(), Error> {
        let best = self.best(samples.num_models());
        let Some(at) = best.or_else(|| self.known.iter().position(|known| known.l1 == l1)) else { return Ok(()) };
        if self.is_path {
            let features = samples.features.len() + usize::from(samples.intercept.is_some());
            let weights: Vec<_> = self.weights[at].iter().map(|one| dense(one, features)).collect();
            let is_multinomial = model.is_multinomial;
            *model = Linear { is_multinomial, ..model_of(samples, weights.iter().map(|one| &one[..]))? };
            model.l1 = Some(self.known[at].l1);
        }
        if let Some(test) = samples.test.as_ref().filter(|_| self.is_path) {
            self.known[at].tested.extend(model.tested(test)?);
        }
        (model.certificate, model.has_converged) = (Some(self.known[at].certificate), self.known[at].has_converged);
        // Of an l1 that not all classes have come to nothing is known yet.
        let is_whole = |models: usize| models == samples.num_models();
        let known = self.known.into_iter().zip(self.models).filter(|(_, models)| is_whole(*models));
        model.path = known.map(|(known, _)| known).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use megagrid_algorithms::blockpg::Certificate;

    use super::*;
    use crate::blockpg::path::{CLASS_TESTED_BY, findings};
    use crate::record::Metrics;

    fn one(l1: f64, name: &'static str, loss: f64) -> OfPenalty {
        let tested = Metrics::from([(name.into(), loss)]);
        let certificate = Certificate { nonzeros: 2, ..Certificate::default() };
        OfPenalty { l1, certificate, has_converged: true, iterations: 3, tested }
    }

    fn fits(of: impl IntoIterator<Item = OfPenalty>) -> Fits {
        let mut fits = Fits::of(2);
        of.into_iter().for_each(|one| fits.note(one, [&[0.0, 1.0][..]]));
        fits
    }

    #[test]
    fn the_best_of_a_path_is_that_of_the_least_loss_on_test_data() {
        let of = |l1, loss| one(l1, "test_log_loss", loss);
        let path = fits([of(4.0, 0.5), of(2.0, 0.25)]);
        assert_eq!(path.best(1), Some(1));
        let text = findings(&path.known, Some(2.0));
        assert!(text.contains("2 weights") && text.contains("3 iterations, test_log_loss 0.500000"), "{text}");
        assert!(text.contains("that of l1 2, the best on test data, with a log loss of 0.250000; a smaller"), "{text}");
        let path = fits([of(4.0, 0.5), of(2.0, 0.25), of(1.0, 0.25)]);
        assert_eq!(path.best(1), Some(1));
        assert!(findings(&path.known, Some(2.0)).ends_with("0.250000\n"));
        assert_eq!(findings(&path.known[..1], Some(4.0)).lines().count(), 1);
    }

    #[test]
    fn what_classes_have_apart_is_added_up_and_compared_where_all_are_fitted() {
        let of = |l1, loss| one(l1, CLASS_TESTED_BY, loss);
        let path = fits([of(4.0, 0.25), of(2.0, 0.2), of(4.0, 0.5)]);
        let found = path.known.iter().map(|one| (one.iterations, one.loss())).collect::<Vec<_>>();
        assert_eq!(found, [(6, Some(0.75)), (3, Some(0.2))]);
        assert_eq!((path.known[0].certificate.nonzeros, path.best(2)), (4, Some(0)));
    }

    #[test]
    fn weights_are_those_that_were_kept() {
        assert_eq!(sparse(&[0.0, 2.0, 0.0]), [(1, 2.0)]);
        assert_eq!(dense(&sparse(&[0.0, 2.0, 0.0]), 3), [0.0, 2.0, 0.0]);
    }
}

//! How well scores tell the labels of samples.

use rayon::slice::ParallelSliceMut;

use super::certificate::log_loss;

/// How well scores tell labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Quality {
    /// The chance that a sample of label 1 has a higher score than one of label −1, ties counted half; NaN if a class is
    /// missing, or there are more than two.
    pub auc: f64,
    /// Mean log loss, in nats.
    pub log_loss: f64,
    /// Share of samples whose score has the sign of their label, a score of 0 counting as −1, as in predictions; of those whose class is the likeliest.
    pub accuracy: f64,
}

impl Quality {
    /// Compares scores w·x with labels, −1 or 1; a sample of weight k is k samples (empty: all weigh 1). Complexity: a sort.
    #[must_use]
    pub fn new(scores: &[f64], labels: &[f32], weights: &[f32]) -> Self {
        let right = scores.iter().zip(labels).map(|(&score, &label)| f64::from((score > 0.0) == (label > 0.0)));
        Self {
            auc: auc(scores, labels, weights),
            log_loss: mean_loss(scores, labels, weights),
            accuracy: mean(right, weights),
        }
    }

    /// Compares scores w·x of classes, `[samples, classes]`, with the samples' classes, which weigh as for [`Quality::new`]; `logs` makes of
    /// the scores of a sample the logarithms of chances, [`log_chances`] or [`log_softmax`].
    #[must_use]
    pub fn of_classes(
        scores: (&[f64], usize),
        (labels, weights): (&[u32], &[f32]),
        logs: impl Fn(&[f64]) -> Vec<f64>,
    ) -> Self {
        let pairs = || scores.0.chunks(scores.1.max(1)).zip(labels);
        let losses = pairs().map(|(scores, &label)| -logs(scores)[label as usize]);
        let right = pairs().map(|(scores, &label)| f64::from(likeliest(scores) == label as usize));
        Self { auc: f64::NAN, log_loss: mean(losses, weights), accuracy: mean(right, weights) }
    }
}

/// Returns the mean log loss of scores w·x by their labels, −1 or 1, in nats; samples weigh as for [`Quality::new`].
#[must_use]
pub fn mean_loss(scores: &[f64], labels: &[f32], weights: &[f32]) -> f64 {
    mean(scores.iter().zip(labels).map(|(&score, &label)| log_loss(f64::from(label) * score)), weights)
}

/// Returns the weight of a sample.
pub(super) fn weight(weights: &[f32], sample: usize) -> f64 {
    weights.get(sample).map_or(1.0, |&weight| weight.into())
}

/// Returns a mean over samples; 0 of none.
fn mean(of_samples: impl Iterator<Item = f64>, weights: &[f32]) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    for (sample, value) in of_samples.enumerate() {
        let weight = weight(weights, sample);
        sum += weight * value;
        total += weight;
    }
    if total > 0.0 { sum / total } else { 0.0 }
}

/// Returns the logarithms of the chances of classes by their scores, each against the rest: of their logistic functions, scaled
/// to a sum of 1.
#[must_use]
pub fn log_chances(scores: &[f64]) -> Vec<f64> {
    scaled(scores.iter().map(|&score| -log_loss(score)))
}

/// Returns the logarithms of the chances of classes that were fitted together, by their scores: of their exponentials, scaled to a sum of 1.
#[must_use]
pub fn log_softmax(scores: &[f64]) -> Vec<f64> {
    scaled(scores.iter().copied())
}

fn scaled(logs: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let all = log_sum(logs.clone());
    logs.map(|log| log - all).collect()
}

/// Returns log Σ exp, without overflow.
pub(super) fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    most + logs.map(|log| (log - most).exp()).sum::<f64>().ln()
}

/// Returns the place of the largest of the scores of classes, of equal ones the first. Where chances are equal for rounding, scores
/// may still differ.
#[must_use]
pub fn likeliest(scores: &[f64]) -> usize {
    let better = |best: usize, at: usize| if scores[at] > scores[best] { at } else { best };
    (0..scores.len()).reduce(better).unwrap_or(0)
}

/// Returns the area under the receiver operating characteristic: the weight of pairs of a sample of label 1 and another that are in this order,
/// of all such pairs (Mann and Whitney).
fn auc(scores: &[f64], labels: &[f32], weights: &[f32]) -> f64 {
    let of = |(at, (&score, &label)): (usize, (&f64, &f32))| (score, label > 0.0, weight(weights, at));
    let mut order: Vec<(f64, bool, f64)> = scores.iter().zip(labels).enumerate().map(of).collect();
    order.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut positives, mut negatives, mut won) = (0.0, 0.0, 0.0);
    for tied in order.chunk_by(|a, b| a.0 == b.0) {
        let of = |wanted: bool| tied.iter().filter(|one| one.1 == wanted).map(|one| one.2).sum::<f64>();
        let [above, below] = [of(true), of(false)];
        won += above * (negatives + below / 2.0);
        positives += above;
        negatives += below;
    }
    won / (positives * negatives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_agrees_with_counting_all_pairs() {
        let scores = [0.3, -1.0, 0.3, 2.0, -0.5, 0.0, 0.7];
        let labels = [1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0];
        let (mut wins, mut pairs, mut loss) = (0.0, 0.0, 0.0);
        for (a, &label) in labels.iter().enumerate() {
            loss += -(1.0 / (1.0 + (-f64::from(label) * scores[a]).exp())).ln() / 7.0;
            for (b, &other) in labels.iter().enumerate() {
                if label > other {
                    pairs += 1.0;
                    wins += if scores[a] > scores[b] {
                        1.0
                    } else if scores[a] == scores[b] {
                        0.5
                    } else {
                        0.0
                    };
                }
            }
        }
        let quality = Quality::new(&scores, &labels, &[]);
        assert!((quality.auc - wins / pairs).abs() < 1e-12);
        assert!((quality.log_loss - loss).abs() < 1e-12);
        assert_eq!(quality.accuracy, 4.0 / 7.0);
    }

    #[test]
    fn a_sample_of_weight_k_is_k_samples() {
        let (scores, labels, weights) =
            ([0.3, -1.0, 0.3, 2.0, 0.1], [1.0, 1.0, -1.0, 1.0, -1.0], [2.0, 1.0, 3.0, 0.0, 1.0]);
        let times = |at: usize| std::iter::repeat_n(at, weights[at] as usize);
        let of: Vec<usize> = (0..5).flat_map(times).collect();
        let [some, all] = [
            Quality::new(&scores, &labels, &weights),
            Quality::new(
                &of.iter().map(|&at| scores[at]).collect::<Vec<_>>(),
                &of.iter().map(|&at| labels[at]).collect::<Vec<_>>(),
                &[],
            ),
        ];
        for (some, all) in [(some.auc, all.auc), (some.log_loss, all.log_loss), (some.accuracy, all.accuracy)] {
            assert!((some - all).abs() < 1e-12, "{some}, {all}");
        }
        let scores = [0.5, 0.25, 0.1, 0.2, 0.2, 0.6];
        let some = Quality::of_classes((&scores, 3), (&[1, 2], &[3.0, 1.0]), log_softmax);
        let all = [&scores[..3], &scores[..3], &scores[..3], &scores[3..]].concat();
        let all = Quality::of_classes((&all, 3), (&[1, 1, 1, 2], &[]), log_softmax);
        assert!((some.log_loss - all.log_loss).abs() < 1e-12 && some.accuracy == 0.25 && all.accuracy == 0.25);
    }

    #[test]
    fn the_likeliest_of_many_classes_counts() {
        // Scores of these chances against the rest, which have a sum of 1.
        let scores = [0.5, 0.25, 0.25, 0.2, 0.2, 0.6].map(|chance: f64| (chance / (1.0 - chance)).ln());
        let quality = Quality::of_classes((&scores, 3), (&[1, 2], &[]), log_chances);
        assert_eq!((quality.accuracy, quality.auc.is_nan()), (0.5, true));
        assert!((quality.log_loss + (0.25_f64 * 0.6).ln() / 2.0).abs() < 1e-12);
    }

    #[test]
    fn scores_far_from_0_tell_classes_too() {
        for scores in [[9_999.0, 1e4, -1e4], [-1e4, -9_999.0, -2e4], [40.0, 41.0, 39.0]] {
            assert_eq!(likeliest(&scores), 1);
            let logs = log_chances(&scores);
            assert!((logs.iter().map(|log| log.exp()).sum::<f64>() - 1.0).abs() < 1e-12, "{logs:?}");
            assert!(logs.iter().all(|log| log.is_finite() && *log <= logs[1]), "{logs:?}");
        }
        let far = Quality::of_classes((&[-1e4, -9_999.0, -2e4], 3), (&[2], &[]), log_chances);
        assert!((far.log_loss - 10_001.0 - (-1.0_f64).exp().ln_1p()).abs() < 1e-9, "{far:?}");
    }

    #[test]
    fn chances_of_classes_that_were_fitted_together_are_their_exponentials() {
        let scores = [0.5_f64, 0.25, 0.25].map(|chance| chance.ln() + 1e4);
        let logs = log_softmax(&scores);
        assert!(logs.iter().zip([0.5, 0.25, 0.25]).all(|(log, chance)| (log.exp() - chance).abs() < 1e-9), "{logs:?}");
    }

    #[test]
    fn without_both_classes_there_is_no_curve() {
        assert!(Quality::new(&[1.0, 2.0], &[1.0, 1.0], &[]).auc.is_nan());
    }
}

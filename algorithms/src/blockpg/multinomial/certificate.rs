//! How far weights of classes are from the optimum at most.
//!
//! For any chances α_i of the classes with |Σ_i c_i (α_ik − [y_i = k]) x_ij| ≤ l1 for each class and feature, and Σ_i c_i (α_ik − [y_i = k]) = 0 where
//! there are intercepts, Σ c_i H(α_i) with the entropy H is a lower bound of the objective: log Σ_k exp z_k ≥ α·z + H(α). With l2 > 0
//! features may exceed l1, at the price of (excess)² / (2 l2). The α are the model's chances, drawn towards the labels: those of each class's samples
//! until as much flows to the class from others as from it to them, then all until no feature exceeds l1.

use std::io;

use megagrid_partition::{Side, parallel};

use super::{FitOfClasses, OfClasses, target};
use crate::blockpg::{Certificate, Config};

impl Certificate {
    /// Finds how far weights of classes are from the optimum at most. Passes over the values twice for each class.
    ///
    /// # Errors
    /// Values that cannot be read.
    pub fn of_classes(fit: &FitOfClasses<'_>, config: &Config) -> io::Result<Self> {
        let mut excess = fit.excess();
        let mut slopes = fit.slopes(&excess)?;
        let (mut violation, mut violation_at_zero, mut nonzeros) = (0.0_f64, 0.0_f64, 0);
        for (weights, slopes) in fit.weights.iter().zip(&slopes) {
            for (feature, (&w, &slope)) in weights.iter().zip(slopes).enumerate() {
                let [l1, l2] = if fit.is_free(feature) { [0.0; 2] } else { [config.l1, config.l2] };
                let gradient = slope + l2 * w;
                if w == 0.0 {
                    violation_at_zero = violation_at_zero.max(gradient.abs() - l1);
                } else {
                    violation = violation.max((gradient + l1 * w.signum()).abs());
                    nonzeros += usize::from(!fit.is_free(feature));
                }
            }
        }
        if fit.intercept.is_some() {
            fit.balance(&mut excess);
            slopes = fit.slopes(&excess)?;
        }
        let sizes = || slopes.iter().flat_map(|of_class| fit.penalized().map(|feature| of_class[feature].abs()));
        let dual = |part: f64| {
            let beyond = |size: f64| (part * size - config.l1).max(0.0).powi(2);
            let price = if config.l2 > 0.0 { sizes().map(beyond).sum::<f64>() / (2.0 * config.l2) } else { 0.0 };
            fit.entropy(&excess, part) - price
        };
        let drawn = dual((config.l1 / sizes().fold(0.0, f64::max)).min(1.0));
        let bound = if config.l2 > 0.0 { drawn.max(dual(1.0)) } else { drawn };
        let (loss, objective) = (fit.loss(), fit.objective(config));
        let gap = (objective - bound) / objective.max(f64::MIN_POSITIVE);
        let violation = violation.max(violation_at_zero);
        Ok(Self { objective, loss, bound, gap, violation, violation_at_zero, nonzeros })
    }
}

impl FitOfClasses<'_> {
    /// Returns the slope of the loss by each weight, with these excesses of chances.
    fn slopes(&self, excess: &[Vec<f64>]) -> io::Result<OfClasses> {
        let of_class = |class: usize| {
            let parts: Vec<f64> = excess[class].iter().enumerate().map(|(i, excess)| self.weight(i) * excess).collect();
            let mut slopes = vec![0.0; self.values.num_vertices(Side::Right)];
            for (feature, slope) in slopes.iter_mut().enumerate() {
                self.values.visit_rows(Side::Right, feature..feature + 1, &mut |samples, values| {
                    *slope += samples.iter().zip(values).map(|(&i, &x)| f64::from(x) * parts[i as usize]).sum::<f64>();
                })?;
            }
            Ok(slopes)
        };
        parallel::map(excess.len(), of_class).into_iter().collect()
    }

    /// Draws the chances of each class's samples towards their labels by a part of its own, so that their sums are those of the labels. What samples of
    /// class a give to class b are rates of a chain of Markov's, and parts are in proportion to how often it is in each class.
    fn balance(&self, excess: &mut [Vec<f64>]) {
        let classes = excess.len();
        let mut flows = vec![vec![0.0; classes]; classes];
        for (sample, &label) in self.labels.iter().enumerate() {
            let flow = flows[label as usize].iter_mut().zip(&*excess);
            flow.for_each(|(flow, of_class)| *flow += self.weight(sample) * of_class[sample]);
        }
        let parts = stationary(flows);
        for of_class in excess {
            of_class.iter_mut().zip(self.labels).for_each(|(excess, &label)| *excess *= parts[label as usize]);
        }
    }

    /// Returns Σ c_i H(α_i), where α exceed the labels by a part of these excesses.
    fn entropy(&self, excess: &[Vec<f64>], part: f64) -> f64 {
        let of_class = |class: usize| {
            let of = |(sample, excess): (usize, &f64)| {
                let a = target(self.labels[sample], class) + part * excess;
                if a > 0.0 { -self.weight(sample) * a * a.ln() } else { 0.0 }
            };
            excess[class].iter().enumerate().map(of).sum::<f64>()
        };
        parallel::map(excess.len(), of_class).into_iter().sum()
    }
}

/// Returns how often a chain with these rates from state to state is in each, the most as 1, by elimination of one state after the other without a
/// difference (Grassmann, Taksar and Heyman 1985). What rates stand on the diagonal does not matter.
fn stationary(mut rates: Vec<Vec<f64>>) -> Vec<f64> {
    for last in (1..rates.len()).rev() {
        let leaving = rates[last][..last].iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let (before, from) = rates.split_at_mut(last);
        for row in before {
            row[last] /= leaving;
            let into = row[last];
            row[..last].iter_mut().zip(&from[0]).for_each(|(rate, onward)| *rate += into * onward);
        }
    }
    let mut parts = vec![1.0];
    while parts.len() < rates.len() {
        let state = parts.len();
        parts.push(parts.iter().zip(&rates).map(|(part, rates)| part * rates[state]).sum());
    }
    let most = parts.iter().copied().fold(0.0, f64::max);
    parts.iter_mut().for_each(|part| *part /= most);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use megagrid_partition::{EdgeList, GroupedEdges, SplitMix};

    #[test]
    fn what_flows_into_each_state_flows_out_of_it() {
        let mut random = SplitMix::new(3, 0);
        for states in 2..8 {
            let rates: Vec<Vec<f64>> =
                (0..states).map(|_| (0..states).map(|_| random.unit().powi(6)).collect()).collect();
            let parts = stationary(rates.clone());
            assert!(parts.iter().all(|part| *part > 0.0 && *part <= 1.0) && parts.contains(&1.0), "{parts:?}");
            for state in 0..states {
                let others = || (0..states).filter(|other| *other != state);
                let into: f64 = others().map(|from| parts[from] * rates[from][state]).sum();
                let out: f64 = others().map(|to| parts[state] * rates[state][to]).sum();
                assert!((into - out).abs() < 1e-12, "{states} states, {state}: {into} in, {out} out");
            }
        }
    }

    /// Samples of three classes with one feature of value 1: classes have 5, 2 and 1 of them.
    fn certificate(weights: [f64; 3], is_free: bool, config: &Config) -> Certificate {
        let labels = [0, 0, 0, 0, 0, 1, 1, 2];
        let list = EdgeList {
            num_left: 8,
            num_right: 1,
            left: (0..8).collect(),
            right: vec![0; 8],
            data: vec![1.0; 8],
            ..EdgeList::default()
        };
        let values = GroupedEdges::new(list, &[Side::Right]);
        let intercept = is_free.then_some(0);
        let (weights, scores) = (weights.map(|w| vec![w]), weights.map(|w| vec![w; 8]));
        let fit = FitOfClasses {
            values: &values,
            labels: &labels,
            sample_weights: &[],
            intercept,
            weights: &weights,
            scores: &scores,
        };
        Certificate::of_classes(&fit, config).unwrap()
    }

    #[test]
    fn the_bound_is_met_at_the_optimum_and_holds_elsewhere() {
        // Without a penalty chances are the shares of the classes: 5/8, 2/8, 1/8.
        let shares = [5.0_f64, 2.0, 1.0].map(f64::ln);
        // With l1 = 1/2 and the weight of the second class 0, the first has 5 − 1/2 of 8, the last 1 + 1/2, the second what is left.
        let shrunk = [4.5_f64, 2.0, 1.5].map(|sum| (sum / 2.0).ln());
        for (optimum, is_free, l1) in [(shares, true, 1.0), (shrunk, false, 0.5)] {
            let config = Config { l1, l2: 0.0 };
            let best = certificate(optimum, is_free, &config);
            assert!(best.gap.abs() < 1e-12 && best.violation < 1e-12, "{best:?}");
            for change in [[0.1, 0.0, 0.0], [0.0, -0.3, 0.2], [-2.0, 1.0, 1.0], [0.0, 0.0, -40.0]] {
                let other = certificate(std::array::from_fn(|class| optimum[class] + change[class]), is_free, &config);
                assert!(
                    other.bound <= best.objective + 1e-12 && other.objective >= best.objective,
                    "{change:?}: {other:?}"
                );
            }
        }
    }
}

//! The minimum of a quadratic model with |w|₁.

use megagrid_partition::SplitMix;

/// g·(v − w) + (v − w)·H·(v − w)/2 + Σ l1_j |v_j|, and where its least is looked for.
///
/// Two ways are taken in turn. Coordinates descend one after the other until signs stay as they are, which finds the weights that are not zero. Then
/// comes the minimum of the model where signs are held, by a factor of H of those weights: on the way a weight that would change its
/// sign becomes zero and is left out (an active set, as for quadratic programs).
#[derive(Debug)]
pub struct Quadratic {
    /// H, `[features, features]`, both halves, l2 on the diagonal.
    curvature: Vec<f64>,
    /// The slope of the quadratic part at the weights.
    slope: Vec<f64>,
    /// l1 of each feature.
    l1: Vec<f64>,
    weights: Vec<f64>,
    /// All features.
    order: Vec<usize>,
    random: SplitMix,
}

impl Quadratic {
    /// Makes the model at weights of the loss's derivatives there: `curvature` is `[features, features]`, and has that of two features that
    /// differ in one of both places, 0 in the other; no feature's own is less than in `diagonal`. `penalties` are l1 and l2 of each feature.
    ///
    /// # Panics
    /// Lengths that do not fit.
    #[must_use]
    pub fn new(
        mut curvature: Vec<f64>,
        diagonal: &[f64],
        gradient: Vec<f64>,
        penalties: &[[f64; 2]],
        weights: &[f64],
    ) -> Self {
        let features = weights.len();
        assert_eq!([curvature.len(), gradient.len(), penalties.len()], [features * features, features, features]);
        let mut slope = gradient;
        for feature in 0..features {
            for other in 0..feature {
                let (at, turned) = (feature * features + other, other * features + feature);
                let both = curvature[at] + curvature[turned];
                (curvature[at], curvature[turned]) = (both, both);
            }
            let own = &mut curvature[feature * features + feature];
            *own = own.max(diagonal[feature]);
            *own += penalties[feature][1] + RIDGE * *own + TINY;
            slope[feature] += penalties[feature][1] * weights[feature];
        }
        let l1 = penalties.iter().map(|[l1, _]| *l1).collect();
        let (order, random) = ((0..features).collect(), SplitMix::new(0, 0));
        Self { curvature, slope, l1, weights: weights.to_vec(), order, random }
    }

    /// Goes to the minimum, and returns how much less the model is there.
    pub fn minimize(&mut self) -> f64 {
        let (first, slope) = (self.weights.clone(), self.slope.clone());
        let mut fallen = 0.0;
        for _ in 0..MOST_TURNS {
            let fall = self.descend();
            fallen += fall;
            if fall <= NEAR * fallen {
                break;
            }
            self.solve();
        }
        let changes = || self.weights.iter().zip(&first).map(|(to, from)| to - from);
        // The mean of both slopes is that of the way.
        let smooth: f64 =
            changes().zip(slope.iter().zip(&self.slope)).map(|(d, (from, to))| 0.5 * d * (from + to)).sum();
        let sizes: f64 = self
            .l1
            .iter()
            .zip(self.weights.iter().zip(&first))
            .map(|(l1, (to, from))| l1 * (to.abs() - from.abs()))
            .sum();
        -(smooth + sizes)
    }

    /// Tells whether coordinates that descend one after the other are still far from the minimum after some passes: the last one makes the model fall
    /// by more than a small part of all that it has fallen.
    pub fn is_slow(&mut self) -> bool {
        let falls = (0..TRIAL_PASSES).map(|_| self.pass().0);
        let (fallen, last) = falls.fold((0.0, 0.0), |(fallen, _), fall| (fallen + fall, fall));
        last > TRIAL_PART * fallen
    }

    /// Returns the weights.
    #[must_use]
    pub fn into_weights(self) -> Vec<f64> {
        self.weights
    }

    fn row(&self, feature: usize) -> &[f64] {
        let features = self.weights.len();
        &self.curvature[feature * features..][..features]
    }

    /// Lets coordinates descend until signs stay, and returns how much the model fell.
    fn descend(&mut self) -> f64 {
        let mut fallen = 0.0;
        for _ in 0..MOST_PASSES {
            let (fall, has_turned) = self.pass();
            fallen += fall;
            if !has_turned {
                break;
            }
        }
        fallen
    }

    /// Lets each coordinate descend once. Returns about how much the model fell, and whether signs have changed.
    fn pass(&mut self) -> (f64, bool) {
        let sign = |w: f64| if w == 0.0 { 0.0 } else { w.signum() };
        let (mut fall, mut has_turned) = (0.0, false);
        // In a fixed order features that are alike take several times the passes.
        let mut order = std::mem::take(&mut self.order);
        self.random.shuffle(&mut order);
        for &feature in &order {
            let (w, own) = (self.weights[feature], self.row(feature)[feature]);
            let least = own * w - self.slope[feature];
            let l1 = self.l1[feature];
            let goal = ((least - l1).max(0.0) + (least + l1).min(0.0)) / own;
            if goal == w {
                continue;
            }
            fall += 0.5 * own * (goal - w).powi(2);
            has_turned |= sign(goal) != sign(w);
            self.shift(feature, goal);
        }
        self.order = order;
        (fall, has_turned)
    }

    /// Sets a weight.
    fn shift(&mut self, feature: usize, to: f64) {
        let change = to - self.weights[feature];
        self.weights[feature] = to;
        let features = self.weights.len();
        let row = &self.curvature[feature * features..][..features];
        self.slope.iter_mut().zip(row).for_each(|(slope, curvature)| *slope += change * curvature);
    }

    /// Goes to the minimum among weights with the same signs.
    fn solve(&mut self) {
        let is_held = |feature: &usize| self.weights[*feature] != 0.0 || self.l1[*feature] == 0.0;
        let mut held: Vec<usize> = (0..self.weights.len()).filter(is_held).collect();
        let mut factor = Factor::new(held.len(), |row, column| self.row(held[row])[held[column]]);
        loop {
            let slope = |&feature: &usize| -(self.slope[feature] + self.l1[feature] * self.weights[feature].signum());
            let mut step: Vec<f64> = held.iter().map(slope).collect();
            factor.solve(&mut step);
            let turns = |(at, (&feature, &d)): (usize, (&usize, &f64))| {
                let w = self.weights[feature];
                (w * (w + d) < 0.0 && self.l1[feature] > 0.0).then(|| (at, -w / d))
            };
            let first = held.iter().zip(&step).enumerate().filter_map(turns).min_by(|(_, a), (_, b)| a.total_cmp(b));
            let part = first.map_or(1.0, |(_, part)| part);
            for (&feature, d) in held.iter().zip(&step) {
                self.shift(feature, self.weights[feature] + part * d);
            }
            let Some((at, _)) = first else { return };
            self.shift(held[at], 0.0);
            held.remove(at);
            factor.remove(at);
        }
    }
}

/// The lower triangle L of a matrix L Lᵀ, a row after the other.
struct Factor {
    rows: Vec<Vec<f64>>,
}

impl Factor {
    /// Factors a matrix that is given by its lower triangle.
    fn new(size: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(size);
        for at in 0..size {
            let mut row: Vec<f64> = (0..=at).map(|column| entry(at, column)).collect();
            for column in 0..at {
                let (done, rest) = row.split_at_mut(column);
                rest[0] = (rest[0] - dot(done, &rows[column][..column])) / rows[column][column];
            }
            let (done, own) = row.split_at_mut(at);
            // What features that add up to another leave is rounding.
            own[0] = (own[0] - dot(done, done)).max(RIDGE * own[0]).sqrt();
            rows.push(row);
        }
        Self { rows }
    }

    /// Solves in place.
    fn solve(&self, values: &mut [f64]) {
        for (at, row) in self.rows.iter().enumerate() {
            let (done, rest) = values.split_at_mut(at);
            rest[0] = (rest[0] - dot(done, &row[..at])) / row[at];
        }
        for (at, row) in self.rows.iter().enumerate().rev() {
            let (before, rest) = values.split_at_mut(at);
            let value = rest[0] / row[at];
            rest[0] = value;
            before.iter_mut().zip(row).for_each(|(other, entry)| *other -= value * entry);
        }
    }

    /// Takes a row and its column out of the matrix: the rows below have an entry too many, which rotations of two columns take away.
    fn remove(&mut self, at: usize) {
        self.rows.remove(at);
        for pivot in at..self.rows.len() {
            let [a, b] = [self.rows[pivot][pivot], self.rows[pivot][pivot + 1]];
            let length = a.hypot(b);
            let [cosine, sine] = [a / length, b / length];
            for row in &mut self.rows[pivot..] {
                let [a, b] = [row[pivot], row[pivot + 1]];
                (row[pivot], row[pivot + 1]) = (cosine * a + sine * b, cosine * b - sine * a);
            }
            self.rows[pivot].truncate(pivot + 1);
        }
    }
}

/// Returns the sum of products, in eight parts that a processor adds up at a time.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.0.iter().zip(b.0) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    let rest: f64 = a.1.iter().zip(b.1).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

/// Turns of descent and solving at most.
const MOST_TURNS: usize = 30;
/// Passes over the coordinates at most, in a turn.
const MOST_PASSES: usize = 20;
/// The model is least where a turn makes it fall by this part of all that it has fallen.
const NEAR: f64 = 1e-12;
/// Passes after which descent that has not come near is slow (measured: a9a and correlated dense data take 120 and more, w8a 9 to 18,
/// independent features 3 to 6).
const TRIAL_PASSES: usize = 32;
const TRIAL_PART: f64 = 1e-5;
/// Features that are copies of each other have a minimum for this part of their curvature.
const RIDGE: f64 = 1e-11;
const TINY: f64 = 1e-10;

#[cfg(test)]
mod tests {
    use super::*;

    /// A model of `features` features, of which every third is a copy of the one before, and where it begins.
    fn model(features: usize, l1: f64, seed: u64) -> (Vec<f64>, Vec<f64>, Vec<[f64; 2]>, Vec<f64>) {
        let mut random = SplitMix::new(seed, 0);
        let mut uniform = || random.unit() - 0.5;
        let samples: Vec<Vec<f64>> = (0..4 * features)
            .map(|_| {
                let mut sample: Vec<f64> = (0..features).map(|_| uniform()).collect();
                (2..features).step_by(3).for_each(|copy| sample[copy] = sample[copy - 1]);
                sample
            })
            .collect();
        let mut curvature = vec![0.0; features * features];
        for (at, sum) in curvature.iter_mut().enumerate().filter(|(at, _)| at / features >= at % features) {
            *sum = samples.iter().map(|sample| sample[at / features] * sample[at % features]).sum();
        }
        let mut gradient: Vec<f64> = (0..features).map(|_| 4.0 * uniform()).collect();
        (2..features).step_by(3).for_each(|copy| gradient[copy] = gradient[copy - 1]);
        let mut penalties = vec![[l1, 0.1 * l1]; features];
        penalties[0] = [0.0; 2];
        let weights = (0..features).map(|feature| if feature % 2 == 0 { 0.0 } else { uniform() }).collect();
        (curvature, gradient, penalties, weights)
    }

    #[test]
    fn nothing_is_less_than_the_minimum() {
        for (features, l1, seed) in [(1, 0.5, 1), (2, 0.1, 2), (9, 0.3, 3), (30, 1.0, 4), (30, 0.01, 5), (60, 0.2, 6)] {
            let (curvature, gradient, penalties, first) = model(features, l1, seed);
            let mut quadratic =
                Quadratic::new(curvature.clone(), &vec![0.0; features], gradient.clone(), &penalties, &first);
            let promise = quadratic.minimize();
            let least = quadratic.into_weights();
            let of = |row: usize, column: usize| curvature[row.max(column) * features + row.min(column)];
            let value = |weights: &[f64]| -> f64 {
                let d: Vec<f64> = weights.iter().zip(&first).map(|(to, from)| to - from).collect();
                let bent = |row: usize| (0..features).map(|column| d[row] * d[column] * of(row, column)).sum::<f64>();
                let one = |row: usize| {
                    let ([l1, l2], w) = (penalties[row], weights[row]);
                    gradient[row] * d[row] + 0.5 * bent(row) + l1 * w.abs() + 0.5 * l2 * w * w
                };
                (0..features).map(one).sum()
            };
            assert!((value(&first) - value(&least) - promise).abs() < 1e-9 * promise.max(1.0), "{features}");
            for feature in 0..features {
                for change in [-1e-3, 1e-3, -least[feature]] {
                    let mut other = least.clone();
                    other[feature] += change;
                    assert!(value(&other) >= value(&least) - 1e-9, "{features} features, {feature} by {change}");
                }
            }
        }
    }

    #[test]
    fn a_factor_without_a_row_is_that_of_the_smaller_matrix() {
        let entry = |row: usize, column: usize| if row == column { 9.0 } else { 1.0 / (1 + row * column) as f64 };
        let kept = [0, 2, 3, 5];
        let mut factor = Factor::new(6, entry);
        factor.remove(4);
        factor.remove(1);
        let small = Factor::new(4, |row, column| entry(kept[row], kept[column]));
        let solved = |factor: &Factor| {
            let mut values = vec![1.0, -2.0, 3.0, 0.5];
            factor.solve(&mut values);
            values
        };
        for (one, other) in solved(&factor).iter().zip(solved(&small)) {
            assert!((one - other).abs() < 1e-14);
        }
    }
}

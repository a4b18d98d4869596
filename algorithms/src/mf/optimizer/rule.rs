//! Rules for each coordinate: what is remembered of it, and its step. The equations stand in [`super`].

use bytemuck::TransparentWrapper;
use megagrid_stages::simd::{RowKernel, Vector, row_kernel};
use megagrid_stages::{ROW_ALIGN, Shape, Store};

/// What is remembered of a coordinate, and its step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// A step keeps a part of the one before.
    Momentum {
        /// The part μ.
        momentum: f32,
    },
    /// Momentum, with the gradient where it leads to.
    Nesterov {
        /// The part μ.
        momentum: f32,
    },
    /// A gradient over the root of its mean square.
    RmsProp {
        /// What a mean square keeps at a step, ρ.
        rho: f32,
    },
    /// The mean gradient over the root of its mean square.
    Adam {
        /// What a mean gradient keeps at a step, the paper's β1.
        momentum: f32,
        /// What a mean square keeps, the paper's β2.
        rho: f32,
    },
    /// A gradient times the root mean square of steps over that of gradients.
    AdaDelta {
        /// What mean squares keep at a step, ρ.
        rho: f32,
    },
}

/// What is remembered of a row by coordinate: of its first sixteen coordinates one number after the other, of the next sixteen, and
/// so on; with [`Rule::Adam`] the weights of its means at the end.
///
/// Capacity: [`Optimizer::remembered`](super::Optimizer::remembered).
#[derive(TransparentWrapper)]
#[repr(transparent)]
pub struct State([f32]);

impl Store for State {
    type Item = f32;
    const SHAPE: Shape = Shape::Entries;

    #[inline(always)]
    fn view(items: &[f32]) -> &Self {
        Self::wrap_ref(items)
    }

    #[inline(always)]
    fn view_mut(items: &mut [f32]) -> &mut Self {
        Self::wrap_mut(items)
    }
}

impl State {
    /// Returns all that is remembered.
    #[must_use]
    pub fn numbers(&self) -> &[f32] {
        &self.0
    }
}

type Sixteen = [f32; ROW_ALIGN];

impl Rule {
    /// Steps both rows of a rating along its gradients, `error q − lambda p` and `error p − lambda q`, both from the old values.
    #[inline(always)]
    pub(in crate::mf) fn descend(self, rows: [(&mut [f32], &mut State); 2], error: f32, lambda: f32, step: f32) {
        self.apply(Descent { rows, error, lambda }, step);
    }

    /// Steps a row along a gradient.
    #[inline(always)]
    pub(in crate::mf) fn follow(self, row: &mut [f32], state: &mut State, gradient: &[f32], step: f32) {
        self.apply(Along { row, state, gradient }, step);
    }

    #[inline(always)]
    fn apply(self, rows: impl Stepped, step: f32) {
        match self {
            Self::Momentum { momentum } => rows.by(|_| Momentum { momentum, step }),
            Self::Nesterov { momentum } => rows.by(|_| Nesterov { momentum, step }),
            Self::RmsProp { rho } => rows.by(|_| RmsProp { rho, step }),
            Self::Adam { momentum, rho } => rows.by(|state| Adam::next(momentum, rho, step, state)),
            Self::AdaDelta { rho } => rows.by(|_| AdaDelta { rho, step }),
        }
    }
}

/// Rows that are about to be stepped.
trait Stepped {
    /// Steps them, each by the rule that is made from its state.
    fn by<const N: usize, R: Step<N>>(self, rule: impl Fn(&mut State) -> R);
}

/// Steps sixteen coordinates, of each of which `N` numbers are remembered.
trait Step<const N: usize>: Copy {
    /// Returns what is added to them, and what is remembered from now on. All that is 0 stays 0 by a gradient of 0.
    fn step<V: Vector>(self, gradient: V, remembered: [V; N]) -> (V, [V; N]);
}

/// Returns `keep mean + (1 − keep) new`.
#[inline(always)]
fn average<V: Vector>(keep: f32, mean: V, new: V) -> V {
    V::splat(keep).times_plus(mean, V::splat(1.0 - keep).times(new))
}

#[derive(Clone, Copy)]
struct Momentum {
    momentum: f32,
    step: f32,
}

impl Step<1> for Momentum {
    #[inline(always)]
    fn step<V: Vector>(self, gradient: V, [velocity]: [V; 1]) -> (V, [V; 1]) {
        let velocity = V::splat(self.momentum).times_plus(velocity, V::splat(self.step).times(gradient));
        (velocity, [velocity])
    }
}

#[derive(Clone, Copy)]
struct Nesterov {
    momentum: f32,
    step: f32,
}

/// The row is where momentum leads to already, so that gradients are taken there.
impl Step<1> for Nesterov {
    #[inline(always)]
    fn step<V: Vector>(self, gradient: V, [velocity]: [V; 1]) -> (V, [V; 1]) {
        let (momentum, plain) = (V::splat(self.momentum), V::splat(self.step).times(gradient));
        let velocity = momentum.times_plus(velocity, plain);
        (momentum.times_plus(velocity, plain), [velocity])
    }
}

/// Keeps a division by a root of nothing from happening.
const EPSILON: f32 = 1e-8;

#[derive(Clone, Copy)]
struct RmsProp {
    rho: f32,
    step: f32,
}

impl Step<1> for RmsProp {
    #[inline(always)]
    fn step<V: Vector>(self, gradient: V, [squares]: [V; 1]) -> (V, [V; 1]) {
        let squares = average(self.rho, squares, gradient.times(gradient));
        let root = squares.square_root().plus(V::splat(EPSILON));
        (V::splat(self.step).times(gradient).divided_by(root), [squares])
    }
}

#[derive(Clone, Copy)]
struct Adam {
    momentum: f32,
    rho: f32,
    /// The step over the weight of the mean gradient.
    step: f32,
    /// One over the root of the weight of the mean square.
    scale: f32,
}

impl Adam {
    /// Counts a step of a row in the weights of its means.
    #[inline(always)]
    fn next(momentum: f32, rho: f32, step: f32, state: &mut State) -> Self {
        let mut scales = [1.0; 2];
        if let Some(weights) = state.0.last_chunk_mut::<ROW_ALIGN>() {
            for (weight, keep) in weights.iter_mut().zip([momentum, rho]) {
                *weight = keep * *weight + (1.0 - keep);
            }
            scales = [weights[0], weights[1]];
        }
        Self { momentum, rho, step: step / scales[0], scale: 1.0 / scales[1].sqrt() }
    }
}

impl Step<2> for Adam {
    #[inline(always)]
    fn step<V: Vector>(self, gradient: V, [mean, squares]: [V; 2]) -> (V, [V; 2]) {
        let mean = average(self.momentum, mean, gradient);
        let squares = average(self.rho, squares, gradient.times(gradient));
        let root = squares.square_root().times_plus(V::splat(self.scale), V::splat(EPSILON));
        (V::splat(self.step).times(mean).divided_by(root), [mean, squares])
    }
}

#[derive(Clone, Copy)]
struct AdaDelta {
    rho: f32,
    step: f32,
}

impl AdaDelta {
    const EPSILON: f32 = 1e-6;
}

impl Step<2> for AdaDelta {
    #[inline(always)]
    fn step<V: Vector>(self, gradient: V, [squares, steps]: [V; 2]) -> (V, [V; 2]) {
        let epsilon = V::splat(Self::EPSILON);
        let squares = average(self.rho, squares, gradient.times(gradient));
        let scale = steps.plus(epsilon).divided_by(squares.plus(epsilon)).square_root();
        let along = gradient.times(scale);
        (V::splat(self.step).times(along), [squares, average(self.rho, steps, along.times(along))])
    }
}

/// Adds a rule's step to sixteen coordinates.
#[inline(always)]
fn advance<V: Vector, const N: usize>(rule: impl Step<N>, into: &mut Sixteen, gradient: V, state: &mut [Sixteen; N]) {
    let (step, remembered) = rule.step(gradient, state.each_ref().map(V::load));
    V::load(into).plus(step).store(into);
    remembered.into_iter().zip(state).for_each(|(numbers, state)| numbers.store(state));
}

/// The rows of a rating, and its error.
struct Descent<'r> {
    rows: [(&'r mut [f32], &'r mut State); 2],
    error: f32,
    lambda: f32,
}

impl Stepped for Descent<'_> {
    #[inline(always)]
    fn by<const N: usize, R: Step<N>>(self, rule: impl Fn(&mut State) -> R) {
        let [(p, p_state), (q, q_state)] = self.rows;
        let rules = [rule(p_state), rule(q_state)];
        let states = [&mut p_state.0, &mut q_state.0];
        row_kernel(Descend { p, q, states, error: self.error, lambda: self.lambda, rules });
    }
}

struct Descend<'r, R, const N: usize> {
    p: &'r mut [f32],
    q: &'r mut [f32],
    states: [&'r mut [f32]; 2],
    error: f32,
    lambda: f32,
    rules: [R; 2],
}

impl<R: Step<N>, const N: usize> RowKernel for Descend<'_, R, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let (error, lambda) = (V::splat(self.error), V::splat(self.lambda));
        let [p_states, q_states] = self.states.map(|state| state.as_chunks_mut().0.as_chunks_mut::<N>().0);
        let rows = self.p.as_chunks_mut().0.iter_mut().zip(self.q.as_chunks_mut().0);
        for ((p, q), (p_state, q_state)) in rows.zip(p_states.iter_mut().zip(q_states)) {
            let (old_p, old_q) = (V::load(p), V::load(q));
            advance(self.rules[0], p, lambda.subtract_from(old_p, error.times(old_q)), p_state);
            advance(self.rules[1], q, lambda.subtract_from(old_q, error.times(old_p)), q_state);
        }
    }
}

/// A row and its gradient.
struct Along<'r> {
    row: &'r mut [f32],
    state: &'r mut State,
    gradient: &'r [f32],
}

impl Stepped for Along<'_> {
    #[inline(always)]
    fn by<const N: usize, R: Step<N>>(self, rule: impl Fn(&mut State) -> R) {
        let rule = rule(self.state);
        row_kernel(Follow { row: self.row, state: &mut self.state.0, gradient: self.gradient, rule });
    }
}

struct Follow<'r, R, const N: usize> {
    row: &'r mut [f32],
    state: &'r mut [f32],
    gradient: &'r [f32],
    rule: R,
}

impl<R: Step<N>, const N: usize> RowKernel for Follow<'_, R, N> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let states = self.state.as_chunks_mut().0.as_chunks_mut::<N>().0;
        let rows = self.row.as_chunks_mut().0.iter_mut().zip(self.gradient.as_chunks().0);
        for ((row, gradient), state) in rows.zip(states) {
            advance(self.rule, row, V::load(gradient), state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Optimizer;
    use super::*;
    use megagrid_stages::simd::Level;

    /// With μ = ρ = 1/2, of Adam ρ = 3/4.
    const RULES: [Rule; 5] = [
        Rule::Momentum { momentum: 0.5 },
        Rule::Nesterov { momentum: 0.5 },
        Rule::RmsProp { rho: 0.5 },
        Rule::Adam { momentum: 0.5, rho: 0.75 },
        Rule::AdaDelta { rho: 0.5 },
    ];

    /// Where steps of 0.1 along gradients of 1, 1/2 and −2 lead to from 0, by hand: Adam's first is 0.1 (1/2 / 1/2) / √(1/4 / 1/4), its
    /// second 0.1 (1/2 / 3/4) / √(1/4 / 7/16), its third −0.1 (3/4 / 7/8) / √(19/16 / 37/64).
    const EXPECTED: [[f32; 3]; 5] = [
        [0.1, 0.2, 0.05],
        [0.15, 0.25, -0.025],
        [0.141_421_35, 0.223_071_01, 0.087_846_33],
        [0.1, 0.188_191_71, 0.128_385_36],
        [1.414_21e-4, 2.568_91e-4, 5.784_6e-5],
    ];
    const GRADIENTS: [f32; 3] = [1.0, 0.5, -2.0];

    fn state(rule: Rule, width: usize) -> Vec<f32> {
        vec![0.0; Optimizer::ByCoordinate(rule).remembered(width)]
    }

    #[test]
    fn a_row_goes_where_the_equations_lead_and_leaves_padding_alone() {
        for level in Level::available() {
            for (rule, expected) in RULES.into_iter().zip(EXPECTED) {
                let (mut row, mut state) = ([0.0; 48], state(rule, 48));
                for (gradient, expected) in GRADIENTS.into_iter().zip(expected) {
                    let mut all = [0.0; 48];
                    all[..33].fill(gradient);
                    level.run(|| rule.follow(&mut row, State::view_mut(&mut state), &all, 0.1));
                    let most = 1e-6 * (1.0 + expected.abs()).min(100.0 * expected.abs());
                    let is_near = |value: &f32| (value - expected).abs() < most;
                    assert!(row[..33].iter().all(is_near), "{level} {rule:?}: {}, expected {expected}", row[0]);
                    assert!(row[33..].iter().all(|&value| value == 0.0), "{level} {rule:?}");
                }
            }
        }
    }

    #[test]
    fn both_rows_of_a_rating_go_along_its_gradients_from_their_old_values() {
        let (error, lambda, step, width) = (0.5, 0.1, 0.1, 32);
        let row = |of: usize| (0..width).map(|i| ((i * 7 + of * 5) % 11) as f32 / 10.0 - 0.5).collect::<Vec<_>>();
        for level in Level::available() {
            for rule in RULES {
                let [mut p, mut q] = [row(1), row(2)];
                let [mut p_state, mut q_state] = [state(rule, width), state(rule, width)];
                let [mut alone_p, mut alone_q] = [p.clone(), q.clone()];
                let [mut state_p, mut state_q] = [state(rule, width), state(rule, width)];
                for _ in 0..3 {
                    let along = |own: &[f32], other: &[f32]| {
                        other.iter().zip(own).map(|(other, own)| error * other - lambda * own).collect::<Vec<f32>>()
                    };
                    let (of_p, of_q) = (along(&alone_p, &alone_q), along(&alone_q, &alone_p));
                    level.run(|| {
                        rule.follow(&mut alone_p, State::view_mut(&mut state_p), &of_p, step);
                        rule.follow(&mut alone_q, State::view_mut(&mut state_q), &of_q, step);
                        let rows =
                            [(&mut p[..], State::view_mut(&mut p_state)), (&mut q, State::view_mut(&mut q_state))];
                        rule.descend(rows, error, lambda, step);
                    });
                }
                let both = p.iter().chain(&q).zip(alone_p.iter().chain(&alone_q));
                for (found, expected) in both {
                    assert!((found - expected).abs() < 1e-5, "{level} {rule:?}: {found}, expected {expected}");
                }
            }
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let refused = |rule| Optimizer::ByCoordinate(rule).check().unwrap_err().to_string();
        assert_eq!(
            refused(Rule::Momentum { momentum: 1.0 }),
            "momentum is 1; expected 0 or a number above 0 and below 1"
        );
        assert_eq!(refused(Rule::AdaDelta { rho: -0.1 }), "rho is -0.1; expected 0 or a number above 0 and below 1");
        assert!(refused(Rule::Adam { momentum: 0.9, rho: f32::NAN }).starts_with("rho is NaN"));
        assert!(RULES.iter().all(|&rule| Optimizer::ByCoordinate(rule).check().is_ok()));
    }
}

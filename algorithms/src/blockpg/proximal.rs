//! What samples and features know, and how they change: the proximal Newton step of a weight, the shift of a margin.

use bytemuck::{Pod, Zeroable};
use megagrid_stages::Additive;

use super::control::{State, Totals};
use super::directions::DIRECTIONS;
use super::sigmoid::sigmoid;

/// What a sample's master knows.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Margin {
    /// y w·x.
    pub margin: f64,
    /// The label y, −1 or 1.
    pub label: f64,
    /// The sample's weight c.
    pub weight: f64,
    /// What the score w·x has changed by since the last leap, and from leap to leap before it.
    pub course: [f64; DIRECTIONS],
}

impl Margin {
    /// Begins with a score w·x, the sample's label, −1 or 1, and its weight.
    #[must_use]
    pub fn new(score: f64, label: f32, weight: f32) -> Self {
        let label = f64::from(label);
        Self { margin: label * score, label, weight: f64::from(weight), ..Self::default() }
    }

    /// Returns the parabola at the margin.
    #[inline(always)]
    #[must_use]
    pub fn parabola(&self) -> Parabola {
        let rate = sigmoid(-self.margin);
        let slope = self.weight * rate;
        Parabola { slope: self.label * slope, curvature: slope * (1.0 - rate), shift: 0.0 }
    }

    /// Shifts the score, and returns the parabola there.
    #[inline(always)]
    #[must_use]
    pub fn settle(&mut self, shift: f64) -> Parabola {
        self.margin += self.label * shift;
        self.course[0] += shift;
        self.parabola()
    }
}

/// What all replicas of a sample know: the quadratic model of its loss by its score w·x.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Parabola {
    /// Minus the slope: y cτ when the sample was last settled, and since then as the model has it.
    pub slope: f64,
    /// cτ(1 − τ).
    pub curvature: f64,
    /// What the score has changed by since the sample was last settled.
    pub shift: f64,
}

impl Parabola {
    /// Shifts the score, and returns the shift times minus the slope before it.
    #[inline(always)]
    pub fn shift(&mut self, change: f64) -> f64 {
        // Scores must not drift from the weights; slopes are taken anew in each iteration.
        self.shift += change;
        let fall = change * self.slope;
        self.slope -= change * self.curvature;
        fall
    }
}

/// What all replicas of a feature know.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Weight {
    /// w.
    pub value: f64,
    /// No step is longer.
    pub trust: f32,
    /// 1 while iterations that are not full pass the feature by, 2 in the full one that wakes it.
    pub resting: u16,
    /// 1 if it has no penalty.
    pub free: u16,
}

impl Weight {
    /// Tells whether iterations that are not full pass the feature by.
    #[inline(always)]
    pub(super) fn rests(&self) -> bool {
        self.resting == 1
    }

    /// Lets a full iteration visit a feature that rests.
    #[inline(always)]
    pub(super) fn wake(&mut self) {
        self.resting = 2;
    }

    /// Tells whether the feature has been awake since before the iteration.
    #[inline(always)]
    pub(super) fn is_active(&self) -> bool {
        self.resting == 0
    }

    /// Returns the factor of l1 and l2.
    #[inline(always)]
    pub(super) fn penalty(&self) -> f64 {
        f64::from(1 - self.free)
    }

    /// Returns l1 and l2 of the weight.
    #[inline(always)]
    pub(super) fn penalties(&self, state: &State) -> [f64; 2] {
        [state.l1, state.l2].map(|all| all * self.penalty())
    }

    /// Tells a worker how far the weight is from its optimum, by the loss's slope.
    #[inline(always)]
    pub(super) fn report(&self, slope: f64, state: &State, worker: &mut Totals) {
        worker.optimality.see(self.value, slope, self.penalties(state));
        worker.visited += 1;
    }
}

/// First and second derivative of the loss by a weight, and the steps of a [descent](super::Descend), which are of one worker.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Derivatives {
    /// g.
    pub gradient: f64,
    /// u.
    pub curvature: f64,
    /// The step of the last pass.
    pub step: f64,
    /// The steps of all passes together.
    pub change: f64,
}

impl Additive for Derivatives {
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.gradient += other.gradient;
        self.curvature += other.curvature;
    }
}

/// What a feature's master knows: a cache line, which is left alone where a feature rests.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Region {
    /// The largest |x| of the feature, or the root of their mean square.
    pub reach: f64,
    /// Where the next leap leads, before it is limited.
    pub ahead: f64,
    /// What the weight has changed by since the last leap, and from leap to leap before it.
    pub course: [f64; DIRECTIONS],
    /// The loss's slope by the weight after its last step.
    pub gradient: f64,
}

impl Region {
    /// The region of a feature before its first step.
    #[must_use]
    pub fn new(reach: f32) -> Self {
        Self { reach: f64::from(reach.max(f32::MIN_POSITIVE)), ..Self::default() }
    }

    /// Returns a weight in the region, which rests until it was visited. `is_free`: without penalty.
    #[must_use]
    pub fn weight(&self, value: f64, is_free: bool) -> Weight {
        Weight { value, trust: (FIRST_SHIFT / self.reach) as f32, resting: 1, free: u16::from(is_free) }
    }

    /// Takes a proximal Newton step within the trust region, and tells the worker what it found.
    #[inline(always)]
    #[must_use]
    pub fn step(&mut self, weight: Weight, sums: Derivatives, state: &State, worker: &mut Totals) -> Weight {
        let (w, [l1, l2]) = (weight.value, weight.penalties(state));
        let (g, u) = (sums.gradient + l2 * w, sums.curvature + l2 + TINY);
        let shrunk = state.damping * SAFETY * u;
        let (up, down) = (shrunk * w - g - l1, shrunk * w - g + l1);
        let goal = (up.max(0.0) + down.min(0.0)) / shrunk;
        let trust = f64::from(weight.trust) / state.damping;
        let d = goal.clamp(w - trust, w + trust) - w;
        worker.curvature += u * d * d;
        worker.fall[0] -= sums.gradient * d;
        worker.changed += u64::from(d != 0.0);
        weight.report(sums.gradient, state, worker);
        self.went(weight, d, sums.gradient + sums.curvature * d, state)
    }

    /// Notes a step, after which the loss has a slope, and decides whether the weight rests.
    #[inline(always)]
    #[must_use]
    pub(super) fn went(&mut self, weight: Weight, d: f64, gradient: f64, state: &State) -> Weight {
        let [l1, _] = weight.penalties(state);
        // One that rested has no course.
        let is_still = weight.value == 0.0 && d == 0.0 && (!weight.is_active() || self.course == [0.0; DIRECTIONS]);
        if is_still && gradient.abs() < l1 - state.threshold {
            return Weight { resting: 1, ..weight };
        }
        self.course[0] += d;
        self.gradient = gradient;
        let trust = (2.0 * d.abs() + MORE_SHIFT / self.reach).min(LAST_SHIFT / self.reach);
        Weight { value: weight.value + d, trust: trust as f32, resting: 0, ..weight }
    }
}

/// The margin that a step of a feature may shift a sample by: at first, more than twice the last, at most (DARLIN).
const FIRST_SHIFT: f64 = 1.0;
const MORE_SHIFT: f64 = 0.1;
const LAST_SHIFT: f64 = 5.0;
/// Keeps a step finite where there is no curvature.
pub(super) const TINY: f64 = 1e-10;
/// Steps are this much shorter than Newton's.
const SAFETY: f64 = 1.1;

//! Steps that servers take themselves: AdaptiveRevision (McMahan and Streeter, "Delay-Tolerant Algorithms for Asynchronous Distributed
//! Online Learning", NIPS 2014), which users of IterStore and MLtuner take for matrix factorization (thesis, section 5.4).

use bytemuck::{Pod, Zeroable};

use super::element::Element;

/// A parameter that is stepped against gradients where it is stored, with a step of its own that falls with the gradients that it has
/// seen, as AdaGrad's does, and that takes delays into account: a gradient that comes after others which its sender had not read
/// counts as if all had come at once, and the steps of those are revised to what they would have been.
///
/// With g the gradient, b the sum of gradients that came since it was computed, z a sum of squares from 1 on and α the rate:
///
/// ```text
/// η₀ = α / √z′     z ← z + g² + 2gb     z′ ← max(z′, z)     η = α / √z′
/// x ← x - ηg + (η₀ - η)b
/// ```
///
/// Parameters are stored before they are updated ([`Client::store`](super::Client::store)). Gradients that a process sends together
/// count as computed where the first of them was; of one reading this is exact.
///
/// # Examples
/// Towards 3, along the gradient of (x - 3)² / 2:
/// ```
/// use megagrid_baselines::server::{AdaRevision, Client, Options, Preset, ServerOptions, Tables, TabletServer};
///
/// let mut tables = Tables::new();
/// let parameters = tables.add::<AdaRevision>(1);
/// let server = TabletServer::start("127.0.0.1:0", &tables, ServerOptions::new(0, 1, 1))?;
/// let client = Client::connect(&[server.address()], &tables, Options::preset(Preset::Essp, 1, 0))?;
/// client.store(parameters, &[0], &[AdaRevision::new(0.0)])?;
/// let mut worker = client.worker(0)?;
/// for _ in 0..40 {
///     let x = worker.read(parameters, 0, 0)?[0];
///     worker.update(parameters, 0, &[x.update(x.value() - 3.0, 2.0)])?;
///     worker.clock()?;
/// }
/// assert!((worker.read(parameters, 0, 0)?[0].value() - 3.0).abs() < 1e-3);
/// # Ok::<(), megagrid_baselines::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct AdaRevision {
    /// x; of an update: the rate.
    value: f32,
    /// The sum of all gradients; of an update: the gradient.
    gradients: f32,
    /// z; of an update: the sum of all gradients that the parameter had seen when it was read.
    squares: f32,
    /// z'; 0 of an update.
    largest: f32,
}

impl AdaRevision {
    /// Returns a parameter to begin with.
    #[must_use]
    pub fn new(value: f32) -> Self {
        Self { value, gradients: 0.0, squares: 1.0, largest: 1.0 }
    }

    /// Returns the parameter's value.
    #[must_use]
    pub fn value(&self) -> f32 {
        self.value
    }

    /// Returns an update by a gradient at this parameter, as it was read. The rate is above 0.
    #[must_use]
    pub fn update(&self, gradient: f32, rate: f32) -> Self {
        Self { value: rate, gradients: gradient, squares: self.gradients, largest: 0.0 }
    }

    fn is_update(&self) -> bool {
        self.largest == 0.0
    }

    fn step(&mut self, update: &Self) {
        let (rate, gradient, between) = (update.value, update.gradients, self.gradients - update.squares);
        let before = rate / self.largest.sqrt();
        self.squares += gradient * gradient + 2.0 * gradient * between;
        self.largest = self.largest.max(self.squares);
        let step = rate / self.largest.sqrt();
        self.value += (before - step) * between - step * gradient;
        self.gradients += gradient;
    }
}

impl Element for AdaRevision {
    const NAME: &'static str = "f32 (AdaptiveRevision)";
    const IDENTITY: Self = Self { value: 0.0, gradients: 0.0, squares: 0.0, largest: 0.0 };

    fn merge(&mut self, update: &Self) {
        if *update == Self::IDENTITY {
            return;
        }
        if !self.is_update() {
            self.step(update);
        } else if *self == Self::IDENTITY {
            *self = *update;
        } else {
            self.gradients += update.gradients;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE: f32 = 0.3;

    /// The value after steps of AdaGrad, whose sum of squares begins with 1.
    fn adagrad(gradients: &[f32]) -> f32 {
        let step = |(value, squares): (f32, f32), gradient: &f32| {
            let squares = squares + gradient * gradient;
            (value - RATE / squares.sqrt() * gradient, squares)
        };
        gradients.iter().fold((0.5, 1.0), step).0
    }

    #[test]
    fn without_delay_it_is_adagrad() {
        let (mut parameter, gradients) = (AdaRevision::new(0.5), [0.7, -2.0, 0.1, 3.0]);
        for gradient in gradients {
            parameter.merge(&parameter.clone().update(gradient, RATE));
        }
        assert!((parameter.value() - adagrad(&gradients)).abs() < 1e-6);
    }

    proptest! {
        /// Gradients of one sign that were computed at once are stepped along as their sum would be, in whatever order and together or
        /// not; so are sums of one process, in which identities change nothing.
        #[test]
        fn gradients_at_once_count_as_their_sum(
            gradients in proptest::collection::vec(0.01_f32..3.0, 1..6), together in 0_usize..6, sign in prop_oneof![Just(-1.0_f32), Just(1.0)]
        ) {
            let first = AdaRevision::new(0.5);
            let (mut parameter, mut sum) = (first, AdaRevision::IDENTITY);
            for (at, gradient) in gradients.iter().enumerate() {
                let update = first.update(sign * gradient, RATE);
                if at < together {
                    sum.merge(&update);
                    sum.merge(&AdaRevision::IDENTITY);
                } else {
                    parameter.merge(&update);
                }
            }
            parameter.merge(&sum);
            let all: f32 = gradients.iter().map(|gradient| sign * gradient).sum();
            prop_assert!((parameter.value() - adagrad(&[all])).abs() < 1e-5);
        }

        /// Against the paper's algorithm in double precision, with gradients that come late.
        #[test]
        fn late_gradients_are_revised(steps in proptest::collection::vec((-2.0_f32..2.0, 0_usize..4), 1..30)) {
            let (mut x, mut sum, mut z, mut largest) = (0.5_f64, 0.0, 1.0_f64, 1.0_f64);
            let mut sums = vec![sum];
            let mut read = vec![AdaRevision::new(0.5)];
            for (gradient, delay) in steps {
                let at = read.len() - 1 - delay.min(read.len() - 1);
                let mut parameter = read[read.len() - 1];
                parameter.merge(&read[at].update(gradient, RATE));
                read.push(parameter);

                let (g, back, rate) = (f64::from(gradient), sum - sums[at], f64::from(RATE));
                let before = rate / largest.sqrt();
                z += g * g + 2.0 * g * back;
                largest = largest.max(z);
                let step = rate / largest.sqrt();
                x -= step * g;
                x += (before - step) * back;
                sum += g;
                sums.push(sum);
                prop_assert!((f64::from(parameter.value()) - x).abs() < 1e-3, "{} is not {x}", parameter.value());
            }
        }
    }
}

//! Random numbers that depend only on a seed and a position, so that work on any number of threads draws the same.

/// SplitMix64, a generator of 64 random bits with 64 bits of state [Steele, Lea, Flood: Fast Splittable Pseudorandom
/// Number Generators, OOPSLA 2014]. One is made per edge, vertex or chunk, from its number.
#[derive(Clone, Debug)]
pub struct SplitMix {
    state: u64,
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix {
    /// Makes the generator of item number `stream` under a seed. Streams of one seed are independent.
    #[inline]
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        // Mixed twice: the states of neighbouring streams must not be steps of one sequence.
        Self { state: mix(mix(seed.wrapping_add(GOLDEN_GAMMA)) ^ stream.wrapping_mul(GOLDEN_GAMMA)) }
    }

    /// Returns the seed of what a worker draws in a clock, counted from 0, of an iteration, counted from 1.
    #[must_use]
    pub fn seed_of_clock(seed: u64, worker: usize, clock: u64, iteration: u64) -> u64 {
        Self::new(seed, (clock << 12 | worker as u64) ^ iteration.rotate_right(16)).bits()
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        mix(self.state)
    }

    /// Returns a number that is uniform in `0..1`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number in `0..bound`, uniform up to `bound / 2^64`.
    ///
    /// # Panics
    /// In debug builds, where `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "nothing is below 0");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Shuffles items; every permutation is as likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[inline]
fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform_within_and_across_streams() {
        for across in [false, true] {
            let mut counts = [0_u32; 10];
            let mut one = SplitMix::new(7, 0);
            for i in 0..10_000 {
                let draw = if across { SplitMix::new(7, i).below(10) } else { one.below(10) };
                counts[draw as usize] += 1;
            }
            // Binomial with deviation 30: six of them.
            assert!(counts.iter().all(|&count| count.abs_diff(1000) < 180), "{counts:?}");
        }
    }

    #[test]
    fn units_have_the_mean_and_variance_of_the_uniform_distribution() {
        let mut random = SplitMix::new(1, 2);
        let draws: Vec<f64> = (0..100_000).map(|_| random.unit()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.01 && (variance - 1.0 / 12.0).abs() < 0.002, "{mean} {variance}");
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
    }
}

//! Sums that do not depend on the order of what is added.

/// Powers of two that share an integer: its terms have 53 bits more, and 2^42 of them fit.
const EXPONENTS: usize = 32;
const EXPONENT_BITS: u32 = 11;
const FRACTION_BITS: u32 = 52;

/// A sum of finite numbers, exact until it is rounded: an integer for each few powers of two.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExactSum(Box<[i128]>);

impl ExactSum {
    const LEN: usize = (1 << EXPONENT_BITS) / EXPONENTS;

    #[inline]
    pub(crate) fn add(&mut self, number: f64) {
        if self.0.is_empty() {
            self.0 = vec![0; Self::LEN].into();
        }
        let bits = number.to_bits();
        let exponent = (bits >> FRACTION_BITS) as usize % (1 << EXPONENT_BITS);
        let fraction = bits % (1 << FRACTION_BITS);
        // The smallest numbers have no leading one.
        let digits = if exponent == 0 { 2 * fraction } else { 1 << FRACTION_BITS | fraction };
        let term = i128::from(digits) << (exponent % EXPONENTS);
        self.0[exponent / EXPONENTS] += if number < 0.0 { -term } else { term };
    }

    pub(crate) fn and(mut self, more: &Self) -> Self {
        if self.0.is_empty() {
            return more.clone();
        }
        self.0.iter_mut().zip(&more.0).for_each(|(part, more)| *part += more);
        self
    }

    pub(crate) fn rounded(&self) -> f64 {
        // In two steps, neither of which leaves the range of numbers.
        let scale = |at: usize| 2_f64.powi((EXPONENTS * at) as i32 - 1000);
        self.0.iter().enumerate().map(|(at, &part)| part as f64 * 2_f64.powi(-75) * scale(at)).sum()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        bytemuck::pod_collect_to_vec(&self.0)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let parts: Vec<i128> = bytemuck::pod_collect_to_vec(bytes);
        (parts.is_empty() || parts.len() == Self::LEN).then(|| Self(parts.into()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(numbers: impl IntoIterator<Item = f64>) -> ExactSum {
        let mut sum = ExactSum::default();
        numbers.into_iter().for_each(|number| sum.add(number));
        sum
    }

    proptest! {
        #[test]
        fn a_number_is_its_own_sum(number in any::<f64>().prop_filter("finite", |number| number.is_finite())) {
            prop_assert_eq!(sum([number]).rounded(), number);
            prop_assert_eq!(sum([number, -number]).rounded(), 0.0);
        }

        #[test]
        fn order_does_not_matter(numbers in prop::collection::vec(-1e30..1e30_f64, 0..100), cut in 0..100_usize) {
            let (first, rest) = numbers.split_at(cut.min(numbers.len()));
            let parts = sum(rest.iter().copied()).and(&sum(first.iter().rev().copied()));
            prop_assert_eq!(parts.rounded(), sum(numbers.iter().copied()).rounded());
            prop_assert_eq!(ExactSum::from_bytes(&parts.to_bytes()), Some(parts));
        }
    }

    #[test]
    fn what_is_exact_anyway_stays_the_same() {
        let ratings = || (0..10_000).map(|at| f64::from((at * 7919 % 97) as f32 / 10.0));
        assert_eq!(sum(ratings()).rounded(), ratings().sum::<f64>());
        assert_eq!(sum([1e300, 1.0, -1e300]).rounded(), 1.0);
        assert_eq!(sum([]).rounded(), 0.0);
    }
}

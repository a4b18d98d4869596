//! The logistic function, inlined where the compiler can overlap many of them; the system's `exp` is a call.

/// Returns 1 / (1 + exp(−x)), with a relative error of at most 3e-7 for x above −87, below which it returns that of −87.
#[inline(always)]
#[must_use]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Returns exp(x), x limited to ±87: 2^n exp(r) with |r| ≤ log(2)/2, exp(r) by its series.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding it leaves no bits for a fraction, and the integer in the low ones.
    const ROUND: f32 = 12_582_912.0;
    /// log(2) in two parts, the first with few bits, so that its multiples are exact.
    const LN_2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
    let x = x.clamp(-87.0, 87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN_2[0] - n * LN_2[1];
    // Even and odd terms by themselves, so that neither waits for the other.
    let s = r * r;
    let even = 1.0 + s * (1.0 / 2.0 + s * (1.0 / 24.0 + s * (1.0 / 720.0)));
    let odd = 1.0 + s * (1.0 / 6.0 + s * (1.0 / 120.0 + s * (1.0 / 5040.0)));
    let power = shifted.to_bits().wrapping_add(127) << 23;
    (even + r * odd) * f32::from_bits(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_exact_function() {
        for n in -86_999..=86_999 {
            let x = n as f32 * 1e-3;
            let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
            let error = f64::from(sigmoid(x)) / exact - 1.0;
            assert!(error.abs() < 3e-7, "{x}: {}, exactly {exact}", sigmoid(x));
        }
        assert!(sigmoid(f32::NEG_INFINITY) < 1e-37 && sigmoid(f32::INFINITY) == 1.0 && sigmoid(f32::NAN).is_nan());
    }
}

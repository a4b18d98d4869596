//! The logistic function, inlined where the compiler can overlap many of them; the system's `exp` is a call.

/// Returns 1 / (1 + exp(−x)), with a relative error of at most 1e-15 for x above −700, below which it returns that of −700.
#[inline(always)]
#[must_use]
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

/// Returns 1 / (1 + exp(m)), a sample's rate at a margin m, and its loss log(1 + exp(−m)) as the logarithm of a factor from 1 to 2 and a rest.
#[inline(always)]
#[must_use]
pub fn logistic(margin: f64) -> (f64, f64, f64) {
    let small = exp(-margin.abs());
    let factor = 1.0 + small;
    (if margin < 0.0 { 1.0 } else { small } / factor, factor, (-margin).max(0.0))
}

/// Returns exp(x), x limited to ±700: 2^n exp(r) with |r| ≤ log(2)/2, exp(r) by its series.
#[inline(always)]
fn exp(x: f64) -> f64 {
    /// Adding it leaves no bits for a fraction, and the integer in the low ones.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// log(2) in two parts, the first with few bits, so that its multiples are exact.
    const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    /// 1 / k! of even and odd k.
    const EVEN: [f64; 7] =
        [1.0, 1.0 / 2.0, 1.0 / 24.0, 1.0 / 720.0, 1.0 / 40_320.0, 1.0 / 3_628_800.0, 1.0 / 479_001_600.0];
    const ODD: [f64; 7] =
        [1.0, 1.0 / 6.0, 1.0 / 120.0, 1.0 / 5040.0, 1.0 / 362_880.0, 1.0 / 39_916_800.0, 1.0 / 6_227_020_800.0];
    let x = x.clamp(-700.0, 700.0);
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN_2[0] - n * LN_2[1];
    // Even and odd terms by themselves, and both by pairs (Estrin's scheme): a sum that waits for the one before it, term after term, takes twice
    // as long.
    let s = r * r;
    let (s2, s4) = (s * s, s * s * (s * s));
    let series = |[a, b, c, d, e, f, g]: [f64; 7]| (a + b * s) + (c + d * s) * s2 + ((e + f * s) + g * s2) * s4;
    let power = shifted.to_bits().wrapping_add(1023) << 52;
    (series(EVEN) + r * series(ODD)) * f64::from_bits(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_the_exact_function() {
        for n in -69_999..=69_999 {
            let x = f64::from(n) * 1e-2;
            let exact = 1.0 / (1.0 + (-x).exp());
            let error = sigmoid(x) / exact - 1.0;
            assert!(error.abs() < 1e-15, "{x}: {}, exactly {exact}", sigmoid(x));
        }
        assert!(sigmoid(f64::NEG_INFINITY) < 1e-300 && sigmoid(f64::INFINITY) == 1.0 && sigmoid(f64::NAN).is_nan());
    }
}

//! Numbers and texts as they stand in a page.

/// Writes a number in few characters.
pub fn short(number: f64) -> String {
    let size = number.abs();
    let text = if number == 0.0 {
        "0".to_owned()
    } else if !(1e-3..1e5).contains(&size) {
        let power = size.log10().floor() as i32;
        let digits = format!("{:.2}", number / 10f64.powi(power));
        format!("{}×10{}", trimmed(&digits), superscript(power))
    } else if number.fract() == 0.0 {
        format!("{number}")
    } else {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
        trimmed(&format!("{number:.digits$}")).to_owned()
    };
    text.replace('-', "−")
}

/// Writes a number with the digits that a reader compares.
pub fn precise(number: f64) -> String {
    if number != 0.0 && !(1e-3..1e9).contains(&number.abs()) { format!("{number:.4e}") } else { format!("{number:.5}") }
}

/// Writes seconds with the unit that suits them.
pub fn seconds(number: f64) -> String {
    let steps = [(1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "µs")];
    let (_, times, unit) = steps.into_iter().find(|(from, ..)| number.abs() >= *from).unwrap_or(steps[2]);
    format!("{} {unit}", short(number * times))
}

/// Writes a power of ten's exponent.
pub fn superscript(power: i32) -> String {
    let digit = |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(c.to_digit(10).unwrap_or(0) as usize).unwrap_or(c);
    let digits: String = power.abs().to_string().chars().map(digit).collect();
    if power < 0 { format!("⁻{digits}") } else { digits }
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// Makes a text safe to stand in a page.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(0.25), "0.25");
        assert_eq!(short(-12.5), "−12.5");
        assert_eq!(short(1_250_000.0), "1.25×10⁶");
        assert_eq!(short(2e-5), "2×10⁻⁵");
        assert_eq!(seconds(0.01234), "12.34 ms");
        assert_eq!(seconds(0.0), "0 µs");
    }
}

//! A learning curve drawn with characters.

/// Lines of the plot.
const HEIGHT: usize = 12;
/// Characters for each point.
const STEP: usize = 3;

/// One line of points.
pub struct Series<'s> {
    /// The character of its points.
    pub mark: char,
    /// Its values, one for each iteration.
    pub values: &'s [f64],
}

/// Draws series over iterations, and a level across; later series are drawn over earlier ones.
pub fn draw(series: &[Series<'_>], level: f64) -> String {
    let values = series.iter().flat_map(|one| one.values).copied().chain([level]).filter(|value| value.is_finite());
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let span = (high - low).max(f64::MIN_POSITIVE);
    let line_of = |value: f64| (((high - value) / span * (HEIGHT - 1) as f64).round() as usize).min(HEIGHT - 1);
    let width = series.iter().map(|one| one.values.len()).max().unwrap_or(0) * STEP;
    let mut lines = vec![vec![' '; width]; HEIGHT];
    lines[line_of(level)].fill('─');
    for one in series {
        for (at, value) in one.values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
            lines[line_of(*value)][at * STEP + STEP / 2] = one.mark;
        }
    }
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let value = high - span * at as f64 / (HEIGHT - 1) as f64;
        let line: String = line.iter().collect();
        text.push_str(&format!("{value:>8.3} ┤{}\n", line.trim_end()));
    }
    text.push_str(&format!(
        "{:>8} └{}\n{:>10}1{:>end$}\n",
        "",
        "─".repeat(width),
        "",
        width / STEP,
        end = width.max(2) - 2
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_and_level_stand_where_they_belong() {
        let falling = [3.0, 2.0, 1.0];
        let plot = draw(&[Series { mark: '*', values: &falling }], 1.0);
        let lines: Vec<&str> = plot.lines().collect();
        assert!(lines[0].starts_with("   3.000 ┤ *"), "{plot}");
        assert!(lines[HEIGHT - 1].starts_with("   1.000 ┤───────*─"), "{plot}");
        assert_eq!(plot.matches('*').count(), 3);
    }

    #[test]
    fn nothing_to_draw_and_no_number_are_no_panic() {
        assert!(!draw(&[], 1.0).is_empty());
        assert!(!draw(&[Series { mark: '*', values: &[f64::NAN, f64::INFINITY] }], f64::NAN).is_empty());
    }
}

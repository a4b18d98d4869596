//! Axes: where values lie on a plot, and what is written beside them.

use super::figure::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH};
use super::numbers::{escape, short, superscript};

/// What equal distances on an axis stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences.
    Linear,
    /// Equal ratios.
    Log,
}

impl Scale {
    /// Chooses ratios where all values are above zero, and the largest is more than `ratio` times the smallest.
    pub fn of(values: impl Iterator<Item = f64>, ratio: f64) -> Self {
        let values = values.filter(|value| value.is_finite());
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if low > 0.0 && high / low > ratio { Self::Log } else { Self::Linear }
    }

    fn to(self, value: f64) -> f64 {
        if self == Self::Log { value.log10() } else { value }
    }

    /// Tells whether a value has a place.
    pub fn holds(self, value: f64) -> bool {
        value.is_finite() && (self == Self::Linear || value > 0.0)
    }
}

/// One axis: the range of what it shows.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Ends, as logarithms on an axis of ratios.
    ends: (f64, f64),
    scale: Scale,
    /// Whether marks stand only at whole numbers.
    whole: bool,
}

impl Axis {
    /// Spans values, which its scale has to hold.
    pub fn over(values: impl Iterator<Item = f64>, scale: Scale) -> Self {
        let ends =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = widened((scale.to(ends.0), scale.to(ends.1)));
        Self { ends: (low, high), scale, whole: false }
    }

    /// Moves the lower end outwards.
    pub fn with_room_below(mut self, below: f64) -> Self {
        self.ends.0 -= below;
        self
    }

    /// Marks only whole numbers.
    pub fn of_whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Returns how far along the axis a value is, 0 to 1.
    pub fn part(&self, value: f64) -> f64 {
        (self.scale.to(value) - self.ends.0) / (self.ends.1 - self.ends.0)
    }

    /// Returns round values on the axis with their labels, and the power of ten that all labels leave out.
    pub fn marks(&self) -> (Vec<(f64, String)>, i32) {
        match self.scale {
            Scale::Linear => linear_marks(self.ends, if self.whole { 1.0 } else { 0.0 }),
            Scale::Log => (log_marks(self.ends), 0),
        }
    }
}

fn widened((low, high): (f64, f64)) -> (f64, f64) {
    if !(low.is_finite() && high.is_finite()) {
        (0.0, 1.0)
    } else if high > low {
        (low, high)
    } else {
        let margin = if low == 0.0 { 1.0 } else { low.abs() * 0.05 };
        (low - margin, high + margin)
    }
}

/// Three to ten multiples of 1, 2 or 5 times a power of ten.
fn linear_marks((low, high): (f64, f64), least: f64) -> (Vec<(f64, String)>, i32) {
    let rough = (high - low) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0].map(|times| times * power).into_iter().rfind(|step| *step <= rough).unwrap_or(power).max(least);
    let largest = low.abs().max(high.abs());
    let left_out = if (1e-2..1e5).contains(&largest) { 0 } else { (largest.log10() / 3.0).floor() as i32 * 3 };
    let unit = 10f64.powi(left_out);
    let digits = (-(step / unit).log10().floor()).clamp(0.0, 9.0) as usize;
    let first = (low / step - 1e-9).ceil() as i64;
    let values = (first..).map(|at| at as f64 * step).take_while(|mark| *mark <= high + step * 1e-9).take(16);
    let label = |value: f64| format!("{:.digits$}", value / unit + 0.0).replace('-', "−");
    (values.map(|value| (value, label(value))).collect(), left_out)
}

/// Powers of ten; 2 and 5 times them too where there are few.
fn log_marks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let decades = high - low;
    let times: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let skip = (decades / 6.0).ceil().max(1.0) as i32;
    let powers = (low.floor() as i32..=high.ceil() as i32).filter(|power| power.rem_euclid(skip) == 0);
    let values = powers.flat_map(|power| times.iter().map(move |&times| (times, power, times * 10f64.powi(power))));
    let inside = values.filter(|(.., value)| (low - 1e-9..=high + 1e-9).contains(&value.log10()));
    let label = |times: f64, power: i32, value: f64| match times == 1.0 && !(-3..=4).contains(&power) {
        true => format!("10{}", superscript(power)),
        false => short(value),
    };
    inside.map(|(times, power, value)| (value, label(times, power, value))).collect()
}

/// Both axes of a plot.
pub struct Axes {
    pub x: Axis,
    pub y: Axis,
}

impl Axes {
    /// Returns where a point lies.
    pub fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = LEFT + self.x.part(x) * (WIDTH - LEFT - RIGHT);
        (across, HEIGHT - BOTTOM - self.y.part(y) * (HEIGHT - TOP - BOTTOM))
    }

    /// Draws marks on both axes, grid lines, and the names of the axes with their units.
    pub fn frame(&self, x_name: &str, y_name: &str) -> String {
        let bottom = HEIGHT - BOTTOM;
        let mut svg = String::new();
        let (marks, x_left_out) = self.x.marks();
        for (x, label) in marks {
            let across = LEFT + self.x.part(x) * (WIDTH - LEFT - RIGHT);
            svg.push_str(&format!("<line class=tick x1={across:.1} x2={across:.1} y1={bottom} y2={} />", bottom + 4.0));
            svg.push_str(&format!("<text x={across:.1} y={} text-anchor=middle>{label}</text>", bottom + 17.0));
        }
        let (marks, y_left_out) = self.y.marks();
        for (y, label) in marks {
            let up = bottom - self.y.part(y) * (HEIGHT - TOP - BOTTOM);
            svg.push_str(&format!("<line class=grid x1={LEFT} x2={} y1={up:.1} y2={up:.1} />", WIDTH - RIGHT));
            svg.push_str(&format!("<text x={} y={:.1} text-anchor=end>{label}</text>", LEFT - 6.0, up + 4.0));
        }
        svg.push_str(&format!("<line class=axis x1={LEFT} x2={} y1={bottom} y2={bottom} />", WIDTH - RIGHT));
        svg.push_str(&format!("<text class=name x=2 y=11>{}</text>", named(y_name, y_left_out)));
        let (middle, below) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 5.0);
        svg + &format!("<text class=name x={middle} y={below} text-anchor=middle>{}</text>", named(x_name, x_left_out))
    }
}

fn named(name: &str, left_out: i32) -> String {
    let name = escape(name);
    if left_out == 0 { name } else { format!("{name} (×10{})", superscript(left_out)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels((marks, left_out): (Vec<(f64, String)>, i32)) -> (String, i32) {
        (marks.into_iter().map(|mark| mark.1).collect::<Vec<_>>().join(" "), left_out)
    }

    #[test]
    fn marks_are_round_and_inside_and_differ() {
        let of = |low: f64, high: f64| labels(Axis::over([low, high].into_iter(), Scale::Linear).marks());
        assert_eq!(of(1.0, 20.0), ("2 4 6 8 10 12 14 16 18 20".to_owned(), 0));
        assert_eq!(of(118_000.0, 121_000.0).0, "118.0 118.5 119.0 119.5 120.0 120.5 121.0");
        assert_eq!(of(-1.3e7, -1.1e7), ("−13.0 −12.5 −12.0 −11.5 −11.0".to_owned(), 6));
        assert_eq!(of(0.0, 2e-4).1, -6);
        assert_eq!(of(f64::NAN, f64::NAN).0, "0.0 0.2 0.4 0.6 0.8 1.0");
    }

    #[test]
    fn ratios_are_marked_by_powers_of_ten() {
        let of = |low: f64, high: f64| labels(Axis::over([low, high].into_iter(), Scale::Log).marks()).0;
        assert_eq!(of(0.9, 22.0), "1 2 5 10 20");
        assert_eq!(of(1e-7, 1e1), "10⁻⁶ 10⁻⁴ 0.01 1");
    }

    #[test]
    fn ratios_are_chosen_for_wide_ranges_above_zero() {
        assert_eq!(Scale::of([1.0, 1000.0, f64::NAN].into_iter(), 100.0), Scale::Log);
        assert_eq!(Scale::of([0.0, 1000.0].into_iter(), 100.0), Scale::Linear);
        assert_eq!(Scale::of([1.0, 50.0].into_iter(), 100.0), Scale::Linear);
        assert_eq!(Scale::of(std::iter::empty(), 100.0), Scale::Linear);
    }
}

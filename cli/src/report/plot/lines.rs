//! Lines through points.

use super::axes::{Axes, Axis, Scale};
use super::figure::{Key, figure, mark};
use super::numbers::{escape, precise, short};

/// Points of a line that are drawn, and of those that are marked, at most.
const DRAWN: usize = 400;
const MARKED: usize = 24;

/// A named line of points.
pub struct Line {
    /// Its name, in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// What is said about a plot.
pub struct Labels<'l> {
    /// What it shows.
    pub title: &'l str,
    /// The x axis, with its unit.
    pub x: &'l str,
    /// The y axis, with its unit.
    pub y: &'l str,
}

/// Draws lines. Values that fall over decades are drawn by ratios; so is x if its scale says so.
pub fn lines(labels: &Labels<'_>, lines: &[Line], x_scale: Scale) -> String {
    let all = || lines.iter().flat_map(|line| &line.points);
    let y_scale = Scale::of(all().map(|point| point.1), 100.0);
    let fits = |point: &&(f64, f64)| x_scale.holds(point.0) && y_scale.holds(point.1);
    let axes = Axes {
        x: Axis::over(all().filter(fits).map(|point| point.0), x_scale),
        y: Axis::over(all().filter(fits).map(|point| point.1), y_scale),
    };
    let mut svg = axes.frame(labels.x, labels.y);
    for (style, line) in lines.iter().enumerate() {
        let fitting: Vec<(f64, f64)> = line.points.iter().filter(fits).copied().collect();
        let shown = thinned(&fitting);
        let places: Vec<_> = shown.iter().map(|&point| axes.place(point)).collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        svg.push_str(&format!("<polyline class=\"line s{style}\" points=\"{}\" />", path.join(" ")));
        // Lines that coincide are marked at different points, so that all of them show.
        let every = shown.len().div_ceil(MARKED).max(lines.len().min(shown.len()));
        for (at, (&(x, y), &place)) in shown.iter().zip(&places).enumerate() {
            if at % every == style % every {
                let said = format!("{} {} at {}", escape(&line.name), precise(y), short(x));
                svg.push_str(&mark(style, place, &said));
            }
        }
    }
    let keys = lines.iter().enumerate().map(|(style, line)| Key::line(style, &line.name));
    figure(labels.title, &svg, keys.collect())
}

/// Keeps the points that are drawn, the first and the last among them.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(DRAWN).max(1);
    let last = points.len().saturating_sub(1);
    points.iter().enumerate().filter(|(at, _)| at % every == 0 || *at == last).map(|(_, &point)| point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels<'_> = Labels { title: "<a & b>", x: "x", y: "y" };

    #[test]
    fn what_is_no_number_is_not_drawn() {
        let points = vec![(1.0, f64::NAN), (2.0, f64::INFINITY), (3.0, 0.0), (4.0, 1.0)];
        let drawn = lines(&LABELS, &[Line { name: "y".to_owned(), points }], Scale::Linear);
        assert_eq!(drawn.matches("<circle").count(), 2, "{drawn}");
        assert!(drawn.contains("&lt;a &amp; b&gt;") && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn many_lines_of_many_points_stay_small_and_all_show() {
        let line = |at: usize| Line {
            name: format!("line {at}"),
            points: (1..=5000).map(|x| (f64::from(x), 1.0 / f64::from(x))).collect(),
        };
        let drawn = lines(&LABELS, &(0..7).map(line).collect::<Vec<_>>(), Scale::Log);
        assert!(drawn.len() < 200_000, "{}", drawn.len());
        for style in 0..7 {
            assert!(drawn.contains(&format!("mark s{style}")), "{style}");
        }
    }
}

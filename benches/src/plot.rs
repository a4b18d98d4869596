//! Line plots as SVG files.

use std::fmt::Write;

const SIZE: (f64, f64) = (640.0, 360.0);
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 46.0;
const COLOURS: [&str; 8] = ["#1f6fb4", "#d9572b", "#2a9d5c", "#8a4fbf", "#b8860b", "#444444", "#c2437f", "#3aa6a6"];

/// A plot of named lines.
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What runs from left to right, and its unit.
    pub x_name: &'static str,
    /// What runs upwards, and its unit.
    pub y_name: &'static str,
    /// Whether `y` is drawn by its logarithm.
    pub log: bool,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line's name and points.
pub type Line = (String, Vec<(f64, f64)>);

/// Returns the ends of values that can be drawn.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if high > low { (low, high) } else { (low - 0.5, low + 0.5) }
}

/// Returns round numbers of a range.
fn marks((low, high): (f64, f64)) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [5.0, 2.0, 1.0].into_iter().map(|times| times * power).find(|step| *step <= rough).unwrap_or(power);
    let first = (low / step).ceil() as i64;
    (first..).map(|at| at as f64 * step).take_while(|mark| *mark <= high + 1e-9 * step).take(20).collect()
}

fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (0.01..1e5).contains(&size) {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{value:.1e}")
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Plot {
    /// Draws the plot. Points that are no numbers are left out.
    pub fn svg(&self) -> String {
        let height = |y: f64| if self.log { y.log10() } else { y };
        let points = || self.lines.iter().flat_map(|(_, points)| points.iter().copied());
        let (xs, ys) = (range(points().map(|(x, _)| x)), range(points().map(|(_, y)| height(y))));
        let part = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
        let across = |x: f64| LEFT + part(x, xs) * (SIZE.0 - LEFT - RIGHT);
        let up = |y: f64| SIZE.1 - BOTTOM - part(y, ys) * (SIZE.1 - TOP - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>\n",
            SIZE.0,
            SIZE.1,
            escape(&self.title)
        );
        let (bottom, right) = (SIZE.1 - BOTTOM, SIZE.0 - RIGHT);
        for x in marks(xs) {
            let at = across(x);
            let (under, x) = (bottom + 18.0, short(x));
            let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{under}\" text-anchor=\"middle\">{x}</text>");
        }
        for y in marks(ys) {
            let (at, value) = (up(y), short(if self.log { 10f64.powf(y) } else { y }));
            let _ = writeln!(svg, "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>");
            let (x, y) = (LEFT - 6.0, at + 4.0);
            let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{value}</text>");
        }
        let (x, y, name) = ((LEFT + right) / 2.0, SIZE.1 - 10.0, escape(self.x_name));
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{name}</text>");
        let (y, name) = (SIZE.1 / 2.0, escape(self.y_name));
        let turned = format!("transform=\"translate(14 {y}) rotate(-90)\" text-anchor=\"middle\"");
        let _ = writeln!(svg, "<text {turned}>{name}</text>");
        for (at, (name, points)) in self.lines.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let drawn = points.iter().map(|&(x, y)| (x, height(y))).filter(|(_, y)| y.is_finite());
            let placed: Vec<_> = drawn.map(|(x, y)| (across(x), up(y))).collect();
            let line = placed.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ");
            let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"");
            let _ = writeln!(svg, "<polyline points=\"{line}\" {style}/>");
            for (x, y) in placed.iter().filter(|_| placed.len() <= 30) {
                let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{colour}\"/>");
            }
            let y = TOP + 16.0 * at as f64 + 8.0;
            let _ = writeln!(svg, "<text x=\"{}\" y=\"{y}\" fill=\"{colour}\">{}</text>", right + 10.0, escape(name));
        }
        svg + "</svg>\n"
    }
}

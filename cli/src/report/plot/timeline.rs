//! What each worker did when.

use super::axes::{Axis, Scale};
use super::figure::{Key, LEFT, RIGHT, WIDTH, figure_of};
use super::numbers::{escape, seconds, superscript};

const ROW: f64 = 20.0;
const BELOW: f64 = 38.0;

/// A stretch of a worker's time, which begins at a second and has parts, one after the other.
pub struct Stretch {
    /// When it begins.
    pub begin: f64,
    /// Seconds of each part.
    pub parts: Vec<f64>,
}

/// Draws a row for each worker, with the parts of its stretches; a line stands where each of `bounds` is.
pub fn timeline(title: &str, parts: &[&str], workers: &[Vec<Stretch>], bounds: &[f64]) -> String {
    let axis = Axis::over(bounds.iter().copied().chain([0.0]), Scale::Linear);
    let place = |time: f64| LEFT + axis.part(time).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT);
    let bottom = workers.len() as f64 * ROW;
    let mut svg = String::new();
    for (worker, stretches) in workers.iter().enumerate() {
        let top = worker as f64 * ROW;
        svg.push_str(&format!("<text x={} y={:.1} text-anchor=end>worker {worker}</text>", LEFT - 6.0, top + 14.0));
        for stretch in stretches {
            let mut from = stretch.begin;
            for (part, time) in stretch.parts.iter().enumerate().filter(|(_, time)| **time > 0.0) {
                let (left, right) = (place(from), place(from + time));
                svg.push_str(&format!(
                    "<rect class=\"bar p{part}\" x={left:.2} y={:.1} width={:.2} height={}><title>{} {}</title></rect>",
                    top + 3.0,
                    right - left,
                    ROW - 6.0,
                    escape(parts[part]),
                    seconds(*time)
                ));
                from += time;
            }
        }
    }
    for bound in bounds {
        let across = place(*bound);
        svg.push_str(&format!("<line class=bound x1={across:.1} x2={across:.1} y1=0 y2={bottom} />"));
    }
    let (marks, left_out) = axis.marks();
    for (time, label) in marks {
        let across = place(time);
        svg.push_str(&format!("<text x={across:.1} y={} text-anchor=middle>{label}</text>", bottom + 15.0));
    }
    let unit = if left_out == 0 { "s".to_owned() } else { format!("s (×10{})", superscript(left_out)) };
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    svg.push_str(&format!(
        "<text class=name x={middle} y={} text-anchor=middle>training time, {unit}</text>",
        bottom + 32.0
    ));
    let keys = parts.iter().enumerate().map(|(part, name)| Key::part(part, name)).collect();
    figure_of(title, bottom + BELOW, &svg, keys)
}

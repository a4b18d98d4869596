//! Lying bars, one a name: values with their range, and shares of a whole.

use super::axes::{Axis, Scale};
use super::figure::{Key, WIDTH, figure_of, mark};
use super::numbers::escape;
use megagrid_training::record::Spread;

const NAMES: f64 = 96.0;
const VALUES: f64 = 150.0;
const ROW: f64 = 24.0;

/// Draws a bar for each value from zero, with a line from the least to the largest and the numbers beside it. Where values
/// are far apart, marks by ratios.
pub fn values(title: &str, rows: &[(String, Spread)], write: fn(f64) -> String) -> String {
    let scale = Scale::of(rows.iter().map(|row| row.1.median), 20.0);
    let ends = rows.iter().flat_map(|(_, spread)| [spread.min, spread.max]).filter(|value| scale.holds(*value));
    let axis = match scale {
        Scale::Linear => Axis::over(ends.chain([0.0]), scale),
        Scale::Log => Axis::over(ends, scale).with_room_below(0.15),
    };
    let place = |value: f64| NAMES + axis.part(value).clamp(0.0, 1.0) * (WIDTH - NAMES - VALUES);
    let mut svg = String::new();
    for (style, (name, spread)) in rows.iter().enumerate() {
        let (top, middle) = (style as f64 * ROW, (style as f64 + 0.5) * ROW);
        let [min, median, max] = [spread.min, spread.median, spread.max].map(place);
        let said = format!("{}: {} ({} to {})", name, write(spread.median), write(spread.min), write(spread.max));
        svg.push_str(&label(name, middle));
        if scale == Scale::Linear {
            let (from, height) = (place(0.0), ROW - 10.0);
            svg.push_str(&format!(
                "<rect class=\"bar s{style}\" x={from:.1} y={:.1} width={:.1} height={height}><title>{}</title></rect>",
                top + 5.0,
                (median - from).max(0.0),
                escape(&said)
            ));
        } else {
            let end = WIDTH - VALUES;
            svg.push_str(&format!("<line class=grid x1={NAMES} x2={end} y1={middle} y2={middle} />"));
        }
        svg.push_str(&format!("<line class=range x1={min:.1} x2={max:.1} y1={middle:.1} y2={middle:.1} />"));
        if scale == Scale::Log {
            svg.push_str(&mark(style, (median, middle), &escape(&said)));
        }
        let (left, y) = (WIDTH - VALUES + 8.0, middle + 4.0);
        svg.push_str(&format!("<text x={left} y={y:.1}>{}</text>", numbers(spread, write)));
    }
    let title = if scale == Scale::Log { format!("{title}; logarithmic") } else { title.to_owned() };
    figure_of(&title, rows.len() as f64 * ROW + 4.0, &svg, Vec::new())
}

/// Writes the median, and the range as parts of it.
fn numbers(spread: &Spread, write: fn(f64) -> String) -> String {
    let Spread { median, min, max } = *spread;
    let text = escape(&write(median));
    if min == max || median == 0.0 {
        return text;
    }
    format!("{text} ({:.0}–{:.0} %)", min / median * 100.0, max / median * 100.0)
}

/// Draws bars of equal length, cut into the shares of the parts.
pub fn shares(title: &str, parts: &[&str], rows: &[(String, Vec<f64>)]) -> String {
    let mut svg = String::new();
    let length = WIDTH - NAMES - 8.0;
    for (at, (name, amounts)) in rows.iter().enumerate() {
        let (top, middle) = (at as f64 * ROW, (at as f64 + 0.5) * ROW);
        svg.push_str(&label(name, middle));
        let whole: f64 = amounts.iter().sum();
        let mut left = NAMES;
        for (part, amount) in amounts.iter().enumerate().filter(|_| whole > 0.0) {
            let share = amount / whole;
            let (width, percent) = (share * length, format!("{:.0} %", share * 100.0));
            svg.push_str(&format!(
                "<rect class=\"bar p{part}\" x={left:.1} y={:.1} width={width:.1} height={}><title>{}: {} {percent}</title></rect>",
                top + 3.0,
                ROW - 6.0,
                escape(name),
                escape(parts[part]),
            ));
            if width > 34.0 {
                let across = left + width / 2.0;
                let y = middle + 4.0;
                svg.push_str(&format!(
                    "<text class=\"on p{part}\" x={across:.1} y={y:.1} text-anchor=middle>{percent}</text>"
                ));
            }
            left += width;
        }
    }
    let keys = parts.iter().enumerate().map(|(part, name)| Key::part(part, name)).collect();
    figure_of(title, rows.len() as f64 * ROW + 4.0, &svg, keys)
}

fn label(name: &str, middle: f64) -> String {
    format!("<text x={} y={:.1} text-anchor=end>{}</text>", NAMES - 6.0, middle + 4.0, escape(name))
}

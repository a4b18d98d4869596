//! Upright bars: parts on top of each other over iterations, and series side by side over ages.

use super::axes::{Axes, Axis, Scale};
use super::figure::{Key, figure};
use super::lines::Labels;
use super::numbers::{escape, short};

/// Bars at most; more become means of neighbours.
const BARS: usize = 60;

/// A named series of bars.
pub struct Series {
    /// Its name, in the legend.
    pub name: String,
    /// Its style.
    pub style: usize,
    /// Its bars, by whole numbers.
    pub bars: Vec<(i64, f64)>,
}

/// Draws one bar of stacked parts for each of `stacks`, at 1, 2 and so on.
pub fn stacked(labels: &Labels<'_>, parts: &[&str], stacks: &[Vec<f64>]) -> String {
    let group = stacks.len().div_ceil(BARS).max(1);
    let mean = |bars: &[Vec<f64>], part: usize| {
        bars.iter().map(|bar| bar.get(part).copied().unwrap_or(0.0)).sum::<f64>() / bars.len() as f64
    };
    let bars: Vec<(f64, f64, Vec<f64>)> = stacks
        .chunks(group)
        .enumerate()
        .map(|(at, bars)| {
            let first = (at * group) as f64 + 0.5;
            (first, first + bars.len() as f64, (0..parts.len()).map(|part| mean(bars, part)).collect())
        })
        .collect();
    let x_ends = bars.first().zip(bars.last()).map_or([0.5, 1.5], |(first, last)| [first.0, last.1]);
    let tops = bars.iter().map(|bar| bar.2.iter().sum::<f64>());
    let axes = Axes {
        x: Axis::over(x_ends.into_iter(), Scale::Linear).of_whole(),
        y: Axis::over(tops.chain([0.0]), Scale::Linear),
    };
    let mut svg = axes.frame(labels.x, labels.y);
    for (left, right, heights) in &bars {
        let margin = (right - left) * 0.1;
        let mut below = 0.0;
        for (part, height) in heights.iter().enumerate() {
            let said = format!("{} {} at {}", parts[part], short(*height), short((left + right) / 2.0));
            let corners = [(left + margin, below + height), (right - margin, below)];
            svg.push_str(&bar(&axes, &format!("p{part}"), corners, &said));
            below += height;
        }
    }
    let keys = parts.iter().enumerate().map(|(part, name)| Key::part(part, name)).collect();
    let title = match group {
        1 => labels.title.to_owned(),
        _ => format!("{}; a bar is the mean of {group}", labels.title),
    };
    figure(&title, &svg, keys)
}

/// Draws the bars of all series side by side at each number.
pub fn grouped(labels: &Labels<'_>, series: &[Series]) -> String {
    let all = || series.iter().flat_map(|one| &one.bars);
    let numbers = all().map(|&(x, _)| x as f64);
    let axes = Axes {
        x: Axis::over(numbers.clone().map(|x| x - 0.5).chain(numbers.map(|x| x + 0.5)), Scale::Linear).of_whole(),
        y: Axis::over(all().map(|bar| bar.1).chain([0.0]), Scale::Linear),
    };
    let mut svg = axes.frame(labels.x, labels.y);
    let width = 0.8 / series.len().max(1) as f64;
    for (at, one) in series.iter().enumerate() {
        for &(x, height) in &one.bars {
            let left = x as f64 - 0.4 + at as f64 * width;
            let said = format!("{} {} at {x}", one.name, short(height));
            svg.push_str(&bar(&axes, &format!("s{}", one.style), [(left, height), (left + width, 0.0)], &said));
        }
    }
    let keys = series.iter().map(|one| Key::bar(one.style, &one.name)).collect();
    figure(labels.title, &svg, keys)
}

fn bar(axes: &Axes, class: &str, corners: [(f64, f64); 2], said: &str) -> String {
    let [(left, top), (right, bottom)] = corners.map(|corner| axes.place(corner));
    let (width, height) = (right - left, bottom - top);
    format!(
        "<rect class=\"bar {class}\" x={left:.1} y={top:.1} width={width:.1} height={height:.1}>\
         <title>{}</title></rect>",
        escape(said)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels<'_> = Labels { title: "t", x: "x", y: "y" };

    #[test]
    fn nothing_to_draw_is_no_panic() {
        assert!(!stacked(&LABELS, &["a"], &[]).contains("NaN"));
        assert!(!grouped(&LABELS, &[]).contains("NaN"));
    }

    #[test]
    fn many_bars_become_means() {
        let stacks: Vec<Vec<f64>> = (0..2000).map(|_| vec![1.0, 2.0]).collect();
        let drawn = stacked(&LABELS, &["a", "b"], &stacks);
        assert!(drawn.matches("<rect class=\"bar").count() <= 2 * BARS + 2);
        assert!(drawn.contains("mean of 34"), "{drawn}");
    }
}

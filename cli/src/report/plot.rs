//! Plots as inline SVG: lines and bars. Colours come from the page's style sheet.

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 40.0;
/// Classes of the style sheet, `c0` and so on.
const COLOURS: usize = 4;

/// A named line of points.
pub struct Line {
    /// Its name, in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// Where values lie on a plot.
struct Axes {
    x: (f64, f64),
    y: (f64, f64),
    /// Whether `y` holds logarithms.
    log: bool,
}

impl Axes {
    fn of(points: impl Iterator<Item = (f64, f64)>, log: bool) -> Self {
        let mut axes = Self { x: (f64::INFINITY, f64::NEG_INFINITY), y: (f64::INFINITY, f64::NEG_INFINITY), log };
        for (x, y) in points {
            axes.x = (axes.x.0.min(x), axes.x.1.max(x));
            let y = if log { y.log10() } else { y };
            axes.y = (axes.y.0.min(y), axes.y.1.max(y));
        }
        axes.x = widened(axes.x);
        axes.y = widened(axes.y);
        axes
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let y = if self.log { y.log10() } else { y };
        let part = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
        let across = LEFT + part(x, self.x) * (WIDTH - LEFT - RIGHT);
        (across, HEIGHT - BOTTOM - part(y, self.y) * (HEIGHT - TOP - BOTTOM))
    }

    /// Draws the frame, marks on each axis, and the title and the name of the x axis.
    fn frame(&self, title: &str, x_name: &str) -> String {
        let bottom = HEIGHT - BOTTOM;
        let mut svg = format!("<text class=title x={LEFT} y=16>{}</text>", escape(title));
        for x in marks(self.x) {
            let (across, _) = self.place((x, 1.0));
            svg.push_str(&format!("<text x={across:.1} y={} text-anchor=middle>{}</text>", bottom + 16.0, short(x)));
        }
        for y in marks(self.y) {
            let y = if self.log { 10f64.powf(y) } else { y };
            let (_, up) = self.place((0.0, y));
            svg.push_str(&format!("<line class=grid x1={LEFT} x2={} y1={up:.1} y2={up:.1} />", WIDTH - RIGHT));
            svg.push_str(&format!("<text x={} y={:.1} text-anchor=end>{}</text>", LEFT - 6.0, up + 4.0, short(y)));
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        svg + &format!("<text x={middle} y={} text-anchor=middle>{}</text>", HEIGHT - 6.0, escape(x_name))
    }
}

/// Returns four to ten round numbers of a range: multiples of 1, 2 or 5 times a power of ten.
fn marks((low, high): (f64, f64)) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|times| times * power).into_iter().rfind(|step| *step <= rough).unwrap_or(power);
    let first = (low / step).ceil() as i64;
    (first..).map(|at| at as f64 * step).take_while(|mark| *mark <= high).take(16).collect()
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

/// Draws lines.
pub fn lines(title: &str, x_name: &str, lines: &[Line], log: bool) -> String {
    let fits = |&(x, y): &(f64, f64)| x.is_finite() && y.is_finite() && (!log || y > 0.0);
    let shown: Vec<Vec<(f64, f64)>> =
        lines.iter().map(|line| line.points.iter().copied().filter(fits).collect()).collect();
    let axes = Axes::of(shown.iter().flatten().copied(), log);
    let mut svg = axes.frame(title, x_name);
    for (at, (line, points)) in lines.iter().zip(&shown).enumerate() {
        let colour = at % COLOURS;
        let places: Vec<_> = points.iter().map(|&point| axes.place(point)).collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        svg.push_str(&format!("<polyline class=\"line c{colour}\" points=\"{}\" />", path.join(" ")));
        for (&(x, y), (px, py)) in points.iter().zip(&places) {
            let name = escape(&line.name);
            svg.push_str(&format!("<circle class=\"dot c{colour}\" cx={px:.1} cy={py:.1} r=2.5>"));
            svg.push_str(&format!("<title>{name} {} at {}</title></circle>", precise(y), short(x)));
        }
    }
    wrap(&(svg + &legend(lines.iter().map(|line| line.name.as_str()))))
}

/// Draws stacked bars, one for each row of `stacks`.
pub fn bars(title: &str, x_name: &str, names: &[&str], stacks: &[(f64, Vec<f64>)]) -> String {
    let tops = stacks.iter().map(|(x, parts)| (*x, parts.iter().sum::<f64>()));
    let mut axes = Axes::of(tops.chain(stacks.iter().map(|(x, _)| (*x, 0.0))), false);
    // Half a bar on both ends.
    axes.x = (axes.x.0 - 0.5, axes.x.1 + 0.5);
    let mut svg = axes.frame(title, x_name);
    for (x, parts) in stacks {
        let mut below = 0.0;
        for (at, part) in parts.iter().enumerate() {
            let (left, top) = axes.place((x - 0.4, below + part));
            let (right, bottom) = axes.place((x + 0.4, below));
            let (width, height) = (right - left, bottom - top);
            let name = names.get(at).copied().unwrap_or_default();
            svg.push_str(&format!(
                "<rect class=\"bar c{}\" x={left:.1} y={top:.1} width={width:.1} height={height:.1}>",
                at % COLOURS
            ));
            svg.push_str(&format!("<title>{} {} at {}</title></rect>", escape(name), short(*part), short(*x)));
            below += part;
        }
    }
    wrap(&(svg + &legend(names.iter().copied())))
}

fn legend<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let mut svg = String::new();
    if names.len() < 2 {
        return svg;
    }
    let mut right = WIDTH - RIGHT;
    for (at, name) in names.enumerate() {
        svg.push_str(&format!("<text x={} y=16 text-anchor=end>{}</text>", right, escape(name)));
        right -= 7.0 * name.len() as f64 + 6.0;
        svg.push_str(&format!("<rect class=\"bar c{}\" x={} y=8 width=9 height=9 />", at % COLOURS, right - 4.0));
        right -= 12.0;
    }
    svg
}

fn wrap(content: &str) -> String {
    // Attributes without quotes need a space before the end of an empty element.
    format!("<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=img>{content}</svg></figure>\n")
}

/// Writes a number in few characters.
pub fn short(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 {
        "0".to_owned()
    } else if !(1e-3..1e5).contains(&size) {
        format!("{number:.1e}")
    } else if number.fract() == 0.0 {
        format!("{number}")
    } else {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
        let text = format!("{number:.digits$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// Writes a number with the digits that a reader compares.
pub fn precise(number: f64) -> String {
    if number != 0.0 && !(1e-3..1e9).contains(&number.abs()) { format!("{number:.4e}") } else { format!("{number:.5}") }
}

/// Makes a text safe to stand in a page.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_inside() {
        assert_eq!(marks((1.0, 20.0)), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0]);
        assert_eq!(marks((-0.5, 0.5)).len(), 5);
        assert!(marks((0.0, 0.0)).len() <= 16);
    }

    #[test]
    fn what_is_no_number_is_not_drawn() {
        let points = vec![(1.0, f64::NAN), (2.0, f64::INFINITY), (3.0, 0.0), (4.0, 1.0)];
        let drawn = lines("<a & b>", "x", &[Line { name: "y".to_owned(), points }], true);
        assert_eq!(drawn.matches("<circle").count(), 1, "{drawn}");
        assert!(drawn.contains("&lt;a &amp; b&gt;") && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        assert!(!bars("none", "x", &[], &[]).contains("NaN"));
    }
}

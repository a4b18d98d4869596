//! Figures as inline SVG. Colours and line styles come from the page's style sheet: `s0`, `s1` and so on for what is
//! compared, `p0`, `p1` and so on for parts of a whole.

mod axes;
mod bars;
mod lines;
mod numbers;
mod rows;
mod timeline;

pub use axes::Scale;
pub use bars::{Series, grouped, stacked};
pub use lines::{Labels, Line, lines};
pub use numbers::{escape, precise, seconds, short};
pub use rows::{shares, values};
pub use timeline::{Stretch, timeline};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 42.0;

/// An entry of a legend.
struct Key {
    drawing: String,
    name: String,
}

impl Key {
    fn line(style: usize, name: &str) -> Self {
        let line = format!("<line class=\"line s{style}\" x1=0 x2=30 y1=7 y2=7 />");
        Self { drawing: line + &lines::mark(style, (15.0, 7.0), ""), name: name.to_owned() }
    }

    fn bar(style: usize, name: &str) -> Self {
        let drawing = format!("<rect class=\"bar s{style}\" x=14 y=1 width=12 height=12 />");
        Self { drawing, name: name.to_owned() }
    }

    fn part(part: usize, name: &str) -> Self {
        let drawing = format!("<rect class=\"bar p{part}\" x=14 y=1 width=12 height=12 />");
        Self { drawing, name: name.to_owned() }
    }
}

/// Frames a plot of the usual size with its title and legend.
fn figure(title: &str, content: &str, keys: Vec<Key>) -> String {
    figure_of(title, HEIGHT, content, keys)
}

/// Frames a plot. A legend of one is left out.
fn figure_of(title: &str, height: f64, content: &str, keys: Vec<Key>) -> String {
    let legend = if keys.len() < 2 {
        String::new()
    } else {
        let entry = |key: &Key| {
            let Key { drawing, name } = key;
            format!("<li><svg class=key width=30 height=14 aria-hidden=true>{drawing}</svg>{}</li>", escape(name))
        };
        format!("<ul class=legend>{}</ul>", keys.iter().map(entry).collect::<String>())
    };
    let title = escape(title);
    // Attributes without quotes need a space before the end of an empty element.
    format!(
        "<figure><figcaption>{title}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=img aria-label=\"{title}\">{content}</svg>{legend}</figure>\n"
    )
}

//! The frame that all plots share: their size, title and legend, and the marks of styles.

use super::numbers::escape;

pub const WIDTH: f64 = 480.0;
pub const HEIGHT: f64 = 250.0;
pub const LEFT: f64 = 64.0;
pub const RIGHT: f64 = 16.0;
pub const TOP: f64 = 22.0;
pub const BOTTOM: f64 = 42.0;

/// An entry of a legend.
pub struct Key {
    drawing: String,
    name: String,
}

impl Key {
    pub fn line(style: usize, name: &str) -> Self {
        let line = format!("<line class=\"line s{style}\" x1=0 x2=30 y1=7 y2=7 />");
        Self { drawing: line + &mark(style, (15.0, 7.0), ""), name: name.to_owned() }
    }

    pub fn bar(style: usize, name: &str) -> Self {
        let drawing = format!("<rect class=\"bar s{style}\" x=14 y=1 width=12 height=12 />");
        Self { drawing, name: name.to_owned() }
    }

    pub fn part(part: usize, name: &str) -> Self {
        let drawing = format!("<rect class=\"bar p{part}\" x=14 y=1 width=12 height=12 />");
        Self { drawing, name: name.to_owned() }
    }
}

/// Frames a plot of the usual size with its title and legend.
pub fn figure(title: &str, content: &str, keys: Vec<Key>) -> String {
    figure_of(title, HEIGHT, content, keys)
}

/// Frames a plot. A legend of one is left out.
pub fn figure_of(title: &str, height: f64, content: &str, keys: Vec<Key>) -> String {
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

/// Draws the mark of a style: shapes tell lines apart where colours do not.
pub fn mark(style: usize, (x, y): (f64, f64), said: &str) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<String> = corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
        format!("<polygon class=\"mark s{style}\" points=\"{}\">", corners.join(" "))
    };
    let (shape, end) = match style % 7 {
        0 => (format!("<circle class=\"mark s{style}\" cx={x:.1} cy={y:.1} r=3>"), "circle"),
        1 => (polygon(&[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)]), "polygon"),
        2 => (polygon(&[(0.0, -4.0), (3.7, 3.0), (-3.7, 3.0)]), "polygon"),
        3 => (polygon(&[(0.0, -4.2), (4.2, 0.0), (0.0, 4.2), (-4.2, 0.0)]), "polygon"),
        4 => (polygon(&[(0.0, 4.0), (3.7, -3.0), (-3.7, -3.0)]), "polygon"),
        5 => (polygon(&[(-4.5, -1.6), (4.5, -1.6), (4.5, 1.6), (-4.5, 1.6)]), "polygon"),
        _ => (polygon(&[(-1.6, -4.5), (1.6, -4.5), (1.6, 4.5), (-1.6, 4.5)]), "polygon"),
    };
    format!("{shape}<title>{said}</title></{end}>")
}

//! What re-enacting a row came to.

use std::path::{Path, PathBuf};

use megagrid_benches::plot::{Line, Plot};

/// What re-enacting a row came to.
#[derive(Default)]
pub struct Findings {
    /// Parts of the row to which it is restricted.
    pub parts: Vec<String>,
    /// Plots by the names of their files.
    pub plots: Vec<(String, Plot)>,
    /// What was published, and whether it holds.
    pub checks: Vec<(String, Option<bool>)>,
}

impl Findings {
    /// Whether a part of the row is asked for: all are, unless some are named.
    pub fn is_wanted(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|named| named == part)
    }

    /// Says of something published whether it holds here.
    pub fn check(&mut self, what: impl Into<String>, holds: bool) {
        self.checks.push((what.into(), Some(holds)));
    }

    /// Says of something published why it cannot be looked at here.
    pub fn cannot(&mut self, what: impl Into<String>) {
        self.checks.push((what.into(), None));
    }

    /// Adds a plot of lines by the name of its file; `axes` are what runs from left to right, and what upwards.
    pub fn plot(&mut self, name: &str, title: &str, axes: [&'static str; 2], lines: Vec<Line>) {
        let [x_name, y_name] = axes;
        self.plots.push((name.to_owned(), Plot { title: title.to_owned(), x_name, y_name, log: false, lines }));
    }

    /// Adds a plot whose lines are drawn by logarithms.
    pub fn log_plot(&mut self, name: &str, title: &str, axes: [&'static str; 2], lines: Vec<Line>) {
        self.plot(name, title, axes, lines);
        if let Some((_, plot)) = self.plots.last_mut() {
            plot.log = true;
        }
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

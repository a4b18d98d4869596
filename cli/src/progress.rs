//! A line on the terminal that tells how a run goes. Nothing where stderr is no terminal.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The line.
pub struct Progress(ProgressBar);

impl Progress {
    /// Begins a line for work whose length is not known.
    pub fn spinner(quiet: bool, message: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, target(quiet)).with_message(message.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Says what the work is now.
    pub fn say(&self, message: impl Into<Cow<'static, str>>) {
        self.0.set_message(message);
    }

    /// Begins a line for iterations `done + 1..=last`.
    pub fn iterations(quiet: bool, done: u64, last: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(last), target(quiet));
        // The template is a constant.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        bar.set_position(done);
        Self(bar)
    }

    /// Shows an iteration, what was measured, and the time left.
    pub fn show(&self, iteration: u64, edges_per_second: f64, measured: &str, left: Duration) {
        let left = indicatif::HumanDuration(left);
        self.0.set_message(format!("{} edges/s  {measured}  at most {left} left", engineering(edges_per_second)));
        self.0.set_position(iteration);
    }

    /// Removes the line.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

fn target(quiet: bool) -> ProgressDrawTarget {
    if quiet || !std::io::stderr().is_terminal() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
}

/// Writes a number with a unit prefix: 1.23 G.
pub fn engineering(number: f64) -> String {
    let steps = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match steps.into_iter().find(|(size, _)| number.abs() >= *size) {
        Some((size, prefix)) => format!("{:.2} {prefix}", number / size),
        None => format!("{number:.3}"),
    }
}

/// Writes how many there are of something: 1 round, 2 rounds.
pub fn counted(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// Writes bytes with a unit.
pub fn bytes(number: u64) -> String {
    indicatif::HumanBytes(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::engineering;

    #[test]
    fn numbers_get_their_prefix() {
        assert_eq!(engineering(1.234e9), "1.23 G");
        assert_eq!(engineering(999.0), "999.000");
        assert_eq!(engineering(25e3), "25.00 k");
    }
}

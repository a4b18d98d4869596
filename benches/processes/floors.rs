//! What was to be reached.

use std::error::Error;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Default)]
pub struct Floors {
    missed: Vec<String>,
}

impl Floors {
    /// Takes a figure that is to be small.
    pub fn at_most(&mut self, name: &str, found: f64, most: f64) {
        self.take(name, found <= most, &format!("{found:.2} (at most {most})"));
    }

    /// Takes a figure that is to be large.
    pub fn at_least(&mut self, name: &str, found: f64, least: f64) {
        self.take(name, found >= least, &format!("{found:.2} (at least {least})"));
    }

    fn take(&mut self, name: &str, passed: bool, figures: &str) {
        println!("  {} {name}: {figures}", if passed { "PASS" } else { "FAIL" });
        if !passed {
            self.missed.push(name.to_owned());
        }
    }

    /// Fails where one was missed.
    pub fn end(self) -> Result<()> {
        if self.missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", self.missed.join("; ")).into()) }
    }
}

//! What re-enacting published results came to: verdicts, which are printed and written as JSON, and plots.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use megagrid_results::published::{Evidence, Finding, Found};

use crate::plot::{Line, Plot};

/// What re-enacting a row came to.
#[derive(Default)]
pub struct Findings {
    /// Parts of the row to which it is restricted.
    pub parts: Vec<String>,
    /// What the checks that follow rest on.
    pub evidence: Evidence,
    /// Plots by the names of their files.
    pub plots: Vec<(String, Plot)>,
    checks: Vec<Finding>,
}

impl Findings {
    /// Begins with nothing; what is found rests on `evidence`, unless that is changed.
    #[must_use]
    pub fn new(evidence: Evidence, parts: &[String]) -> Self {
        Self { evidence, parts: parts.to_vec(), ..Self::default() }
    }

    /// Whether a part of the row is asked for: all are, unless some are named.
    #[must_use]
    pub fn is_wanted(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|named| named == part)
    }

    /// Says of something published whether it holds here.
    pub fn check(&mut self, what: impl Into<String>, holds: bool) {
        self.check_by(self.evidence, what, holds);
    }

    /// Says the same of what rests on something else than the rest.
    pub fn check_by(&mut self, evidence: Evidence, what: impl Into<String>, holds: bool) {
        self.checks.push(Finding { what: what.into(), holds: Some(holds), evidence });
    }

    /// Says of something published why it cannot be looked at here.
    pub fn cannot(&mut self, what: impl Into<String>) {
        self.checks.push(Finding { what: what.into(), holds: None, evidence: self.evidence });
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

/// The verdicts of a program, by row of the table "Published results and their commands".
#[derive(Default)]
pub struct Verdicts {
    json: Option<PathBuf>,
    found: Vec<Found>,
}

impl Verdicts {
    /// Takes `--json FILE` out of a program's arguments; a relative FILE is in the folder of the workspace.
    ///
    /// # Errors
    /// `--json` without a file.
    pub fn new(arguments: &mut Vec<String>) -> io::Result<Self> {
        let Some(at) = arguments.iter().position(|argument| argument == "--json") else { return Ok(Self::default()) };
        if at + 1 == arguments.len() {
            return Err(io::Error::other("--json needs a file"));
        }
        let file = arguments.drain(at..at + 2).next_back().map(|file| root().join(file));
        Ok(Self { json: file, found: Vec::new() })
    }

    /// Prints what a row came to, draws its plots, and writes the file, so that what was found stays where a later row fails.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn add(&mut self, row: u32, title: &str, findings: Findings) -> io::Result<()> {
        for Finding { what, holds, .. } in &findings.checks {
            let verdict = match holds {
                Some(true) => "PASS",
                Some(false) => "FAIL",
                None => "n/a ",
            };
            println!("  {verdict}  {what}");
        }
        let directory = root().join("docs/reenact");
        for (name, plot) in &findings.plots {
            fs::create_dir_all(&directory)?;
            fs::write(directory.join(name).with_extension("svg"), plot.svg())?;
            println!("  docs/reenact/{name}.svg");
        }
        self.found.push(Found { row, title: title.to_owned(), findings: findings.checks });
        let Some(file) = &self.json else { return Ok(()) };
        fs::write(file, serde_json::to_string_pretty(&self.found)? + "\n")
            .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))
    }

    /// Returns 1 where something does not hold.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        let mut findings = self.found.iter().flat_map(|found| &found.findings);
        if findings.any(|finding| finding.holds == Some(false)) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// Returns the folder of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read_as_they_were_written() {
        let file = std::env::temp_dir().join(format!("megagrid-verdicts-{}.json", std::process::id()));
        let mut arguments = ["3", "--json", &file.display().to_string(), "part"].map(str::to_owned).to_vec();
        let mut verdicts = Verdicts::new(&mut arguments).unwrap();
        assert_eq!(arguments, ["3", "part"]);
        let mut findings = Findings::new(Evidence::Virtual, &[]);
        findings.check("a", true);
        findings.evidence = Evidence::Counted;
        findings.check("b", false);
        findings.cannot("c");
        verdicts.add(3, "slack", findings).unwrap();
        let found = Found::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let [found] = &found[..] else { panic!("{found:?}") };
        let of = |at: usize| (&found.findings[at].what[..], found.findings[at].holds, found.findings[at].evidence);
        assert_eq!((found.row, &found.title[..]), (3, "slack"));
        assert_eq!(of(0), ("a", Some(true), Evidence::Virtual));
        assert_eq!(of(1), ("b", Some(false), Evidence::Counted));
        assert_eq!(of(2), ("c", None, Evidence::Counted));
    }

    #[test]
    fn a_file_has_to_be_named() {
        assert!(Verdicts::new(&mut vec!["--json".to_owned()]).is_err());
        assert!(Verdicts::new(&mut vec!["--bench".to_owned()]).is_ok());
    }
}

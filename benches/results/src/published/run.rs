//! Runs rows, one after the other, whatever becomes of those before.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs, io};

use serde::Deserialize;

use super::findings::{Evidence, Finding, Found, Ran};
use super::rows::{Row, Step};

/// What a command came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What it found, by row; of tests by none, for they are of the row that asks.
    pub found: Vec<(Option<u32>, Finding)>,
    /// Why it did not come to its end.
    pub error: Option<String>,
}

impl Outcome {
    fn failed(error: impl ToString) -> Self {
        Self { found: Vec::new(), error: Some(error.to_string()) }
    }
}

/// Runs rows; a command that several of them need runs once. `each` is given what every row came to.
///
/// # Errors
/// What `each` returns, which ends the run.
pub fn run(
    rows: &[&Row],
    mut execute: impl FnMut(&Step) -> Outcome,
    mut each: impl FnMut(Ran) -> io::Result<()>,
) -> io::Result<()> {
    let mut outcomes: BTreeMap<String, Outcome> = BTreeMap::new();
    for row in rows {
        let begin = Instant::now();
        let (mut findings, mut errors) = (Vec::new(), Vec::new());
        for step in row.steps {
            let outcome = outcomes.entry(step.command()).or_insert_with(|| execute(step));
            let own = outcome.found.iter().filter(|(of, _)| of.is_none_or(|of| of == row.number));
            let own: Vec<Finding> = own.map(|(_, finding)| finding.clone()).collect();
            match &outcome.error {
                Some(error) => errors.push(format!("{}: {error}", step.command())),
                None if own.is_empty() => {
                    errors.push(format!("{} found nothing of row {}", step.command(), row.number))
                }
                None => {}
            }
            findings.extend(own);
        }
        each(Ran::new(row, findings, errors, begin.elapsed().as_secs_f64()))?;
    }
    Ok(())
}

/// Runs steps by cargo, in the folder of the workspace. What they print goes to standard error.
pub struct Cargo {
    /// The folder of the workspace.
    pub root: PathBuf,
    /// Where programs leave their findings.
    pub scratch: PathBuf,
}

impl Cargo {
    /// Runs a step.
    #[must_use]
    pub fn execute(&self, step: &Step) -> Outcome {
        eprintln!("\n== {}", step.command());
        match step {
            Step::Bench(words) => self.bench(words),
            Step::Tests(words) => self.tests(words),
            Step::Compare { algorithm, input, published, .. } => self.compare(step, algorithm, input, published),
        }
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(words.split(' ')).current_dir(&self.root).stdin(Stdio::null());
        command
    }

    fn bench(&self, words: &str) -> Outcome {
        let file = self.scratch.join(words.replace(' ', "-")).with_extension("json");
        let ran = fs::create_dir_all(&self.scratch).and_then(|()| {
            // What an earlier run left would be taken for this one's.
            fs::write(&file, "[]\n")?;
            self.command(words).arg("--json").arg(&file).stdout(io::stderr()).status()
        });
        let (status, found) = match ran.and_then(|status| Ok((status, Found::read(&file)?))) {
            Ok(ran) => ran,
            Err(error) => return Outcome::failed(error),
        };
        let found = found
            .into_iter()
            .flat_map(|Found { row, findings, .. }| findings.into_iter().map(move |finding| (Some(row), finding)));
        let found: Vec<_> = found.collect();
        // A program of which something does not hold ends with 1, and so does cargo where it cannot build one.
        let ended = status.success() || status.code() == Some(1) && !found.is_empty();
        Outcome { found, error: (!ended).then(|| format!("ended with {status}")) }
    }

    fn compare(&self, step: &Step, algorithm: &str, input: &str, published: &str) -> Outcome {
        let what = |found: &str| format!("{algorithm}: faster than all parameter servers ({published}): {found}");
        let finding = |found: &str, holds| Finding { what: what(found), holds, evidence: Evidence::Real };
        if !self.root.join("../shared/data").join(input).is_file() {
            let finding = finding(&format!("../shared/data/{input} is not there"), None);
            return Outcome { found: vec![(None, finding)], error: None };
        }
        let comparison = match self.read_comparison(step, algorithm) {
            Ok(comparison) => comparison,
            Err(error) => return Outcome::failed(error),
        };
        let Some((system, times)) = comparison.next() else { return Outcome::failed("it has one system only") };
        let finding = finding(&format!("{times:.2} times as fast as the next, {system}"), Some(times > 1.0));
        Outcome { found: vec![(None, finding)], error: None }
    }

    fn read_comparison(&self, step: &Step, algorithm: &str) -> io::Result<Comparison> {
        let file = self.scratch.join(format!("compare-{algorithm}.json"));
        let words = step.command().replacen("megagrid", "run --release --quiet -p megagrid-cli --", 1);
        fs::create_dir_all(&self.scratch)?;
        let status = self.command(&words).args(["-q", "--json"]).arg(&file).stdout(io::stderr()).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("ended with {status}")));
        }
        Ok(serde_json::from_str(&fs::read_to_string(&file)?)?)
    }

    fn tests(&self, words: &str) -> Outcome {
        match self.read_tests(words) {
            Ok(outcome) => outcome,
            Err(error) => Outcome::failed(error),
        }
    }

    fn read_tests(&self, words: &str) -> io::Result<Outcome> {
        let mut child = self.command(words).stdout(Stdio::piped()).spawn()?;
        let mut summary = Summary::default();
        for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let line = line?;
            eprintln!("{line}");
            summary.read(&line);
        }
        let status = child.wait()?;
        Ok(summary.outcome(status.success(), &status.to_string()))
    }
}

/// What is read of a comparison: Megagrid first, then what it is compared with.
#[derive(Deserialize)]
struct Comparison {
    systems: Vec<System>,
}

#[derive(Deserialize)]
struct System {
    system: String,
    iteration_seconds: Spread,
}

#[derive(Deserialize)]
struct Spread {
    median: f64,
}

impl Comparison {
    /// Returns the fastest of the others, and how many times as long as Megagrid it takes.
    fn next(&self) -> Option<(&str, f64)> {
        let (own, others) = self.systems.split_first()?;
        let times =
            others.iter().map(|one| (&one.system[..], one.iteration_seconds.median / own.iteration_seconds.median));
        times.min_by(|one, other| one.1.total_cmp(&other.1))
    }
}

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Summary {
    passed: u64,
    failed: u64,
}

impl Summary {
    /// Reads a line of a test program: `test result: ok. 5 passed; 0 failed; …`.
    fn read(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". ")) else { return };
        for count in counts.1.split("; ") {
            match count.split_once(' ').map(|(number, what)| (number.parse::<u64>(), what)) {
                Some((Ok(number), "passed")) => self.passed += number,
                Some((Ok(number), "failed")) => self.failed += number,
                _ => {}
            }
        }
    }

    fn outcome(self, succeeded: bool, status: &str) -> Outcome {
        let Self { passed, failed } = self;
        if failed == 0 && !succeeded {
            return Outcome::failed(format!("ended with {status}"));
        }
        if passed + failed == 0 {
            return Outcome::failed("no test has such a name");
        }
        let what = format!("{passed} tests pass, {failed} fail");
        let finding = Finding { what, holds: Some(failed == 0), evidence: Evidence::Tested };
        Outcome { found: vec![(None, finding)], error: None }
    }
}

/// Returns the first line that a program prints, if it runs.
pub(crate) fn said(root: &Path, program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    text.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::{ROWS, Verdict};
    use super::*;

    fn finding(holds: Option<bool>) -> Finding {
        Finding { what: "something".to_owned(), holds, evidence: Evidence::Counted }
    }

    fn rows(numbers: &[u32]) -> Vec<&'static Row> {
        ROWS.iter().filter(|row| numbers.contains(&row.number)).collect()
    }

    fn verdicts(numbers: &[u32], mut execute: impl FnMut(&str) -> Outcome) -> Vec<(u32, Verdict)> {
        let mut ran = Vec::new();
        let each = |one: Ran| {
            ran.push((one.row, one.verdict));
            Ok(())
        };
        run(&rows(numbers), |step| execute(&step.command()), each).unwrap();
        ran
    }

    #[test]
    fn each_row_has_a_verdict_whatever_becomes_of_others() {
        let found = |row, holds: &[Option<bool>]| Outcome {
            found: holds.iter().map(|&holds| (Some(row), finding(holds))).collect(),
            error: None,
        };
        let verdicts = verdicts(&[3, 4, 6, 8, 9], |command| match command {
            "cargo reenact 3" => found(3, &[Some(true), Some(false), None]),
            "cargo reenact 4" => Outcome::failed("a panic"),
            "cargo reenact 6" => found(6, &[Some(true), None]),
            "cargo reenact 8" => found(8, &[None]),
            // Nothing of its own row.
            _ => found(3, &[Some(true)]),
        });
        use Verdict::{CannotBeShown, DidNotRun, DoesNotHold, Holds};
        let expected = [(3, DoesNotHold), (4, DidNotRun), (6, Holds), (8, CannotBeShown), (9, DidNotRun)];
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn a_command_of_two_rows_runs_once_and_each_takes_its_own() {
        let mut ran = Vec::new();
        let verdicts = verdicts(&[1, 18], |command| {
            ran.push(command.to_owned());
            let found = [(1, true), (18, false)].map(|(row, holds)| (Some(row), finding(Some(holds))));
            Outcome { found: found.to_vec(), error: None }
        });
        assert_eq!(ran, ["cargo reenact 1", "cargo ablation"]);
        assert_eq!(verdicts, [(1, Verdict::Holds), (18, Verdict::DoesNotHold)]);
    }

    #[test]
    fn a_comparison_is_with_the_fastest_of_the_others() {
        let text = r#"{"rounds": 5, "systems": [
            {"system": "megagrid", "iteration_seconds": {"min": 1, "median": 2.0, "max": 3}},
            {"system": "ps-naive", "iteration_seconds": {"min": 1, "median": 7.0, "max": 9}},
            {"system": "essp", "iteration_seconds": {"min": 1, "median": 3.0, "max": 9}}]}"#;
        assert_eq!(serde_json::from_str::<Comparison>(text).unwrap().next(), Some(("essp", 1.5)));
    }

    fn summary(lines: &[&str]) -> Summary {
        let mut summary = Summary::default();
        lines.iter().for_each(|line| summary.read(line));
        summary
    }

    #[test]
    fn tests_are_counted_over_all_programs() {
        let found = summary(&[
            "running 5 tests",
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ]);
        assert_eq!(found, Summary { passed: 7, failed: 1 });
        assert_eq!(found.outcome(false, "").found[0].1.holds, Some(false));
    }

    #[test]
    fn no_test_or_no_program_is_no_verdict() {
        let none = summary(&["test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out"]);
        assert!(none.outcome(true, "").error.unwrap().contains("no test"));
        assert_eq!(summary(&[]).outcome(false, "exit status: 101").error.unwrap(), "ended with exit status: 101");
    }
}

//! What was found of published results: by finding, by program and by row.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::rows::{Row, Step};
use crate::results::read_json;

/// What a finding rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Measured on this machine, in real time where time is meant.
    #[default]
    Real,
    /// Counted exactly: bytes, messages, lines, samples.
    Counted,
    /// Computed for real on the virtual cluster, whose time is modelled.
    Virtual,
    /// Time by a model of exact shapes.
    Modelled,
    /// Tests against oracles.
    Tested,
}

impl Evidence {
    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Counted => "counted",
            Self::Virtual => "virtual",
            Self::Modelled => "modelled",
            Self::Tested => "tested",
        }
    }
}

/// Something published, and whether it holds here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was published, with the figures found here.
    pub what: String,
    /// Whether it holds; `None`: it cannot be shown here.
    pub holds: Option<bool>,
    /// What that rests on.
    pub evidence: Evidence,
}

/// What a program found of one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The row of the table "Published results and their commands".
    pub row: u32,
    /// What was re-enacted.
    pub title: String,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Found {
    /// Reads what a program wrote with `--json`.
    ///
    /// # Errors
    /// There is no such file, or it is none of these.
    pub fn read(path: &Path) -> io::Result<Vec<Self>> {
        read_json(path)
    }
}

/// What to make of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All that can be shown here holds.
    Holds,
    /// Something does not.
    DoesNotHold,
    /// Nothing can be shown here.
    CannotBeShown,
    /// A command failed.
    DidNotRun,
}

impl Verdict {
    /// Returns its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::CannotBeShown => "cannot be shown here",
            Self::DidNotRun => "did not run",
        }
    }
}

/// What a row came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ran {
    /// The row.
    pub row: u32,
    /// What was published.
    pub published: String,
    /// The commands that ran.
    pub commands: Vec<String>,
    /// What to make of it.
    pub verdict: Verdict,
    /// What was found.
    pub findings: Vec<Finding>,
    /// What went wrong.
    pub errors: Vec<String>,
    /// How long it took, with building; a command that ran for a row before is not run again.
    pub seconds: f64,
}

impl Ran {
    pub(super) fn new(row: &Row, findings: Vec<Finding>, errors: Vec<String>, seconds: f64) -> Self {
        let any = |holds| findings.iter().any(|finding| finding.holds == holds);
        let verdict = if !errors.is_empty() {
            Verdict::DidNotRun
        } else if any(Some(false)) {
            Verdict::DoesNotHold
        } else if any(Some(true)) {
            Verdict::Holds
        } else {
            Verdict::CannotBeShown
        };
        let (published, commands) = (row.published.to_owned(), row.steps.iter().map(Step::command).collect());
        Self { row: row.number, published, commands, verdict, findings, errors, seconds }
    }

    /// Returns what that which was shown rests on.
    #[must_use]
    pub fn evidence(&self) -> BTreeSet<Evidence> {
        self.findings.iter().filter(|finding| finding.holds.is_some()).map(|finding| finding.evidence).collect()
    }
}

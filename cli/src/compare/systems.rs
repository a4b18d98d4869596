//! Systems by name.

use std::fmt;
use std::str::FromStr;

use megagrid_baselines::System as Baseline;
use megagrid_baselines::lines::{self, Lines};
use serde::{Serialize, Serializer};

use crate::failure::usage;

/// A system that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// This engine.
    Megagrid,
    /// Another one.
    Baseline(Baseline),
    /// The parameter server in device memory.
    GeePs,
}

impl System {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Megagrid).chain(Baseline::ALL.map(Self::Baseline)).chain([Self::GeePs])
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Megagrid => "megagrid",
            Self::Baseline(system) => system.name(),
            Self::GeePs => "geeps",
        }
    }

    /// Tells whether it can run in several processes.
    pub fn has_processes(self) -> bool {
        self != Self::GeePs
    }

    /// Tells whether it is an engine of gather, apply and scatter.
    pub fn is_gas(self) -> bool {
        matches!(self, Self::Baseline(system) if system.is_gas())
    }

    /// Tells whether it is a parameter server of processes.
    pub fn is_server(self) -> bool {
        matches!(self, Self::Baseline(system) if !system.is_gas())
    }

    /// Returns how many lines a user writes for an algorithm on it; nothing for an unknown command, or where they are not
    /// counted.
    pub fn user_lines(self, command: &str) -> Option<Lines> {
        let program = lines::of(command)?;
        match self {
            Self::Megagrid => Some(program.megagrid),
            Self::Baseline(system) => Some(program.on(system)),
            Self::GeePs => None,
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all().find(|system| system.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(Self::name).collect();
            format!("there are {}", names.join(", "))
        })
    }
}

impl Serialize for System {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The systems of a comparison: some, each once.
pub struct Systems(Vec<System>);

impl Systems {
    /// Takes the systems asked for, or all on which the job runs.
    pub fn new(asked: &[System], runs_on: impl Fn(System) -> Result<(), &'static str>) -> anyhow::Result<Self> {
        if asked.is_empty() {
            return Ok(Self(System::all().filter(|system| runs_on(*system).is_ok()).collect()));
        }
        for (at, system) in asked.iter().enumerate() {
            if asked[..at].contains(system) {
                return Err(usage(format!("--systems names {system} twice")));
            }
            if let Err(advice) = runs_on(*system) {
                return Err(usage(format!("{system} does not run this job; {advice}")));
            }
        }
        Ok(Self(asked.to_vec()))
    }

    /// Lists them.
    pub fn iter(&self) -> impl Iterator<Item = System> + '_ {
        self.0.iter().copied()
    }

    /// Tells whether a baseline is one of them.
    pub fn has(&self, baseline: Baseline) -> bool {
        self.0.contains(&System::Baseline(baseline))
    }

    /// Lists them as a round runs them: each round begins with another.
    pub fn of_round(&self, round: usize) -> impl Iterator<Item = (usize, System)> + '_ {
        (0..self.0.len()).map(move |at| (at + round) % self.0.len()).map(|at| (at, self.0[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for system in System::all() {
            assert_eq!(system.name().parse(), Ok(system));
        }
        assert!("petuum".parse::<System>().unwrap_err().contains("iterstore"));
    }

    #[test]
    fn rounds_begin_with_another_system_each() {
        let systems = Systems::new(&[], |_| Ok(())).unwrap();
        let firsts: Vec<System> = (0..8).filter_map(|round| systems.of_round(round).next()).map(|one| one.1).collect();
        assert_eq!(firsts, systems.iter().collect::<Vec<_>>());
        assert!(Systems::new(&[System::Megagrid; 2], |_| Ok(())).is_err());
        assert!(Systems::new(&[System::Megagrid], |_| Err("ask another")).is_err());
    }
}

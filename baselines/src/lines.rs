//! How many lines a user writes for an algorithm on each system. `tests/all/lines.rs` counts them in the sources, with one tool for all of
//! them, and says what is to stand here where that has changed.

use std::fmt;

use serde::Serialize;

use crate::System;

/// Lines of code of a program: everything of the algorithm but its parameters' ranges and its objective's formula. Imports, comments,
/// attributes, tests and blanks do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// For this system only: its types and stages, or reads and updates; dealing data to workers, first values, reading the objective.
    pub own: usize,
    /// Functions that are written once for all systems: what happens to a row or a token, and what workers agree on.
    pub shared: usize,
}

impl Lines {
    /// Returns the lines of the whole program.
    pub fn whole(self) -> usize {
        self.own + self.shared
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {}", self.own, self.shared)
    }
}

/// An algorithm's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// As it is asked for on the command line.
    pub name: &'static str,
    /// Vertex types, stage functions and sequence in Megagrid: what TuX² counts.
    pub stages: usize,
    /// The whole program on Megagrid.
    pub megagrid: Lines,
    gas: Lines,
    faithful: Lines,
    naive: Lines,
    servers: Lines,
    iterstore: Lines,
}

impl Program {
    /// Returns the lines of the program on another system.
    pub fn on(&self, system: System) -> Lines {
        match system {
            System::Gas => self.gas,
            System::GasFaithful => self.faithful,
            System::PsNaive => self.naive,
            System::LazyTable | System::Essp => self.servers,
            System::IterStore => self.iterstore,
        }
    }
}

/// Own and shared lines on Megagrid, `gas`, `gas-faithful`, `ps-naive`, `lazytable` and `essp`, and `iterstore`, whose users write a
/// virtual iteration too.
const fn program(name: &'static str, stages: usize, on: [(usize, usize); 6]) -> Program {
    const fn lines((own, shared): (usize, usize)) -> Lines {
        Lines { own, shared }
    }
    let [megagrid, gas, faithful, naive, servers, iterstore] = on;
    let (megagrid, gas, faithful) = (lines(megagrid), lines(gas), lines(faithful));
    let (naive, servers, iterstore) = (lines(naive), lines(servers), lines(iterstore));
    Program { name, stages, megagrid, gas, faithful, naive, servers, iterstore }
}

/// The algorithms, in the form that all systems run: matrix factorization by gradients, or by least squares of implicit feedback, topic
/// models by the dense sampler.
pub const PROGRAMS: [Program; 5] = [
    program("pagerank", 38, [(46, 25), (63, 25), (78, 13), (106, 25), (106, 25), (119, 25)]),
    program("mf", 49, [(55, 38), (130, 38), (168, 0), (169, 38), (223, 38), (237, 38)]),
    program("als", 58, [(121, 390), (162, 231), (141, 0), (167, 390), (167, 390), (187, 390)]),
    program("lda", 78, [(74, 218), (196, 218), (183, 218), (199, 218), (199, 218), (215, 218)]),
    program("blockpg", 193, [(70, 463), (257, 463), (244, 463), (304, 463), (304, 463), (304, 463)]),
];

/// Returns the lines of an algorithm; nothing for an unknown one.
pub fn of(algorithm: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == algorithm)
}

//! How many lines a user writes for an algorithm on each system.

use std::fmt;

use megagrid_baselines::System as Baseline;
use serde::Serialize;

use super::systems::System;

/// Lines of code of a program: everything of the algorithm but its parameters' ranges and its objective's formula. Imports, comments,
/// attributes, tests and blanks do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// For this system alone: its types and stages, or reads and updates; dealing data to workers, first values, reading the objective.
    pub own: usize,
    /// Functions that are written once for all systems: what happens to a row or a token, and what workers agree on.
    pub shared: usize,
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {}", self.own, self.shared)
    }
}

/// A file's text, and the items of it that count: those whose first line begins so, or all but these.
struct Source(&'static str, Items);

enum Items {
    These(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

use Items::{AllBut, These};

impl Source {
    fn count(&self) -> usize {
        let code = code(self.0);
        match self.1 {
            These(items) => count(&code, items),
            AllBut(items) => code.len() - count(&code, items),
        }
    }
}

fn sum(sources: &[Source]) -> usize {
    sources.iter().map(Source::count).sum()
}

macro_rules! algorithm {
    ($file:literal) => {
        include_str!(concat!("../../../algorithms/src/", $file))
    };
}

macro_rules! baseline {
    ($file:literal) => {
        include_str!(concat!("../../../baselines/src/apps/", $file))
    };
}

/// A run of Megagrid without options of a command line.
macro_rules! runner {
    ($file:literal, $items:expr) => {
        Source(include_str!(concat!("../../../baselines/tests/agree/", $file)), These($items))
    };
}

/// Returns the lines of an algorithm's program on a system; nothing for an unknown command.
pub fn of(system: System, command: &str) -> Option<Lines> {
    match command {
        "pagerank" => Some(pagerank(system)),
        "mf" => Some(mf(system)),
        "lda" => Some(lda(system)),
        "blockpg" => Some(blockpg(system)),
        _ => None,
    }
}

fn pagerank(system: System) -> Lines {
    use Baseline::{Gas, GasFaithful};
    let stages = algorithm!("pagerank.rs");
    let settle = These(&[
        "pub type Rank",
        "pub struct State",
        "pub struct Settle",
        "impl Apply",
        "pub struct Measure",
        "impl GlobalSync",
    ]);
    let measure = These(&["pub struct State", "pub struct Measure", "impl GlobalSync"]);
    let shared = sum(&[Source(stages, if system == System::Baseline(GasFaithful) { measure } else { settle })]);
    let own = match system {
        System::Megagrid => {
            Source(stages, AllBut(&[])).count() - shared + runner!("pagerank.rs", &["fn megagrid"]).count()
        }
        System::Baseline(system) => {
            let of_all = Source(baseline!("pagerank/mod.rs"), These(&["impl Job", "fn measured"]));
            let own = match system {
                Gas => baseline!("pagerank/gas.rs"),
                GasFaithful => baseline!("pagerank/faithful.rs"),
                _ => baseline!("pagerank/server.rs"),
            };
            sum(&[of_all, Source(own, AllBut(&[]))])
        }
    };
    Lines { own, shared }
}

/// By gradients, the form that all systems run.
fn mf(system: System) -> Lines {
    use Baseline::{Gas, GasFaithful, PsNaive};
    let stages = algorithm!("mf/batch.rs");
    let step = Source(stages, These(&["pub struct Step", "impl Step", "impl Apply"])).count();
    let shared = if system == System::Baseline(GasFaithful) { 0 } else { step };
    let own = match system {
        System::Megagrid => {
            Source(stages, AllBut(&[])).count() - shared + runner!("mf.rs", &["fn megagrid", "fn settings"]).count()
        }
        System::Baseline(system) => {
            let of_all = Source(baseline!("mf/mod.rs"), These(&["impl Job", "struct Measure", "impl<'r, U"]));
            let but = |text| Source(text, AllBut(&["fn in_place", "Form::InPlace =>"]));
            let own = match system {
                Gas => Source(baseline!("mf/gas.rs"), AllBut(&[])),
                GasFaithful => Source(baseline!("mf/faithful.rs"), AllBut(&[])),
                PsNaive => but(baseline!("mf/naive.rs")),
                _ => but(baseline!("mf/server.rs")),
            };
            sum(&[of_all, own])
        }
    };
    Lines { own, shared }
}

fn lda(system: System) -> Lines {
    use Baseline::{Gas, GasFaithful};
    let (sampler, program) = (algorithm!("lda/dense.rs"), algorithm!("lda/program.rs"));
    let types = &[
        "pub struct Document",
        "pub struct Word",
        "pub struct Lda",
        "impl<S: Store> Vertex",
        "impl<D: TopicCounts",
        "pub(super) type Cx",
    ];
    let shared =
        sum(&[Source(sampler, AllBut(&["pub type Dense", "pub fn sequence"])), Source(program, AllBut(types))]);
    let own = match system {
        System::Megagrid => {
            sum(&[
                Source(sampler, AllBut(&[])),
                Source(program, AllBut(&[])),
                runner!("lda.rs", &["fn megagrid", "fn settings"]),
            ]) - shared
        }
        System::Baseline(system) => {
            let of_all = &["struct Corpus", "impl Corpus", "fn draw", "fn end_iteration"];
            let own = match system {
                Gas => baseline!("lda/gas.rs"),
                GasFaithful => baseline!("lda/faithful.rs"),
                _ => baseline!("lda/server.rs"),
            };
            sum(&[Source(baseline!("lda/mod.rs"), These(of_all)), Source(own, AllBut(&[]))])
        }
    };
    Lines { own, shared }
}

fn blockpg(system: System) -> Lines {
    use Baseline::{Gas, GasFaithful};
    let types = &[
        "pub struct Sample",
        "pub struct Feature",
        "pub struct BlockPg",
        "impl Vertex",
        "impl Program",
        "type Cx",
        "pub fn sequence",
    ];
    let stages = algorithm!("blockpg/mod.rs");
    let shared = sum(&[
        Source(stages, AllBut(types)),
        Source(algorithm!("blockpg/control.rs"), AllBut(&[])),
        Source(algorithm!("blockpg/proximal.rs"), AllBut(&[])),
        Source(algorithm!("blockpg/leap.rs"), AllBut(&["pub fn then_leap"])),
    ]);
    let own = match system {
        System::Megagrid => {
            let leap = Source(algorithm!("blockpg/leap.rs"), These(&["pub fn then_leap"]));
            sum(&[Source(stages, These(types)), leap, runner!("blockpg.rs", &["fn megagrid", "fn settings"])])
        }
        System::Baseline(system) => {
            let of_all =
                &["struct Data", "impl<'j> Data", "fn deal", "fn shuffle", "fn sync", "fn join", "fn is_visited"];
            let own = match system {
                Gas => baseline!("blockpg/gas.rs"),
                GasFaithful => baseline!("blockpg/faithful.rs"),
                _ => baseline!("blockpg/server.rs"),
            };
            sum(&[Source(baseline!("blockpg/mod.rs"), These(of_all)), Source(own, AllBut(&[]))])
        }
    };
    Lines { own, shared }
}

/// Returns the lines that hold code; those of unit tests at the end of a file do not.
fn code(source: &str) -> Vec<&str> {
    let code = source.split("#[cfg(test)]").next().unwrap_or(source);
    let mut in_import = false;
    let counts = |line: &&str| {
        let line = line.trim();
        in_import = in_import || line.starts_with("use ") || line.starts_with("pub use ");
        let is_module = line.starts_with("mod ") && line.ends_with(';');
        let counts = !(in_import || is_module || line.is_empty() || line.starts_with("//") || line.starts_with("#["));
        in_import = in_import && !line.ends_with(';');
        counts
    };
    code.lines().filter(counts).collect()
}

/// Counts the lines of items whose first line begins in one of these ways. An item ends where a line as indented as its first closes it,
/// which is so in formatted code.
fn count(code: &[&str], begins: &[&str]) -> usize {
    let is_there = |begin: &&str| code.iter().any(|line| line.trim_start().starts_with(begin));
    debug_assert!(begins.iter().all(is_there), "one of {begins:?} is not there any more");
    let (mut counted, mut inside) = (0, None);
    for line in code {
        let (text, indent) = (line.trim_start(), line.len() - line.trim_start().len());
        let is_first = inside.is_none() && begins.iter().any(|begin| text.starts_with(begin));
        if !is_first && inside.is_none() {
            continue;
        }
        counted += 1;
        let is_last = match inside {
            None => text.ends_with([';', '}', ',']),
            Some(at) => indent == at && (text.starts_with('}') || text.ends_with(';')),
        };
        inside = if is_last { None } else { inside.or(Some(indent)) };
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r"//! Text.
mod m;
use a::{
    b,
};

/// Text.
#[derive(Debug)]
struct A;
impl A {
    fn f(
        x: u8,
    ) -> u8
    where
        u8: Copy,
    {
        match x {
            A::B => 1,
            _ => g(), // g
        }
    }
}
#[cfg(test)]
mod tests {}
";

    #[test]
    fn code_alone_counts() {
        assert_eq!(code(SOURCE).len(), 14);
    }

    #[test]
    fn items_count_from_their_first_line_to_their_last() {
        let count = |begins: &[&str]| count(&code(SOURCE), begins);
        assert_eq!([count(&["struct A"]), count(&["impl A"]), count(&["fn f"]), count(&["A::B =>"])], [1, 13, 11, 1]);
        assert_eq!(count(&["struct A", "impl A"]), 14);
    }

    #[test]
    fn every_system_has_its_lines() {
        for command in ["pagerank", "mf", "lda", "blockpg"] {
            for system in System::all() {
                let lines = of(system, command).unwrap();
                println!("{command} on {system}: {lines}");
                assert!(lines.own > 40 && (lines.shared > 5 || command == "mf"), "{command} on {system}: {lines}");
            }
        }
    }
}

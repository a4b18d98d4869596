//! Counts the lines that a user writes for an algorithm on each system, in the sources: `cargo test -p megagrid-baselines lines`. What
//! is found stands in `megagrid_baselines::lines`, so that `megagrid compare` and `cargo reenact 7` can say it without sources.

use std::path::Path;

use megagrid_baselines::System;
use megagrid_baselines::lines::{Lines, PROGRAMS};

/// A file, and the items of it that count: those whose first line begins so, or all but these.
struct Source(&'static str, Items);

#[derive(Clone, Copy)]
enum Items {
    These(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

use Items::{AllBut, These};

const ALL: Items = AllBut(&[]);

/// An algorithm's sources: what Megagrid needs for itself, without options of a command line, what its stages and other systems share,
/// and the parts of others.
struct Sources {
    megagrid: &'static [Source],
    shared: &'static [Source],
    /// What `gas` shares, and `gas-faithful`, if that is less.
    shared_gas: Option<&'static [Source]>,
    shared_faithful: Option<&'static [Source]>,
    /// A file of the applications, and its parts that all of them have.
    of_all: (&'static str, Items),
    /// In that file: what is there for tests.
    for_tests: &'static [&'static str],
    /// In `naive.rs`: the parts of another form of the algorithm.
    not_in_naive: &'static [&'static str],
    /// In `server.rs`: these parts, and what only `iterstore` has, a virtual iteration.
    not_in_servers: &'static [&'static str],
    /// In `server.rs`, on `iterstore`: the parts of another form.
    not_in_iterstore: &'static [&'static str],
}

const RANK_STAGES: &[&str] =
    &["pub struct Measure", "impl<P: Ranks> GlobalSync", "pub struct Settle", "impl<P: Ranks> Apply"];

const PAGERANK: Sources = Sources {
    megagrid: &[
        Source("../algorithms/src/pagerank.rs", AllBut(RANK_STAGES)),
        Source("../tests/agree/pagerank.rs", These(&["fn megagrid"])),
    ],
    shared: &[
        Source("../algorithms/src/pagerank.rs", These(RANK_STAGES)),
        Source("../algorithms/src/pagerank/start.rs", These(&["pub struct State", "pub type Rank"])),
    ],
    shared_gas: None,
    shared_faithful: Some(&[
        Source("../algorithms/src/pagerank.rs", These(&["pub struct Measure", "impl<P: Ranks> GlobalSync"])),
        Source("../algorithms/src/pagerank/start.rs", These(&["pub struct State"])),
    ]),
    of_all: ("job.rs", These(&["impl Job", "pub(super) fn measured"])),
    for_tests: &[],
    not_in_naive: &[],
    not_in_servers: &["fn accesses"],
    not_in_iterstore: &[],
};

const MF: Sources = Sources {
    megagrid: &[
        Source("../algorithms/src/mf/batch.rs", AllBut(&["pub struct Step", "impl Step", "impl Apply"])),
        Source("../tests/agree/mf.rs", These(&["fn megagrid", "fn settings"])),
    ],
    shared: &[Source("../algorithms/src/mf/batch.rs", These(&["pub struct Step", "impl Step", "impl Apply"]))],
    shared_gas: None,
    shared_faithful: Some(&[]),
    of_all: ("job.rs", These(&["impl Job", "struct Measure", "impl<'r, U"])),
    for_tests: &[],
    not_in_naive: &["fn in_place", "Form::InPlace =>"],
    not_in_servers: &["fn accesses", "fn in_place", "Form::InPlace =>"],
    not_in_iterstore: &["fn accesses_in_place", "fn in_place", "Form::InPlace =>"],
};

const OF_SIDE: &[&str] = &["pub struct OfSide", "impl OfSide"];

const ALS: Sources = Sources {
    megagrid: &[
        Source("../algorithms/src/als/stages.rs", AllBut(&["pub struct OfSide", "impl OfSide", "pub fn objective"])),
        Source("../tests/agree/als.rs", These(&["fn megagrid"])),
    ],
    shared: &[
        Source("../algorithms/src/als/gramian.rs", ALL),
        Source("../algorithms/src/least_squares/solver.rs", ALL),
        Source("../algorithms/src/least_squares/tiles.rs", ALL),
        Source("../algorithms/src/als/stages.rs", These(OF_SIDE)),
    ],
    shared_gas: Some(&[
        Source("../algorithms/src/als/gramian.rs", ALL),
        Source("../algorithms/src/least_squares/tiles.rs", ALL),
        Source("../algorithms/src/als/stages.rs", These(OF_SIDE)),
    ]),
    shared_faithful: Some(&[]),
    of_all: ("job.rs", These(&["impl Job"])),
    for_tests: &[],
    not_in_naive: &[],
    not_in_servers: &["fn accesses"],
    not_in_iterstore: &[],
};

/// What of the topic models' program is Megagrid's: vertex types, and totals that workers keep.
const TYPES: &[&str] = &[
    "pub struct Document",
    "pub struct Word",
    "pub struct Lda",
    "impl<S: Store + ?Sized> Vertex",
    "pub trait Sampling",
    "impl<S: Sampling>",
    "pub struct MergeTotals",
    "pub(super) type Cx",
];
const DENSE: &[&str] = &["impl Sampling for Dense"];

const LDA: Sources = Sources {
    megagrid: &[
        Source("../algorithms/src/lda/dense.rs", These(DENSE)),
        Source("../algorithms/src/lda/program.rs", These(TYPES)),
        Source("../tests/agree/lda.rs", These(&["fn megagrid", "fn settings"])),
    ],
    shared: &[
        Source("../algorithms/src/lda/dense.rs", AllBut(DENSE)),
        Source("../algorithms/src/lda/program.rs", AllBut(TYPES)),
    ],
    shared_gas: None,
    shared_faithful: None,
    of_all: (
        "corpus.rs",
        These(&["pub(super) struct Corpus", "impl Corpus", "pub(super) fn draw", "pub(super) fn end_iteration"]),
    ),
    for_tests: &["tell: Option<Tell>,", "let tell =", "self.tell_counts(", "fn tell_counts"],
    not_in_naive: &[],
    not_in_servers: &["fn accesses"],
    not_in_iterstore: &[],
};

const BLOCKPG: Sources = Sources {
    megagrid: &[
        Source("../algorithms/src/blockpg/program.rs", ALL),
        Source("../algorithms/src/blockpg/mod.rs", These(&["pub fn sequence"])),
        Source("../algorithms/src/blockpg/leap.rs", These(&["pub fn then_leap"])),
        Source("../tests/agree/blockpg.rs", These(&["fn megagrid", "fn settings"])),
    ],
    shared: &[
        Source("../algorithms/src/blockpg/mod.rs", AllBut(&["pub fn sequence"])),
        Source("../algorithms/src/blockpg/stages.rs", ALL),
        Source("../algorithms/src/blockpg/directions.rs", ALL),
        Source("../algorithms/src/blockpg/control.rs", ALL),
        Source("../algorithms/src/blockpg/proximal.rs", ALL),
        Source("../algorithms/src/blockpg/leap.rs", AllBut(&["pub fn then_leap"])),
    ],
    shared_gas: None,
    shared_faithful: None,
    // Besides the job itself and its imports nothing of it is for one system only.
    of_all: ("data.rs", AllBut(&["pub struct Job"])),
    for_tests: &[],
    not_in_naive: &[],
    not_in_servers: &[],
    not_in_iterstore: &[],
};

impl Sources {
    fn megagrid(&self) -> Lines {
        Lines { own: sum(self.megagrid), shared: sum(self.shared) }
    }

    fn on(&self, algorithm: &str, system: System) -> Lines {
        let (file, items) = match system {
            System::Gas => ("gas.rs", ALL),
            System::GasFaithful => ("faithful.rs", ALL),
            System::PsNaive if algorithm == "mf" => ("naive.rs", AllBut(self.not_in_naive)),
            System::IterStore => ("server.rs", AllBut(self.not_in_iterstore)),
            _ => ("server.rs", AllBut(self.not_in_servers)),
        };
        let app = |(file, items): (&str, Items)| lines_of(&format!("src/apps/{algorithm}/{file}"), items);
        let shared = match system {
            System::Gas => self.shared_gas,
            System::GasFaithful => self.shared_faithful,
            _ => None,
        };
        let shared = shared.unwrap_or(self.shared);
        let for_tests = app((self.of_all.0, These(self.for_tests)));
        Lines { own: app(self.of_all) - for_tests + app((file, items)), shared: sum(shared) }
    }

    /// Counts types and implementations of the programming model, and the sequence.
    fn stages(&self) -> usize {
        let mut files: Vec<&str> = self.megagrid.iter().chain(self.shared).map(|source| source.0).collect();
        files.retain(|file| file.starts_with("../algorithms"));
        files.sort();
        files.dedup();
        files.into_iter().map(|file| of_model(&code(&read(file)))).sum()
    }
}

fn of_model(code: &[&str]) -> usize {
    let models = ["Vertex", "Program", "Sampling", "Exchange", "Gather", "Apply", "GlobalSync", "Aggregate"];
    let begins = ["pub fn sequence", "pub fn then_leap", "vertex! {", "program! {", "edge_stage! {"];
    let mut begins: Vec<String> = begins.map(str::to_owned).to_vec();
    for line in code.iter().filter(|line| line.starts_with("impl")) {
        let Some((of, name)) = line.split_once(" for ") else { continue };
        let of =
            of.rsplit("> ").find(|part| models.iter().any(|model| part.trim_start_matches("impl ").starts_with(model)));
        if of.is_some() {
            begins.push((*line).to_owned());
            begins.push(format!("pub struct {}", name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or(name)));
        }
    }
    count(code, &begins.iter().map(String::as_str).collect::<Vec<_>>())
}

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sum(sources: &[Source]) -> usize {
    sources.iter().map(|&Source(file, items)| lines_of(file, items)).sum()
}

fn lines_of(file: &str, items: Items) -> usize {
    let text = read(file);
    let code = code(&text);
    let (These(names) | AllBut(names)) = items;
    for name in names {
        assert!(code.iter().any(|line| line.trim_start().starts_with(name)), "{file} has no {name:?} any more");
    }
    let these = count(&code, names);
    if matches!(items, These(_)) { these } else { code.len() - these }
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

#[test]
fn the_table_has_what_the_sources_have() {
    let mut differ = Vec::new();
    for (program, found) in PROGRAMS.iter().zip([PAGERANK, MF, ALS, LDA, BLOCKPG]) {
        let mut compare = |what: &str, stands: String, found: String| {
            println!("{} {what}: {found}", program.name);
            if stands != found {
                differ.push(format!("{} {what}: {found}, not {stands}", program.name));
            }
        };
        compare("stages", program.stages.to_string(), found.stages().to_string());
        compare("on megagrid", program.megagrid.to_string(), found.megagrid().to_string());
        for system in System::ALL {
            let (stands, found) = (program.on(system), found.on(program.name, system));
            compare(&format!("on {system}"), stands.to_string(), found.to_string());
        }
    }
    assert!(differ.is_empty(), "write into src/lines.rs what has changed: {differ:#?}");
}

const SOURCE: &str = r"//! Text.
mod m;
use a::{
    b,
};

/// Text.
#[derive(Debug)]
pub struct A;
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
impl<T: B> Vertex for A {}
#[cfg(test)]
mod tests {}
";

#[test]
fn code_alone_counts() {
    assert_eq!(code(SOURCE).len(), 15);
}

#[test]
fn items_count_from_their_first_line_to_their_last() {
    let count = |begins: &[&str]| count(&code(SOURCE), begins);
    assert_eq!([count(&["pub struct A"]), count(&["impl A"]), count(&["fn f"]), count(&["A::B =>"])], [1, 13, 11, 1]);
    assert_eq!(count(&["pub struct A", "impl A"]), 14);
    assert_eq!(of_model(&code(SOURCE)), 2);
}

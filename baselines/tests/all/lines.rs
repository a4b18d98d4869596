//! Counts the lines that a user writes for an algorithm on each system, in the sources: `cargo test -p megagrid-baselines lines`. What
//! is found stands in `megagrid_baselines::lines`, so that `megagrid compare` and `cargo reenact 7` can say it without sources.

use std::path::Path;

use megagrid_baselines::System;
use megagrid_baselines::lines::{Lines, PROGRAMS};

/// A file, and the items of it that count: those whose first line begins so, or all but these.
struct Source(String, Items);

enum Items {
    These(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

use Items::{AllBut, These};

/// An algorithm's sources: what Megagrid needs for itself, what its stages and other systems share, and the parts of others.
struct Sources {
    megagrid: Vec<Source>,
    shared: Vec<Source>,
    /// What `gas-faithful` shares, if that is less.
    shared_faithful: Option<Vec<Source>>,
    /// A file of the applications, and its parts that all of them have.
    of_all: (&'static str, &'static [&'static str]),
    /// In `server.rs` and `naive.rs`: the parts of another form of the algorithm.
    other_form: &'static [&'static str],
}

fn stages(file: &str, items: Items) -> Source {
    Source(format!("../algorithms/src/{file}"), items)
}

/// A run of Megagrid without options of a command line.
fn runner(file: &str, items: &'static [&'static str]) -> Source {
    Source(format!("../tests/agree/{file}"), These(items))
}

fn sources(algorithm: &str) -> Sources {
    match algorithm {
        "pagerank" => {
            const MEASURE: &[&str] = &["pub struct Measure", "impl GlobalSync"];
            const SETTLE: &[&str] = &["pub struct Settle", "impl Apply"];
            const BOTH: &[&str] = &["pub struct Measure", "impl GlobalSync", "pub struct Settle", "impl Apply"];
            let measure = || {
                vec![stages("pagerank.rs", These(MEASURE)), stages("pagerank/start.rs", These(&["pub struct State"]))]
            };
            let settle = [stages("pagerank.rs", These(SETTLE)), stages("pagerank/start.rs", These(&["pub type Rank"]))];
            Sources {
                megagrid: vec![stages("pagerank.rs", AllBut(BOTH)), runner("pagerank.rs", &["fn megagrid"])],
                shared: measure().into_iter().chain(settle).collect(),
                shared_faithful: Some(measure()),
                of_all: ("job.rs", &["impl Job", "pub(super) fn measured"]),
                other_form: &[],
            }
        }
        "mf" => {
            const STEP: &[&str] = &["pub struct Step", "impl Step", "impl Apply"];
            Sources {
                megagrid: vec![stages("mf/batch.rs", AllBut(STEP)), runner("mf.rs", &["fn megagrid", "fn settings"])],
                shared: vec![stages("mf/batch.rs", These(STEP))],
                shared_faithful: Some(Vec::new()),
                of_all: ("job.rs", &["impl Job", "struct Measure", "impl<'r, U"]),
                other_form: &["fn in_place", "Form::InPlace =>"],
            }
        }
        "lda" => {
            const OWN: &[&str] = &["pub type Dense", "impl Config", "pub fn sequence"];
            const TYPES: &[&str] = &[
                "pub struct Document",
                "pub struct Word",
                "pub struct Lda",
                "impl<S: Store + ?Sized> Vertex",
                "impl<D: TopicCounts",
                "pub struct MergeTotals",
                "pub(super) type Cx",
            ];
            Sources {
                megagrid: vec![
                    stages("lda/dense.rs", These(OWN)),
                    stages("lda/program.rs", These(TYPES)),
                    runner("lda.rs", &["fn megagrid", "fn settings"]),
                ],
                shared: vec![stages("lda/dense.rs", AllBut(OWN)), stages("lda/program.rs", AllBut(TYPES))],
                shared_faithful: None,
                of_all: (
                    "corpus.rs",
                    &["pub(super) struct Corpus", "impl Corpus", "pub(super) fn draw", "pub(super) fn end_iteration"],
                ),
                other_form: &[],
            }
        }
        _ => {
            const SEQUENCE: &[&str] = &["pub fn sequence"];
            const LEAP: &[&str] = &["pub fn then_leap"];
            Sources {
                megagrid: vec![
                    stages("blockpg/program.rs", AllBut(&[])),
                    stages("blockpg/mod.rs", These(SEQUENCE)),
                    stages("blockpg/leap.rs", These(LEAP)),
                    runner("blockpg.rs", &["fn megagrid", "fn settings"]),
                ],
                shared: vec![
                    stages("blockpg/mod.rs", AllBut(SEQUENCE)),
                    stages("blockpg/stages.rs", AllBut(&[])),
                    stages("blockpg/directions.rs", AllBut(&[])),
                    stages("blockpg/control.rs", AllBut(&[])),
                    stages("blockpg/proximal.rs", AllBut(&[])),
                    stages("blockpg/leap.rs", AllBut(LEAP)),
                ],
                shared_faithful: None,
                of_all: (
                    "data.rs",
                    &[
                        "pub(super) struct Data",
                        "impl<'j> Data",
                        "fn deal",
                        "fn shuffle",
                        "pub(super) fn sync",
                        "pub(super) fn join",
                        "pub(super) fn is_visited",
                    ],
                ),
                other_form: &[],
            }
        }
    }
}

impl Sources {
    fn megagrid(&self) -> Lines {
        Lines { own: sum(&self.megagrid), shared: sum(&self.shared) }
    }

    fn on(&self, algorithm: &str, system: System) -> Lines {
        let app = |file: &str, items| Source(format!("src/apps/{algorithm}/{file}"), items);
        let own = match system {
            System::Gas => app("gas.rs", AllBut(&[])),
            System::GasFaithful => app("faithful.rs", AllBut(&[])),
            System::PsNaive if algorithm == "mf" => app("naive.rs", AllBut(self.other_form)),
            _ => app("server.rs", AllBut(self.other_form)),
        };
        let (file, items) = self.of_all;
        let faithful = self.shared_faithful.as_ref().filter(|_| system == System::GasFaithful);
        Lines { own: sum(&[app(file, These(items)), own]), shared: sum(faithful.unwrap_or(&self.shared)) }
    }

    /// Counts types and implementations of the programming model, and the sequence.
    fn stages(&self) -> usize {
        let mut files: Vec<&String> = self.megagrid.iter().chain(&self.shared).map(|source| &source.0).collect();
        files.retain(|file| file.starts_with("../algorithms"));
        files.sort();
        files.dedup();
        files.into_iter().map(|file| of_model(&code(&read(file)))).sum()
    }
}

fn of_model(code: &[&str]) -> usize {
    let models = ["Vertex", "Program", "Exchange", "Apply", "GlobalSync", "Aggregate"];
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
    let of = |Source(file, items): &Source| {
        let text = read(file);
        let code = code(&text);
        let (These(names) | AllBut(names)) = items;
        for name in *names {
            assert!(code.iter().any(|line| line.trim_start().starts_with(name)), "{file} has no {name:?} any more");
        }
        match items {
            These(items) => count(&code, items),
            AllBut(items) => code.len() - count(&code, items),
        }
    };
    sources.iter().map(of).sum()
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
    for program in &PROGRAMS {
        let found = sources(program.name);
        let mut compare = |what: &str, stands: String, found: String| {
            println!("{} {what}: {found}", program.name);
            if stands != found {
                differ.push(format!("{} {what}: {found}, not {stands}", program.name));
            }
        };
        compare("stages", program.stages.to_string(), found.stages().to_string());
        compare("on megagrid", program.megagrid.to_string(), found.megagrid().to_string());
        for system in System::ALL {
            compare(
                &format!("on {system}"),
                program.on(system).to_string(),
                found.on(program.name, system).to_string(),
            );
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

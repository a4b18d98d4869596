//! How many lines an algorithm takes in the programming model: `cargo lines`.
//!
//! A line counts that holds code: no blanks, no comments, no attributes, no unit tests. *Stages* are vertex types, stage
//! functions and the sequence; the *whole* is all that is shipped of the algorithm, with its other samplers and forms, its
//! model, prediction and measures of quality.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item, ItemImpl, Type};

/// An algorithm.
struct Algorithm {
    name: &'static str,
    /// Where its stages are.
    stages: &'static [&'static str],
    /// All that it consists of: files and folders.
    whole: &'static [&'static str],
    /// Lines of its stages at most.
    most: usize,
    /// Lines in TuX² (§5), whole programs.
    tux2: Option<usize>,
}

#[rustfmt::skip]
const ALGORITHMS: [Algorithm; 8] = [
    Algorithm { name: "PageRank", stages: &["pagerank.rs"], whole: &["pagerank.rs", "pagerank"], most: 40, tux2: None },
    Algorithm { name: "HITS", stages: &["hits.rs"], whole: &["hits.rs"], most: 80, tux2: None },
    Algorithm { name: "MF, in place", stages: &["mf/in_place.rs"], whole: &["mf"], most: 50, tux2: Some(50) },
    Algorithm { name: "iALS++", stages: &["als/stages.rs"], whole: &["als"], most: 90, tux2: None },
    Algorithm { name: "LDA, sparse", stages: &["lda/program.rs", "lda/sparse.rs"], whole: &["lda"], most: 252, tux2: Some(252) },
    Algorithm { name: "LDA, MH", stages: &["lda/program.rs", "lda/mh.rs"], whole: &["lda"], most: 252, tux2: Some(252) },
    // More than TuX²'s: steps are damped, features rest, and the path leaps.
    Algorithm { name: "BlockPG", stages: &["blockpg/program.rs", "blockpg/stages.rs", "blockpg/mod.rs"], whole: &["blockpg"], most: 95, tux2: Some(79) },
    Algorithm { name: "Newton", stages: &["newton/stages.rs"], whole: &["newton"], most: 140, tux2: None },
];

/// Traits whose implementations are the algorithm itself.
const MODEL: [&str; 8] = ["Sampling", "Vertex", "Exchange", "Incident", "Gather", "Apply", "GlobalSync", "Aggregate"];
/// Macros that stand for them.
const MACROS: [&str; 2] = ["vertex", "edge_stage"];

#[test]
fn an_algorithm_is_as_short_as_its_model_promises() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    println!("{:<16} {:>8} {:>8} {:>8} {:>8}", "", "stages", "at most", "whole", "TuX²");
    let mut too_long = Vec::new();
    for Algorithm { name, stages, whole, most, tux2 } in ALGORITHMS {
        let files = |places: &[&str]| places.iter().flat_map(|place| files_of(&source.join(place))).collect::<Vec<_>>();
        let of_stages: usize = files(stages).iter().map(|file| count(&read(file)).0).sum();
        let of_all: usize = files(whole).iter().map(|file| count(&read(file))).map(|(model, rest)| model + rest).sum();
        let tux2 = tux2.map_or_else(|| "-".to_owned(), |lines| lines.to_string());
        println!("{name:<16} {of_stages:>8} {most:>8} {of_all:>8} {tux2:>8}");
        assert!(of_stages < of_all, "{name}: stages are a part of the whole");
        if of_stages > most {
            too_long.push(name);
        }
    }
    assert!(too_long.is_empty(), "longer than promised: {too_long:?}");
}

/// Returns the files of a folder, or the file itself.
fn files_of(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries.flat_map(|entry| files_of(&entry.expect("an entry").path())).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Counts a file's lines of the model, and the others; unit tests are neither.
fn count(text: &str) -> (usize, usize) {
    let file = syn::parse_file(text).expect("sources are Rust");
    let types: BTreeSet<String> = file.items.iter().filter_map(implemented).collect();
    let (mut counted, mut beside) = (0, 0);
    for item in &file.items {
        let is_model = match item {
            Item::Struct(item) => types.contains(&item.ident.to_string()),
            Item::Enum(item) => types.contains(&item.ident.to_string()),
            Item::Fn(item) => item.sig.ident == "sequence",
            Item::Macro(item) => MACROS.iter().any(|name| item.mac.path.is_ident(name)),
            Item::Mod(module) if is_test(&module.attrs) => continue,
            _ => implemented(item).is_some(),
        };
        let lines = code_lines(item.to_token_stream());
        if is_model { counted += lines } else { beside += lines }
    }
    (counted, beside)
}

/// Returns the type for which an item implements a trait of the model.
fn implemented(item: &Item) -> Option<String> {
    let Item::Impl(ItemImpl { trait_: Some((_, path, _)), self_ty, .. }) = item else { return None };
    let name = path.segments.last()?.ident.to_string();
    let Type::Path(of) = &**self_ty else { return None };
    MODEL.contains(&name.as_str()).then(|| of.path.segments.last().map(|segment| segment.ident.to_string()))?
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.to_token_stream().to_string().contains("test"))
}

/// Counts the lines on which tokens begin or end, attributes and doc comments apart.
fn code_lines(tokens: TokenStream) -> usize {
    let mut lines = BTreeSet::new();
    collect(tokens, &mut lines);
    lines.len()
}

fn collect(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                if matches!(tokens.peek(), Some(TokenTree::Punct(inner)) if inner.as_char() == '!') {
                    tokens.next();
                }
                tokens.next();
            }
            TokenTree::Group(group) => {
                lines.extend([group.span_open().start().line, group.span_close().end().line]);
                collect(group.stream(), lines);
            }
            other => lines.extend([other.span().start().line, other.span().end().line]),
        }
    }
}

#[test]
fn comments_attributes_and_tests_do_not_count() {
    let text = "
        /// A page.
        #[derive(Debug)]
        pub struct Page;

        impl Vertex for Page {
            // Nothing.
            type Sync = (); // 2

            type Delta = ();
        }
        vertex! { struct Link { sync: f32 } }
        fn helper() {}
        #[cfg(test)]
        mod tests { fn long() {} }
    ";
    assert_eq!(count(text), (6, 1));
}

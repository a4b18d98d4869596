//! How many lines an algorithm takes in the programming model: `cargo lines`.
//!
//! Counted are vertex types, stage functions and the sequence, where a line counts that holds code: no blanks,
//! no comments, no attributes. Everything else in an algorithm's files is printed beside it.

use std::collections::BTreeSet;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item, ItemImpl, Type};

/// An algorithm: its name, its files, and the most lines that its stages may take (TuX² §5 gives 50 for MF, 252 for LDA and
/// 79 for BlockPG, whose damping and active set are beyond it).
const ALGORITHMS: [(&str, &[&str], usize); 5] = [
    ("PageRank", &["pagerank.rs"], 40),
    ("MF, in place", &["mf/in_place.rs"], 50),
    ("LDA, sparse", &["lda/program.rs", "lda/sparse.rs"], 252),
    ("LDA, MH", &["lda/program.rs", "lda/mh.rs"], 252),
    ("BlockPG", &["blockpg/program.rs", "blockpg/stages.rs", "blockpg/mod.rs"], 90),
];

/// Traits whose implementations are the algorithm itself.
const MODEL: [&str; 6] = ["Vertex", "Exchange", "Incident", "Apply", "GlobalSync", "Aggregate"];
/// Macros that stand for them.
const MACROS: [&str; 2] = ["vertex", "edge_stage"];

#[test]
fn an_algorithm_is_as_short_as_its_model_promises() {
    println!("{:<16} {:>8} {:>8} {:>8}", "", "counted", "at most", "beside");
    let mut too_long = Vec::new();
    for (name, files, most) in ALGORITHMS {
        let (mut counted, mut beside) = (0, 0);
        for file in files {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let (of_model, of_rest) = count(&text);
            counted += of_model;
            beside += of_rest;
        }
        println!("{name:<16} {counted:>8} {most:>8} {beside:>8}");
        if counted > most {
            too_long.push(name);
        }
    }
    assert!(too_long.is_empty(), "longer than promised: {too_long:?}");
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

//! The documents show the newest results file.

use std::fs;
use std::path::Path;

use megagrid_results::{Results, documents, newest};

#[test]
fn tables_are_those_of_the_newest_results_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let results = Results::read(&newest(&root).unwrap()).unwrap();
    for (path, expected) in documents(&root, &results).unwrap() {
        let found = fs::read_to_string(&path).unwrap();
        assert!(found == expected, "{} differs from the results file: run `cargo benchmarks`", path.display());
        let marked = found.contains("<!-- benchmarks: ");
        assert!(marked, "{} has no table of results", path.display());
    }
}

#[test]
fn the_page_of_benchmarks_is_short() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks.md")).unwrap();
    let lines = page.lines().count();
    assert!(lines <= 200, "docs/benchmarks.md has {lines} lines: older figures go under docs/benchmarks/");
}

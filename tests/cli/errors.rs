//! Bad input: exit 1, one message that says where and what, and nothing half-written.

use std::fs;
use std::process::Command;

use megagrid_datasets::{Prepared, read_graph, read_ratings};
use megagrid_partition::Side;

use crate::{Place, fails};

const BOTH: [Side; 2] = [Side::Left, Side::Right];

#[test]
fn malformed_lines_are_named() {
    let place = Place::new();
    let ratings = place.file("r.csv", "ann,tea,4\nbob,rye,much\n");
    fails(&["mf", &ratings], 1, &["r.csv:2: rating", "\"much\"", "expected a finite number"]);
    for bad in ["NaN", "inf", "-inf", "1e999", ""] {
        let ratings = place.file("r.csv", format!("ann,tea,4\nbob,rye,{bad}\n"));
        fails(&["mf", &ratings], 1, &["r.csv:2: rating"]);
    }
    let graph = place.file("g.txt", "# a comment\n1 2\n3\n");
    fails(
        &["pagerank", &graph, "--format", "edges"],
        1,
        &["g.txt:3: edge", "expected a source vertex and a target vertex"],
    );
}

#[test]
fn test_files_are_checked_as_well() {
    let place = Place::new();
    let test = place.file("t.csv", "u1,i1\nu2,i2,3\n");
    fails(&["mf", &place.ratings(), "--test", &test], 1, &["t.csv"]);
    fails(&["mf", &place.ratings(), "--test", &place.name("none.csv")], 1, &["none.csv", "No such file"]);
}

#[test]
fn missing_and_empty_files_are_named() {
    let place = Place::new();
    for command in ["mf", "pagerank"] {
        fails(&[command, &place.name("none.txt")], 1, &["none.txt", "No such file"]);
    }
    let empty = place.file("empty.txt", "");
    fails(&["mf", &empty, "--format", "ratings"], 1, &["empty.txt: no ratings in it"]);
    fails(&["pagerank", &empty, "--format", "edges"], 1, &["empty.txt: no edges in it"]);
    fails(&["pagerank", &empty], 1, &["empty.txt: no lines in it"]);
}

#[test]
fn matrix_market_headers_have_to_fit() {
    let place = Place::new();
    let header = "%%MatrixMarket matrix coordinate real general\n";
    let short = place.file("short.mtx", format!("{header}2 2 3\n1 1 5\n2 2 4\n"));
    fails(&["mf", &short], 1, &["short.mtx", "3"]);
    for (name, id) in [("negative.mtx", "-1"), ("beyond.mtx", "3"), ("overflow.mtx", "99999999999999999999")] {
        let file = place.file(name, format!("{header}2 2 2\n1 1 5\n{id} 2 4\n"));
        fails(&["mf", &file], 1, &[&format!("{name}:4"), id]);
    }
}

#[test]
fn formats_that_do_not_fit_the_command_are_refused() {
    let place = Place::new();
    let samples = place.file("s.libsvm", "1 1:0.5 3:1\n-1 2:1\n");
    fails(&["mf", &samples], 1, &["the format is libsvm, which does not hold ratings"]);
    fails(&["pagerank", &samples], 1, &["the format is libsvm, which does not hold a graph"]);
}

#[test]
fn truncated_gzip_is_told_from_a_bad_line() {
    let place = Place::new();
    // A stored block that announces more bytes than follow.
    let start = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 200, 0, 55, 255];
    let bytes = [&start[..], b"ann,tea,4\nbob,rye,3\n"].concat();
    let file = place.file("r.csv.gz", bytes);
    fails(&["mf", &file, "--format", "ratings"], 1, &["r.csv.gz", "gzip data end early"]);
}

#[test]
fn damaged_caches_are_refused() {
    let place = Place::new();
    let graph = read_graph(place.graph(), None).unwrap().in_degree_order();
    Prepared::new(graph, &BOTH).write_cache(place.path("g.mgrid")).unwrap();
    let whole = fs::read(place.path("g.mgrid")).unwrap();

    let cut = place.file("cut.mgrid", &whole[..whole.len() - 100]);
    fails(&["pagerank", &cut], 1, &["cut.mgrid", "truncated"]);
    let mut changed = whole.clone();
    changed[8] += 1;
    fails(&["pagerank", &place.file("version.mgrid", &changed)], 1, &["version.mgrid", "expected 1"]);
    for at in [40, 600, 650] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fails(&["pagerank", &place.file("bits.mgrid", &changed)], 1, &["bits.mgrid", "damaged"]);
    }
    let other = place.file("other.mgrid", "1 2\n2 3\n");
    fails(&["pagerank", &other], 1, &["other.mgrid: ", "not a .mgrid cache"]);
    fails(&["mf", &place.name("g.mgrid")], 1, &["holds edges with no data, expected edges with numbers"]);
}

#[test]
fn bipartite_caches_are_not_ranked() {
    let place = Place::new();
    let ratings = read_ratings(place.ratings(), None).unwrap().in_degree_order();
    Prepared::new(ratings, &BOTH).write_cache(place.path("r.mgrid")).unwrap();
    fails(&["pagerank", &place.name("r.mgrid")], 1, &["r.mgrid"]);
}

#[test]
fn outputs_that_exist_or_cannot_be_written_are_refused_before_training() {
    let place = Place::new();
    let (ratings, graph) = (place.ratings(), place.graph());
    fs::create_dir(place.path("model")).unwrap();
    // A billion iterations: a refusal after training would never come.
    let mf = ["mf", &ratings, "--iterations", "1000000000"];
    fails(&[&mf[..], &["--model", &place.name("model")]].concat(), 1, &["model: exists already"]);
    let missing = "no is not there; make it first";
    fails(&[&mf[..], &["--model", &place.name("no/model")]].concat(), 1, &["model: the directory", missing]);
    fails(&[&mf[..], &["--json", &place.name("no/record.json")]].concat(), 1, &["record.json: the directory", missing]);
    fails(&[&mf[..], &["--report", &place.name("model")]].concat(), 1, &["is a directory"]);
    fails(&["pagerank", &graph, "--model", &place.name("model")], 1, &["model: exists already"]);
    assert_eq!(place.listing(), ["graph.txt", "model", "ratings.csv"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_no_model() {
    let place = Place::new();
    fails(&["pagerank", &place.graph(), "--json", "/dev/full", "-q"], 1, &["/dev/full", "No space left"]);
    // A limit on the size of files stands in for a full disk: writes fail half way.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" mf \"$1\" --model \"$2\" --iterations 1 --dims 64";
    let program = assert_cmd::cargo::cargo_bin!("megagrid");
    let mut limited = Command::new("bash");
    limited.arg("-c").arg(script).arg(program).args([place.ratings(), place.name("model")]);
    let output = limited.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("File too large"), "{message}");
    assert_eq!(place.listing(), ["graph.txt", "ratings.csv"], "nothing half-written");
}

#[test]
fn divergence_names_the_iteration_and_a_way_out() {
    let place = Place::new();
    let args = ["mf", &place.ratings(), "--optimizer", "sgd", "--step", "50", "--model", &place.name("model")];
    fails(&args, 1, &["running_rmse became", "in iteration 1", "smaller --step"]);
    assert!(!place.path("model").exists());
}

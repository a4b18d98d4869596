//! `convert`.

use std::fs;

use crate::{Place, done, fails};

#[test]
fn convert_takes_every_format() {
    let place = Place::new();
    let mtx = "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.5\n3 1 4\n";
    let inputs = [
        (place.graph(), "graph of 5 vertices, 8 edges"),
        (place.ratings(), "ratings of 30 items by 40 users"),
        (place.file("m.mtx", mtx), "2 ratings of 3 items by 3 users"),
        (place.file("s.libsvm", "1 1:0.5\n-1 2:1\n"), "2 samples of 2 features"),
        (place.file("c.ldac", "2 0:1 3:2\n1 1:1\n"), "corpus of 2 documents"),
        (place.file("t.text", "the cat sat\nthe dog\n"), "corpus of 2 documents, 4 words"),
    ];
    for (number, (input, size)) in inputs.iter().enumerate() {
        let cache = place.name(&format!("{number}.mgrid"));
        let mut args = vec!["convert", input, &cache];
        if input.ends_with(".text") {
            args.extend(["--format", "text"]);
        }
        let said = done(&args);
        assert!(said.contains(size) && said.contains("seconds: read"), "{said}");
    }
    done(&["pagerank", &place.name("0.mgrid"), "--iterations", "2"]);
    done(&["mf", &place.name("1.mgrid"), "--iterations", "2"]);
    let graph = place.name("m-graph.mgrid");
    assert!(done(&["convert", "--as", "graph", &inputs[2].0, &graph]).contains("graph of 3 vertices, 2 edges"));
    fails(&["inspect", &graph, "--as", "ratings"], 2, &["contradicts the cache, which holds graph"]);
    // A cache of a cache is the same.
    done(&["convert", &graph, &place.name("again.mgrid")]);
    assert_eq!(fs::read(&graph).unwrap(), fs::read(place.path("again.mgrid")).unwrap());
}

#[test]
fn convert_follows_a_header() {
    let place = Place::new();
    let inputs = [
        ("c.csv", "document,word,count\nd1,tea,3\nd2,rye,1\n", "corpus of 2 documents, 2 words, 2 entries", "lda"),
        ("c.jsonl", "{\"document\": \"d1\", \"word\": \"tea\", \"count\": 3}\n", "corpus of 1 documents", "lda"),
        ("p.csv", "item,user\ntea,ann\nrye,bob\n", "2 ratings of 2 items by 2 users", "als"),
        ("g.csv", "from,to\n1,2\n2,3\n", "graph of 3 vertices, 2 edges", "pagerank"),
        ("r.csv", "user,item,rating\nann,tea,3\nbob,rye,4\n", "2 ratings of 2 items by 2 users", "mf"),
    ];
    for (name, text, size, command) in inputs {
        let (input, cache) = (place.file(name, text), place.name(&format!("{name}.mgrid")));
        let said = done(&["convert", &input, &cache]);
        assert!(said.contains(size), "{name}: {said}");
        let of: &[&str] = if command == "lda" { &["--topics", "2"] } else { &[] };
        for input in [&input, &cache] {
            done(&[&[command, input, "--iterations", "1", "-q"], of].concat());
        }
    }
}

#[test]
fn convert_refuses_bad_input_and_leaves_nothing() {
    let place = Place::new();
    let graph = place.graph();
    let out = place.name("out.mgrid");
    fails(&["convert", &graph, &place.name("out.txt")], 2, &["out.txt is no name of a cache", "ends in .mgrid"]);
    fails(&["convert", &graph, &place.file("there.mgrid", "")], 1, &["there.mgrid: exists already"]);
    fails(&["convert", &graph, &place.name("none/out.mgrid")], 1, &["none is not there; make it first"]);
    fails(&["convert", &place.name("none.txt"), &out], 1, &["none.txt", "No such file"]);
    let bad = place.file("bad.csv", "ann,tea,4\nbob,rye,much\n");
    fails(&["convert", &bad, &out, "--format", "ratings"], 1, &["bad.csv:2: rating", "\"much\""]);
    fails(&["convert", &place.file("empty.txt", ""), &out], 1, &["empty.txt"]);
    fails(&["convert", &place.file("cut.mgrid", "half"), &out], 1, &["cut.mgrid"]);
    fails(&["convert", &graph, &out, "--format", "xml"], 2, &["format \"xml\" is unknown"]);
    fails(
        &["convert", &graph, &out, "--as", "samples"],
        1,
        &["the format is edges, which does not hold labelled samples"],
    );
    assert_eq!(place.listing(), ["bad.csv", "cut.mgrid", "empty.txt", "graph.txt", "there.mgrid"]);
}

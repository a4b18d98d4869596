//! `generate`, `inspect` and `partition`.

use std::fs;

use megagrid_datasets::output::{Column, read_npy, write_table};
use megagrid_datasets::{read_corpus, read_graph, read_ratings, read_samples};
use serde_json::Value;

use crate::{Place, done, fails, json, run};

/// Small data sets of each kind, as arguments of `generate`.
const SMALL: [(&str, &[&str]); 5] = [
    ("rmat", &["--scale", "8", "--clean"]),
    ("ratings", &["--left", "60", "--right", "200", "--edges", "700", "--dims", "3", "--zipf", "1.5"]),
    ("corpus", &["--documents", "50", "--vocabulary", "300", "--topics", "4", "--mean-length", "20"]),
    ("clicks", &["--samples", "80", "--features", "500", "--mean-features", "5"]),
    // Some vertices have no link.
    ("lattice", &["--rows", "20", "--columns", "30", "--kept", "0.3"]),
];

fn generate(what: &str, output: &str, options: &[&str]) -> String {
    done(&[&["generate", what, output], options].concat())
}

fn inspect(input: &str, options: &[&str]) -> Value {
    serde_json::from_str(&done(&[&["inspect", input, "--json", "-"], options].concat())).unwrap()
}

#[test]
fn a_generated_cache_is_that_of_the_generated_text() {
    for (what, options) in SMALL {
        let place = Place::new();
        let (text, direct, converted) = (place.name("a.txt"), place.name("direct.mgrid"), place.name("a.mgrid"));
        generate(what, &text, options);
        let summary = generate(what, &direct, options);
        assert_eq!(summary.lines().count(), 1, "{summary}");
        done(&["convert", &text, &converted]);
        assert!(fs::read(&direct).unwrap() == fs::read(&converted).unwrap(), "{what}");
        let expected: &[&str] = match what {
            "rmat" | "lattice" => &["a.mgrid", "a.txt", "direct.mgrid"],
            "corpus" => &["a.mgrid", "a.truth", "a.txt", "direct.mgrid", "direct.truth", "vocab.a.txt"],
            _ => &["a.mgrid", "a.truth", "a.txt", "direct.mgrid", "direct.truth"],
        };
        assert_eq!(place.listing(), expected, "{what}");
    }
}

#[test]
fn the_planted_model_explains_the_ratings() {
    let place = Place::new();
    generate("ratings", &place.name("r.tsv"), SMALL[1].1);
    let truth = json(place.path("r.truth/truth.json"));
    assert_eq!((&truth["kind"], &truth["left"], &truth["dims"]), (&"ratings".into(), &60.into(), &3.into()));
    let users = read_npy::<f32>(&place.path("r.truth/users.npy"), 2).unwrap();
    let items = read_npy::<f32>(&place.path("r.truth/items.npy"), 2).unwrap();
    assert_eq!((&users.shape[..], &items.shape[..]), (&[60, 3][..], &[200, 3][..]));
    let ratings = read_ratings(place.path("r.tsv"), None).unwrap();
    let (user_names, item_names) = (&ratings.left_names, ratings.right_names());
    let row = |values: &[f32], name: String| {
        let at = 3 * (name.parse::<usize>().unwrap() - 1);
        values[at..at + 3].to_vec()
    };
    let edges = &ratings.edges;
    let mut squares = 0.0;
    for ((&user, &item), &rating) in edges.left.iter().zip(&edges.right).zip(&edges.data) {
        let p = row(&users.values, user_names.name(user).to_string());
        let q = row(&items.values, item_names.name(item).to_string());
        let product: f64 = p.iter().zip(q).map(|(p, q)| f64::from(p * q)).sum();
        squares += (f64::from(rating) - truth["mean"].as_f64().unwrap() - product).powi(2);
    }
    let rmse = (squares / 700.0).sqrt();
    assert!((rmse - truth["noise_floor"].as_f64().unwrap()).abs() < 1e-4, "{rmse}");
}

#[test]
fn truths_have_the_shapes_of_their_data() {
    let place = Place::new();
    generate("corpus", &place.name("docword.c.txt"), SMALL[2].1);
    let topics = read_npy::<f32>(&place.path("docword.c.truth/topics.npy"), 2).unwrap();
    let mixtures = read_npy::<f32>(&place.path("docword.c.truth/mixtures.npy"), 2).unwrap();
    assert_eq!((&topics.shape[..], &mixtures.shape[..]), (&[4, 300][..], &[50, 4][..]));
    let corpus = read_corpus(place.path("docword.c.txt"), None).unwrap();
    assert_eq!(corpus.data.right_names().name(0), "word1");
    assert_eq!(json(place.path("docword.c.truth/truth.json"))["tokens"], corpus.num_tokens);

    generate("clicks", &place.name("clicks.libsvm"), SMALL[3].1);
    let weights = read_npy::<f32>(&place.path("clicks.truth/weights.npy"), 1).unwrap();
    assert_eq!(weights.shape, [500]);
    let loss = json(place.path("clicks.truth/truth.json"))["log_loss"].as_f64().unwrap();
    assert!(loss > 0.0 && loss < 0.7, "{loss}");
    assert_eq!(read_samples(place.path("clicks.libsvm"), None, &[]).unwrap().labels.of.len(), 80);
}

#[test]
fn the_seed_decides() {
    let place = Place::new();
    let [a, b, c] = ["a.txt", "b.txt", "c.txt"].map(|name| place.name(name));
    generate("rmat", &a, &["--scale", "8"]);
    generate("rmat", &b, &["--scale", "8"]);
    generate("rmat", &c, &["--scale", "8", "--seed", "2"]);
    assert_eq!(fs::read(&a).unwrap(), fs::read(&b).unwrap());
    assert_ne!(fs::read(&a).unwrap(), fs::read(&c).unwrap());
    // Not cleaned: 16 edges for each of 2^8 vertices.
    assert_eq!(read_graph(&a, None).unwrap().edges.num_edges(), 16 << 8);
}

#[test]
fn generate_refuses_what_exists_and_leaves_nothing() {
    let place = Place::new();
    let ratings = place.file("r.txt", "");
    fails(&["generate", "ratings", &ratings], 1, &["r.txt: exists already"]);
    fs::create_dir(place.path("s.truth")).unwrap();
    fails(&["generate", "ratings", &place.name("s.tsv")], 1, &["s.truth: exists already"]);
    place.file("vocab.c.txt", "");
    fails(&["generate", "corpus", &place.name("c.txt")], 1, &["vocab.c.txt: exists already"]);
    // What a command left that was interrupted before its data set was whole.
    let unfinished = place.name("u.tsv");
    generate("ratings", &unfinished, SMALL[1].1);
    fs::remove_file(&unfinished).unwrap();
    fails(&["generate", "ratings", &unfinished], 1, &["u.truth: exists already"]);
    place.file("u.truth/unfinished", "");
    generate("ratings", &unfinished, SMALL[1].1);
    assert!(!place.path("u.truth/unfinished").exists());
    fs::remove_file(&unfinished).unwrap();
    fs::remove_dir_all(place.path("u.truth")).unwrap();
    fails(&["generate", "rmat", &place.name("none/g.txt")], 1, &["none/g.txt: the directory", "none is not there"]);
    assert_eq!(place.listing(), ["r.txt", "s.truth", "vocab.c.txt"]);
}

#[test]
fn generate_refuses_settings_out_of_range() {
    let place = Place::new();
    let out = place.name("out.txt");
    let cases: [(&str, &[&str], &str); 10] = [
        ("rmat", &["--scale", "40"], "scale 40 is out of range; expected 1 to 31"),
        ("rmat", &["--a", "0.9"], "a + b + c 1.28 is out of range"),
        ("rmat", &["--b", "-1"], "b -1 is out of range"),
        ("lattice", &["--kept", "-1"], "kept -1 is out of range; expected a chance, 0 to 1"),
        ("ratings", &["--edges", "0"], "ratings 0 is out of range"),
        ("ratings", &["--left", "3", "--right", "3", "--edges", "10"], "expected 1 to users x items"),
        ("ratings", &["--noise", "NaN"], "noise NaN is out of range"),
        ("corpus", &["--topics", "0"], "topics 0 is out of range"),
        ("clicks", &["--click-rate", "1"], "click rate 1 is out of range"),
        ("clicks", &["--samples", "many"], "invalid value 'many'"),
    ];
    for (what, options, message) in cases {
        fails(&[&["generate", what, &out], options].concat(), 2, &[message]);
    }
    for name in ["a.gz", "a.parquet", "a.mtx", "a.truth", "a.json", "a.JSONL", "a.ndjson"] {
        fails(&["generate", "ratings", &place.name(name)], 2, &["would be plain text"]);
    }
    fails(&["generate", "ratings", "-"], 2, &["goes to a file, not to stdout"]);
    fails(&["generate", "trees", &out], 2, &["trees"]);
    assert!(place.listing().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing() {
    let place = Place::new();
    // A limit on the size of files stands in for a full disk. The truths of these fit it, their data do not.
    let cases = [
        "generate corpus c.txt --vocabulary 20 --topics 2 --documents 300",
        "generate corpus c.mgrid --vocabulary 20 --topics 2 --documents 300",
        "generate rmat g.txt --scale 10",
        "convert graph.txt g.mgrid",
    ];
    let lines: Vec<String> = (0..9000).map(|id| format!("{id} {}\n", id / 3)).collect();
    place.file("graph.txt", lines.concat());
    for case in cases {
        let mut limited = std::process::Command::new("bash");
        limited.args(["-c", &format!("trap '' XFSZ; ulimit -f 4; exec \"$0\" {case}")]);
        limited.arg(assert_cmd::cargo::cargo_bin!("megagrid")).current_dir(place.path(""));
        let output = limited.output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{case}: {message}");
        assert!(message.contains("File too large") && message.lines().count() == 1, "{case}: {message}");
        assert_eq!(place.listing(), ["graph.txt"], "{case}");
    }
}

/// 5 vertices, 8 edges: one is repeated, one a self loop, one vertex dangling. Vertex 3 has in-degree 4.
#[test]
fn a_graph_is_described() {
    let place = Place::new();
    let found = inspect(&place.graph(), &[]);
    assert_eq!((&found["format"], &found["kind"]), (&"edges".into(), &"graph".into()));
    assert_eq!((&found["edges"], &found["left"]["vertices"]), (&8.into(), &5.into()));
    assert_eq!((&found["duplicates"], &found["self_loops"], &found["dangling"]), (&1.into(), &1.into(), &1.into()));
    assert_eq!(
        (&found["left"]["max"], &found["right"]["max"], &found["right"]["min"]),
        (&3.into(), &4.into(), &1.into())
    );
    assert_eq!((&found["left"]["median"], &found["left"]["mean"]), (&2.into(), &1.6.into()));
    assert_eq!(found["right"]["top_percent_share"], 0.5);
    assert!(found["memory_estimate_bytes"]["pagerank"].as_u64().unwrap() > 0);
    let text = done(&["inspect", &place.graph()]);
    for part in ["graph of 5 vertices, 8 edges", "dangling (no out-edges)     1", "memory of pagerank"] {
        assert!(text.contains(part), "no \"{part}\" in {text}");
    }
}

#[test]
fn other_kinds_are_described() {
    let place = Place::new();
    let ratings = place.file("r.csv", "ann,tea,4\nbob,tea,1.5\nann,tea,5\n");
    let found = inspect(&ratings, &[]);
    assert_eq!((&found["kind"], &found["duplicates"]), (&"ratings".into(), &1.into()));
    assert_eq!(found["values"], serde_json::json!({ "min": 1.5, "max": 5.0, "mean": 3.5 }));
    assert!(found["memory_estimate_bytes"]["mf"].as_u64().unwrap() > 0);
    assert!(found.get("self_loops").is_none() && found.get("tokens").is_none());
    assert_eq!(inspect(&ratings, &["--as", "graph"])["left"]["vertices"], 3);

    let samples = place.file("s.libsvm", "+1 1:0.5 3:1\n-1 1:2\n-1\n");
    let found = inspect(&samples, &[]);
    let labels = |class: &str, samples: usize| serde_json::json!({ "class": class, "samples": samples });
    assert_eq!(found["labels"], serde_json::json!([labels("-1", 2), labels("1", 1)]));
    assert_eq!((&found["left"]["without_edges"], &found["right"]["vertices"]), (&1.into(), &2.into()));

    let corpus = place.file("docword.c.txt", "2\n3\n3\n1 1 2\n1 3 1\n2 3 4\n");
    let found = inspect(&corpus, &[]);
    assert_eq!((&found["kind"], &found["tokens"]), (&"corpus".into(), &7.into()));
    assert_eq!(found["right"]["without_edges"], 1);
}

#[test]
fn labels_are_classes_unless_some_are_positive() {
    let place = Place::new();
    let samples = place.file("s.libsvm", "news 1:1\nsports 2:1\nnews 1:2\n");
    let text = done(&["inspect", &samples]);
    assert!(text.contains("2, news: 2 (66.67 %), sports: 1 (33.33 %)"), "{text}");
    fails(&["inspect", &samples, "--positive", "7"], 1, &["s.libsvm:1: label: found \"news\", expected a number"]);
    let numbers = place.file("n.libsvm", "3 1:1\n7 2:1\n3 1:2\n");
    for (samples, positive) in [(&numbers, "7.0"), (&samples, "sports,tea")] {
        let found = inspect(samples, &["--positive", positive]);
        let labels = |class: &str, samples: usize| serde_json::json!({ "class": class, "samples": samples });
        assert_eq!(found["labels"], serde_json::json!([labels("-1", 2), labels("1", 1)]));
    }
    let told = run(&["inspect", &samples, "--positive", "sports,tea"]).stderr;
    assert!(told.contains("no sample has the label tea") && !told.contains("label sports"), "{told}");
    fails(&["inspect", &place.graph(), "--positive", "7"], 2, &["--positive goes with labelled samples"]);
}

#[test]
fn a_cache_is_described_as_its_text() {
    for (what, options) in SMALL {
        let place = Place::new();
        let (text, cache) = (place.name("a.txt"), place.name("a.mgrid"));
        generate(what, &text, options);
        done(&["convert", &text, &cache]);
        let without = |mut found: Value| {
            for name in ["input", "format", "bytes"] {
                found.as_object_mut().unwrap().remove(name).unwrap();
            }
            found
        };
        for options in [&[][..], &["--quick"]] {
            assert_eq!(without(inspect(&text, options)), without(inspect(&cache, options)), "{what} {options:?}");
        }
    }
}

#[test]
fn quick_reads_no_bodies() {
    let place = Place::new();
    let (text, cache) = (place.name("g.txt"), place.name("g.mgrid"));
    generate("rmat", &text, SMALL[0].1);
    done(&["convert", &text, &cache]);
    let mut bytes = fs::read(&cache).unwrap();
    // Behind header and offsets: edges.
    let vertices = read_graph(&text, None).unwrap().edges.num_left;
    bytes[512 + 2 * (8 * (vertices + 1)).next_multiple_of(64) + 100] ^= 1;
    fs::write(&cache, bytes).unwrap();
    assert!(inspect(&cache, &["--quick"]).get("duplicates").is_none());
    fails(&["inspect", &cache], 1, &["g.mgrid", "damaged"]);
}

#[test]
fn partitions_are_compared() {
    let place = Place::new();
    let table = done(&["partition", &place.ratings(), "-n", "4"]);
    assert_eq!(table.lines().count(), 2 + 6, "{table}");
    assert!(table.contains("users") && table.contains("bicut"), "{table}");

    let file = place.name("p.json");
    done(&["partition", &place.ratings(), "-n", "4", "--strategy", "bicut", "--json", &file]);
    let found = json(&file);
    assert_eq!((&found["left"], &found["right"], &found["partitions"]), (&40.into(), &30.into(), &4.into()));
    let [bicut] = &found["strategies"].as_array().unwrap()[..] else { panic!("{found}") };
    // It cuts no user: there are more users than items.
    assert_eq!((&bicut["strategy"], &bicut["left_replication_factor"]), (&"bicut".into(), &1.0.into()));
    let right = bicut["right_replication_factor"].as_f64().unwrap();
    assert!(right > 1.0 && right <= 4.0, "{right}");

    let one = done(&["partition", &place.graph(), "-n", "1", "--strategy", "random"]);
    assert!(one.lines().last().unwrap().matches("1.000").count() >= 5, "{one}");
}

/// What `inspect` and `partition` show of strategies is what `plan` says.
#[test]
fn strategies_of_training_are_shown_as_plan_has_them() {
    let place = Place::new();
    let of_kind = [
        ("rmat", "pagerank", &["bicut", "grid", "hybrid", "mixed", "auto"][..]),
        ("ratings", "mf", &["bicut", "auto"]),
    ];
    for (what, command, names) in of_kind {
        let input = place.name(&format!("{what}.mgrid"));
        let options = SMALL.iter().find(|(kind, _)| *kind == what).unwrap().1;
        generate(what, &input, options);
        let found = inspect(&input, &["--processes", "4"]);
        let strategies = found["strategies"].as_array().unwrap();
        assert!(strategies.iter().map(|one| one["strategy"].as_str().unwrap()).eq(names.iter().copied()), "{found}");
        for one in strategies {
            let name = one["strategy"].as_str().unwrap();
            let plan = done(&["plan", command, &input, "--processes", "4", "--strategy", name]);
            let figure = |name: &str| one[name].as_f64().unwrap();
            let [replication, balance, workers] = ["replication_factor", "edge_balance", "worker_balance"].map(figure);
            let placement = one["placement"].as_str().unwrap();
            let figures = format!(
                "{placement}: replication {replication:.3}, edge balance {balance:.3}, of workers {workers:.3}"
            );
            assert!(plan.contains(&figures), "no \"{figures}\" in {plan}");
            assert!(plan.contains(&format!("traffic       {} bytes in", one["bytes"])), "{one} but {plan}");
        }
        let text = done(&["inspect", &input, "--processes", "4"]);
        assert!(text.contains(&format!("{command} in 4 processes")) && text.contains("auto"), "{text}");
        let partitioned = done(&["partition", &input, "-n", "4", "--training", "--json", "-"]);
        let partitioned: Value = serde_json::from_str(&partitioned).unwrap();
        assert_eq!(partitioned["training"]["cuts"], found["strategies"]);
        assert!(inspect(&input, &[]).get("strategies").is_none(), "one process has nothing to place");
    }
    fails(&["inspect", &place.graph(), "--quick", "--processes", "4"], 2, &["--quick"]);
    fails(&["inspect", &place.graph(), "--processes", "0"], 2, &["--processes"]);
}

#[test]
fn partition_refuses_bad_options() {
    let place = Place::new();
    let graph = place.graph();
    for number in ["0", "-3", "65537", "many"] {
        fails(&["partition", &graph, "-n", number], 2, &[number]);
    }
    fails(&["partition", &graph], 2, &["--partitions"]);
    fails(&["partition", &graph, "-n", "2", "--strategy", "metis"], 2, &["metis", "hdrf"]);
    fails(&["partition", &graph, "-n", "2", "--json", &place.name("none/p.json")], 1, &["none/p.json"]);
    fails(&["inspect", &graph, "--json", &place.name("none/p.json")], 1, &["none/p.json"]);
    fails(&["inspect", &place.name("none.txt")], 1, &["none.txt", "No such file"]);
}

#[test]
fn help_shows_examples() {
    for command in [&["generate", "rmat"][..], &["generate", "clicks"], &["inspect"], &["convert"], &["partition"]] {
        let ran = run(&[command, &["--help"]].concat());
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("Example") && ran.stdout.contains("[default: "), "{}", ran.stdout);
    }
}

#[test]
fn what_a_graph_does_not_hold_is_said_once() {
    let place = Place::new();
    let matrix = "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.5\n2 3 1\n";
    for (name, text) in [("w.txt", "1 2 0.5\n2 3 1\n"), ("w.csv", "from,to,w\n1,2,3\n"), ("w.mtx", matrix)] {
        let ran = run(&["pagerank", &place.file(name, text), "-q"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("edges of a graph have no weights").count(), 1, "{name}: {}", ran.stderr);
    }
    let cluster = ["pagerank", &place.name("w.txt"), "-q", "--virtual-workers", "3", "--clock-cost", "0.1"];
    let ran = run(&cluster);
    assert_eq!((ran.code, ran.stderr.matches("have no weights").count()), (Some(0), 1), "{}", ran.stderr);
    let table = place.path("w.parquet");
    let ends = Column::U32(vec![1, 2].into());
    write_table(&table, &[("src", ends.clone()), ("dst", ends), ("weight", Column::F32(vec![1.0, 2.0].into()))])
        .unwrap();
    assert!(run(&["pagerank", &place.name("w.parquet"), "-q"]).stderr.contains("has a column of numbers"));
    assert_eq!(run(&["pagerank", &place.graph(), "-q"]).stderr, "");
    let named = run(&["pagerank", &place.file("n.csv", "source,target\nann,NULL\nbob,NULL\n"), "-q"]);
    assert!(named.stderr.contains("\"NULL\" is an id like any other"), "{}", named.stderr);
}

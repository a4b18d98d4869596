//! What a command writes spares what it reads.

use std::fs;

use crate::Place;

/// A place with a file of everything that commands read, and models of them.
struct Files(Place);

impl Files {
    fn new() -> Self {
        let place = Place::new();
        place.ratings();
        place.graph();
        place.file("more.txt", "5 1\n");
        place.file("pages.txt", "1\n");
        place.file("docs.txt", "cat dog cat mouse\ncar bus road car\n");
        place.file("samples.svm", "1 1:1 2:1\n-1 2:1 3:1\n1 1:1 3:2\n-1 3:1 4:1\n");
        place.file("weights.txt", "1\n1\n1\n1\n");
        fs::create_dir(place.path("days")).unwrap();
        place.file("days/monday.txt", "1 2\n2 3\n");
        place.file("days/tuesday.txt", "3 1\n");
        let files = Self(place);
        files.done(&["pagerank", "graph.txt", "-q", "-w", "1", "--model", "ranks"]);
        files.done(&["mf", "ratings.csv", "-q", "-w", "1", "--dims", "4", "--iterations", "2", "--model", "movies"]);
        files.done(&["blockpg", "samples.svm", "-q", "-w", "1", "--iterations", "2", "--model", "clicks"]);
        let lda = ["lda", "docs.txt", "--format", "text", "-k", "2", "-q", "-w", "1", "--iterations", "2"];
        files.done(&[&lda[..], &["--model", "topics", "--json", "run.json"]].concat());
        files
    }

    /// Runs a command in the place, by names of what is there; returns the exit code and what it said.
    fn run(&self, args: &[&str]) -> (Option<i32>, String) {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("megagrid");
        let output = command.args(args).current_dir(self.0.path("")).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    fn done(&self, args: &[&str]) {
        let (code, said) = self.run(args);
        assert_eq!(code, Some(0), "{args:?}: {said}");
    }

    fn refused(&self, args: &[&str], parts: &[&str]) {
        let (code, said) = self.run(args);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{args:?}: no \"{part}\" in: {said}");
        }
    }

    /// Runs a command that would write over a file, and is refused.
    fn spares(&self, file: &str, args: &[&str], parts: &[&str]) {
        let before = fs::read(self.0.path(file)).unwrap();
        self.refused(args, parts);
        assert!(fs::read(self.0.path(file)).unwrap() == before, "{args:?}");
    }
}

#[test]
fn files_that_are_read_are_not_replaced() {
    let files = Files::new();
    for option in ["--json", "--report", "--trace"] {
        let parts = [option, "would replace", "which <INPUT> reads; name another file"];
        files.spares("ratings.csv", &["mf", "ratings.csv", option, "ratings.csv"], &parts);
    }
    let cases: [(&str, &[&str]); 16] = [
        ("<NEW>", &["update", "ranks", "more.txt", "--json", "more.txt"]),
        ("--remove", &["update", "ranks", "--remove", "more.txt", "--json", "more.txt"]),
        ("--data", &["update", "ranks", "more.txt", "--data", "weights.txt", "--json", "weights.txt"]),
        ("<DIRECTORY>", &["update", "ranks", "more.txt", "--json", "graph.txt"]),
        ("<INPUT>", &["inspect", "graph.txt", "--json", "graph.txt"]),
        ("<INPUT>", &["partition", "graph.txt", "-n", "2", "--json", "graph.txt"]),
        ("<INPUT>", &["predict", "clicks", "samples.svm", "-o", "samples.svm"]),
        ("--documents", &["topics", "topics", "--documents", "docs.txt", "--json", "docs.txt"]),
        ("--restart", &["pagerank", "graph.txt", "--restart", "pages.txt", "--json", "pages.txt"]),
        ("--test", &["blockpg", "samples.svm", "--test", "weights.txt", "--report", "weights.txt"]),
        ("--sample-weights", &["blockpg", "samples.svm", "--sample-weights", "weights.txt", "--json", "weights.txt"]),
        ("<RECORDS>", &["view", "run.json", "-o", "run.json"]),
        ("--users", &["recommend", "movies", "--users", "pages.txt", "-o", "pages.txt"]),
        ("<INPUT>", &["tune", "mf", "ratings.csv", "--json", "ratings.csv"]),
        ("<INPUT>", &["launch", "-n", "2", "--", "mf", "ratings.csv", "--json", "ratings.csv"]),
        ("<INPUT>", &["mf", "ratings.csv", "--json", "days/../ratings.csv"]),
    ];
    for (argument, args) in cases {
        files.spares(args[args.len() - 1], args, &["would replace", &format!("which {argument} reads")]);
    }
    #[cfg(feature = "baselines")]
    files.spares("ratings.csv", &["compare", "mf", "ratings.csv", "--report", "ratings.csv"], &["<INPUT>"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(files.0.path("graph.txt"), files.0.path("link.txt")).unwrap();
        files.spares("graph.txt", &["pagerank", "link.txt", "--json", "graph.txt"], &["<INPUT>"]);
    }
}

#[test]
fn parts_of_an_input_are_not_replaced() {
    let files = Files::new();
    for input in ["days", "days/*.txt"] {
        let args = ["pagerank", input, "--json", "days/tuesday.txt"];
        files.spares("days/tuesday.txt", &args, &["tuesday.txt, which <INPUT> reads"]);
    }
    // What the input has not may be there.
    for _ in 0..2 {
        files.done(&["pagerank", "days", "-q", "-w", "1", "--json", "days/_run.json"]);
    }
    // A page beside records is no record.
    fs::create_dir(files.0.path("runs")).unwrap();
    fs::copy(files.0.path("run.json"), files.0.path("runs/a.json")).unwrap();
    for _ in 0..2 {
        files.done(&["view", "runs", "-o", "runs/page.html"]);
    }
    files.spares("runs/a.json", &["view", "runs", "-o", "runs/a.json"], &["<RECORDS>"]);
}

#[test]
fn files_of_models_are_not_replaced() {
    let files = Files::new();
    let part = |option: &'static str| [option, "a file of the model in"];
    files.spares("topics/model.json", &["topics", "topics", "--page", "topics/model.json"], &part("--page"));
    files.spares("ranks/scores.parquet", &["top", "ranks", "-o", "ranks/scores.parquet"], &part("--output"));
    let other = ["pagerank", "graph.txt", "--json", "movies/users.npy"];
    files.spares("movies/users.npy", &other, &part("--json"));
    let from = ["mf", "ratings.csv", "--from", "movies", "--report", "movies/model.json"];
    files.spares("movies/model.json", &from, &part("--report"));
    // A file of the user's stays one.
    for _ in 0..2 {
        files.done(&["top", "ranks", "-o", "ranks/best.csv"]);
    }
}

#[test]
fn two_outputs_have_two_places() {
    let files = Files::new();
    let mf = ["mf", "ratings.csv", "-q", "-w", "1", "--dims", "4", "--iterations"];
    let refused = |rest: &[&str], parts: &[&str]| {
        files.refused(&[&mf[..], &["1"], rest].concat(), parts);
        assert!(!files.0.path("same").exists() && !files.0.path("new").exists());
    };
    refused(&["--json", "same", "--report", "same"], &["--json and --report both name same; name another place"]);
    refused(&["--json", "-", "--report", "-"], &["--json and --report both name standard output"]);
    refused(&["--report", "same", "--trace", "days/../same"], &["--report and --trace both name"]);
    refused(&["--model", "new", "--checkpoint", "new"], &["--model", "--checkpoint", "both name"]);
    // What goes to stdout, or nowhere, is in nobody's way; a run goes on in the directory that it began in.
    files.done(&[&mf[..], &["1", "--json", "-", "--checkpoint", "saved"]].concat());
    let more = ["2", "--json", "saved/run.json", "--checkpoint", "saved", "--resume", "saved"];
    files.done(&[&mf[..], &more].concat());
    #[cfg(unix)]
    files.done(&[&mf[..], &["1", "--json", "/dev/null", "--report", "/dev/null"]].concat());
}

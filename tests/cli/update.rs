//! `update` and `--from`: models go on, or stay as they were.

use std::collections::BTreeMap;
use std::fs;
#[cfg(unix)]
use std::process::{Command, Stdio};

use megagrid_datasets::output::{Column, read_table};

use crate::{Place, done, fails, json, run};

impl Place {
    /// Trains on all but the last lines of the ratings. Returns the ratings, those that are left, and the model.
    fn movies_and_more(&self, lines: usize) -> [String; 3] {
        let all = fs::read_to_string(self.ratings()).unwrap();
        let at = all.len() - all.lines().rev().take(lines).map(|line| line.len() + 1).sum::<usize>();
        let (old, new) = (self.file("old.csv", &all[..at]), self.file("new.csv", &all[at..]));
        let model = self.name("movies");
        done(&[
            "mf",
            &old,
            "--dims",
            "4",
            "--lambda",
            "0.01",
            "--iterations",
            "40",
            "--model",
            &model,
            "-q",
            "-w",
            "2",
        ]);
        [self.name("ratings.csv"), new, model]
    }

    /// Returns the bytes of a model's files.
    fn files(&self, model: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(model).unwrap().map(|entry| entry.unwrap());
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
    }
}

#[test]
fn documents_that_arrive_are_counted() {
    let place = Place::new();
    let (old, new) =
        (place.file("old.txt", "tea cup tea\nrye oat rye\n".repeat(20)), place.file("new.txt", "tea pot\n"));
    let model = place.name("topics");
    done(&["lda", &old, "-k", "2", "--iterations", "30", "--format", "text", "--model", &model, "-q"]);
    let said = done(&["update", &model, &new]);
    assert!(said.contains("updated on the new data; new words: 1\n"), "{said}");
    let tokens = fs::read_to_string(format!("{model}/model.json")).unwrap();
    let shapes = &serde_json::from_str::<serde_json::Value>(&tokens).unwrap()["shapes"];
    assert_eq!((&shapes["documents.parquet"], &shapes["words.parquet"]), (&[41].into(), &[5].into()));
    let found = done(&["topics", &model]);
    assert!(found.contains("pot"), "{found}");
    let manifest = json(place.path("topics/model.json"));
    assert_eq!((&manifest["data"]["left"], &manifest["data"]["right"]), (&41.into(), &5.into()));
    assert_eq!(manifest["config"]["iterations"], 30);
    let before = place.files(&model);
    fails(&["update", &model, "--remove", &old], 2, &["documents that arrive only"]);
    fails(&["lda", &new, "--from", &model, "-k", "3", "--format", "text"], 1, &["it has 2 topics", "--topics 2"]);
    for (option, value) in [("--holdout", "0.5"), ("--annealing", "5"), ("--extra-topics", "1")] {
        let told = ["lda", &old, "--from", &model, "-k", "2", "--format", "text", option, value];
        fails(&told, 2, &["a topic model that goes on", option]);
    }
    assert_eq!(place.files(&model), before);
}

#[test]
fn documents_that_arrive_bring_no_stop_words_into_a_model_without() {
    let place = Place::new();
    // "the" is in all documents, "rare" in one.
    let old = place.file("old.txt", "the tea cup tea\nthe rye oat rye\n".repeat(20) + "the rare tea\n");
    let new = [42, 43].map(|documents| (documents, place.file(&format!("new{documents}.txt"), "the tea rare pot\n")));
    let strange = place.file("strange.txt", "the pot\n");
    let model = place.name("topics");
    let filter = ["--min-documents", "2", "--max-documents", "0.9"];
    done(&[&["lda", &old, "-k", "2", "--format", "text", "--model", &model, "-q"][..], &filter].concat());
    for (documents, new) in new {
        done(&["update", &model, &new, "-q"]);
        let shapes = &json(place.path("topics/model.json"))["shapes"];
        assert_eq!((&shapes["documents.parquet"], &shapes["words.parquet"]), (&[documents].into(), &[4].into()));
    }
    fails(&["update", &model, &strange], 1, &["none of the words of the new documents is in it"]);
}

#[test]
fn documents_with_names_of_their_own_keep_them() {
    let place = Place::new();
    let line = |document: &str, words: [&str; 2]| -> String {
        words.map(|word| format!(r#"{{"document": "{document}", "word": "{word}", "count": 2}}"#) + "\n").concat()
    };
    let old = place.file("old.jsonl", line("a", ["tea", "cup"]));
    let new = place.file("new.jsonl", line("b", ["tea", "rye"]));
    let model = place.name("topics");
    done(&["lda", &old, "-k", "2", "--model", &model, "-q"]);
    done(&["update", &model, &new, "-q"]);
    let documents = || {
        let columns = read_table(&place.path("topics/documents.parquet")).unwrap();
        columns.into_iter().next().unwrap().1
    };
    assert_eq!(documents(), Column::Strings(vec!["a".to_owned(), "b".to_owned()].into()));
    let again = place.file("again.jsonl", line("a", ["tea", "cup"]));
    fails(&["update", &model, &again], 1, &["document a is in it already"]);
}

#[test]
fn ratings_that_arrive_are_counted() {
    let place = Place::new();
    let [_, new, model] = place.movies_and_more(24);
    let more = place.file("more.csv", fs::read_to_string(&new).unwrap() + "ann,i3,4\nann,tea,2\n");
    let next = place.name("next");
    fails(&["recommend", &model, "ann"], 1, &["user \"ann\" is not among the 39 users"]);
    let from = ["mf", &more, "--dims", "4", "-q", "--from", &model];
    fails(&[&from[..], &["--no-mean"]].concat(), 1, &["it adds to a mean rating of ", "leave out --no-mean"]);
    done(&from);
    let before = place.files(&model);
    let said = done(&["update", &model, &more, "--model", &next, "-w", "2"]);
    assert!(said.contains("updated on the new data; new users: 2; new items: 1\n"), "{said}");
    assert_eq!(place.files(&model), before);
    let record = place.name("run.json");
    assert_eq!(done(&["update", &model, &more, "-q", "-w", "2", "--json", &record]), "");
    // The same, but for where it began.
    let (same, other) = (place.files(&model), place.files(&next));
    assert_eq!(same["users.npy"], other["users.npy"]);
    let record = json(&record);
    assert_eq!((&record["input"]["edges"], &record["result"]["iterations"]), (&26.into(), &3.into()));
    assert!(done(&["recommend", &model, "ann", "-n", "3"]).lines().count() == 3);
    let manifest = json(place.path("movies/model.json"));
    assert_eq!((&manifest["data"]["left"], &manifest["data"]["right"]), (&41.into(), &31.into()));
    assert_eq!(manifest["config"]["changes"][0]["add"], more);
    // Nothing is left behind.
    assert!(place.listing().iter().all(|name| !name.starts_with('.')), "{:?}", place.listing());
    // All of them are found again where something is taken back.
    let gone = place.file("gone.csv", "ann,tea,0\n");
    let said = done(&["update", &model, "--remove", &gone, "-w", "2"]);
    assert!(said.contains("updated on all data") && said.contains("41 × 30 vertices"), "{said}");
}

#[test]
fn links_are_added_and_removed_one_update_after_the_other() {
    let place = Place::new();
    let links = |range: std::ops::Range<u32>| -> String {
        range.map(|at| format!("{} {}\n", at * 7 % 61, at * at % 53)).collect()
    };
    let [old, first, second] = [("old.txt", 0..300), ("first.txt", 300..310), ("second.txt", 310..330)]
        .map(|(name, range)| place.file(name, links(range)));
    let all = place.file("all.txt", links(0..330));
    let (model, full) = (place.name("ranks"), place.name("full"));
    done(&["pagerank", &old, "--model", &model, "--tolerance", "1e-8", "-q"]);
    done(&["pagerank", &all, "--model", &full, "--tolerance", "1e-8", "-q"]);
    let before = done(&["top", &model, "-n", "99"]);
    for new in [&first, &second] {
        done(&["update", &model, new, "-q"]);
    }
    let scores = |model: &str| -> BTreeMap<String, f64> {
        let listed = done(&["top", model, "-n", "99", "--json", "-"]);
        let rows = listed.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        rows.map(|row| (row["id"].to_string(), row["score"].as_f64().unwrap())).collect()
    };
    let near = |found: &BTreeMap<String, f64>, expected: &BTreeMap<String, f64>| {
        assert_eq!(found.len(), expected.len());
        expected.iter().for_each(|(name, score)| assert!((found[name] - score).abs() < 1e-8, "{name}"));
    };
    near(&scores(&model), &scores(&full));
    // Pairs that repeat go with all that they repeat; these do not.
    let lone = place.file("lone.txt", "1000 1001\n1001 1000\n");
    done(&["update", &model, &lone, "-q"]);
    done(&["update", &model, "--remove", &lone, "-q"]);
    near(&scores(&model), &scores(&full));
    fails(&["update", &model, "--remove", &lone], 1, &["lone.txt", "keep each day's file"]);
    let lone = place.file("lone-again.txt", "1000 1001\n1001 1000\n");
    fails(&["update", &model, "--remove", &lone], 1, &["lone-again.txt", "\"1000\" with \"1001\"", "not in the data"]);
    near(&scores(&model), &scores(&full));
    assert_ne!(before, "");
}

#[test]
fn a_training_begins_at_a_model() {
    let place = Place::new();
    let [ratings, _, model] = place.movies_and_more(24);
    let (record, next) = (place.name("run.json"), place.name("next"));
    let mf = ["mf", &ratings, "--dims", "4", "--lambda", "0.01", "--json", &record, "-q", "-w", "2"];
    let first = |options: &[&str]| {
        done(&[&mf[..], &["--evaluate-every", "1", "--iterations", "2"], options].concat());
        json(&record)["iterations"][0]["metrics"]["train_rmse"].as_f64().unwrap()
    };
    assert!(first(&["--from", &model, "--model", &next]) < 0.5 * first(&[]));
    fails(&["mf", &ratings, "--from", &model], 1, &["movies", "4 dims", "give --dims 4"]);
    fails(&["mf", &ratings, "--from", &model, "--resume", &model], 2, &["cannot be used with"]);
    fails(&["mf", &ratings, "--from", &model, "--checkpoint", &next], 2, &["--from", "cannot be used with"]);
    let launched =
        ["launch", "-n", "2", "--restarts", "1", "--", "mf", &ratings, "--from", &model, "--checkpoint", &next];
    fails(&launched, 2, &["--from", "cannot be used with"]);
    fails(&["mf", &ratings, "--from", &place.name("none")], 1, &["none", "expected a directory that --model wrote"]);
    fails(&["als", &ratings, "--from", &model], 1, &["a model of kind mf, expected als"]);
    fails(&["plan", "mf", &ratings, "--from", &model], 2, &["--from is not for plan"]);
}

#[test]
fn of_two_updates_at_a_time_none_is_lost() {
    let place = Place::new();
    let (old, model) = (place.file("old.txt", "tea cup rye\noat rye tea\n"), place.name("topics"));
    done(&["lda", &old, "-k", "2", "--iterations", "3", "--format", "text", "--model", &model, "-q"]);
    for round in 0..4 {
        let new = ["one", "two"].map(|word| place.file(&format!("{word}-{round}.txt"), format!("tea {word}\n")));
        let updates = new.each_ref().map(|new| {
            let mut update = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"));
            update.args(["update", &model, new, "-q"]).stderr(Stdio::null()).spawn().unwrap()
        });
        let ended = updates.map(|mut update| update.wait().unwrap().success());
        let kept = json(place.path("topics/model.json"))["config"]["changes"].clone();
        let is_kept = |new: &String| kept.as_array().unwrap().iter().any(|change| change["add"] == new[..]);
        assert_eq!(new.each_ref().map(is_kept), ended, "{kept}");
        assert!(ended.contains(&true));
    }
}

#[cfg(unix)]
#[test]
fn a_file_is_known_by_whatever_path() {
    let place = Place::new();
    let (links, new) = (place.file("links.txt", "1 2 3\n2 3 1\n3 1 1\n"), place.file("new.txt", "4 1 2\n"));
    let (model, link) = (place.name("ranks"), place.name("link.txt"));
    done(&["pagerank", &links, "--weights", "--model", &model, "-q"]);
    // Three columns of numbers are links with weights, also when they are read again.
    done(&["update", &model, &new, "-q"]);
    fs::create_dir(place.path("near")).unwrap();
    fails(&["update", &model, &place.name("near/../new.txt")], 1, &["updated with this file already"]);
    let both = place.file("both.txt", "1 2 3\n2 3 1\n3 1 1\n4 1 2\n");
    fails(&["update", &model, &new, "--data", &both], 1, &["new.txt", "would be counted twice"]);
    std::os::unix::fs::symlink(&links, &link).unwrap();
    fails(&["update", &model, &link], 1, &["is what the model was trained on"]);
    let parts = place.name("parts-*.txt");
    let part = place.file("parts-1.txt", "1 2\n2 1\n");
    let of_parts = place.name("of-parts");
    done(&["pagerank", &parts, "--model", &of_parts, "-q"]);
    fails(&["update", &of_parts, &part], 1, &["stands among the files of", "parts-*.txt"]);
}

#[test]
fn documents_without_their_vocabulary_are_of_another_corpus() {
    let place = Place::new();
    let counts = "2\n3\n3\n1 1 2\n1 2 1\n2 3 5\n";
    let (old, _) = (place.file("docword.old.txt", counts), place.file("vocab.old.txt", "tea\ncup\nrye\n"));
    let model = place.name("topics");
    done(&["lda", &old, "-k", "2", "--iterations", "3", "--model", &model, "-q"]);
    fs::create_dir(place.path("bare")).unwrap();
    let bare = place.file("bare/docword.new.txt", counts);
    fails(&["update", &model, &bare], 1, &["none of the words of the new documents, 1 say", "vocabulary"]);
    // New words by themselves are welcome.
    let words = place.file("words.txt", "tea tea\n");
    done(&["lda", &words, "-k", "2", "--iterations", "3", "--format", "text", "--model", &place.name("plain"), "-q"]);
    done(&["update", &place.name("plain"), &place.file("sea.txt", "sea sun\n"), "-q"]);
}

#[test]
fn what_stands_beside_the_links_is_not_to_change() {
    let place = Place::new();
    let (links, new) = (place.file("links.txt", "1 2\n2 3\n3 1\n1 3\n"), place.file("new.txt", "3 4\n"));
    let (start, model) = (place.file("start.txt", "1\n"), place.name("ranks"));
    done(&["pagerank", &links, "--restart", &start, "--model", &model, "-q"]);
    fs::write(&start, "3\n").unwrap();
    fails(&["update", &model, &new], 1, &["start.txt: has other vertices to restart at", "--from"]);
    fs::write(&start, "1\n").unwrap();
    done(&["update", &model, &new, "-q"]);
}

#[test]
fn what_cannot_be_updated_stays() {
    let place = Place::new();
    let [ratings, new, model] = place.movies_and_more(24);
    let mine = place.file("movies/mine.csv", "u1,i1,4\n");
    fails(&["update", &model, &mine], 1, &["mine.csv", "is no file of the model"]);
    fs::remove_file(mine).unwrap();
    let before = place.files(&model);
    let bad = place.file("bad.csv", "u1,i1,4\nu1,i2,four\n");
    fails(&["update", &model, &bad], 1, &["bad.csv:2", "four"]);
    fails(&["update", &model, &place.name("none.csv")], 1, &["none.csv", "No such file"]);
    fails(&["update", &model, &new, "--data", &ratings], 1, &["ratings.csv", "trained on", "--data"]);
    fails(&["update", &model, &new, "--model", &ratings], 1, &["exists already"]);
    fails(&["update", &model], 2, &["NEW"]);
    fails(&["update", &place.name("none"), &new], 1, &["none", "expected a directory that --model wrote"]);
    fails(&["update", &model, &new, "--tolerance", "-1"], 2, &["tolerance is -1"]);
    assert_eq!(place.files(&model), before);
    let manifest = place.path("movies/model.json");
    let text = fs::read_to_string(&manifest).unwrap();
    for (from, to, parts) in [
        ("\"version\": 1", "\"version\": 2", ["format version 2, expected 1", "train the model again"]),
        ("\"dims\": 4", "\"dims\": \"four\"", ["its options are not those of this version", "four"]),
        ("\"kind\": \"mf\"", "\"kind\": \"sphinx\"", ["a model of kind sphinx", "does not train"]),
    ] {
        assert!(text.contains(from), "{text}");
        fs::write(&manifest, text.replace(from, to)).unwrap();
        fails(&["update", &model, &new], 1, &parts);
    }
    let (graph, hubs) = (place.graph(), place.name("hubs"));
    done(&["hits", &graph, "--model", &hubs, "-q"]);
    fails(&["update", &hubs, &graph], 2, &["training of hits cannot begin at an earlier model"]);
}

#[cfg(unix)]
#[test]
fn an_update_that_is_interrupted_or_killed_leaves_a_whole_model() {
    let place = Place::new();
    let [_, new, model] = place.movies_and_more(24);
    let update = |options: &[&str]| {
        Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
            .args([&["update", &model, &new, "-q", "-w", "1"], options].concat())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let before = place.files(&model);
    let interrupted = update(&["--iterations", "1000000000"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let sent = Command::new("kill").args(["-INT", &interrupted.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(interrupted.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(place.files(&model), before);
    for wait in 0..14 {
        let mut killed = update(&[]);
        std::thread::sleep(std::time::Duration::from_millis(14 * wait));
        killed.kill().unwrap();
        killed.wait().unwrap();
        // Whole: all names that there are have a row, and its files are those of one update.
        assert_eq!(run(&["recommend", &model, "u1", "-n", "1"]).code, Some(0), "killed after {} ms", 14 * wait);
        assert_eq!(place.files(&model).len(), before.len());
    }
}

/// Hashed features that meet are one value of a sample: there are fewer than in the file.
#[test]
fn samples_of_hashed_features_arrive() {
    let place = Place::new();
    let line = |n: u32| format!("{} {}:1 {}:2 {}:1\n", n % 2, n % 7, 7 + n % 11, 18 + n % 13);
    let of = |name: &str, numbers: std::ops::Range<u32>| place.file(name, numbers.map(line).collect::<String>());
    let (old, new, model) = (of("old.libsvm", 0..100), of("new.libsvm", 100..120), place.name("clicks"));
    done(&["blockpg", &old, "--hash-bits", "2", "--model", &model, "-q"]);
    done(&["update", &model, &new, "-q"]);
    let manifest = json(place.path("clicks/model.json"));
    assert_eq!(manifest["data"]["left"], 120);
    assert!(manifest["data"]["edges"].as_u64().unwrap() < 3 * 120, "{manifest}");
}

/// What an update reads again is named from anywhere.
#[cfg(unix)]
#[test]
fn an_update_may_be_started_elsewhere() {
    let place = Place::new();
    place.file("links.txt", "1 2\n2 3\n3 1\n1 3\n");
    place.file("new.txt", "2 1\n");
    place.file("start.txt", "2\n");
    let from = |directory: &std::path::Path, args: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"));
        let done = command.args(args).current_dir(directory).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    from(&place.path(""), &["pagerank", "links.txt", "--restart", "start.txt", "--model", "ranks", "-q"]);
    let elsewhere = place.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    // A file of the same name that is not meant.
    fs::write(elsewhere.join("start.txt"), "3\n").unwrap();
    from(&elsewhere, &["update", "../ranks", "../new.txt", "-q", "--model", "../updated"]);
    from(&place.path(""), &["update", "ranks", "new.txt", "-q"]);
    let [here, there] = ["ranks", "updated"].map(|model| {
        let mut files = place.files(&place.name(model));
        files.remove("model.json");
        files
    });
    assert!(!here.is_empty() && here == there);
    // What was trained on counts once.
    let again = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args(["update", "ranks", "links.txt"])
        .current_dir(place.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.code() == Some(1) && said.contains("would count twice"), "{said}");
}

#[test]
fn a_class_that_arrives_is_told() {
    let place = Place::new();
    let line = |at: usize, label: &str| format!("{label} {}:1 {}:0.5\n", 1 + at % 3, 4 + at % 5);
    let of = |labels: [&str; 2]| (0..40).map(|at| line(at, labels[at % 2])).collect::<String>();
    let (old, model) = (place.file("old.libsvm", of(["+1", "-1"])), place.name("model"));
    done(&["blockpg", &old, "--model", &model, "-q"]);
    let more = place.file("more.libsvm", of(["1", "0"]));
    assert!(!done(&["update", &model, &more]).contains("new classes"));
    let other = place.file("other.libsvm", line(1, "2"));
    let said = done(&["update", &model, &other]);
    assert!(said.contains("note: new classes: 2; the model now tells apart -1, 1, 2"), "{said}");
}

//! Trainings that are followed by a server: the model is that of the last checkpoint, and grows old where the training is killed.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::BufRead;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::launched::{newest, wait};
use crate::serve::{Server, movies};
use crate::{Place, blockpg, done, fails, lda, run};

/// A training that writes checkpoints until it is killed.
struct Training(Child);

impl Training {
    fn start(place: &Place, checkpoints: &str, more: &[&str]) -> Self {
        let ratings = place.ratings();
        let child = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
            .args(["mf", &ratings, "--dims", "4", "-w", "1", "-q", "--iterations", "100000000", "--step", "0.01"])
            .args(["--checkpoint", checkpoints, "--checkpoint-every", "20", "--checkpoint-model"])
            .args(more)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn asked(server: &Server) -> Value {
    let (status, said) = server.ask("/recommend", &json!({ "users": ["u1"], "number": 3 }));
    assert_eq!((status, said["answers"][0].as_array().unwrap().len()), (200, 3), "{said}");
    said
}

#[test]
fn a_killed_training_is_served_on_and_said_to_be_stale() {
    let place = Place::new();
    let run = place.name("run");
    // The server is there first, and waits for the first checkpoint.
    let server = std::thread::scope(|scope| {
        let server = scope.spawn(|| Server::start(&["--watch", &run, "--max-age", "3"]));
        std::thread::sleep(Duration::from_millis(100));
        let training = Training::start(&place, &run, &[]);
        let server = server.join().unwrap();
        let first = asked(&server);
        assert_eq!(first["model"], "run");
        wait(|| asked(&server)["version"].as_u64() > first["version"].as_u64().map(|version| version + 3));
        drop(training);
        server
    });
    let killed = Instant::now();
    wait(|| asked(&server)["stale"] == true);
    let (before, version) = (asked(&server), asked(&server)["version"].clone());
    assert!(before["age_seconds"].as_f64().unwrap() > 3.0, "{before}");
    wait(|| asked(&server)["age_seconds"].as_f64() > before["age_seconds"].as_f64());
    assert_eq!(asked(&server)["version"], version, "answers go on, of the model that there is");
    let since = killed.elapsed().as_secs_f64();
    assert!(asked(&server)["age_seconds"].as_f64().unwrap() >= since, "{before}");
    assert_eq!(server.get("/ready"), "ready\n", "it goes on answering");
    let (status, _, said) = server.send("GET", "/fresh", "", "");
    assert_eq!(status, 503, "{said}");
    assert!(said.starts_with("stale: a model is older than --max-age"), "{said}");
    assert_eq!(server.get("/health"), "ok\n");
    assert!(server.get("/metrics").contains("megagrid_model_stale{model=\"run\"} 1\n"));
    let models: Value = serde_json::from_str(&server.get("/models")).unwrap();
    assert_eq!((&models["models"][0]["stale"], &models["models"][0]["max_age_seconds"]), (&json!(true), &json!(3.0)));

    // Gone on with, it is followed again. What the kill may have left is removed.
    fs::create_dir_all(place.path("run/.model.tmp/half")).unwrap();
    let training = Training::start(&place, &run, &["--resume", &run]);
    wait(|| asked(&server)["stale"] == false);
    // Where it goes on slowly, the model is older than it may be in between.
    wait(|| server.send("GET", "/fresh", "", "").0 == 200);
    wait(|| server.get("/metrics").contains("megagrid_model_stale{model=\"run\"} 0\n"));
    drop(training);
    assert!(!place.path("run/.model.tmp/half").exists());
}

/// Every kind of model: what is beside the last checkpoint answers as the model of the run does.
#[test]
fn the_model_of_the_last_checkpoint_is_that_of_the_run() {
    let place = Place::new();
    let (ratings, graph) = (place.ratings(), place.graph());
    let (samples, posts) = (blockpg::samples(&place, "clicks.libsvm", 200), lda::documents(&place));
    let held_out = ["--holdout", "0.2", "--evaluate-every", "2"];
    let mf = [&["mf", &ratings, "--iterations", "9"][..], &held_out].concat();
    let runs: [(&[&str], &str, Value); 6] = [
        (&mf, "/recommend", json!({ "users": ["u1", "u2"] })),
        (&["als", &ratings, "--iterations", "3"], "/recommend", json!({ "users": ["u1"] })),
        (&["lda", &posts, "-k", "4", "--iterations", "5"], "/words", json!({})),
        (&["pagerank", &graph], "/top", json!({})),
        (&["hits", &graph], "/top", json!({ "hubs": true })),
        (
            &["blockpg", &samples, "--positive", "2", "--intercept"],
            "/predict",
            json!({ "samples": [[["1", 1.0], ["3", -0.5]]] }),
        ),
    ];
    for (command, path, question) in runs {
        let (model, checkpoints) = (place.name(&format!("{}-model", command[0])), place.name(command[0]));
        let saves = ["--checkpoint", &checkpoints, "--checkpoint-every", "2", "--checkpoint-model"];
        let more = ["-q", "-w", "2"];
        done(&[command, &saves, &["--model", &model], &more].concat());
        assert!(newest(&checkpoints).is_some(), "{command:?}");
        if command.contains(&"--iterations") {
            // Gone on with, it is at its end already.
            fs::remove_dir_all(place.path(command[0]).join("model")).unwrap();
            done(&[command, &saves, &["--resume", &checkpoints], &more].concat());
        }
        let server = Server::start(&[&model, "--watch", &checkpoints]);
        let [followed, kept] = [command[0].to_owned(), format!("{}-model", command[0])].map(|name| {
            let (status, mut said) = server.ask(&format!("/models/{name}{path}"), &question);
            assert_eq!((status, &said["stale"]), (200, &json!(false)), "{command:?}: {said}");
            said["answers"].take()
        });
        assert_eq!(followed, kept, "{command:?}");
    }
}

#[test]
fn trainings_without_a_model_yet_are_waited_for() {
    let place = Place::new();
    let (ratings, run, other) = (place.ratings(), place.name("run"), place.name("other"));
    let train = ["mf", &ratings, "--iterations", "2", "-q", "-w", "1"];
    done(&[&train[..], &["--checkpoint", &run]].concat());
    let mut server = Server::begin(&["--watch", &run, "--watch", &other]);
    let mut messages = server.messages();
    let mut waits_for = |name: &str| {
        let mut line = String::new();
        messages.read_line(&mut line).unwrap();
        assert!(line.contains(name) && line.contains("waiting for the first model"), "{line}");
    };
    waits_for("run");
    // One that was begun without models, and has no iteration left.
    done(&[&train[..], &["--checkpoint", &run, "--resume", &run, "--checkpoint-model"]].concat());
    waits_for("other");
    done(&[&train[..], &["--checkpoint", &other, "--checkpoint-model"]].concat());
    server.listens();
    for name in ["run", "other"] {
        let (status, said) = server.ask(&format!("/models/{name}/recommend"), &json!({ "users": ["u1"] }));
        assert_eq!((status, &said["version"]), (200, &json!(1)), "{name}: {said}");
        // Both are looked at later too.
        let checkpoints = place.name(name);
        let more = ["--iterations", "3", "--checkpoint", &checkpoints, "--resume", &checkpoints, "--checkpoint-model"];
        done(&[&["mf", &ratings, "-q", "-w", "1"], &more[..]].concat());
        wait(|| server.ask(&format!("/models/{name}/recommend"), &json!({ "users": ["u1"] })).1["version"] != 1);
    }
}

/// The clock of the machine that trains may be ahead.
#[test]
fn a_model_from_the_future_grows_old_too() {
    let place = Place::new();
    let model = movies(&place, "movies", "1");
    let manifest = fs::File::options().write(true).open(place.path("movies/model.json")).unwrap();
    manifest.set_modified(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    let server = Server::start(&[&model, "--max-age", "0.01"]);
    wait(|| asked(&server)["stale"] == true);
}

#[test]
fn what_cannot_be_followed_says_why() {
    let place = Place::new();
    let (ratings, run, model) = (place.ratings(), place.name("run"), movies(&place, "movies", "1"));
    let nowhere = place.name("nowhere");
    fails(&["serve", "--watch", &ratings, "--port", "0"], 1, &["ratings.csv", "Not a directory"]);
    // What needs no model is said before there is one.
    let twins = ["serve", &model, "--watch", &place.name("elsewhere/movies"), "--port", "0"];
    fails(&twins, 2, &["two models are called \"movies\""]);
    let taken = Server::start(&[&model]);
    let port = taken.address.rsplit(':').next().unwrap();
    fails(&["serve", "--watch", &nowhere, "--port", port], 1, &["--port 0 takes a free one"]);
    let never = ["serve", "--watch", &run, "--watch-every", "0", "--port", "0"];
    fails(&never, 2, &["--watch-every has to be above 0"]);
    fails(&["serve", "--watch", &run, "--max-age", "-1"], 2, &["--max-age is -1"]);
    fails(&["serve"], 2, &["<MODEL>"]);
}

#[test]
fn models_of_checkpoints_replace_nothing_else_and_lose_no_checkpoint() {
    let place = Place::new();
    let (ratings, checkpoints) = (place.ratings(), place.name("run"));
    let train = ["mf", &ratings, "--iterations", "2", "-q", "-w", "1"];
    assert!(run(&[&train[..], &["--checkpoint-model"]].concat()).stderr.contains("--checkpoint <DIR>"));
    let tuned = ["tune", "mf", &ratings, "--checkpoint", &checkpoints, "--checkpoint-model"];
    fails(&tuned, 2, &["--checkpoint-model is not for tune"]);
    let [full, als, notes] = ["full", "als", "notes"].map(|name| place.name(name));
    let saves = |to| [&train[..], &["--checkpoint", to, "--checkpoint-model"]].concat();
    for name in ["run", "full", "als", "notes/model"] {
        fs::create_dir_all(place.path(name)).unwrap();
    }
    let model = place.name("run/model");
    fails(
        &[&saves(&checkpoints)[..], &["--model", &model]].concat(),
        2,
        &["--checkpoint-model writes to the directory that --model names"],
    );
    done(&["als", &ratings, "--iterations", "1", "--model", &place.name("als/model"), "-q"]);
    fails(&saves(&als), 1, &["als/model", "is a model of als, and models of mf would take its place"]);
    fails(&saves(&notes), 1, &["notes/model", "is no model, and models of mf would take its place"]);
    // A model that cannot be written.
    place.file("full/.model.tmp", "");
    fails(&saves(&full), 1, &["full/.model.tmp"]);
    assert_eq!(newest(place.path("full")), Some(2));

    let samples = blockpg::samples(&place, "clicks.libsvm", 200);
    let calibrated = ["blockpg", &samples, "--positive", "2", "--holdout", "0.3", "--calibrate"];
    let saved = [&calibrated[..], &["--checkpoint", &checkpoints, "--checkpoint-model"]].concat();
    fails(&saved, 2, &["--calibrate is found at the end of a run"]);
}

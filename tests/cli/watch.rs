//! Trainings that are followed by a server: the model is that of the last checkpoint, and grows old where the training is killed.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::launched::{newest, wait};
use crate::serve::Server;
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

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
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
        std::thread::sleep(std::time::Duration::from_millis(100));
        let training = Training::start(&place, &run, &[]);
        let server = server.join().unwrap();
        let first = asked(&server);
        assert_eq!(first["model"], "run");
        wait(|| asked(&server)["version"].as_u64() > first["version"].as_u64().map(|version| version + 3));
        training.kill();
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
    let (status, _, said) = server.send("GET", "/ready", "", "");
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
    assert_eq!(server.get("/ready"), "ready\n");
    assert!(server.get("/metrics").contains("megagrid_model_stale{model=\"run\"} 0\n"));
    training.kill();
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
        done(&[command, &saves, &["--model", &model, "-q", "-w", "2"]].concat());
        assert!(newest(&checkpoints).is_some(), "{command:?}");
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
fn what_cannot_be_followed_says_why() {
    let place = Place::new();
    let (ratings, checkpoints) = (place.ratings(), place.name("run"));
    let train = ["mf", &ratings, "--iterations", "2", "-q", "-w", "1"];
    done(&[&train[..], &["--checkpoint", &checkpoints]].concat());
    fails(&["serve", "--watch", &checkpoints, "--port", "0"], 1, &["run: its checkpoints have no model", "--resume"]);
    // The same run gone on with has one.
    let more = ["--iterations", "3", "--checkpoint", &checkpoints, "--checkpoint-model", "--resume", &checkpoints];
    done(&[&["mf", &ratings, "-q", "-w", "1"], &more[..]].concat());
    let other = place.name("other");
    done(&[&train[..], &["--checkpoint", &other, "--checkpoint-model"]].concat());
    let server = Server::start(&["--watch", &checkpoints, "--watch", &other]);
    for name in ["run", "other"] {
        let (status, said) = server.ask(&format!("/models/{name}/recommend"), &json!({ "users": ["u1"] }));
        assert_eq!((status, &said["version"]), (200, &json!(1)), "{name}: {said}");
    }
    let never = ["serve", "--watch", &checkpoints, "--watch-every", "0", "--port", "0"];
    fails(&never, 2, &["--watch-every has to be above 0"]);
    fails(&["serve", "--watch", &checkpoints, "--max-age", "-1"], 2, &["--max-age is -1"]);
    fails(&["serve"], 2, &["<MODEL>"]);
    assert!(run(&[&train[..], &["--checkpoint-model"]].concat()).stderr.contains("--checkpoint <DIR>"));
    let tuned = ["tune", "mf", &ratings, "--checkpoint", &checkpoints, "--checkpoint-model"];
    fails(&tuned, 2, &["--checkpoint-model is not for tune"]);
}

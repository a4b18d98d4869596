//! Models that answer over HTTP: what their commands answer, what is refused, reloads without a failed request, an orderly end.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Place, blockpg, classes, done, fails, lda};

/// A running server.
pub struct Server {
    child: Child,
    pub address: String,
}

impl Server {
    pub fn start(options: &[&str]) -> Self {
        let mut server = Self::begin(options);
        server.listens();
        server
    }

    /// Starts one that may not listen yet.
    pub fn begin(options: &[&str]) -> Self {
        let child = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
            // Pages of tests are files.
            .args(["serve", "--port", "0", "-w", "2", "--watch-every", "0.05", "--allow-host", "null"])
            .args(options)
            .env_remove("MEGAGRID_TOKEN")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, address: String::new() }
    }

    /// Waits until it says where it listens. One that says nothing for a minute hangs.
    pub fn listens(&mut self) {
        let (send, line) = mpsc::channel();
        let said = self.child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut line = String::new();
            BufReader::new(said).read_line(&mut line).unwrap();
            let _ = send.send(line);
        });
        let line = line.recv_timeout(Duration::from_secs(60)).expect("it listens within a minute");
        line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{line:?}")).clone_into(&mut self.address);
    }

    /// Returns what it says of itself.
    pub fn messages(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.child.stderr.take().unwrap())
    }

    /// Sends a request, and returns the status, the head and the body.
    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n",
            self.address
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
    }

    pub fn get(&self, path: &str) -> String {
        let (status, _, body) = self.send("GET", path, "", "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Asks, and returns the status and what is said.
    pub fn ask(&self, path: &str, question: &Value) -> (u16, Value) {
        let (status, _, body) = self.send("POST", path, "", &question.to_string());
        (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
    }

    pub fn answers(&self, path: &str, question: &Value) -> Value {
        let (status, mut said) = self.ask(path, question);
        assert_eq!(status, 200, "{question}: {said}");
        said["answers"].take()
    }

    pub fn end(mut self) -> (Option<i32>, String) {
        assert!(Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap().success());
        let mut said = String::new();
        self.messages().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the names of a list of answers.
fn ids(found: &Value) -> Vec<&str> {
    found.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

/// Returns the names of a listing: place, score, name.
fn listed(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split_whitespace().last().unwrap()).collect()
}

pub fn movies(place: &Place, name: &str, seed: &str) -> String {
    let (ratings, model) = (place.ratings(), place.name(name));
    done(&["mf", &ratings, "--model", &model, "--dims", "4", "--iterations", "20", "--seed", seed, "-q", "-w", "2"]);
    model
}

const MAILS: &str = "kind,body\nspam,\"Free money, now\"\nham,see you at lunch\nspam,win money free\nham,\"lunch, or at two?\"\nspam,free!\nham,see you\n";

#[test]
fn models_answer_as_their_commands_do() {
    let place = Place::new();
    let movies = movies(&place, "movies", "1");
    let (pages, links, clicks) = (place.name("pages"), place.name("links"), place.name("clicks"));
    done(&["pagerank", &place.graph(), "--model", &pages, "-q"]);
    done(&["hits", &place.graph(), "--model", &links, "-q"]);
    let samples = blockpg::samples(&place, "clicks.libsvm", 300);
    let fit = ["blockpg", &samples, "--positive", "2", "--normalize", "--intercept", "--holdout", "0.3", "--calibrate"];
    done(&[&fit[..], &["--model", &clicks, "-q"]].concat());
    let topics = lda::train(&place, "posts", &[]);
    let (kinds, things) = (place.name("kinds"), classes::samples(&place, "things.libsvm", ["a", "b", "c"], 200));
    done(&["blockpg", &things, "--normalize", "--intercept", "--model", &kinds, "-q"]);
    let (near, sets) = (place.name("near"), place.file("sets.txt", "1\n2 3:2\n"));
    done(&["pagerank", &place.graph(), "--restart-sets", &sets, "--model", &near, "-q"]);
    let (mails, table) = (place.name("mails"), place.file("mails.csv", MAILS));
    let reading = ["--columns", "text=body,label=kind", "--lower-case", "--split", "punctuation", "--hash-bits", "9"];
    done(&[&["blockpg", &table, "--normalize", "--l1", "0.01", "--model", &mails, "-q"][..], &reading].concat());
    let server = Server::start(&[&movies, &pages, &links, &clicks, &topics, &kinds, &near, &mails]);

    let found = server.answers("/recommend", &json!({ "users": ["u3", "u5"], "number": 4, "exclude": ["i1"] }));
    for (user, found) in ["u3", "u5"].into_iter().zip(found.as_array().unwrap()) {
        let all = done(&["recommend", &movies, user, "-n", "5"]);
        let expected: Vec<&str> = listed(&all).into_iter().filter(|&item| item != "i1").take(4).collect();
        assert_eq!(ids(found), expected, "{user}");
    }
    let theirs = place.file("theirs.csv", "new,i1,5\nnew,i4,1\nnew,i7,4.5\n");
    let found = server.answers(
        "/recommend",
        &json!({ "people": [[["i1", 5], ["i4", 1], ["i7", 4.5], ["nowhere", 2]]], "number": 6 }),
    );
    let best = done(&["recommend", &movies, "--fold-in", &theirs, "-n", "6"]);
    assert!(best.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).eq(ids(&found[0])), "{best}");
    let found = server.answers("/similar", &json!({ "items": ["i2"], "number": 3 }));
    assert_eq!(ids(&found[0]), listed(&done(&["similar", &movies, "i2", "-n", "3"])));
    let found = server
        .answers("/models/movies/predict", &json!({ "pairs": [["u1", "i2"], ["u9", "i0"], ["u9", "unheard of"]] }));
    let pairs = place.file("pairs.csv", "u1,i2\nu9,i0\nu9,unheard of\n");
    let predicted = done(&["predict", &movies, &pairs]);
    assert_eq!(predicted.lines().count(), 4, "{predicted}");
    for (found, line) in found.as_array().unwrap().iter().zip(predicted.lines().skip(1)) {
        let expected: f64 = line.rsplit(',').next().unwrap().parse().unwrap();
        assert!((found.as_f64().unwrap() - expected).abs() < 1e-5, "{found}, not {line}");
    }

    let found = server.answers("/models/pages/top", &json!({ "number": 3 }));
    assert_eq!(ids(&found), listed(&done(&["top", &pages, "-n", "3"])));
    let first = ids(&found)[0].to_owned();
    let found = server.answers("/models/pages/rank", &json!({ "vertices": [first, 4] }));
    assert_eq!((&found[0]["place"], found[1]["id"].as_str()), (&json!(1), Some("4")));
    let found = server.answers("/models/links/top", &json!({ "number": 3, "hubs": true }));
    assert_eq!(ids(&found), listed(&done(&["top", &links, "-n", "3", "--hubs"])));

    for (set, option) in [(json!(null), &[][..]), (json!(2), &["--set", "2"])] {
        let found = server.answers("/models/near/top", &json!({ "number": 3, "set": set }));
        assert_eq!(ids(&found), listed(&done(&[&["top", &near, "-n", "3"], option].concat())));
    }
    let found = server.answers("/models/near/rank", &json!({ "vertices": [2] }));
    let of_sets: Vec<f64> = found[0]["sets"].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect();
    assert!(of_sets.len() == 2 && of_sets[1] > of_sets[0], "{found}");

    let found = server.answers("/models/mails/predict", &json!({ "texts": ["Free MONEY!", "see you at lunch", ""] }));
    let unseen = place.file("unseen.csv", "body\n\"Free MONEY!\"\nsee you at lunch\n\"\"\n");
    let chances = done(&["predict", &mails, &unseen, "--columns", "text=body"]);
    for (found, line) in found.as_array().unwrap().iter().zip(chances.lines()) {
        assert!((found.as_f64().unwrap() - line.parse::<f64>().unwrap()).abs() < 1e-6, "{found}, not {line}");
    }
    let words = server.answers("/models/mails/predict", &json!({ "samples": [[["free", 1], ["money", 1]]] }));
    assert_eq!(words[0], found[0]);

    let text = fs::read_to_string(&samples).unwrap();
    let sample = |line: &str| -> Value {
        let values = line.split(' ').skip(1).map(|pair| pair.split_once(':').unwrap());
        values.map(|(feature, value)| json!([feature, value.parse::<f64>().unwrap()])).collect::<Vec<_>>().into()
    };
    let found =
        server.answers("/models/clicks/predict", &json!({ "samples": text.lines().map(sample).collect::<Vec<_>>() }));
    let chances = done(&["predict", &clicks, &samples]);
    assert_eq!(chances.lines().count(), 300);
    for (found, line) in found.as_array().unwrap().iter().zip(chances.lines()) {
        assert!((found.as_f64().unwrap() - line.parse::<f64>().unwrap()).abs() < 1e-6, "{found}, not {line}");
    }

    let found = server.answers("/models/kinds/predict", &json!({ "samples": [[["1", 1], ["4", 0.5]], []] }));
    let predicted = done(&["predict", &kinds, &place.file("two.libsvm", "a 1:1 4:0.5\na\n")]);
    for (found, line) in found.as_array().unwrap().iter().zip(predicted.lines().skip(1)) {
        let row: Vec<&str> = line.split(',').collect();
        assert_eq!(found["class"], row[1]);
        for (class, chance) in ["a", "b", "c"].into_iter().zip(&row[2..]) {
            let expected: f64 = chance.parse().unwrap();
            assert!((found["probabilities"][class].as_f64().unwrap() - expected).abs() < 1e-6, "{found}, not {line}");
        }
    }
    let (status, said) = server.ask("/models/kinds/predict", &json!({ "texts": ["1:1 4:0.5"] }));
    assert_eq!(status, 400);
    assert!(said["error"].as_str().unwrap().contains("and not on texts; ask with samples"), "{said}");
    assert_eq!(server.answers("/find", &json!({ "text": "I2", "number": 3 })), json!(["i2", "i20", "i21"]));
    assert_eq!(server.answers("/find", &json!({ "text": "39", "users": true })), json!(["u39"]));
    let map = server.answers("/map", &json!({}));
    assert_eq!(map["topics"].as_array().unwrap().len(), 2, "{map}");

    let found = server.answers("/topics", &json!({ "texts": ["fig plum apple fig", "iron and zinc"], "number": 1 }));
    let topic = |of: usize| found[of][0]["topic"].as_u64().unwrap() as usize;
    assert_ne!(topic(0), topic(1), "{found}");
    let words = server.answers("/words", &json!({ "number": 2 }));
    assert!(lda::FRUIT.contains(&words[topic(0)]["words"][0].as_str().unwrap()), "{words}");

    // What the models say that they answer is described.
    let (described, models): (Value, Value) = (
        serde_json::from_str(&server.get("/openapi.json")).unwrap(),
        serde_json::from_str(&server.get("/models")).unwrap(),
    );
    for model in models["models"].as_array().unwrap() {
        for question in model["questions"].as_array().unwrap() {
            let path = format!("/{}", question.as_str().unwrap());
            assert!(described["paths"][&path]["post"].is_object(), "{path}");
        }
    }
    let metrics = server.get("/metrics");
    let counted = "megagrid_requests_total{model=\"movies\",question=\"recommend\",status=\"200\"} 2";
    assert!(metrics.contains(counted), "{metrics}");
    assert_eq!([server.get("/health"), server.get("/ready"), server.get("/fresh")], ["ok\n", "ready\n", "fresh\n"]);
}

#[test]
fn what_cannot_be_answered_is_refused_with_the_reason() {
    let place = Place::new();
    let model = movies(&place, "movies", "1");
    let server = Server::start(&[&model, "--body-limit", "4000"]);
    for (path, body, status, reason) in [
        ("/recommend", "{\"users\": [\"nobody\"]}", 404, "user \"nobody\" is not among the 40 users"),
        ("/recommend", "{\"users\": [\"u1\"], \"people\": [[]]}", 400, "and not both"),
        ("/recommend", "{}", 400, "name users"),
        ("/recommend", "{\"users\": [\"u1\"], \"number\": 0}", 400, "number is 0; expected 1 to 10000"),
        ("/recommend", "{\"users\": [\"u1\"], \"nmber\": 3}", 400, "unknown field `nmber`"),
        ("/recommend", "{\"people\": [[[\"i1\", NaN]]]}", 400, "not understood"),
        ("/recommend", "{\"people\": [[[\"i1\", 1e300]]]}", 400, "number out of range"),
        (
            "/recommend",
            "{\"people\": [[[\"nowhere\", 5]]]}",
            404,
            "nothing of what people rated counts: of 1 items 0 are in the model",
        ),
        ("/recommend", "not JSON", 400, "line 1 column"),
        ("/recommend", &format!("{{\"users\": [\"{}\"]}}", "u".repeat(5000)), 413, "4000 bytes (--body-limit)"),
        (
            "/similar",
            &format!("{{\"number\": 10000, \"items\": [{}\"i1\"]}}", "\"i1\",".repeat(10)),
            400,
            "11 times 10000 answers; expected 100000 at most",
        ),
        ("/similar", "{\"items\": [\"i999\"]}", 404, "item \"i999\""),
        ("/predict", "{\"pairs\": []}", 400, "number of pairs is 0"),
        ("/recommend", "{\"users\": [1.5]}", 400, "expected a name, which is a text or an integer"),
        ("/topics", "{\"texts\": [\"x\"]}", 404, "no model answers \"topics\""),
        ("/models/movies/top", "{}", 404, "\"movies\" does not answer \"top\", but recommend, similar, predict, find"),
        ("/models/films/recommend", "{}", 404, "no model \"films\""),
        ("/no/such/page", "", 404, "GET /openapi.json"),
    ] {
        let (found, _, said) = server.send("POST", path, "", body);
        assert_eq!(found, status, "{path} {body}: {said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert!(said["error"].as_str().unwrap().contains(reason), "{path} {body}: {said}");
    }
    for (method, path, status, allowed, reason) in [
        ("GET", "/recommend", 405, Some("POST"), "expected POST /recommend"),
        ("PUT", "/models/movies/similar", 405, Some("POST"), "expected POST /models/movies/similar"),
        ("POST", "/health", 405, Some("GET,HEAD"), "expected GET /health"),
        ("GET", "/reload", 405, Some("POST"), "expected POST /reload"),
        ("GET", "/nothere", 404, None, "there is no such page"),
        ("DELETE", "/nothere", 404, None, "there is no such page"),
        ("GET", "/models/films/recommend", 404, None, "no model \"films\""),
        ("GET", "/models/movies/top", 404, None, "\"movies\" does not answer \"top\""),
    ] {
        let (found, head, said) = server.send(method, path, "", "");
        assert_eq!(found, status, "{method} {path}: {said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert!(said["error"].as_str().unwrap().contains(reason), "{method} {path}: {said}");
        let allow = head.to_lowercase().lines().find_map(|line| Some(line.strip_prefix("allow: ")?.to_owned()));
        assert_eq!(allow, allowed.map(str::to_lowercase), "{method} {path}");
    }
    assert!(server.get("/metrics").contains("question=\"recommend\",status=\"413\"} 1"), "refusals are counted too");

    // Who sends all of a body first comes to the answer as well.
    let (status, _, said) = server.send("POST", "/recommend", "", &" ".repeat(6 << 20));
    assert_eq!(status, 413, "{said}");

    // Half a request, a hundred times, is in nobody's way.
    let halves: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream
                .write_all(b"POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"us")
                .unwrap();
            stream
        })
        .collect();
    server.answers("/recommend", &json!({ "users": ["u1"] }));
    drop(halves);
}

#[test]
fn a_model_is_swapped_whole_and_no_request_fails() {
    let place = Place::new();
    let (model, other) = (movies(&place, "movies", "1"), movies(&place, "other", "2"));
    let server = Server::start(&[&model]);
    let version = || server.ask("/recommend", &json!({ "users": ["u1"] })).1["version"].as_u64().unwrap();
    let wait_for = |what: &str, is: &dyn Fn() -> bool| {
        let begin = Instant::now();
        while !is() {
            assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    assert_eq!(version(), 1);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut asked = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        server.answers("/recommend", &json!({ "users": ["u1"], "number": 3 }));
                        asked += 1;
                    }
                    asked
                })
            })
            .collect();
        for (turn, source) in (2..).zip([&other, &model, &other, &model]) {
            // The directory of one is put in the place of the other.
            let (kept, new) = (place.name("kept"), place.name("new"));
            copy(source, &new, &place, turn);
            fs::rename(&model, &kept).unwrap();
            fs::rename(&new, &model).unwrap();
            wait_for("the new model", &|| version() == turn);
            fs::remove_dir_all(&kept).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        for asker in askers {
            assert!(asker.join().unwrap() > 10, "requests went on");
        }
    });

    // A model that is gone, or damaged, is served as it was.
    let manifest = fs::read(place.path("movies").join("model.json")).unwrap();
    fs::remove_file(place.path("movies").join("model.json")).unwrap();
    let (status, said) = server.ask("/reload", &json!({}));
    assert_eq!(status, 500);
    assert!(said["error"].as_str().unwrap().contains("movies goes on as it was"), "{said}");
    assert_eq!(version(), 5);
    fs::write(place.path("movies").join("model.json"), manifest).unwrap();
    wait_for("the model that is there again", &|| version() == 6);
    let (code, said) = server.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("movies (mf) answers recommend, similar, predict"), "{said}");
}

/// Copies a model, whose manifest is written anew.
fn copy(from: &str, to: &str, place: &Place, turn: u64) {
    let saved = place.path(&format!("saved{turn}"));
    fs::create_dir(&saved).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), saved.join(entry.file_name())).unwrap();
    }
    fs::rename(saved, to).unwrap();
}

#[test]
fn others_need_a_token() {
    let place = Place::new();
    let model = movies(&place, "movies", "1");
    fails(
        &["serve", &model, "--bind", "0.0.0.0", "--port", "0"],
        2,
        &["0.0.0.0 can be reached by others", "--token-file"],
    );
    let token = place.file("token", "a secret\n");
    let server = Server::start(&[&model, "--token-file", &token]);
    let question = "{\"users\": [\"u1\"]}";
    for (headers, status) in [
        ("", 401),
        ("Authorization: Bearer a secre\r\n", 401),
        ("Authorization: a secret\r\n", 401),
        ("Authorization: Bearer a secret\r\n", 200),
        ("Authorization: bearer a secret\r\n", 200),
    ] {
        let (found, head, said) = server.send("POST", "/recommend", headers, question);
        assert_eq!(found, status, "{headers}: {said}");
        assert_eq!(head.to_lowercase().contains("www-authenticate: bearer"), status == 401, "{head}");
    }
    assert_eq!((server.send("GET", "/models", "", "").0, server.send("GET", "/health", "", "").0), (401, 200));
}

#[test]
fn a_server_that_cannot_be_says_why() {
    let place = Place::new();
    let model = movies(&place, "movies", "1");
    fs::create_dir(place.path("a")).unwrap();
    let twin = place.name("a/movies");
    copy(&model, &twin, &place, 0);
    fails(&["serve", &model, &twin], 2, &["two models are called \"movies\""]);
    fails(&["serve", &place.name("nothing")], 1, &["nothing", "expected a directory that --model wrote"]);
    fails(&["serve", &model, "--time-limit", "-1"], 2, &["--time-limit is -1"]);
    let empty = place.file("empty", "\n");
    fails(&["serve", &model, "--token-file", &empty], 1, &["there is no token"]);
    let taken = Server::start(&[&model]);
    let port = taken.address.rsplit(':').next().unwrap();
    fails(&["serve", &model, "--port", port], 1, &["--port 0 takes a free one"]);
}

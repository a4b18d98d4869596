//! Requests to a server: what of a batch is unknown, pages of other origins, what is counted, bodies that are not taken, models of another
//! command.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::serve::{Server, movies};
use crate::{Place, done, fails, lda};

#[test]
fn what_is_unknown_of_a_batch_has_an_empty_answer() {
    let place = Place::new();
    let (model, topics) = (movies(&place, "movies", "1"), lda::train(&place, "topics", &["--iterations", "5"]));
    let server = Server::start(&[&model, &topics]);
    let (known, nobody) = (json!([["i1", 5.0], ["i2", 1.0]]), json!([["nowhere", 5.0]]));
    let one = server.answers("/recommend", &json!({ "people": [known], "number": 3 }));
    let all = server.answers("/recommend", &json!({ "people": [nobody, known, []], "number": 3 }));
    assert_eq!(all, json!([[], one[0], []]));
    let (status, said) = server.ask("/recommend", &json!({ "people": [nobody, []] }));
    assert!(status == 404 && said["error"].as_str().unwrap().contains("of 1 items 0 are in the model"), "{said}");

    let text = "apple and zinc";
    let one = server.answers("/topics", &json!({ "texts": [text] }));
    let all = server.answers("/topics", &json!({ "texts": ["qwertz", text] }));
    assert_eq!(all, json!([[], one[0]]));
    let (status, said) = server.ask("/topics", &json!({ "texts": ["qwertz", ""] }));
    assert!(status == 404 && said["error"].as_str().unwrap().contains("no text has a word"), "{said}");
}

/// What browsers go by.
#[test]
fn pages_that_may_ask_may_read_the_answer() {
    let place = Place::new();
    let model = movies(&place, "movies", "1");
    let (open, closed) = (Server::start(&[&model]), place.file("token", "secret"));
    let closed = Server::start(&[&model, "--token-file", &closed]);
    let question = "{\"users\": [\"u1\"]}";
    let before = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n";
    for (server, origin, token, statuses) in [
        (&open, "null", "", [204, 200]),
        (&open, "http://localhost:3000", "", [204, 200]),
        (&open, "https://example.org", "", [403, 403]),
        (&closed, "https://example.org", "", [204, 401]),
        (&closed, "https://example.org", "Authorization: Bearer secret\r\n", [204, 200]),
    ] {
        let origin_line = format!("Origin: {origin}\r\n");
        let (status, head, _) = server.send("OPTIONS", "/recommend", &(origin_line.clone() + before), "");
        let (asked, answer, said) = server.send("POST", "/recommend", &(origin_line + token), question);
        assert_eq!([status, asked], statuses, "{origin}: {said}");
        let lets_in = |head: &str| head.to_lowercase().contains(&format!("access-control-allow-origin: {origin}\r\n"));
        assert_eq!([lets_in(&head), lets_in(&answer)], [status == 204, status == 204], "{origin}: {head} {answer}");
        if status == 204 {
            assert!(
                head.to_lowercase().contains("access-control-allow-headers: authorization, content-type"),
                "{head}"
            );
        }
    }
    assert_eq!(open.send("OPTIONS", "/recommend", "", "").0, 405, "no browser asks so");
}

#[test]
fn each_question_is_counted_however_it_ends() {
    let place = Place::new();
    let model = movies(&place, "movies", "1");
    let token = place.file("token", "secret");
    let server = Server::start(&[&model, "--token-file", &token, "--body-limit", "1000"]);
    let ask = |path: &str, headers: &str, body: &str| {
        server.send("POST", path, &format!("Authorization: Bearer secret\r\n{headers}"), body)
    };
    assert_eq!(ask("/recommend", "", "{\"users\": [\"u1\"]}").0, 200);
    let (status, _, said) = ask("/recommend", "Content-Encoding: gzip\r\n", "\u{1f}");
    assert!(status == 415 && said.contains("the body is gzip; send it as it is"), "{said}");
    let (status, _, said) = ask("/recommend", "", &"x".repeat(1001));
    assert!(status == 413 && said.contains("more than 1000 bytes (--body-limit)"), "{said}");
    assert_eq!(ask("/models/films/recommend", "", "{}").0, 404);
    assert_eq!(ask("/models/movies/rank", "", "{}").0, 404);
    for none in ["/models/m%FF/find", "/no/such/page", "/recommend/"] {
        assert_eq!(ask(none, "", "{}").0, 404);
    }
    assert_eq!(server.send("POST", "/recommend", "", "{}").0, 401);
    let metrics = server.send("GET", "/metrics", "Authorization: Bearer secret\r\n", "").2;
    for counted in [
        "requests_total{model=\"movies\",question=\"recommend\",status=\"200\"} 1",
        "requests_total{model=\"movies\",question=\"recommend\",status=\"415\"} 1",
        "requests_total{model=\"movies\",question=\"recommend\",status=\"413\"} 1",
        "requests_total{model=\"\",question=\"\",status=\"401\"} 1",
        "requests_total{model=\"\",question=\"\",status=\"404\"} 3",
        "requests_total{model=\"\",question=\"recommend\",status=\"404\"} 1",
        "requests_total{model=\"movies\",question=\"\",status=\"404\"} 1",
        "failed_reloads_total{model=\"movies\"} 0",
    ] {
        assert!(metrics.contains(counted), "no {counted} in {metrics}");
    }
}

#[test]
fn a_model_of_another_command_is_not_taken() {
    let place = Place::new();
    let (model, pages) = (movies(&place, "movies", "1"), place.name("pages"));
    done(&["pagerank", &place.graph(), "--model", &pages, "-q"]);
    let server = Server::start(&[&model]);
    fs::rename(&model, place.path("kept")).unwrap();
    fs::rename(&pages, &model).unwrap();
    let (status, said) = server.ask("/reload", &json!({}));
    assert_eq!(status, 500);
    let said = said["error"].as_str().unwrap();
    assert!(said.contains("a model of pagerank now, and one of mf is served; start the server anew"), "{said}");
    server.answers("/recommend", &json!({ "users": ["u1"] }));
    assert!(!server.get("/metrics").contains("failed_reloads_total{model=\"movies\"} 0"));
    // Nor is one whose numbers are none.
    fs::remove_dir_all(&model).unwrap();
    fs::rename(place.path("kept"), &model).unwrap();
    let path = place.path("movies").join("items.npy");
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let (status, said) = server.ask("/reload", &json!({}));
    assert!(status == 500 && said["error"].as_str().unwrap().contains("is inf; the model is damaged"), "{said}");
    server.answers("/recommend", &json!({ "users": ["u1"] }));
}

/// Its connections are ending for a minute.
#[test]
fn the_next_server_gets_the_port_at_once() {
    let place = Place::new();
    let model = movies(&place, "movies", "1");
    let first = Server::start(&[&model]);
    let port = first.address.rsplit(':').next().unwrap().to_owned();
    // One that the server ends.
    let mut open = TcpStream::connect(&first.address).unwrap();
    open.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    open.read_exact(&mut [0; 16]).unwrap();
    assert_eq!(first.end().0, Some(0));
    let mut second = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args(["serve", &model, "--port", &port])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut listens = String::new();
    BufReader::new(second.stdout.take().unwrap()).read_line(&mut listens).unwrap();
    assert!(listens.trim().ends_with(&port), "{listens:?}");
    assert!(Command::new("kill").args(["-TERM", &second.id().to_string()]).status().unwrap().success());
    assert_eq!(second.wait().unwrap().code(), Some(0));
}

/// It will listen when the first model is there.
#[test]
fn a_server_that_waits_has_its_port_and_ends_well() {
    let place = Place::new();
    let model = movies(&place, "movies", "1");
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let run = place.name("run");
    fs::create_dir(&run).unwrap();
    let mut waiting = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args(["serve", "--watch", &run, "--port", &port])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = waiting.stderr.take().unwrap();
    let mut byte = [0];
    // It waits once it has said so.
    said.read_exact(&mut byte).unwrap();
    fails(&["serve", &model, "--port", &port], 1, &["--port 0 takes a free one"]);
    assert!(Command::new("kill").args(["-TERM", &waiting.id().to_string()]).status().unwrap().success());
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
}

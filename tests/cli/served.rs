//! What a server stands: many who want models read again, models that are copied into place, linked or taken away, answers that would be
//! too many, questions that are not asked to the end, or that pages of other sites ask.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::serve::{Server, movies};
use crate::{Place, done, fails};

#[test]
fn many_ask_for_models_to_be_read_again_and_all_are_told_that_they_were() {
    let place = Place::new();
    let model = movies(&place, "movies", "1");
    let server = Server::start(&[&model, "--concurrency", "1"]);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert_eq!(server.send("POST", "/reload", "", "").0, 200));
        }
        // Questions have threads of their own.
        for _ in 0..20 {
            assert_eq!(server.ask("/recommend", &json!({ "users": ["u1"] })).0, 200);
        }
    });
    let (_, said) = server.ask("/recommend", &json!({ "users": ["u1"] }));
    // The first is for itself, one more for all who asked meanwhile; others began later.
    let version = said["version"].as_u64().unwrap();
    assert!((2..=21).contains(&version), "{said}");
}

#[test]
fn files_that_are_copied_over_a_model_one_by_one_are_all_read_in_the_end() {
    let place = Place::new();
    let (model, other) = (movies(&place, "movies", "1"), movies(&place, "other", "2"));
    let [server, of_other] = [&model, &other].map(|model| Server::start(&[model]));
    let of = |server: &Server| server.ask("/recommend", &json!({ "users": ["u1"], "number": 5 })).1["answers"].take();
    assert_ne!(of(&server), of(&of_other));
    // The manifest first, as it may come with a copy.
    for name in ["model.json", "users.npy", "items.npy", "user_biases.npy", "item_biases.npy"] {
        fs::copy(place.path("other").join(name), place.path("movies").join(name)).unwrap();
        std::thread::sleep(Duration::from_millis(120));
    }
    let begin = Instant::now();
    while of(&server) != of(&of_other) {
        assert!(begin.elapsed() < Duration::from_secs(20), "{} is not {}", of(&server), of(&of_other));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_model_is_called_as_the_link_is_that_leads_to_it() {
    let place = Place::new();
    let release = movies(&place, "release-42", "1");
    std::os::unix::fs::symlink(release, place.path("current")).unwrap();
    let server = Server::start(&[&place.name("current")]);
    assert_eq!(server.ask("/models/current/recommend", &json!({ "users": ["u1"] })).0, 200);
}

#[test]
fn more_answers_than_a_request_may_get_are_refused_before_they_are_made() {
    let place = Place::new();
    let (texts, model) = (place.file("texts.txt", "tea cup tea\nrye oat rye\n".repeat(9)), place.name("topics"));
    done(&["lda", &texts, "-k", "20", "--iterations", "2", "--format", "text", "--model", &model, "-q"]);
    let server = Server::start(&[&model]);
    let of = |count: usize| server.ask("/topics", &json!({ "texts": vec!["tea"; count], "number": 10_000 }));
    // There are no more topics than there are.
    assert_eq!(of(100).0, 200);
    let (status, said) = of(6_000);
    assert_eq!(status, 400, "{said}");
    assert!(said["error"].as_str().unwrap().contains("6000 times 20 answers; expected 100000"), "{said}");
}

#[test]
fn a_question_that_is_not_asked_to_the_end_is_counted() {
    let place = Place::new();
    let model = movies(&place, "my movies", "1");
    let server = Server::start(&[&model, "--time-limit", "0.3"]);
    for path in ["/recommend", "/models/my%20movies/recommend"] {
        assert_eq!(status(&mut half_asked(&server, path)), "408", "{path}");
    }
    let metrics = server.get("/metrics");
    let count = "megagrid_requests_total{model=\"my movies\",question=\"recommend\",status=\"408\"} 2";
    assert!(metrics.contains(count), "{metrics}");
}

/// Sends a question without its end.
fn half_asked(server: &Server, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let begin = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{");
    stream.write_all(begin.as_bytes()).unwrap();
    stream
}

fn status(stream: &mut TcpStream) -> String {
    let mut said = [0; 12];
    stream.read_exact(&mut said).unwrap();
    String::from_utf8_lossy(&said).rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn questions_have_their_time_when_the_server_ends_and_what_is_cut_off_is_told() {
    let place = Place::new();
    let server = Server::start(&[&movies(&place, "movies", "1"), "--time-limit", "11"]);
    // One whose head has no end has no question yet, and so no time of its own.
    let mut headless = TcpStream::connect(&server.address).unwrap();
    headless.write_all(b"POST /recommend HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    let mut asked = half_asked(&server, "/recommend");
    server.get("/health");
    let (code, said) = server.end();
    assert_eq!((code, status(&mut asked)), (Some(0), "408".to_owned()), "{said}");
    assert!(said.contains("requests that were not done in 11 s are cut off: 1"), "{said}");
}

#[test]
fn a_model_whose_directory_is_gone_goes_on_and_is_told() {
    let place = Place::new();
    let model = movies(&place, "movies", "1");
    let server = Server::start(&[&model]);
    fs::rename(&model, place.path("elsewhere")).unwrap();
    let failed = "megagrid_failed_reloads_total{model=\"movies\"} 1";
    let begin = Instant::now();
    while !server.get("/metrics").contains(failed) {
        assert!(begin.elapsed() < Duration::from_secs(20), "{}", server.get("/metrics"));
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.get("/metrics").contains(failed), "it is counted once");
    assert_eq!(server.ask("/recommend", &json!({ "users": ["u1"] })).0, 200);
    let (_, said) = server.end();
    assert_eq!(said.matches("movies goes on as it was").count(), 1, "{said}");
}

#[test]
fn pages_of_other_sites_get_no_answer_from_a_server_without_a_token() {
    let place = Place::new();
    let (model, token) = (movies(&place, "movies", "1"), place.file("token", "a secret\n"));
    let status = |server: &Server, host: &str, headers: &str| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let head = format!("POST /reload HTTP/1.1\r\n{host}{headers}Content-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        self::status(&mut stream)
    };
    let server = Server::start(&[&model, "--allow-host", "models.example.org"]);
    for (host, headers, expected) in [
        ("Host: localhost:80\r\n", "", "200"),
        ("Host: models.example.org\r\n", "Origin: http://127.0.0.1:3000\r\n", "200"),
        ("", "", "200"),
        ("Host: example.org\r\n", "", "403"),
        ("Host: localhost\r\n", "Origin: http://example.org\r\n", "403"),
    ] {
        assert_eq!(status(&server, host, headers), expected, "{host}{headers}");
    }
    let (code, _, said) = server.send("GET", "/models", "Origin: http://example.org\r\n", "");
    assert!(code == 403 && said.contains("--allow-host") && said.starts_with("{\"error\":"), "{said}");
    // What knows the token is no such page.
    let server = Server::start(&[&model, "--token-file", &token]);
    assert_eq!(status(&server, "Host: example.org\r\n", "Authorization: Bearer a secret\r\n"), "200");
    fails(&["serve", &model, "--allow-host", "http://example.org"], 2, &["is no name of a host"]);
}

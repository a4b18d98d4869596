//! What a server stands: many who want models read again, models that are copied into place or linked, answers that would be too many,
//! and questions that are not asked to the end.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::serve::{Server, movies};
use crate::{Place, done};

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
    let model = movies(&place, "movies", "1");
    let server = Server::start(&[&model, "--time-limit", "0.3"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"POST /recommend HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n{").unwrap();
    let mut said = [0; 12];
    stream.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"HTTP/1.1 408");
    let metrics = server.get("/metrics");
    let count = "megagrid_requests_total{model=\"movies\",question=\"recommend\",status=\"408\"} 1";
    assert!(metrics.contains(count), "{metrics}");
}

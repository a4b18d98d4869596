//! Pages in a real browser: what is clicked and typed is shown. Skipped where there is no Chromium.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::serve::{Server, movies};
use crate::{Place, done, fails, lda};

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "headless_shell"];

/// What a script for a page may use: `until` waits for what comes later, `type` fills in a field as somebody would, `say` is what the test sees.
const DRIVER: &str = r#"
const $ = selector => document.querySelector(selector);
const until = async what => { for (;;) { const found = what(); if (found) return found; await new Promise(go => setTimeout(go, 20)); } };
const type = (input, value) => { input.value = value; input.dispatchEvent(new Event("input", { bubbles: true })); };
const say = (name, value) => { said[name] = value; };
const said = {};
"#;

/// Opens a page, runs a script in it, and returns what the script says. `None`: there is no browser.
fn drive(place: &Place, page: &str, script: &str) -> Option<Value> {
    let browser = BROWSERS.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    let Some(browser) = browser else {
        eprintln!("skipped: no Chromium");
        return None;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let driven = format!(
        "{page}\n<script>{DRIVER}(async () => {{ {script} }})().catch(error => say(\"error\", String(error)))\
         .finally(() => fetch(\"http://{address}\", {{ method: \"POST\", mode: \"no-cors\", body: JSON.stringify(said) }}))</script>"
    );
    let (file, profile) = (place.file("driven.html", driven), place.name("profile"));
    let mut window = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-web-security", "--remote-debugging-port=0"])
        .args([&format!("--user-data-dir={profile}"), &format!("file://{file}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut asked = BufReader::new(listener.accept().unwrap().0);
        let mut length = 0;
        for line in asked.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()) {
            length =
                line.to_lowercase().strip_prefix("content-length: ").map_or(length, |found| found.parse().unwrap());
        }
        let mut body = vec![0; length];
        asked.read_exact(&mut body).unwrap();
        // The test may have given up.
        let _ = send.send(body);
    });
    let body = receive.recv_timeout(Duration::from_secs(60));
    let _ = window.kill();
    let _ = window.wait();
    let said: Value = serde_json::from_slice(&body.expect("the script ends within a minute")).unwrap();
    assert_eq!(said["error"], Value::Null, "{said}");
    Some(said)
}

#[test]
fn the_page_of_topics_shows_what_is_chosen() {
    let place = Place::new();
    let model = lda::train(&place, "posts", &[]);
    let page = place.name("topics.html");
    done(&["topics", &model, "--page", &page]);
    let html = fs::read_to_string(&page).unwrap();
    assert!(!html.contains("http://") || !html.replace("http://www.w3.org/2000/svg", "").contains("http://"));
    assert!(!html.contains("https://"), "nothing is from elsewhere");
    let data = html.split_once("<script type=\"application/json\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    // The listing's first topic is the first here.
    let listed = done(&["topics", &model, "-n", "3"]);
    let first = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    assert_eq!(data["topics"][0]["topic"].to_string(), first);
    let tokens: u64 = data["topics"].as_array().unwrap().iter().map(|topic| topic["tokens"].as_u64().unwrap()).sum();
    assert_eq!(data["tokens"].as_u64().unwrap(), tokens);

    let script = r#"
        const words = () => [...document.querySelectorAll(".words tr")].map(row => row.firstChild.textContent);
        say("title", document.title);
        say("circles", document.querySelectorAll("circle").length);
        say("first", $("h2").textContent);
        const last = [...document.querySelectorAll("circle")].at(-1);
        last.dispatchEvent(new Event("click"));
        say("chosen", last.classList.contains("chosen") && $("h2").textContent);
        say("number", $("select").value);
        type($("[name=lambda]"), 1);
        const frequent = words();
        type($("[name=lambda]"), 0);
        say("same", [...frequent].sort().join() === [...words()].sort().join() && frequent.join() === words().join());
        say("weight", $("output").value);
        const word = frequent[0];
        type($("[name=word]"), word);
        say("found", $("[role=status]").textContent);
        type($("[name=word]"), "no such word");
        say("lost", $("[role=status]").textContent);
        const first = $("circle");
        first.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
        say("by key", first.classList.contains("chosen"));
        $(".words button").click();
        say("by word", $("[name=word]").value === words()[0]);
    "#;
    let Some(said) = drive(&place, &html, script) else { return };
    assert_eq!(said["title"], "Topics of posts");
    assert_eq!(said["circles"].as_u64().unwrap() as usize, data["topics"].as_array().unwrap().len());
    assert_eq!(said["first"], format!("Words of topic {first}"));
    assert_eq!(said["chosen"], format!("Words of topic {}", said["number"].as_str().unwrap()));
    assert_eq!((&said["same"], said["weight"].as_str()), (&Value::Bool(false), Some("λ = 0.0")), "{said}");
    assert!(said["found"].as_str().unwrap().contains("% in topic"), "{said}");
    assert!(said["lost"].as_str().unwrap().starts_with("No topic has this word"), "{said}");
    assert_eq!((&said["by key"], &said["by word"]), (&Value::Bool(true), &Value::Bool(true)), "{said}");
}

#[test]
fn a_page_of_topics_goes_with_no_documents() {
    fails(&["topics", "posts", "--page", "p.html", "--documents", "new.txt"], 2, &["--page", "--documents"]);
}

/// A training that ends with this.
struct Shown(Child);

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a training that is shown; returns it and the address of its page.
fn shown(place: &Place, iterations: &str) -> (Shown, String) {
    let ratings = place.ratings();
    let child = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args(["mf", &ratings, "--holdout", "0.2", "--patience", "0", "-w", "2", "--evaluate-every", "1"])
        .args(["--iterations", iterations, "--live=127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let (mut training, mut line) = (Shown(child.unwrap()), String::new());
    BufReader::new(training.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("megagrid: the run is shown at http://").unwrap_or_else(|| panic!("{line}"));
    (training, address.to_owned())
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn whoever_watches_a_run_is_told_of_every_iteration_and_of_the_end() {
    let place = Place::new();
    let (mut training, address) = shown(&place, "2000");
    let told = get(&address, "/run");
    assert!(training.0.wait().unwrap().success());
    let count = |event: &str| told.lines().filter(|line| *line == format!("event: {event}")).count();
    assert_eq!((count("begin"), count("iteration"), count("end")), (1, 2000, 1));
    let last = told.lines().rfind(|line| line.starts_with("data: {\"done\"")).unwrap();
    let last: Value = serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(last["done"]["iteration"], 2000);
    assert!(last["done"]["metrics"]["test_rmse"].as_f64().unwrap() < 1.0, "{last}");
}

#[test]
fn the_page_of_a_run_draws_its_curves() {
    let place = Place::new();
    let (training, address) = shown(&place, "1000000");
    let page = get(&address, "/");
    let page = page.split_once("\r\n\r\n").unwrap().1;
    let page = page[page.find("<!doctype").unwrap()..].replace("\"run\"", &format!("\"http://{address}/run\""));
    let script = r#"
        await until(() => document.querySelector("polyline")?.points.length > 1);
        const first = document.querySelector("polyline").points.length;
        await until(() => document.querySelector("polyline").points.length > first);
        say("moves", true);
        say("title", document.title);
        say("curves", [...document.querySelectorAll("svg")].map(svg => svg.getAttribute("aria-label")));
        say("waiting", document.querySelectorAll("[id=waiting] tr").length);
    "#;
    let said = drive(&place, &page, script);
    drop(training);
    let Some(said) = said else { return };
    assert!(said["title"].as_str().unwrap().starts_with("megagrid mf "), "{said}");
    let curves: Vec<&str> = said["curves"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    for name in ["objective", "test rmse", "million edges a second"] {
        assert!(curves.contains(&name), "no {name} in {curves:?}");
    }
    assert_eq!((&said["moves"], &said["waiting"]), (&Value::Bool(true), &Value::from(2)), "{said}");
}

#[test]
fn a_run_is_shown_to_this_machine_only() {
    let place = Place::new();
    fails(&["mf", &place.ratings(), "--live=0.0.0.0:0"], 2, &["0.0.0.0 can be reached by others", "ssh -L"]);
    fails(&["tune", "mf", &place.ratings(), "--live"], 2, &["--live"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let live = format!("--live={}", taken.local_addr().unwrap());
    let parts = ["is another server there? --live=127.0.0.1:0 takes a free port"];
    fails(&["mf", &place.ratings(), &live], 1, &parts);
    let said = crate::run(&["mf", &place.ratings(), &live]).stderr;
    assert_eq!((said.matches("Address already in use").count(), said.contains("--port")), (1, false), "{said}");
    fails(&["mf", &place.ratings(), "--live=here"], 2, &["--live", "invalid socket address"]);
}

#[test]
fn the_page_of_served_models_asks_them() {
    let place = Place::new();
    let (movies, posts) = (movies(&place, "movies", "1"), lda::train(&place, "posts", &[]));
    let server = Server::start(&[&movies, &posts]);
    // From a file, as a script is added; what it asks for is at the server.
    let page = server.get("/").replace("fetch(path", &format!("fetch(\"http://{}\" + path", server.address));
    let script = r#"
        await until(() => $(".explorer"));
        const sections = [...document.querySelectorAll("section")];
        const titled = title => sections.find(section => section.firstChild.textContent === title);
        const ask = async (title, values) => {
            const section = await until(() => titled(title)), form = section.querySelector("form");
            for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
            section.querySelector("button").click();
            await until(() => section.querySelector("table, .error"));
            return [...section.querySelectorAll("tr")].map(row => row.children[1].textContent);
        };
        say("similar", await ask("What is like an item", { items: "i7", number: "3" }));
        say("recommended", await ask("What a user may like", { users: "u1", number: "2" }));
        const item = titled("What is like an item").querySelector("[name=items]");
        type(item, "i12");
        await until(() => item.labels[0].querySelector("option"));
        say("offered", [...item.labels[0].querySelectorAll("option")].map(option => option.value));
        await ask("What a user may like", { users: "nobody" });
        await until(() => titled("What a user may like").querySelector(".error"));
        say("refused", titled("What a user may like").querySelector(".error").textContent);
        say("new", await ask("What somebody new may like", { people: "i7=5\n\n i3=4.5 \n", number: "2" }));
        say("topics", $(".explorer h2").textContent);
        const map = $(".explorer");
        await send("/reload", {});
        await until(() => $(".explorer") && $(".explorer") !== map);
        say("topics again", $(".explorer h2").textContent);
    "#;
    let Some(said) = drive(&place, &page, script) else { return };
    let similar = done(&["similar", &movies, "i7", "-n", "3"]);
    let similar: Vec<&str> = similar.lines().map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(said["similar"], serde_json::json!(similar), "{said}");
    assert_eq!(said["recommended"].as_array().unwrap().len(), 2, "{said}");
    assert_eq!(said["offered"], serde_json::json!(["i12"]), "{said}");
    assert!(said["refused"].as_str().unwrap().contains("nobody"), "{said}");
    assert_eq!(said["new"].as_array().unwrap().len(), 2, "{said}");
    assert!(said["topics"].as_str().unwrap().starts_with("Words of topic"), "{said}");
    assert_eq!(said["topics again"], said["topics"], "{said}");
}

#[test]
fn the_page_of_served_models_follows_them_and_says_which_are_stale() {
    let place = Place::new();
    let movies = movies(&place, "movies", "1");
    // Any model is older than this.
    let server = Server::start(&[&movies, "--max-age", "0"]);
    let page = server.get("/").replace("fetch(path", &format!("fetch(\"http://{}\" + path", server.address));
    let script = r#"
        await until(() => $("[role=alert]")?.textContent);
        say("stale", $("[role=alert]").textContent);
        say("age", $("[role=alert]").previousSibling.textContent);
        const facts = () => [...document.querySelectorAll("ul li")].map(fact => fact.textContent).join();
        say("before", facts());
        await send("/reload", {});
        await until(() => facts().includes("version: 2"));
        say("is moved", true);
    "#;
    let Some(said) = drive(&place, &page, script) else { return };
    assert!(said["stale"].as_str().unwrap().starts_with("Stale: older than 0 s, which --max-age allows."), "{said}");
    assert!(said["age"].as_str().unwrap().starts_with("Written "), "{said}");
    assert!(said["before"].as_str().unwrap().contains("version: 1"), "{said}");
    assert_eq!(said["is moved"], true, "{said}");
}

//! Pages in a real browser: what is clicked and typed is shown. Skipped where there is no Chromium.

use std::fs;
use std::process::Command;

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
    let driven = format!(
        "{page}\n<pre id=said></pre><script>{DRIVER}(async () => {{ {script} }})().catch(error => say(\"error\", String(error)))\
         .finally(() => $(\"#said\").textContent = JSON.stringify(said).replaceAll(\"&\", \"\"))</script>"
    );
    let (file, profile) = (place.file("driven.html", driven), place.name("profile"));
    let found = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-web-security", "--dump-dom"])
        .args(["--virtual-time-budget=20000", &format!("--user-data-dir={profile}"), &format!("file://{file}")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&found.stdout);
    let said = text.rsplit_once("<pre id=\"said\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let said = said.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&found.stderr))).0;
    let said: Value = serde_json::from_str(said).unwrap_or_else(|error| panic!("{error}: {said}"));
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
        say("topics", $(".explorer h2").textContent);
    "#;
    let Some(said) = drive(&place, &page, script) else { return };
    let similar = done(&["similar", &movies, "i7", "-n", "3"]);
    let similar: Vec<&str> = similar.lines().map(|line| line.split_whitespace().last().unwrap()).collect();
    assert_eq!(said["similar"], serde_json::json!(similar), "{said}");
    assert_eq!(said["recommended"].as_array().unwrap().len(), 2, "{said}");
    assert_eq!(said["offered"], serde_json::json!(["i12"]), "{said}");
    assert!(said["refused"].as_str().unwrap().contains("nobody"), "{said}");
    assert!(said["topics"].as_str().unwrap().starts_with("Words of topic"), "{said}");
}

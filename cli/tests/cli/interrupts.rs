//! Ctrl-C: exit 130, a record of what was done, and no model.
#![cfg(unix)]

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Place, json};

#[test]
fn an_interrupt_ends_after_the_iteration() {
    let place = Place::new();
    for signal in ["-INT", "-TERM"] {
        let (record, model) = (place.name("run.json"), place.name("model"));
        let child = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
            .args([
                "mf",
                &place.ratings(),
                "--iterations",
                "1000000000",
                "--json",
                &record,
                "--model",
                &model,
                "-w",
                "1",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Usually it iterates by then. Before, it ends with the same code and nothing to say.
        std::thread::sleep(Duration::from_millis(500));
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{message}");
        assert!(!place.path("model").exists());
        if message.contains("interrupted after iteration") {
            let record = json(&record);
            assert_eq!(record["result"]["ended_by"], "interrupt");
            assert!(record["result"]["iterations"].as_u64().unwrap() > 0);
        }
    }
}

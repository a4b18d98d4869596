//! What `deploy/` has for machines of others, with programs of a test in the place of theirs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::Place;

/// Runs the script for Slurm to write a model, and returns what it has srun run, word by word, and the variables that this sees.
fn slurm(place: &Place, model: &str) -> (Vec<String>, String) {
    let told = place.name("told");
    let srun = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{told}.words'\nenv > '{told}.variables'\n");
    let srun = place.file("srun", srun);
    fs::set_permissions(&srun, fs::Permissions::from_mode(0o700)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let ran = Command::new("bash")
        .args([concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/slurm.sh"), "corpus", model])
        .env("PATH", format!("{}:{path}", place.path("").display()))
        .env("SLURM_CPUS_PER_TASK", "16")
        .env("MEGAGRID_SECRET", "of who runs it")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let [words, variables] = ["words", "variables"].map(|what| fs::read_to_string(format!("{told}.{what}")).unwrap());
    (words.lines().map(str::to_owned).collect(), variables)
}

#[test]
fn a_job_of_slurm_has_its_processors_its_own_secret_and_its_state_beside_the_model() {
    let place = Place::new();
    fs::create_dir(place.path("models")).unwrap();
    let model = place.name("models/topics");
    for named in [&model, &format!("{model}/")] {
        let (words, variables) = slurm(&place, named);
        assert_eq!(words[..3], ["--cpus-per-task=16", "megagrid", "lda"]);
        let after = |name: &str| &words[words.iter().position(|word| word == name).unwrap() + 1];
        let state = format!("{model}.state");
        assert_eq!((after("--model"), after("--checkpoint"), after("--workers")), (&model, &state, &"16".to_owned()));
        assert!(!place.path("models/topics").exists(), "the command makes it");
        let secrets: Vec<_> = variables.lines().filter(|line| line.starts_with("MEGAGRID_SECRET")).collect();
        assert_eq!(secrets, [format!("MEGAGRID_SECRET_FILE={state}/secret")]);
        assert!(!fs::read(place.path("models/topics.state/secret")).unwrap().is_empty());
    }
}

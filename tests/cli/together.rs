//! Processes that read one input together.

use std::fs;

use crate::{Place, done, json, run};

/// Trains in several processes and returns the bytes of the model's arrays, and the checksum of the data.
fn model(place: &Place, command: &str, input: &str, processes: &str, arrays: &[&str]) -> (Vec<Vec<u8>>, String) {
    let model = place.name("model");
    let options = ["--iterations", "3", "-w", "1", "-q", "--model", &model];
    done(&[&["launch", "-n", processes, "--", command, input], &options[..]].concat());
    let checksum = json(place.path("model/model.json"))["data"]["checksum"].as_str().unwrap().to_owned();
    let arrays = arrays.iter().map(|array| fs::read(place.path(&format!("model/{array}"))).unwrap()).collect();
    fs::remove_dir_all(&model).unwrap();
    (arrays, checksum)
}

#[test]
fn a_text_that_is_read_together_trains_the_model_of_its_cache() {
    let place = Place::new();
    let links: String = (0..4000_u32).map(|at| format!("{} {}\n", at * at % 97, at * 31 % 89)).collect();
    let graph = place.file("links.txt", format!("# from to\n{links}"));
    let inputs = [
        ("mf", place.ratings(), &["users.npy", "items.npy", "users.parquet", "items.parquet"][..]),
        ("pagerank", graph, &["scores.parquet"][..]),
    ];
    for (command, input, arrays) in inputs {
        let cache = place.name(&format!("{command}.mgrid"));
        done(&["convert", &input, &cache]);
        for processes in ["2", "3"] {
            let [of_text, of_cache] = [&input, &cache].map(|input| model(&place, command, input, processes, arrays));
            assert_eq!(of_text.1, of_cache.1, "{command} in {processes} processes");
            assert!(of_text.0 == of_cache.0, "{command} in {processes} processes: other arrays");
        }
        assert_eq!(model(&place, command, &input, "1", arrays).1, model(&place, command, &cache, "2", arrays).1);
    }
}

#[test]
fn a_malformed_line_that_one_process_reads_ends_all() {
    let place = Place::new();
    let mut lines: Vec<String> = (0..1000).map(|at| format!("u{},i{},3.5", at % 30, at % 70)).collect();
    lines[900] = "u1,i2,much".to_owned();
    let ratings = place.file("ratings.csv", lines.join("\n"));
    let ran = run(&["launch", "-n", "3", "--", "mf", &ratings, "-q"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("ratings.csv:901: rating: found \"much\""), "{}", ran.stderr);
}

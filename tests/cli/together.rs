//! Processes that read one input together.

use std::fs;

use megagrid_datasets::output::{Column, write_table};

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

/// Writes inputs of every kind; returns what they are, and the command and the options of each.
fn inputs(place: &Place) -> Vec<(&'static str, Vec<String>)> {
    fs::create_dir(place.path("ratings")).unwrap();
    let lines = |part: u32| (0..700 + 300 * part).map(move |at| (part + at * at % 97, at * 31 % 89, at % 5));
    for part in 0..3 {
        let text: String = lines(part).map(|(user, item, value)| format!("u{user},i{item},{value}.5\n")).collect();
        place.file(&format!("ratings/{part}.csv"), text);
    }
    let edges: Vec<_> = lines(9).collect();
    let column = |of: fn(&(u32, u32, u32)) -> u32| Column::U32(edges.iter().map(of).collect::<Vec<_>>().into());
    fs::create_dir(place.path("links")).unwrap();
    for part in 0..4 {
        let columns = [("source", column(|edge| edge.0)), ("target", column(|edge| edge.1))];
        write_table(&place.path(&format!("links/{part}.parquet")), &columns).unwrap();
    }
    let sample = |at: u32| format!("{} {}:1 {}:{}.5\n", 2 * (at * at % 7 % 2) as i32 - 1, at % 9, 9 + at % 50, at % 4);
    let document = |at: u32| format!("the word{} and word{} of a{}\n", at % 50, at * at % 31, at % 3);
    let samples = place.file("samples.libsvm", (0..900).map(sample).collect::<String>());
    let documents = place.file("documents.txt", (0..600).map(document).collect::<String>());
    let command = |words: &[&str]| -> Vec<String> { words.iter().map(|&word| word.to_owned()).collect() };
    vec![
        ("ratings", command(&["mf", &place.name("ratings")])),
        ("ratings", command(&["mf", &place.name("ratings"), "--holdout", "0.2"])),
        ("graph", command(&["pagerank", &place.name("links")])),
        ("samples", command(&["blockpg", &samples, "--l1", "0.5", "--intercept"])),
        ("corpus", command(&["lda", &documents, "--topics", "8"])),
        ("corpus", command(&["lda", &documents, "--topics", "8", "--sampler", "sparse", "--min-documents", "2"])),
    ]
}

#[test]
fn an_input_that_is_read_in_parts_trains_to_the_bits_of_one_that_is_read_whole() {
    let place = Place::new();
    for (kind, command) in inputs(&place) {
        let cache = place.name("whole.mgrid");
        done(&["convert", &command[1], &cache, "--as", kind]);
        let train = |input: &str, processes: &str| {
            let (model, record) = (place.name("model"), place.name("record.json"));
            let command: Vec<&str> =
                [&command[0], input].into_iter().chain(command[2..].iter().map(String::as_str)).collect();
            let options = ["--iterations", "3", "-w", "1", "-q", "--model", &model, "--json", &record];
            done(&[&["launch", "-n", processes, "--"], &command[..], &options[..]].concat());
            let files = fs::read_dir(&model).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> = files.filter(|path| !path.ends_with("model.json")).collect();
            files.sort();
            assert!(!files.is_empty());
            let bytes: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
            let checksum = json(place.path("model/model.json"))["data"]["checksum"].clone();
            fs::remove_dir_all(&model).unwrap();
            let read = json(place.path("record.json"))["machine"]["read_bytes"].as_array().map_or(0, Vec::len);
            ((files, bytes, checksum), read)
        };
        let (one, _) = train(&command[1], "1");
        for (processes, number) in [("2", 2), ("4", 4)] {
            let (parts, read) = train(&command[1], processes);
            assert!(parts == train(&cache, processes).0, "{command:?} in {processes} processes: another model");
            assert_eq!(parts.2, one.2, "{command:?}: other data in {processes} processes");
            assert_eq!(read, number, "{command:?}");
        }
        fs::remove_file(&cache).unwrap();
    }
}

#[test]
fn a_part_of_a_directory_that_vanishes_ends_all_with_its_name() {
    let place = Place::new();
    fs::create_dir(place.path("ratings")).unwrap();
    (0..3).for_each(|part| drop(place.file(&format!("ratings/{part}.csv"), "u1,i1,3\nu2,i1,4\n".repeat(500))));
    // It is listed, and is not there when it is read.
    fs::remove_file(place.path("ratings/2.csv")).unwrap();
    std::os::unix::fs::symlink(place.path("nowhere"), place.path("ratings/2.csv")).unwrap();
    let ran = run(&["launch", "-n", "2", "--", "mf", &place.name("ratings"), "-q"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("ratings/2.csv: ") && ran.stderr.contains("No such file"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("ratings/2.csv").count(), 1, "{}", ran.stderr);
}

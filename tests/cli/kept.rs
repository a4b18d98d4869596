//! `--cache`: the input is read once, and the next run begins with what was kept of it.

use std::fs;
use std::path::PathBuf;
use std::thread;

use crate::{Place, done, fails, json, run};

/// Returns what is kept.
fn caches(place: &Place) -> Vec<PathBuf> {
    let mut caches: Vec<PathBuf> =
        fs::read_dir(place.path("caches")).unwrap().map(|entry| entry.unwrap().path()).collect();
    caches.sort();
    caches
}

/// Trains, and returns the objectives of all iterations.
fn objectives(place: &Place, command: &[&str]) -> serde_json::Value {
    let (record, caches) = (place.name("record.json"), place.name("caches"));
    done(&[command, &["-q", "-w", "1", "--json", &record, "--cache", &caches]].concat());
    let record = json(record);
    assert!(record["config"]["input"].as_str().unwrap().ends_with(".mgrid"), "{record}");
    record["iterations"].as_array().unwrap().iter().map(|iteration| iteration["objective"].clone()).collect()
}

#[test]
fn runs_are_those_of_the_text() {
    let place = Place::new();
    let ratings = place.ratings();
    let links = place.file("links.txt", "1 2\n2 3\n3 1\n4 1\n4 2\n");
    let samples = place.file("samples.txt", "3 1:1 2:1\n4 2:1 3:1\n3 1:1\n5 3:1 4:1\n");
    let words = place.file("docs.txt", "tea rye tea\nrye oat\noat tea rye\n");
    for command in [
        &["pagerank", &links, "--iterations", "5"][..],
        &["hits", &links, "--iterations", "5"],
        &["mf", &ratings, "--format", "ratings", "--iterations", "3", "--evaluate-every", "1"],
        &["blockpg", &samples, "--positive", "3,5", "--iterations", "4", "--evaluate-every", "1"],
        &["lda", &words, "--format", "text", "-k", "2", "--iterations", "3", "--evaluate-every", "1"],
    ] {
        let plain = place.name("plain.json");
        done(&[command, &["-q", "-w", "1", "--json", &plain]].concat());
        let iterations = json(plain)["iterations"].clone();
        let of_text: serde_json::Value =
            iterations.as_array().unwrap().iter().map(|iteration| iteration["objective"].clone()).collect();
        // The first run keeps what the second one begins with.
        assert_eq!(objectives(&place, command), of_text, "{command:?}");
        assert_eq!(objectives(&place, command), of_text, "{command:?}");
    }
    fails(
        &["lda", &words, "--format", "text", "--lower-case", "--cache", &place.name("caches")],
        2,
        &["leave out --lower-case, --split and --bigrams"],
    );
    // Both kinds of ranking read the graph alike.
    assert_eq!(caches(&place).len(), 4);
}

#[test]
fn another_input_has_another_cache_and_a_damaged_one_is_made_anew() {
    let place = Place::new();
    let links = place.file("links.txt", "1 2\n2 3\n3 1\n");
    let command = ["pagerank", &links, "--iterations", "3"];
    let first = objectives(&place, &command);
    let [cache] = &caches(&place)[..] else { panic!("one cache is kept") };
    let whole = fs::read(cache).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() - 9] ^= 1;
    for content in [&damaged[..], &whole[..whole.len() / 2], b""] {
        fs::write(cache, content).unwrap();
        let ran = run(&[&command[..], &["--cache", &place.name("caches")]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("it is made anew"), "{}", ran.stderr);
        assert_eq!(fs::read(cache).unwrap(), whole);
    }
    place.file("links.txt", "1 2\n2 3\n3 1\n1 3\n");
    assert_ne!(objectives(&place, &command), first);
    assert_eq!(caches(&place).len(), 2);
}

#[test]
fn runs_at_one_time_keep_one_whole_cache() {
    let place = Place::new();
    let ratings = place.ratings();
    let command = ["mf", &ratings, "-q", "--iterations", "2", "--cache", &place.name("caches")];
    for _ in 0..2 {
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| done(&command));
            }
        });
        let [cache] = &caches(&place)[..] else { panic!("one cache is kept, and nothing is left behind") };
        // Once more, where all find it damaged.
        fs::write(cache, b"").unwrap();
    }
    done(&command);
    let [cache] = &caches(&place)[..] else { panic!("one cache is kept") };
    done(&["inspect", cache.to_str().unwrap()]);
    let virtual_workers = [&command[..], &["--virtual-workers", "2", "--clock-cost", "1e-3"]].concat();
    fails(&virtual_workers, 2, &["--cache is for one process"]);
    fails(&["mf", &place.name("none.csv"), "--cache", &place.name("caches")], 1, &["none.csv"]);
    done(&["mf", cache.to_str().unwrap(), "-q", "--iterations", "2", "--cache", &place.name("other")]);
    assert!(!place.path("other").exists(), "a cache is not kept again");
}

/// What is kept has labels and columns as options say; what comes beside it and later is read by these.
#[test]
fn what_comes_beside_and_after_a_cache_is_read_as_its_text_was() {
    let place = Place::new();
    let line = |n: u32| format!("{} {}:1 {}:{}\n", n % 2, 1 + n % 2, 3 + n % 5, 1 + n % 3);
    let lines = |numbers: std::ops::Range<u32>| numbers.map(line).collect::<String>();
    let (train, test) = (place.file("train.libsvm", lines(0..80)), place.file("test.libsvm", lines(80..120)));
    let of = |name: &str, more: &[&str]| {
        let (record, model) = (place.name(&format!("{name}.json")), place.name(name));
        let fit = ["blockpg", &train, "--positive", "0", "--l1", "0.5", "--test", &test, "-w", "1", "-q"];
        done(&[&fit[..], &["--json", &record, "--model", &model], more].concat());
        let quality = done(&["predict", &model, &test, "--quality"]);
        let (metrics, config) =
            (json(record)["result"]["metrics"].take(), json(format!("{model}/model.json"))["config"].take());
        (metrics["test_auc"].clone(), config["positive"].clone(), quality)
    };
    let plain = of("plain", &[]);
    assert_eq!(plain.0, 1.0, "{plain:?}");
    assert_eq!(of("kept", &["--cache", &place.name("caches")]), plain);

    let ratings: String = (0..40).map(|n| format!("{},{},{}\n", n / 6, n % 6, 1 + n % 5)).collect();
    let ratings = place.file("turned.csv", ratings);
    let [model, plain] = ["movies", "plain-movies"].map(|name| place.name(name));
    let fit =
        ["mf", &ratings, "--columns", "user=2,item=1", "--dims", "2", "--iterations", "3", "-w", "1", "-q", "--model"];
    done(&[&fit[..], &[&model, "--cache", &place.name("caches")]].concat());
    done(&[&fit[..], &[&plain]].concat());
    let more = place.file("more.csv", "9,3,4\n");
    let [kept, plain] = [&model, &plain].map(|model| {
        done(&["update", model, &more, "-q"]);
        done(&["recommend", model, "3", "--exclude", &ratings])
    });
    assert_eq!(kept.lines().count(), plain.lines().count());
    assert!(kept.contains("  9\n") && plain.contains("  9\n"), "{kept}{plain}");
    fails(&["update", &model, &ratings], 1, &["turned.csv", "is what the model was trained on"]);
}

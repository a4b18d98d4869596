//! Models: what is written is what `top`, `recommend` and Python read, and the same run writes the same bytes.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use megagrid_datasets::output::{Column, read_npy, read_table};
use megagrid_datasets::{Prepared, read_ratings};
use megagrid_partition::Side;

use crate::{Place, done, fails, json};

/// Ranks a graph by the definition, on dense vectors.
fn power_method(edges: &[(&str, &str)], restart: Option<&str>) -> HashMap<String, f64> {
    let mut names: Vec<&str> = edges.iter().flat_map(|&(from, to)| [from, to]).collect();
    names.sort_unstable();
    names.dedup();
    let out = |name: &str| edges.iter().filter(|(from, _)| *from == name).count() as f64;
    let uniform = 1.0 / names.len() as f64;
    let at = |name: &str| restart.map_or(uniform, |only| if only == name { 1.0 } else { 0.0 });
    let mut x: HashMap<&str, f64> = names.iter().map(|&name| (name, at(name))).collect();
    for _ in 0..200 {
        let dangling: f64 = names.iter().filter(|name| out(name) == 0.0).map(|name| x[name]).sum();
        let mut next: HashMap<&str, f64> =
            names.iter().map(|&name| (name, (0.15 + 0.85 * dangling) * at(name))).collect();
        for &(from, to) in edges {
            *next.get_mut(to).unwrap() += 0.85 * x[from] / out(from);
        }
        x = next;
    }
    x.into_iter().map(|(name, score)| (name.to_owned(), score)).collect()
}

const EDGES: [(&str, &str); 8] =
    [("1", "2"), ("1", "3"), ("2", "3"), ("2", "3"), ("3", "1"), ("4", "4"), ("4", "3"), ("1", "dangling")];

fn scores_of(model: &Path) -> Vec<(String, f32)> {
    let table = read_table(&model.join("scores.parquet")).unwrap();
    let (Column::Strings(ids), Column::F32(scores)) = (&table[0].1, &table[1].1) else { panic!("{table:?}") };
    assert_eq!(read_npy::<f32>(&model.join("scores.npy"), 1).unwrap().values, scores[..]);
    ids.iter().cloned().zip(scores.iter().copied()).collect()
}

#[test]
fn scores_are_those_of_the_definition_under_their_own_names() {
    let place = Place::new();
    for (model, restart) in [("uniform", None), ("personal", Some("3"))] {
        let directory = place.name(model);
        let mut args = vec!["pagerank", "graph", "--model", &directory, "--tolerance", "1e-9", "-w", "2", "-q"];
        let graph = place.graph();
        args[1] = &graph;
        args.extend(restart.iter().flat_map(|only| ["--restart", only]));
        done(&args);
        let expected = power_method(&EDGES, restart);
        let scores = scores_of(&place.path(model));
        assert_eq!(scores.len(), 5);
        assert!(scores.windows(2).all(|pair| pair[0].1 >= pair[1].1), "best first");
        for (name, score) in scores {
            assert!((f64::from(score) - expected[&name]).abs() < 1e-6, "{name}: {score}, {}", expected[&name]);
        }
    }
    let top = done(&["top", &place.name("uniform"), "-n", "2"]);
    assert_eq!(top.lines().count(), 2);
    let best = &scores_of(&place.path("uniform"))[0].0;
    assert!(top.lines().next().unwrap().ends_with(&format!("  {best}")), "{top}");
}

#[test]
fn what_is_predicted_is_what_was_learnt() {
    let place = Place::new();
    let (ratings, model) = (place.ratings(), place.name("model"));
    let mf = ["mf", &ratings, "--model", &model, "--dims", "4", "--lambda", "0.01"];
    done(&[&mf[..], &["--biases", "--iterations", "60", "-q"]].concat());
    let manifest = json(place.path("model").join("model.json"));
    assert_eq!(manifest["kind"], "mf");
    assert_eq!(manifest["shapes"]["users.npy"], serde_json::json!([40, 4]));
    assert_eq!(manifest["data"]["edges"], 960);
    assert_eq!(read_npy::<f32>(&place.path("model").join("item_biases.npy"), 1).unwrap().values.len(), 30);

    let rated: HashMap<String, f64> = fs::read_to_string(&ratings)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("u3,"))
        .map(|line| line.split_once(',').unwrap())
        .map(|(item, rating)| (item.to_owned(), rating.parse().unwrap()))
        .collect();
    let all = done(&["recommend", &model, "u3", "-n", "100"]);
    assert_eq!(all.lines().count(), 30);
    let fields = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let predicted: HashMap<&str, f64> = fields.map(|fields| (fields[2], fields[1].parse().unwrap())).collect();
    for (item, rating) in &rated {
        assert!((predicted[&item[..]] - rating).abs() < 0.25, "{item}: {}, rated {rating}", predicted[&item[..]]);
    }
    let unseen = done(&["recommend", &model, "u3", "-n", "100", "--exclude", &ratings]);
    assert_eq!(unseen.lines().count(), 30 - rated.len());
    assert!(unseen.lines().all(|line| !rated.contains_key(line.split_whitespace().last().unwrap())));
}

#[test]
fn the_same_run_writes_the_same_bytes() {
    let place = Place::new();
    let ratings = place.ratings();
    for workers in ["1", "2"] {
        for gradient in ["in-place", "batch"] {
            let factors = |run: &str| {
                let model = place.name(&format!("{run}-{workers}-{gradient}"));
                done(&["mf", &ratings, "--model", &model, "-w", workers, "--gradient", gradient, "-q", "--seed", "5"]);
                fs::read(Path::new(&model).join("users.npy")).unwrap()
            };
            assert_eq!(factors("first"), factors("second"), "{workers} workers, {gradient}");
        }
    }
    let model = place.name("other-seed");
    done(&["mf", &ratings, "--model", &model, "-w", "1", "-q", "--seed", "6"]);
    assert_ne!(fs::read(Path::new(&model).join("users.npy")).unwrap(), {
        fs::read(place.path("first-1-in-place").join("users.npy")).unwrap()
    });
}

#[test]
fn a_cache_trains_as_its_text() {
    let place = Place::new();
    let text = place.ratings();
    let prepared = Prepared::new(read_ratings(&text, None).unwrap().in_degree_order(), &[Side::Left, Side::Right]);
    prepared.write_cache(place.path("r.mgrid")).unwrap();
    for holdout in [None, Some("0.2")] {
        let trained = |input: &str, model: &str| {
            let directory = place.name(model);
            let mut args = vec!["mf", input, "--model", &directory, "-w", "1", "-q", "--iterations", "5"];
            args.extend(holdout.iter().flat_map(|part| ["--holdout", part]));
            done(&args);
            let (users, model) =
                (fs::read(place.path(model).join("users.npy")), json(place.path(model).join("model.json")));
            fs::remove_dir_all(&directory).unwrap();
            (users.unwrap(), model["data"].clone(), model["metrics"].clone())
        };
        assert_eq!(trained(&text, "of-text"), trained(&place.name("r.mgrid"), "of-cache"), "holdout {holdout:?}");
    }
}

#[test]
fn ratings_of_unknown_users_are_tested_by_the_mean() {
    let place = Place::new();
    let ratings = place.file("r.csv", "a,x,2\na,y,4\nb,x,2\nb,y,4\n");
    let test = place.file("t.csv", "nobody,nothing,5\n");
    let path = place.name("run.json");
    done(&["mf", &ratings, "--test", &test, "--json", &path, "-q", "--iterations", "2", "-w", "1"]);
    let error = json(&path)["result"]["metrics"]["test_rmse"].as_f64().unwrap();
    assert!((error - 2.0).abs() < 1e-6, "the mean is 3 and the rating 5: {error}");
}

#[test]
fn models_that_are_none_are_refused() {
    let place = Place::new();
    let model = place.name("ranks");
    done(&["pagerank", &place.graph(), "--model", &model, "-q"]);
    fails(&["recommend", &model, "1"], 1, &["a model of kind pagerank, expected mf"]);
    fails(&["top", &place.name("none")], 1, &["none", "No such file"]);
    fs::write(place.path("ranks").join("model.json"), "{}").unwrap();
    fails(&["top", &model], 1, &["model.json: expected a directory that --model wrote"]);
    let model = place.name("mf");
    done(&["mf", &place.ratings(), "--model", &model, "-q", "--iterations", "1"]);
    fails(&["recommend", &model, "nobody"], 1, &["user \"nobody\" is not among the 40 users"]);
    let whole = fs::read(place.path("mf").join("items.npy")).unwrap();
    fs::write(place.path("mf").join("items.npy"), &whole[..whole.len() / 2]).unwrap();
    fails(&["recommend", &model, "u1"], 1, &["items.npy"]);
}

#[test]
fn python_opens_models() {
    let place = Place::new();
    done(&["mf", &place.ratings(), "--model", &place.name("mf"), "--dims", "5", "-q"]);
    done(&["pagerank", &place.graph(), "--model", &place.name("ranks"), "-q"]);
    // What README shows, for a user that is there.
    let readme = include_str!("../../README.md").split_once("```python\n").unwrap().1.split_once("```").unwrap().0;
    let shown = readme.replace("movies", "mf").replace("196", "'u3'");
    let best = done(&["recommend", &place.name("mf"), "u3"]);
    let best: Vec<&str> = best.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let numpy = "users = numpy.load('mf/users.npy'); assert users.shape == (40, 5) and users.dtype == 'float32'\n\
                 scores = numpy.load('ranks/scores.npy'); assert abs(scores.sum() - 1) < 1e-6\n";
    let pandas = "ids = pandas.read_parquet('mf/users.parquet'); assert set(ids['id']) == {f'u{n}' for n in range(40)}\n\
                  ranks = pandas.read_parquet('ranks/scores.parquet'); assert abs(ranks['score'].sum() - 1) < 1e-6\n\
                  assert ranks['score'].is_monotonic_decreasing\n";
    let shown = format!("{shown}assert list(pandas.Series(ratings, items).nlargest(10).index) == {best:?}\n");
    for (packages, code) in [("numpy", numpy), ("pandas, pyarrow", pandas), ("numpy, pandas, pyarrow", &shown[..])] {
        place.python(packages, code);
    }
}

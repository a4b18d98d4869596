//! PageRank by weights, both ways, from chosen vertices: against the definition on dense vectors, in any combination.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use megagrid_datasets::output::{Column, read_table, write_table};

use crate::{Place, done, fails, json, run};

/// Repeated links, also the other way round, a loop, links that weigh nothing, and a vertex whose links all do.
const LINKS: [(&str, &str, f64); 11] = [
    ("ann", "bob", 2.0),
    ("ann", "cid", 0.5),
    ("bob", "ann", 1.0),
    ("bob", "cid", 3.0),
    ("bob", "cid", 0.25),
    ("cid", "cid", 4.0),
    ("cid", "dan", 1.5),
    ("dan", "eve", 0.0),
    ("eve", "ann", 1e-3),
    ("fay", "ann", 7.0),
    ("ann", "gus", 0.0),
];
const RESTARTS: [(&str, f64); 3] = [("cid", 1.0), ("gus", 2.5), ("fay", 0.5)];

type Scores = BTreeMap<String, f64>;

/// Which options are given.
#[derive(Clone, Copy, Debug)]
struct Combination {
    weights: bool,
    undirected: bool,
    restart: bool,
}

impl Combination {
    fn all() -> impl Iterator<Item = Self> {
        (0..8).map(|bits| Self { weights: bits & 1 > 0, undirected: bits & 2 > 0, restart: bits & 4 > 0 })
    }

    fn arguments(self, restart: &str) -> Vec<&str> {
        let given = [(self.weights, "--weights"), (self.undirected, "--undirected"), (self.restart, "--restart")];
        let given = given.into_iter().filter_map(|(is_given, option)| is_given.then_some(option));
        given.chain(self.restart.then_some(restart)).collect()
    }

    /// Ranks by the definition, by repeated multiplication with a dense matrix; `restarts` says where, if that is not anywhere.
    fn by_definition(self, restarts: &[(&str, f64)]) -> Scores {
        let mut names: Vec<&str> = LINKS.iter().flat_map(|&(from, to, _)| [from, to]).collect();
        names.sort_unstable();
        names.dedup();
        let (n, at) = (names.len(), |name: &str| names.iter().position(|&known| known == name).unwrap());
        let mut matrix = vec![vec![0.0; n]; n];
        for (from, to, weight) in LINKS {
            let (from, to, weight) = (at(from), at(to), if self.weights { weight } else { 1.0 });
            matrix[from][to] += weight;
            if self.undirected && from != to {
                matrix[to][from] += weight;
            }
        }
        let mut restart = vec![if self.restart { 0.0 } else { 1.0 / n as f64 }; n];
        for (name, weight) in restarts.iter().filter(|_| self.restart) {
            restart[at(name)] = weight / restarts.iter().map(|(_, weight)| weight).sum::<f64>();
        }
        for row in &mut matrix {
            let sum: f64 = row.iter().sum();
            row.iter_mut().zip(&restart).for_each(|(to, chance)| *to = if sum > 0.0 { *to / sum } else { *chance });
        }
        let mut scores = restart.clone();
        for _ in 0..500 {
            let followed = |to: usize| (0..n).map(|from| scores[from] * matrix[from][to]).sum::<f64>();
            scores = (0..n).map(|to| 0.85 * followed(to) + 0.15 * restart[to]).collect();
        }
        names.into_iter().map(str::to_owned).zip(scores).collect()
    }
}

/// Writes the links with their weights, and where to restart.
fn files(place: &Place) -> [String; 2] {
    let links: String = LINKS.iter().map(|(from, to, weight)| format!("{from} {to} {weight}\n")).collect();
    let restart: String = RESTARTS.iter().map(|(name, weight)| format!("{name}\t{weight}\n")).collect();
    [place.file("links.txt", links), place.file("restart.txt", format!("# where\n{restart}"))]
}

fn scores_of(model: impl AsRef<Path>) -> Scores {
    let table = read_table(&model.as_ref().join("scores.parquet")).unwrap();
    let [(_, ids), (_, Column::F32(scores))] = &table[..] else { panic!("{table:?}") };
    let ids: Vec<String> = match ids {
        Column::U64(ids) => ids.iter().map(u64::to_string).collect(),
        Column::Strings(ids) => ids.to_vec(),
        other => panic!("{other:?}"),
    };
    ids.into_iter().zip(scores.iter().map(|&score| f64::from(score))).collect()
}

/// Returns the scores of a model, which makes room for another.
fn taken(model: &str) -> Scores {
    let scores = scores_of(model);
    fs::remove_dir_all(model).unwrap();
    scores
}

fn assert_close(found: &Scores, expected: &Scores, what: &str) {
    assert!(found.keys().eq(expected.keys()), "{what}: {found:?}");
    for (name, score) in found {
        assert!((score - expected[name]).abs() < 1e-6, "{what}: {name}: {score}, expected {}", expected[name]);
    }
}

#[test]
fn every_combination_is_what_the_definition_says_in_one_process_and_in_two() {
    let place = Place::new();
    let [links, restart] = files(&place);
    for combination in Combination::all() {
        let expected = combination.by_definition(&RESTARTS);
        let command =
            [&["pagerank", &links, "--tolerance", "1e-9", "-q"], &combination.arguments(&restart)[..]].concat();
        for (run, before) in [("one", &[][..]), ("two", &["launch", "-n", "2", "--"])] {
            let model = place.name(&format!("{run} {combination:?}"));
            done(&[before, &command, &["-w", "2", "--model", &model]].concat());
            assert_close(&scores_of(&model), &expected, &format!("{combination:?} in {run}"));
        }
        let best = expected.iter().max_by(|(_, one), (_, other)| one.total_cmp(other)).unwrap().0;
        let top = done(&["top", &place.name(&format!("one {combination:?}")), "-n", "1"]);
        assert!(top.ends_with(&format!("  {best}\n")), "{top}");
    }
}

/// Sets of vertices to restart at, as the lines of a file and as weights.
const SETS: [(&str, &[(&str, f64)]); 4] = [
    ("ann", &[("ann", 1.0)]),
    ("gus:2.5, cid, fay:0.5", &[("gus", 2.5), ("cid", 1.0), ("fay", 0.5)]),
    ("dan eve", &[("dan", 1.0), ("eve", 1.0)]),
    ("bob\tbob\tann:2", &[("bob", 2.0), ("ann", 2.0)]),
];

/// Returns the scores of each set, and their mean, of a model.
fn scores_of_sets(model: &str) -> Vec<Scores> {
    let table = read_table(&Path::new(model).join("scores.parquet")).unwrap();
    let Column::Strings(ids) = &table[0].1 else { panic!("{table:?}") };
    let titles: Vec<&str> = table.iter().map(|(title, _)| &title[..]).collect();
    assert_eq!(titles, ["id", "score", "score_1", "score_2", "score_3", "score_4"]);
    let of = |(_, column): &(String, Column<'static>)| {
        let Column::F32(scores) = column else { panic!("{column:?}") };
        ids.iter().cloned().zip(scores.iter().map(|&score| f64::from(score))).collect()
    };
    table[1..].iter().map(of).collect()
}

#[test]
fn sets_of_restarts_are_ranked_together_as_each_by_itself() {
    let place = Place::new();
    let [links, _] = files(&place);
    let sets = place.file("sets.txt", SETS.map(|(line, _)| line).join("\n"));
    for combination in Combination::all().filter(|combination| combination.restart) {
        let mut expected: Vec<Scores> = SETS.iter().map(|(_, set)| combination.by_definition(set)).collect();
        let mean = |name: &String| expected.iter().map(|scores| scores[name]).sum::<f64>() / 4.0;
        expected.insert(0, expected[0].keys().map(|name| (name.clone(), mean(name))).collect());
        let without = Combination { restart: false, ..combination }.arguments("");
        let command = [&["pagerank", &links, "--restart-sets", &sets, "-q", "-w", "2"], &without[..]].concat();
        for (run, before) in [("one", &[][..]), ("two", &["launch", "-n", "2", "--"])] {
            let model = place.name(&format!("{run} {combination:?}"));
            done(&[before, &command, &["--tolerance", "1e-9", "--model", &model]].concat());
            for (at, (found, expected)) in scores_of_sets(&model).iter().zip(&expected).enumerate() {
                assert_close(found, expected, &format!("column {at} of {combination:?} in {run}"));
            }
            let best = expected[3].iter().max_by(|(_, one), (_, other)| one.total_cmp(other)).unwrap().0;
            let top = done(&["top", &model, "-n", "1", "--set", "3"]);
            assert!(top.ends_with(&format!("  {best}\n")), "{top}");
        }
        // A run that is continued, with the same sets only.
        let (saved, [whole, rest]) = (place.name("saved"), ["whole", "rest"].map(|name| place.name(name)));
        let exact = [&command[..], &["--tolerance", "0"]].concat();
        done(&[&exact[..], &["--iterations", "3", "--checkpoint", &saved]].concat());
        done(&[&exact[..], &["--iterations", "7", "--model", &whole]].concat());
        done(&[&exact[..], &["--iterations", "7", "--resume", &saved, "--model", &rest]].concat());
        assert_eq!(scores_of_sets(&whole), scores_of_sets(&rest));
        [whole, rest, saved].iter().for_each(|directory| fs::remove_dir_all(directory).unwrap());
    }
}

#[test]
fn a_set_loses_no_link_of_many() {
    let place = Place::new();
    const LEAVES: usize = 70_000;
    let links = place.file("star.txt", (1..=LEAVES).map(|leaf| format!("0 {leaf}\n{leaf} 0\n")).collect::<String>());
    let sets = place.file("sets.txt", "0\n0\n");
    let model = place.name("model");
    done(&["pagerank", &links, "--restart-sets", &sets, "-q", "--iterations", "90", "--model", &model]);
    let table = read_table(&Path::new(&model).join("scores.parquet")).unwrap();
    for title in ["score_1", "score_2"] {
        let (_, Column::F32(scores)) = table.iter().find(|(name, _)| name == title).unwrap() else { panic!("{title}") };
        // The surfer who restarts at the centre is there every other step, and after restarts: 1 / (1 + 0.85).
        assert!((f64::from(scores[0]) - 1.0 / 1.85).abs() < 1e-5, "{}", scores[0]);
    }
}

#[test]
fn what_sets_of_restarts_cannot_be_is_told() {
    let place = Place::new();
    let [links, restart] = files(&place);
    let sets = place.file("sets.txt", "ann\nbob xaver\n");
    fails(
        &["pagerank", &links, "--weights", "--restart-sets", &sets],
        1,
        &["sets.txt:2: vertex to restart at: found \"xaver\""],
    );
    fails(&["pagerank", &links, "--restart-sets", &sets, "--restart", &restart], 2, &["--restart"]);
    let sets = place.file("sets.txt", "ann\nbob\n");
    let (model, plain) = (place.name("model"), place.name("plain"));
    let rank = ["pagerank", &links, "--weights", "--restart-sets", &sets, "-q"];
    done(&[&rank[..], &["--model", &model]].concat());
    done(&["pagerank", &links, "--weights", "-q", "--model", &plain]);
    fails(&["top", &model, "--set", "3"], 2, &["there is no set 3; the model has the sets 1 to 2"]);
    fails(&["top", &plain, "--set", "1"], 2, &["the model has no sets"]);
    fails(&[&rank[..], &["--from", &plain]].concat(), 2, &["--from"]);
    // A model in which the pages that there are have no score is nothing to begin at.
    let (start, pairs) = (place.file("start.txt", "a\n"), place.file("pairs.txt", "a b\nc d\n"));
    let apart = place.name("apart");
    done(&["pagerank", &pairs, "--restart", &start, "--model", &apart, "-q"]);
    done(&["pagerank", &place.file("rest.txt", "c d\n"), "--from", &apart, "-q"]);
    fails(&["update", &model, &links], 2, &["--restart-sets is not updated"]);
    let saved = place.name("saved");
    done(&[&rank[..], &["--iterations", "2", "--checkpoint", &saved]].concat());
    fs::write(place.path("sets.txt"), "bob\nann\n").unwrap();
    fails(&[&rank[..], &["--resume", &saved]].concat(), 1, &["restart_checksum"]);
}

#[test]
fn a_run_is_continued_with_the_same_options_only() {
    let place = Place::new();
    let [links, restart] = files(&place);
    let given = ["--weights", "--undirected", "--restart", &restart, "--tolerance", "0", "-q", "-w", "1"];
    let ranked = |model: &str, more: &[&str]| {
        let model = place.name(model);
        done(&[&["pagerank", &links, "--model", &model][..], &given, more].concat());
        scores_of(model)
    };
    let saved = place.name("saved");
    let record = place.name("run.json");
    ranked("half", &["--iterations", "4", "--checkpoint", &saved, "--json", &record]);
    let whole = ranked("whole", &["--iterations", "9"]);
    assert_eq!(ranked("rest", &["--iterations", "9", "--resume", &saved]), whole);
    let config = &json(&record)["config"];
    assert_eq!((&config["weights"], &config["undirected"]), (&true.into(), &true.into()), "{config}");
    assert!(config["restart"].as_str().is_some_and(|file| file.ends_with("restart.txt")), "{config}");
    let resume = ["pagerank", &links, "--iterations", "9", "--resume", &saved, "-q"];
    let resumed = |more: &[&str], part: &str| {
        let ran = run(&[&resume[..], more].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("its checkpoints are of a run with {part} ")), "{}", ran.stderr);
    };
    resumed(&["--undirected", "--restart", &restart], "weights");
    resumed(&["--weights", "--restart", &restart], "undirected");
    resumed(&["--weights", "--undirected"], "restart_checksum");
    // The name of the file may change, what it says may not.
    let same = place.file("same.txt", "gus 5\nfay 1\ncid 2\n");
    done(&[&resume[..], &["--weights", "--undirected", "--restart", &same]].concat());
    let other = place.file("other.txt", "gus 5\n");
    resumed(&["--weights", "--undirected", "--restart", &other], "restart_checksum");
}

#[test]
fn any_table_with_weights_is_the_same_graph() {
    let place = Place::new();
    let [links, _] = files(&place);
    let ranked = |input: &str, more: &[&str]| {
        let model = place.name("ranks");
        done(&[&["pagerank", input, "--weights", "-q", "-w", "1", "--model", &model], more].concat());
        taken(&model)
    };
    let expected = ranked(&links, &[]);
    let table = |header: &str, line: &dyn Fn(&(&str, &str, f64)) -> String| {
        header.to_owned() + &LINKS.iter().map(|link| line(link) + "\n").collect::<String>()
    };
    let known = place.file("known.csv", table("target,weight,source\n", &|(from, to, w)| format!("{to},{w},{from}")));
    assert_eq!(ranked(&known, &[]), expected);
    let named = place.file("named.csv", table("to;kg;from;at\n", &|(from, to, w)| format!("{to};{w};{from};9")));
    assert_eq!(ranked(&named, &["--columns", "from=from,to=to,weight=kg"]), expected);
    assert_eq!(ranked(&named, &["--columns", "from=3,to=1,weight=2"]), expected);
    let lines = |(from, to, w): &(&str, &str, f64)| format!(r#"{{"w": {w}, "a": "{from}", "b": "{to}"}}"#);
    let lines = place.file("links.jsonl", table("", &lines));
    assert_eq!(ranked(&lines, &["--columns", "from=a,to=b,weight=w"]), expected);
    let ends = |of: fn(&(&'static str, &'static str, f64)) -> &'static str| {
        Column::Strings(LINKS.iter().map(|link| of(link).to_owned()).collect())
    };
    let weights = Column::F64(LINKS.iter().map(|link| link.2).collect::<Vec<_>>().into());
    let columns = [("from", ends(|link| link.0)), ("weight", weights), ("to", ends(|link| link.1))];
    write_table(&place.path("links.parquet"), &columns).unwrap();
    assert_eq!(ranked(&place.name("links.parquet"), &[]), expected);
}

#[test]
fn undirected_links_are_those_of_the_file_with_both_ways() {
    let place = Place::new();
    let line = |(from, to, weight): (u32, u32, f32)| format!("{from} {to} {weight}\n");
    let links: Vec<(u32, u32, f32)> =
        (0..400_u32).map(|at| (at * at % 83, at * 31 % 71, (at % 5) as f32 / 2.0)).collect();
    let one_way = place.file("one.txt", links.iter().copied().map(line).collect::<String>());
    let back = |&(from, to, weight): &(u32, u32, f32)| (from != to).then_some((to, from, weight));
    let both = |link: &(u32, u32, f32)| [Some(*link), back(link)].into_iter().flatten();
    let both_ways = place.file("both.txt", links.iter().flat_map(both).map(line).collect::<String>());
    let cache = place.name("one.mgrid");
    done(&["convert", &one_way, &cache, "--as", "graph"]);
    let scores = |input: &str, more: &[&str]| {
        let model = place.name("ranks");
        done(&[&["pagerank", input, "-q", "-w", "1", "--model", &model], more].concat());
        taken(&model)
    };
    for more in [&[][..], &["--weights"]] {
        assert_eq!(scores(&one_way, &[more, &["--undirected"]].concat()), scores(&both_ways, more), "{more:?}");
    }
    assert_close(&scores(&cache, &["--undirected"]), &scores(&both_ways, &[]), "a cache");
    assert_close(
        &scores(&one_way, &["--undirected", "--cache", &place.name("kept")]),
        &scores(&both_ways, &[]),
        "kept",
    );
    // A symmetric matrix has both ways already.
    let matrix = |kind: &str, entries: &str| {
        place.file(&format!("{kind}.mtx"), format!("%%MatrixMarket matrix coordinate real {kind}\n3 3 3\n{entries}"))
    };
    let [symmetric, general] = ["symmetric", "general"].map(|kind| matrix(kind, "1 1 2\n2 1 3\n3 2 0.5\n"));
    for more in [&["--weights"][..], &["--weights", "--undirected"]] {
        assert_eq!(scores(&symmetric, more), scores(&general, &["--weights", "--undirected"]), "{more:?}");
    }
}

#[test]
fn what_is_wrong_with_weights_and_restarts_is_named() {
    let place = Place::new();
    let graph = place.graph();
    let bad =
        |name: &str, text: &str, parts: &[&str]| fails(&["pagerank", &place.file(name, text), "--weights"], 1, parts);
    bad(
        "negative.txt",
        "1 2 0.5\n2 3 -1\n",
        &["negative.txt:2: weight: found \"-1\", expected a finite number, 0 or above"],
    );
    bad("nan.txt", "1 2 0.5\n\n2 3 nan\n", &["nan.txt:3: weight: found \"nan\""]);
    bad("huge.txt", "1 2 1e39\n2 3 1\n", &["huge.txt:1: weight: found \"1e39\""]);
    bad("word.txt", "1 2 0.5\n2 3 much\n", &["word.txt:2: weight: found \"much\""]);
    bad("comma.txt", "1\t2\t0,5\n2\t3\t0,5\n", &["comma.txt:1: weight", "use a decimal point"]);
    bad("none.txt", "1 2\n2 3\n", &["none.txt:1: edge: found \"1 2\"", "and a number"]);
    bad("large.txt", "1 2 1e30\n2 3 1\n", &["weights of the links out of \"1\" sum to 1.000e30", "scale all weights"]);
    bad("m.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 -3\n", &["m.mtx:3: weight: found \"-3\""]);
    let weighted = place.file("weighted.csv", "from,to,weight\n1,2,3\n");
    fails(&["pagerank", &weighted, "--columns", "weight=3"], 1, &["--columns says which is weight", "from, to"]);
    let cache = place.name("graph.mgrid");
    done(&["convert", &graph, &cache]);
    fails(&["pagerank", &cache, "--weights"], 1, &["graph.mgrid", "holds no weights; leave out --weights"]);
    fails(
        &["pagerank", &weighted, "--weights", "--cache", &place.name("kept")],
        2,
        &["leave out --cache or --weights"],
    );

    let restart = |name: &str, text: &str, parts: &[&str]| {
        fails(&["pagerank", &graph, "--restart", &place.file(name, text)], 1, parts);
    };
    restart("unknown.txt", "1\nnobody\n", &["unknown.txt:2: vertex to restart at: found \"nobody\""]);
    restart("empty.txt", "# nobody\n\n", &["empty.txt: no vertices in it"]);
    restart("negative.txt", "dangling 1\n1 -2\n", &["negative.txt:2: weight: found \"-2\""]);
    restart("zero.txt", "1 0\n2 0\n", &["zero.txt: sum of the weights of restarts is 0"]);
    fails(&["pagerank", &graph, "--restart", &place.name("none")], 1, &["none: No such file"]);
}

//! Implicit feedback as its user sees it: rankings, models that answer, and all that the other algorithms have.

use std::fs;
use std::path::Path;

use megagrid_datasets::output::read_npy;

use crate::{Place, done, fails, json, run};

/// Users of two kinds, who each use most items of their kind.
fn plays() -> String {
    let pairs = (0..40).flat_map(|user| {
        (0..20).filter(move |item| user % 2 == item % 2 && (user + item) % 7 > 0).map(move |item| (user, item))
    });
    pairs.map(|(user, item)| format!("u{user},i{item},{}\n", 1 + (user + item) % 3)).collect()
}

#[test]
fn what_a_user_may_want_is_ranked_and_recommended() {
    let place = Place::new();
    let input = place.file("plays.csv", plays());
    let (model, record) = (place.name("songs"), place.name("run.json"));
    let als = ["als", &input, "--dims", "4", "-w", "2", "-q"];
    done(&[&als[..], &["--holdout-per-user", "1", "--ranking", "8", "--model", &model, "--json", &record]].concat());
    let found = json(&record);
    for name in ["test_recall", "test_ndcg", "test_map", "test_mrr", "test_hit_rate", "test_coverage"] {
        assert!(found["result"]["metrics"][name].as_f64().unwrap() > 0.0, "{name}: {found}");
    }
    assert!(found["result"]["metrics"]["test_recall"].as_f64().unwrap() > 0.9, "of eight the items of a kind: {found}");
    let objectives: Vec<f64> =
        found["iterations"].as_array().unwrap().iter().map(|one| one["objective"].as_f64().unwrap()).collect();
    assert!(objectives.is_sorted_by(|a, b| a > b), "{objectives:?}");
    // User 0 has even items, of which (0 + item) % 7 = 0 are left: 0 and 14.
    let best = done(&["recommend", &model, "u0", "-n", "2", "--exclude", &input]);
    assert!(best.contains("  i0\n") && best.contains("  i14\n"), "{best}");
    // Ratings above a bound; those of mf are ranked as well.
    done(&[&als[..], &["--ratings-above", "1.5", "--holdout", "0.2", "--json", &record]].concat());
    assert!(json(&record)["result"]["metrics"]["test_ndcg"].as_f64().unwrap() > 0.0);
    done(&["mf", &input, "--holdout", "0.2", "--ranking", "5", "--iterations", "3", "-q", "--json", &record]);
    assert!(json(&record)["result"]["metrics"]["test_hit_rate"].is_number());
}

/// Pairs of users and items, or a log without a column of what they are worth, are feedback of 1.
#[test]
fn pairs_count_as_one() {
    let place = Place::new();
    let pairs: Vec<String> =
        plays().lines().map(|line| line.rsplit_once(',').unwrap().0.replace(',', " ") + "\n").collect();
    let ones: String = pairs.iter().map(|pair| pair.trim().replace(' ', ",") + ",1\n").collect();
    let log: String =
        pairs.iter().enumerate().map(|(at, pair)| format!("{},{at}\n", pair.trim().replace(' ', ","))).collect();
    let (pairs, ones) = (place.file("pairs.txt", pairs.concat()), place.file("ones.csv", ones));
    let log = place.file("log.csv", format!("user,item,time\n{log}"));
    let of = |name: &str, input: &str, more: &[&str]| {
        let model = place.name(name);
        let als = ["als", input, "--dims", "4", "--iterations", "3", "-w", "1", "-q", "--model", &model];
        done(&[&als[..], more].concat());
        (fs::read(format!("{model}/items.npy")).unwrap(), model)
    };
    let (expected, _) = of("of-ones", &ones, &[]);
    let (found, model) = of("of-pairs", &pairs, &[]);
    assert_eq!(found, expected);
    assert_eq!(of("of-log", &log, &["--columns", "rating=none"]).0, expected);
    fails(&["als", &log], 1, &["log.csv", "rating=none where each line counts as 1", "1 user, 2 item, 3 time"]);
    done(&["als", &log, "--columns", "rating=none", "--holdout-last", "1", "--dims", "4", "--iterations", "2", "-q"]);
    // So are those of people who are placed by them, what is left out, and what arrives later.
    let theirs = place.file("theirs.txt", "new i1\nnew i3\n");
    let best = done(&["recommend", &model, "--fold-in", &theirs, "-n", "3"]);
    assert!(!best.contains(",i1,") && !best.contains(",i3,") && best.lines().count() == 4, "{best}");
    let best = done(&["recommend", &model, "u0", "-n", "2", "--exclude", &pairs]);
    assert!(best.contains("  i0\n") && best.contains("  i14\n"), "{best}");
    done(&["update", &model, &theirs, "-q"]);
    assert_eq!(json(place.name("of-pairs/model.json"))["config"]["columns"], "rating=none");
    let named = place.file("named.csv", "who,what\nann,tea\nbob,rye\nann,oat\n");
    done(&["als", &named, "--columns", "user=who,item=what", "--dims", "4", "--iterations", "2", "-q"]);
    fails(&["mf", &pairs], 1, &["pairs.txt", "edges"]);
}

/// A log of plays is the same feedback as the plays of each pair, counted.
#[test]
fn a_log_weighs_as_its_counts() {
    let place = Place::new();
    let log: String = plays()
        .lines()
        .flat_map(|line| {
            let (pair, count) = line.rsplit_once(',').unwrap();
            std::iter::repeat_n(pair.to_owned() + "\n", count.parse().unwrap())
        })
        .collect();
    let (counts, log) = (place.file("counts.csv", plays()), place.file("log.csv", format!("user,item\n{log}")));
    let alpha = |launch: &[&str], input: &str, model: &str| {
        let model = place.name(model);
        let als = ["als", input, "--dims", "4", "--iterations", "2", "-w", "1", "-q", "--model", &model];
        done(&[launch, &als[..]].concat());
        json(Path::new(&model).join("model.json"))["config"]["alpha"].as_f64().unwrap()
    };
    let expected = alpha(&[], &counts, "counts");
    assert!(expected < 9.0, "10 over a mean above 1: {expected}");
    assert_eq!(alpha(&[], &log, "log"), expected);
    assert_eq!(alpha(&["launch", "-n", "2", "--"], &log, "two"), expected);
    let cache = place.name("log.mgrid");
    done(&["convert", &log, &cache, "--as", "ratings", "--columns", "rating=none"]);
    assert_eq!(alpha(&["launch", "-n", "2", "--"], &cache, "cached"), expected);

    // The default is that of all feedback after an update too, and what was given stays.
    let more = place.file("more.csv", "user,item\nu0,i0\nu0,i0\nu0,i0\nu0,i0\n".repeat(20));
    let model = place.name("log");
    done(&["update", &model, &more, "-q"]);
    let updated = json(place.name("log/model.json"))["config"]["alpha"].as_f64().unwrap();
    assert!(updated < expected, "{updated}");
    let given = place.name("given");
    done(&["als", &log, "--dims", "4", "--iterations", "2", "--alpha", "3", "-q", "--model", &given]);
    done(&["update", &given, &more, "-q"]);
    assert_eq!(json(place.name("given/model.json"))["config"]["alpha"], 3.0);
}

#[test]
fn what_is_no_feedback_is_refused() {
    let place = Place::new();
    let bad = place.file("bad.csv", "u1,i1,2\nu2,i1,-1.5\n");
    fails(&["als", &bad], 1, &["bad.csv", "user \"u2\" on item \"i1\" is -1.5", "--ratings-above"]);
    let none = place.file("none.csv", "u1,i1,0\nu2,i1,0\n");
    fails(&["als", &none], 1, &["none.csv", "none of the 2 values is above 0"]);
    let text = place.file("text.csv", "u1,i1,2\nu2,i1,nan\n");
    fails(&["als", &text], 1, &["text.csv", "2", "nan"]);
    fails(&["als", &bad, "--block", "17"], 2, &["block is 17; expected a multiple of 16"]);
    fails(
        &["als", &bad, "--holdout-per-user", "5", "--ratings-above", "0"],
        1,
        &["no user has ratings of enough items to keep 5"],
    );
    // What is tested on is no feedback, and where that is drawn it is not: nobody has two that are.
    let kept =
        place.file("kept.csv", (0..9).map(|user| format!("u{user},i{user},5,1\nu{user},j,1,2\n")).collect::<String>());
    fails(
        &["als", &kept, "--holdout-last", "1", "--columns", "time=4", "--ratings-above", "3"],
        1,
        &["no user has ratings of enough items to keep 1"],
    );
    let test = place.file("test.csv", "u1,j,1,2\nu2,j,2,2\n");
    fails(
        &["als", &kept, "--test", &test, "--ratings-above", "3"],
        1,
        &["kept.csv", "none of the 2 ratings that are kept for testing is feedback"],
    );
    let known = place.file("known.csv", "u1,i1,5,1\nu2,i2,5,1\n");
    fails(
        &["als", &kept, "--test", &known, "--ranking", "5"],
        1,
        &["training has seen all pairs that there are to test on", "--ranking"],
    );
}

/// Each user's plays, the last of which is the item of his kind that is new; days are out of order.
fn dated(line: impl Fn(usize, usize, &str) -> String) -> String {
    let plays = (0..40).flat_map(|user| {
        let old = (0..16).filter(move |item| user % 2 == item % 2 && (user + item) % 7 > 0);
        old.map(move |item| (user, item, 1 + item % 9)).chain([(user, 16 + user % 2, 28)])
    });
    let mut lines: Vec<String> =
        plays.map(|(user, item, day)| line(user, item, &format!("2026-02-{day:02}"))).collect();
    lines.reverse();
    lines.concat()
}

#[test]
fn what_comes_next_is_tested_by_a_column_of_times() {
    let place = Place::new();
    let texts = [
        ("plain.csv", dated(|user, item, day| format!("u{user},i{item},1,x,{day}\n")), "time=5"),
        (
            "header.csv",
            format!("user,item,rating,date\n{}", dated(|user, item, day| format!("u{user},i{item},1,{day}\n"))),
            "",
        ),
        (
            "named.csv",
            format!("at;who;what;n\n{}", dated(|user, item, day| format!("{day}T10:00;u{user};i{item};1\n"))),
            "user=who,item=what,rating=n,time=at",
        ),
        (
            "plays.jsonl",
            dated(|user, item, day| {
                format!("{{\"t\":\"{day}\",\"user\":\"u{user}\",\"item\":\"i{item}\",\"rating\":1}}\n")
            }),
            "time=t",
        ),
    ];
    let record = place.name("run.json");
    for (name, text, columns) in texts {
        let input = place.file(name, text);
        let mut als =
            vec!["als", &input, "--dims", "4", "-q", "--holdout-last", "1", "--ranking", "1", "--json", &record];
        if !columns.is_empty() {
            als.extend(["--columns", columns]);
        }
        done(&als);
        let found = json(&record);
        // Nobody is left who has played the last items, so that nothing can tell of them.
        assert_eq!(found["input"]["test_edges"], 40, "{name}: {found}");
        assert_eq!(found["result"]["metrics"]["test_recall"], 0.0, "{name}: {found}");
        assert_eq!(found["config"]["holdout_last"], 1);
    }
    let input = place.name("header.csv");
    done(&["mf", &input, "-q", "--iterations", "2", "--holdout-last", "0.25", "--json", &record]);
    assert!(json(&record)["result"]["metrics"]["test_rmse"].is_number());
    done(&["launch", "-n", "2", "--", "als", &input, "-q", "-w", "1", "--holdout-last", "1", "--json", &record]);
    assert_eq!(json(&record)["input"]["test_edges"], 40);
    // Without times, in forms that have none, and where they are no times.
    fails(
        &["als", &place.file("none.csv", plays()), "--holdout-last", "1"],
        1,
        &["none.csv", "no column is called time", "--columns time=COLUMN", "3 columns"],
    );
    fails(
        &["als", &input, "--holdout-last", "1", "--columns", "time=when"],
        1,
        &["no column when for time; its columns are 1 user"],
    );
    fails(
        &["als", &input, "--holdout-last", "1", "--columns", "time=3"],
        1,
        &["column 3 would be both rating and time"],
    );
    fails(&["als", &input, "--holdout-last", "1", "--columns", "time=2"], 1, &["column 2 would be both item and time"]);
    let bad = place.file("bad.csv", "user,item,rating,time\na,b,1,1\na,c,1,soon\n");
    fails(&["als", &bad, "--holdout-last", "1"], 1, &["bad.csv:3", "time", "soon", "a date as 2026-11-25"]);
    fails(&["als", "-", "--holdout-last", "1", "--columns", "time=4"], 1, &["--holdout-last", "a pipe has once"]);
    let cache = place.name("plays.mgrid");
    done(&["convert", &input, &cache]);
    fails(&["als", &cache, "--holdout-last", "1"], 1, &["a .mgrid does not hold"]);
    for [one, other] in
        [["--holdout-last", "--holdout"], ["--holdout-last", "--holdout-per-user"], ["--holdout-users", "--holdout"]]
    {
        fails(&["als", &input, one, "0.5", other, "0.5"], 2, &["cannot be used with"]);
    }
    for share in ["0", "1.5", "-1", "x"] {
        fails(&["als", &input, "--holdout-last", share], 2, &["a number, 1 say, or a part"]);
    }
}

#[test]
fn times_are_never_read_as_ratings() {
    let place = Place::new();
    let rows = dated(|user, item, day| format!("u{user},i{item},{}\n", &day[8..]));
    for header in ["user,item,timestamp", "who,what,Date"] {
        let input = place.file("times.csv", format!("{header}\n{rows}"));
        let third = header.split(',').next_back().unwrap();
        for algorithm in ["als", "mf"] {
            fails(&[algorithm, &input], 1, &["no column is called rating", &format!("3 {third}")]);
        }
        done(&["als", &input, "-q", "--iterations", "1", "--columns", "rating=3"]);
    }
    // Both are found by their names, whatever the others are called.
    let rows = dated(|user, item, day| format!("u{user},i{item},{day},1\n"));
    let input = place.file("both.csv", format!("userId,movieId,timestamp,rating\n{rows}"));
    let record = place.name("run.json");
    for columns in ["user=userId,item=movieId", "user=1,item=2", "user=1"] {
        let als = ["als", &input, "--dims", "4", "-q", "--holdout-last", "1", "--ranking", "1", "--json", &record];
        done(&[&als[..], &["--columns", columns]].concat());
        let found = json(&record);
        assert_eq!(found["input"]["test_edges"], 40, "{columns}: {found}");
        // The last plays alone are of the last two items.
        assert_eq!(found["result"]["metrics"]["test_recall"], 0.0, "{columns}: {found}");
    }
}

#[test]
fn a_run_is_not_continued_with_other_ratings_kept_for_testing() {
    let place = Place::new();
    let rows: String = plays()
        .lines()
        .enumerate()
        .map(|(at, line)| {
            let (pair, _) = line.rsplit_once(',').unwrap();
            format!("{pair},1,{at},{}\n", 1000 - at)
        })
        .collect();
    let (input, saved) = (place.file("plays.csv", rows), place.name("saved"));
    let als = |more: &[&str], columns: &'static str| {
        let common = ["als", &input, "-q", "--dims", "4", "--holdout-last", "1", "--columns", columns];
        [&common[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let begun = als(&["--iterations", "2", "--checkpoint", &saved], "time=4");
    done(&begun.iter().map(String::as_str).collect::<Vec<_>>());
    for (columns, is_refused) in [("time=5", true), ("time=4", false)] {
        let resumed = als(&["--iterations", "3", "--resume", &saved], columns);
        let resumed: Vec<&str> = resumed.iter().map(String::as_str).collect();
        if is_refused {
            fails(&resumed, 1, &["digest of ratings kept for testing", "use the same options and data"]);
        } else {
            done(&resumed);
        }
    }
}

/// Users of two kinds, who all turn to the items of the other kind after half of a year.
fn turned() -> String {
    let day = |user: usize, item: usize| {
        let days = if user % 2 == item % 2 { 0 } else { 180 } + (user * 7 + item) % 30;
        format!("2026-{:02}-{:02}", 1 + days / 30, 1 + days % 28)
    };
    let pairs =
        (0..40).flat_map(|user| (0..20).filter(move |item| (user + item) % 5 > 0).map(move |item| (user, item)));
    let lines = pairs.map(|(user, item)| format!("u{user},i{item},1,{}\n", day(user, item)));
    format!("user,item,rating,date\n{}", lines.collect::<String>())
}

#[test]
fn what_is_recent_may_count_more() {
    let place = Place::new();
    let input = place.file("plays.csv", turned());
    let items = |name: &str, more: &[&str]| {
        let model = place.name(name);
        done(&[&["als", &input, "--dims", "4", "-q", "-w", "1", "--alpha", "40", "--model", &model], more].concat());
        read_npy::<f32>(&Path::new(&model).join("items.npy"), 2).unwrap().values
    };
    let (plain, recent) = (items("plain", &[]), items("recent", &["--half-life", "30d"]));
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
    assert!(!near(&recent, &plain), "half a year ago is six half-lives");
    assert!(near(&items("weeks", &["--half-life", "4.285714285714286w"]), &recent), "the same in weeks");
    assert!(near(&items("long", &["--half-life", "1e9d"]), &plain), "nothing is as old as that");
    assert_eq!(json(place.name("recent/model.json"))["config"]["half_life"], "30d");
    // Beside ratings that are kept for testing, or in a file, and in several processes.
    let record = place.name("run.json");
    let half_life = ["als", &input, "--dims", "4", "-q", "-w", "1", "--half-life", "30d", "--json", &record];
    done(&[&half_life[..], &["--holdout-last", "0.25"]].concat());
    assert!(json(&record)["result"]["metrics"]["test_ndcg"].as_f64().unwrap() > 0.0);
    done(&[&half_life[..], &["--test", &input]].concat());
    assert_eq!(json(&record)["input"]["test_edges"], json(&record)["input"]["edges"]);
    let objective = |launch: &[&str]| {
        done(&[launch, &half_life[..]].concat());
        json(&record)["result"]["objective"].as_f64().unwrap()
    };
    let (one, two) = (objective(&[]), objective(&["launch", "-n", "2", "--"]));
    assert!((one - two).abs() < 1e-5 * one, "{one} and {two}");
}

#[test]
fn a_half_life_is_one_and_needs_times() {
    let place = Place::new();
    let input = place.file("plays.csv", turned());
    for half_life in ["0", "-1", "nan", "inf", "30 days", "0d"] {
        fails(&["als", &input, "--half-life", half_life], 2, &["--half-life", half_life, "a number above 0", "30d"]);
    }
    fails(
        &["als", &place.file("none.csv", plays()), "--half-life", "30d"],
        1,
        &["none.csv", "no column is called time", "--columns time=COLUMN"],
    );
    let empty = place.file("empty.csv", "user,item,rating,time\na,b,1,1\na,c,1,\n");
    fails(&["als", &empty, "--half-life", "30d"], 1, &["empty.csv:3", "time", "a date as 2026-11-25"]);
    let millis = place.file("millis.csv", "user,item,rating,time\na,b,1,1700000000000\na,c,1,1700000500000\n");
    fails(&["als", &millis, "--half-life", "30d"], 1, &["millis.csv", "not in seconds", "the unit of the times"]);
    done(&["als", &millis, "--half-life", "2592000000", "--dims", "4", "-q"]);
    let bad = place.file("bad.csv", "user,item,rating,time\na,b,1,1\na,c,-2,2\n");
    fails(&["als", &bad, "--half-life", "3"], 1, &["bad.csv", "on item \"c\" is -2"]);
    fails(&["als", &bad, "--half-life", "3", "--ratings-above", "5"], 1, &["bad.csv", "is above 5"]);
    fails(&["als", "-", "--half-life", "3", "--columns", "time=4"], 1, &["--half-life", "a pipe has once"]);
    let cache = place.name("plays.mgrid");
    done(&["convert", &input, &cache]);
    fails(&["als", &cache, "--half-life", "30d"], 1, &["--half-life", "a .mgrid does not hold"]);
    fails(&["mf", &input, "--half-life", "30d"], 2, &["--half-life"]);
    let saved = place.name("saved");
    let als = |iterations: &'static str, half_life: &'static str| {
        ["als", &input, "-q", "--dims", "4", "--iterations", iterations, "--half-life", half_life]
    };
    done(&[&als("2", "30d")[..], &["--checkpoint", &saved]].concat());
    fails(&[&als("3", "31d")[..], &["--resume", &saved]].concat(), 1, &["half", "30d", "31d"]);
    done(&[&als("3", "30d")[..], &["--resume", &saved]].concat());
}

#[test]
fn whole_users_are_kept_from_training_and_tested() {
    let place = Place::new();
    let input = place.file("plays.csv", plays());
    let (model, record) = (place.name("songs"), place.name("run.json"));
    for algorithm in ["als", "mf"] {
        let common = ["--dims", "4", "-q", "--holdout-users", "0.25", "--ranking", "8", "--json", &record];
        done(&[&[algorithm, &input][..], &common].concat());
        let found = json(&record);
        assert_eq!((&found["input"]["left"], &found["config"]["holdout_users"]), (&30.into(), &0.25.into()), "{found}");
        assert_eq!(found["input"]["test_users"], 10, "{found}");
        let tested = found["input"]["test_edges"].as_u64().unwrap();
        assert!((10..=20).contains(&tested), "a fifth of eight or nine plays of ten users: {tested}");
    }
    let als = ["als", &input, "--dims", "4", "-q", "--ranking", "8", "--model", &model, "--json", &record];
    done(&[&als[..], &["--holdout-users", "10", "--holdout-per-user", "1"]].concat());
    let found = json(&record);
    assert_eq!(found["input"]["test_edges"], 10);
    assert!(found["result"]["metrics"]["test_recall"].as_f64().unwrap() > 0.9, "of eight the items of a kind: {found}");
    // Those users are told to the model afterwards, as anybody new.
    let unknown = (0..40).find(|user| run(&["recommend", &model, &format!("u{user}")]).code != Some(0)).unwrap();
    let of_user = |line: &&str| line.starts_with(&format!("u{unknown},"));
    let theirs: String = plays().lines().filter(of_user).map(|line| format!("{line}\n")).collect();
    done(&["recommend", &model, "--fold-in", &place.file("theirs.csv", theirs), "-n", "2"]);
    fails(&["als", &input, "--holdout-users", "40"], 1, &["40 of 40 users leaves none"]);
    for algorithm in ["als", "mf"] {
        fails(&[algorithm, &input, "--ranking", "8"], 2, &["--ranking needs ratings to test on", "--holdout"]);
    }
}

#[test]
fn plans_checkpoints_and_several_processes_come_with_the_framework() {
    let place = Place::new();
    let input = place.file("plays.csv", plays());
    assert!(done(&["plan", "als", &input, "-w", "2"]).contains("memory"));
    let bytes = |model: &str| fs::read(Path::new(model).join("items.npy")).unwrap();
    let als = ["als", &input, "-q", "--dims", "20", "--model"];
    let [whole, rest, half, saved] = ["whole", "rest", "half", "saved"].map(|name| place.name(name));
    done(&[&als[..], &[&whole, "-w", "2", "--iterations", "6"]].concat());
    done(&[&als[..], &[&half, "-w", "2", "--iterations", "3", "--checkpoint", &saved]].concat());
    done(&[&als[..], &[&rest, "-w", "2", "--iterations", "6", "--resume", &saved]].concat());
    assert_eq!(bytes(&whole), bytes(&rest));
    let two = place.name("two");
    done(&[&["launch", "-n", "2", "--"], &als[..], &[&two, "-w", "1", "--iterations", "6"]].concat());
    // Gramians are added up in another order.
    let values = |model: &str| read_npy::<f32>(&Path::new(model).join("items.npy"), 2).unwrap().values;
    let pairs: Vec<(f32, f32)> = values(&whole).into_iter().zip(values(&two)).collect();
    assert!(!pairs.is_empty() && pairs.iter().all(|(one, two)| (one - two).abs() < 1e-5), "{pairs:?}");
    done(&["tune", "als", &input, "-q", "-w", "1", "--iterations", "6", "--dims", "20"]);
}

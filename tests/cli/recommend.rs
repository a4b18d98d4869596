//! Models of factors that answer: `recommend` for many users and for people unseen, `similar`, `predict` of pairs.

use std::collections::{HashMap, HashSet};
use std::fs;

use megagrid_datasets::output::{Column, read_npy, read_table};
use megagrid_datasets::read_ratings;
use serde_json::Value;

use crate::{Place, done, fails, json, run};

impl Place {
    /// Trains on ratings, and returns them and the model.
    fn movies(&self) -> [String; 2] {
        let (ratings, model) = (self.ratings(), self.name("movies"));
        done(&[
            "mf",
            &ratings,
            "--model",
            &model,
            "--dims",
            "4",
            "--lambda",
            "0.01",
            "--iterations",
            "40",
            "-q",
            "-w",
            "2",
        ]);
        [ratings, model]
    }

    /// Trains on feedback of users of two kinds, and returns it and the model.
    fn songs(&self) -> [String; 2] {
        let pairs = (0..40).flat_map(|user| {
            (0..20).filter(move |item| user % 2 == item % 2 && (user + item) % 7 > 0).map(move |item| (user, item))
        });
        let plays =
            self.file("plays.csv", pairs.map(|(user, item)| format!("u{user},i{item},2\n")).collect::<String>());
        let model = self.name("songs");
        done(&["als", &plays, "--model", &model, "--dims", "6", "-q", "-w", "2"]);
        [plays, model]
    }
}

/// The items of each user, in their order, of a table in CSV.
fn by_user(csv: &str) -> HashMap<String, Vec<String>> {
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("user,rank,item,score"));
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let items = found.entry(fields[0].to_owned()).or_default();
        items.push(fields[2].to_owned());
        assert_eq!(fields[1], items.len().to_string(), "places ascend: {line}");
    }
    found
}

/// The names in a listing: place, score, name.
fn listed(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().last().unwrap().to_owned()).collect()
}

#[test]
fn all_users_get_what_each_gets() {
    let place = Place::new();
    for [ratings, model] in [place.movies(), place.songs()] {
        let all = by_user(&done(&["recommend", &model, "--all", "-n", "4", "--exclude", &ratings]));
        assert_eq!(all.len(), 40);
        for user in 0..40 {
            let user = format!("u{user}");
            let one = listed(&done(&["recommend", &model, &user, "-n", "4", "--exclude", &ratings]));
            assert_eq!(all[&user], one, "{user}");
        }
        let users = place.file("users.txt", "\u{feff}u7\n\nu3\nnobody\nu7\n");
        let strange = place.file("strange.csv", "nobody,nothing,5\n");
        let ran = run(&["recommend", &model, "--all", "-n", "1", "--exclude", &strange]);
        for what in ["user", "item"] {
            assert!(ran.stderr.contains(&format!("no {what} of the ratings to leave out")), "{}", ran.stderr);
        }
        let ran = run(&["recommend", &model, "--users", &users, "-n", "4", "--exclude", &ratings]);
        assert_eq!(by_user(&ran.stdout), HashMap::from(["u7", "u3"].map(|user| (user.to_owned(), all[user].clone()))));
        assert_eq!(ran.stderr, "megagrid: 1 of 4 users are not in the model and were left out: nobody\n");
        assert_eq!(by_user(&done(&["recommend", &model, "u1", "u2", "-n", "2"])).len(), 2);
    }
}

#[test]
fn tables_of_every_form_say_the_same() {
    let place = Place::new();
    let [_, model] = place.movies();
    let csv = done(&["recommend", &model, "--all", "-n", "3"]);
    for (option, name) in
        [("--output", "best.csv"), ("--output", "best.jsonl"), ("--json", "best"), ("-o", "best.parquet")]
    {
        assert_eq!(done(&["recommend", &model, "--all", "-n", "3", option, &place.name(name)]), "");
    }
    assert_eq!(fs::read_to_string(place.path("best.csv")).unwrap(), csv);
    let lines = fs::read_to_string(place.path("best.jsonl")).unwrap();
    assert_eq!(fs::read_to_string(place.path("best")).unwrap(), lines);
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let table = read_table(&place.path("best.parquet")).unwrap();
    let names: Vec<&str> = table.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["user", "rank", "item", "score"]);
    let (Column::Strings(users), Column::Strings(items), Column::F32(scores)) = (&table[0].1, &table[2].1, &table[3].1)
    else {
        panic!("{table:?}")
    };
    assert_eq!((csv.lines().count(), rows.len(), users.len()), (121, 120, 120));
    for (at, (line, row)) in csv.lines().skip(1).zip(&rows).enumerate() {
        assert_eq!(line, format!("{},{},{},{}", users[at], at % 3 + 1, items[at], scores[at]));
        assert_eq!(row["user"], users[at]);
        assert_eq!((&row["item"], row["rank"].as_u64()), (&items[at].clone().into(), Some(at as u64 % 3 + 1)));
    }
    // Whatever the case of an ending is; a name that says something else is refused.
    for (name, same) in [("BEST.PARQUET", "best.parquet"), ("best.ndjson", "best.jsonl")] {
        done(&["recommend", &model, "--all", "-n", "3", "-o", &place.name(name)]);
        assert_eq!(fs::read(place.path(name)).unwrap(), fs::read(place.path(same)).unwrap(), "{name}");
    }
    done(&["recommend", &model, "--all", "-n", "3", "-o", &place.name("best.tsv")]);
    assert_eq!(fs::read_to_string(place.path("best.tsv")).unwrap(), csv.replace(',', "\t"));
    for name in ["best.csv.gz", "best.json", "best.npy", "best.MTX", "best.mgrid", "best.xlsx"] {
        let command = ["recommend", &model, "--all", "-o", &place.name(name)];
        fails(&command, 2, &[name, "expected a name that ends in .parquet, .jsonl, .ndjson, .tsv or .csv"]);
    }
    // One user as well, where a place is named.
    assert_eq!(done(&["recommend", &model, "u5", "-n", "2", "--json", "-"]).lines().count(), 2);
    fails(&["recommend", &model, "--all", "--json", "a", "--output", "b"], 2, &["cannot be used with"]);
    fails(
        &["recommend", &model, "--all", "-o", &place.name("none/best.csv")],
        1,
        &["best.csv: the directory", "none is not there"],
    );
}

#[test]
fn names_with_blanks_at_their_ends_are_read_back() {
    let place = Place::new();
    let pairs = "\" ann \",\"tea \",4\nann,\"tea \",2\n\" ann \",rye,5\nann,rye,1\n";
    let (ratings, model) = (place.file("ratings.csv", pairs), place.name("model"));
    done(&["mf", &ratings, "--dims", "1", "--iterations", "2", "-q", "--model", &model]);
    for name in ["predicted.csv", "predicted.tsv"] {
        done(&["predict", &model, &ratings, "--output", &place.name(name)]);
        let again = read_ratings(place.path(name), None).unwrap();
        let [users, items] = [&again.left_names, again.right_names()].map(|names| names.iter().collect::<Vec<_>>());
        assert_eq!((users, items), (vec![" ann ".into(), "ann".into()], vec!["tea ".into(), "rye".into()]), "{name}");
    }
    let users = place.file("users.txt", " ann \r\n");
    let found = done(&["recommend", &model, "--users", &users, "-n", "1"]);
    assert!(found.starts_with("user,rank,item,score\n\" ann \",1,"), "{found}");
}

#[test]
fn people_who_are_folded_in_with_their_own_ratings_get_their_own_recommendations() {
    let place = Place::new();
    for [ratings, model] in [place.movies(), place.songs()] {
        // As others, whom the model does not know.
        let text = fs::read_to_string(&ratings).unwrap().replace('u', "new-u");
        let theirs = place.file("theirs.csv", &text);
        let folded = by_user(&done(&["recommend", &model, "--fold-in", &theirs, "-n", "3"]));
        let own = by_user(&done(&["recommend", &model, "--all", "-n", "3", "--exclude", &ratings]));
        assert_eq!((folded.len(), own.len()), (40, 40));
        let both = |(user, own): (&String, &Vec<String>)| {
            let own: HashSet<&String> = own.iter().collect();
            (folded[&format!("new-{user}")].iter().filter(|item| own.contains(item)).count(), own.len())
        };
        let (same, all) = own.iter().map(both).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert!(same * 10 >= all * 9, "{same} of {all}");
        // One person is in a table as many are.
        let one: String =
            text.lines().filter(|line| line.starts_with("new-u4,")).map(|line| format!("{line}\n")).collect();
        let one = by_user(&done(&["recommend", &model, "--fold-in", &place.file("one.csv", one), "-n", "3"]));
        assert_eq!(one, HashMap::from([("new-u4".to_owned(), folded["new-u4"].clone())]));
    }
}

#[test]
fn what_counts_for_nothing_is_said() {
    let place = Place::new();
    let [_, model] = place.movies();
    let theirs = place.file("theirs.csv", "ann,i3,4\nann,i99,2\nbob,i98,1\nann,i97,1\nann,i96,1\n");
    let ran = run(&["recommend", &model, "--fold-in", &theirs, "-n", "2"]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        ran.stderr,
        "megagrid: 4 of 5 items are not in the model and were left out: i99, i98, i97 and others\n\
         megagrid: 1 of 2 users are without anything that counts and were left out: bob\n"
    );
    assert!(!by_user(&ran.stdout)["ann"].contains(&"i3".to_owned()), "{}", ran.stdout);
    let none = place.file("none.csv", "ann,x,4\nann,y,2\n");
    let fold_in = |model: &str, file: &str, parts: &[&str]| fails(&["recommend", model, "--fold-in", file], 1, parts);
    fold_in(&model, &none, &["none.csv", "none of the 2 items is among the 30 of the model"]);
    let [_, songs] = place.songs();
    let bad = place.file("bad.csv", "ann,i3,-4\n");
    fold_in(&songs, &bad, &["bad.csv", "feedback of user \"ann\" on item \"i3\" is -4"]);
    fold_in(&songs, &place.file("zero.csv", "ann,i3,0\n"), &["zero.csv", "none of the values is feedback"]);
}

/// Reads the factors of a side of a model, by name.
fn factors(place: &Place, model: &str, side: &str) -> Vec<(String, Vec<f32>)> {
    let Column::Strings(names) = read_table(&place.path(&format!("{model}/{side}.parquet"))).unwrap().swap_remove(0).1
    else {
        panic!("names are text")
    };
    let rows = read_npy::<f32>(&place.path(&format!("{model}/{side}.npy")), 2).unwrap();
    let width = rows.shape[1];
    names.iter().cloned().zip(rows.values.chunks_exact(width).map(<[f32]>::to_vec)).collect()
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum()
}

#[test]
fn items_and_users_alike_are_those_of_the_model() {
    let place = Place::new();
    let [_, songs] = place.songs();
    for (option, side, name) in [(None, "items", "i4"), (Some("--users"), "users", "u4")] {
        let rows = factors(&place, "songs", side);
        let own = &rows.iter().find(|row| row.0 == name).unwrap().1;
        let cosine = |row: &[f32]| product(own, row) / (product(own, own) * product(row, row)).sqrt();
        let mut expected: Vec<f64> = rows.iter().filter(|row| row.0 != name).map(|row| cosine(&row.1)).collect();
        expected.sort_by(|a, b| b.total_cmp(a));
        let options: Vec<&str> = option.into_iter().collect();
        let text = done(&[&["similar", &songs, name, "-n", "5"], &options[..]].concat());
        assert_eq!(text.lines().count(), 5);
        for (line, expected) in text.lines().zip(&expected) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let row = &rows.iter().find(|row| row.0 == fields[2]).unwrap().1;
            for value in [fields[1].parse::<f64>().unwrap(), cosine(row)] {
                assert!((value - expected).abs() < 1e-4, "{line}, not {expected}");
            }
        }
        let table = done(&[&["similar", &songs, "--all", "-n", "5"], &options[..]].concat());
        assert_eq!(table.lines().count(), 1 + 5 * rows.len());
        let table: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(table[0][1..], ["rank", "similar", "cosine"]);
        assert!(table.iter().filter(|row| row[0] == name).map(|row| row[2]).eq(listed(&text)), "{table:?}");
    }
    let names = place.file("names.txt", "i1\ni2\n");
    assert_eq!(done(&["similar", &songs, "--names", &names, "-n", "1", "--json", "-"]).lines().count(), 2);
    fails(&["similar", &songs, "i99"], 1, &["item \"i99\" is not among the 20 items"]);
}

#[test]
fn pairs_are_predicted_in_their_order_within_the_range_of_ratings() {
    let place = Place::new();
    let [ratings, model] = place.movies();
    let range = json(place.path("movies/model.json"))["range"].clone();
    let [least, greatest] = [0, 1].map(|end| range[end].as_f64().unwrap());
    let values: Vec<f64> = fs::read_to_string(&ratings)
        .unwrap()
        .lines()
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    assert!((least - values.iter().copied().fold(f64::INFINITY, f64::min)).abs() < 1e-6);
    assert!((greatest - values.iter().copied().fold(f64::NEG_INFINITY, f64::max)).abs() < 1e-6);

    let rows = |input: &str, more: &[&str]| -> Vec<(String, f64)> {
        let text = done(&[&["predict", &model, input], more].concat());
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("user,item,prediction"));
        lines
            .map(|line| line.rsplit_once(',').map(|(pair, value)| (pair.to_owned(), value.parse().unwrap())).unwrap())
            .collect()
    };
    let pairs = place.file("pairs.csv", "u3,i2\nu0,i5\nu3,i1\nnobody,i1\nu3,nothing\n");
    let found = rows(&pairs, &[]);
    assert!(found.iter().map(|row| &row.0[..]).eq(["u3,i2", "u0,i5", "u3,i1", "nobody,i1", "u3,nothing"]), "{found:?}");
    assert!(found.iter().all(|row| (least..=greatest).contains(&row.1)), "{found:?}");
    assert!(run(&["predict", &model, &pairs]).stderr.contains("2 of 5 pairs have a user or an item that the model"));
    // A listing of the same.
    let best = done(&["recommend", &model, "u3", "-n", "30", "--no-clip"]);
    for (pair, value) in rows(&pairs, &["--no-clip"]).iter().filter(|(pair, _)| ["u3,i2", "u3,i1"].contains(&&pair[..]))
    {
        let line = best.lines().find(|line| line.ends_with(&format!("  {}", &pair[3..]))).unwrap();
        let shown: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!((shown - value).abs() < 1e-3, "{pair}: {value}, {line}");
    }
    // The errors are those of what is predicted.
    let predicted = rows(&ratings, &[]);
    assert_eq!(predicted.len(), values.len());
    let mean = |of: fn(f64) -> f64| {
        predicted.iter().zip(&values).map(|(row, value)| of(row.1 - value)).sum::<f64>() / values.len() as f64
    };
    let quality = place.name("quality.json");
    done(&["predict", &model, &ratings, "--quality", "--json", &quality]);
    let found = json(&quality);
    assert!((found["rmse"].as_f64().unwrap() - mean(|error| error * error).sqrt()).abs() < 1e-5, "{found}");
    assert!((found["mae"].as_f64().unwrap() - mean(f64::abs)).abs() < 1e-5, "{found}");
    let text = done(&["predict", &model, &ratings, "--quality"]);
    assert!(text.starts_with("rmse 0.") && text.contains("\nmae 0."), "{text}");
}

#[test]
fn models_from_before_ranges_are_read() {
    let place = Place::new();
    let [_, model] = place.movies();
    let before = done(&["recommend", &model, "u2", "-n", "30", "--no-clip"]);
    let path = place.path("movies/model.json");
    let mut manifest = json(&path);
    manifest.as_object_mut().unwrap().remove("range");
    fs::write(&path, manifest.to_string()).unwrap();
    assert_eq!(done(&["recommend", &model, "u2", "-n", "30"]), before);
}

#[test]
fn scores_of_feedback_are_products_of_factors() {
    let place = Place::new();
    let [plays, songs] = place.songs();
    let text = done(&["predict", &songs, &plays]);
    let [users, items] = ["users", "items"].map(|side| HashMap::<_, _>::from_iter(factors(&place, "songs", side)));
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let expected = product(&users[fields[0]], &items[fields[1]]);
        assert!((expected - fields[2].parse::<f64>().unwrap()).abs() < 1e-5, "{line}, not {expected}");
    }
    fails(&["predict", &songs, &plays, "--quality"], 2, &["--quality compares with ratings", "--ranking"]);
    for command in [&["predict", &songs, &plays, "--no-clip"][..], &["recommend", &songs, "u1", "--no-clip"]] {
        fails(command, 2, &["--no-clip is for a model of ratings"]);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    let [ratings, model] = place.movies();
    fails(&["recommend", &model], 2, &["required", "--all"]);
    fails(&["recommend", &model, "u1", "--all"], 2, &["cannot be used with"]);
    fails(&["recommend", &model, "--fold-in", &ratings, "--exclude", &ratings], 2, &["cannot be used with"]);
    fails(&["similar", &model], 2, &["required", "--all"]);
    fails(&["recommend", &model, "--all", "-n", "0"], 2, &["--number"]);
    fails(&["recommend", &model, "u1", "nobody"], 1, &["user \"nobody\" is not among the 40 users"]);
    fails(&["recommend", &model, "--users", &place.name("none.txt")], 1, &["none.txt", "No such file"]);
    fails(&["recommend", &model, "--users", &place.file("empty.txt", "\n")], 1, &["empty.txt", "expected one a line"]);
    let others = place.file("others.txt", "x\ny\n");
    fails(&["recommend", &model, "--users", &others], 1, &["others.txt", "none of its 2 names is among the 40 users"]);
    let pairs = place.file("pairs.csv", "u1,i1\nu2,i2\n");
    fails(&["predict", &model, &pairs, "--quality"], 1, &["pairs.csv", "without ratings", "third column"]);
    let (ranks, topics) = (place.name("ranks"), place.name("topics"));
    done(&["pagerank", &place.graph(), "--model", &ranks, "-q"]);
    done(&["lda", &place.file("posts.txt", "tea and rye\nrye and oats\n"), "--topics", "2", "--model", &topics, "-q"]);
    for (other, advice) in [(&ranks, "megagrid top"), (&topics, "megagrid topics")] {
        fails(&["predict", other, &pairs], 1, &["expected mf or als", advice]);
        fails(&["recommend", other, "u1"], 1, &["expected mf or als", advice]);
        fails(&["similar", other, "u1"], 1, &["expected mf or als", advice]);
    }
    let advice = "recommend, similar and predict answer from it";
    fails(&["top", &model], 1, &["of kind mf, expected pagerank, hits or blockpg", advice]);
    fails(&["topics", &model], 1, &["of kind mf, expected lda", advice]);
}

#[test]
fn listings_are_there_as_json() {
    let place = Place::new();
    let (ranks, topics) = (place.name("ranks"), place.name("topics"));
    done(&["pagerank", &place.graph(), "--model", &ranks, "-q"]);
    let posts = place.file("posts.txt", "tea and rye\nrye and oats\n");
    done(&["lda", &posts, "--topics", "2", "--model", &topics, "-q"]);
    let lines =
        |args: &[&str]| -> Vec<Value> { done(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let best = lines(&["top", &ranks, "-n", "3", "--json", "-"]);
    assert_eq!((best.len(), &best[2]["rank"]), (3, &3.into()));
    assert!(best.iter().is_sorted_by(|a, b| a["score"].as_f64() >= b["score"].as_f64()), "{best:?}");
    // Ids are numbers where all of the model are.
    assert!(best.iter().all(|row| row["id"].is_string()), "{best:?}");
    let numbers = place.file("numbers.txt", "1 2\n2 3\n3 1\n1 3\n");
    for (number, ranking) in ["pagerank", "hits"].into_iter().enumerate() {
        let (model, table) = (place.name(ranking), place.name(&format!("{number}.parquet")));
        done(&[ranking, &numbers, "--model", &model, "-q"]);
        assert!(lines(&["top", &model, "--json", "-"]).iter().all(|row| row["id"].is_u64()));
        done(&["top", &model, "-o", &table]);
        assert!(matches!(read_table(table.as_ref()).unwrap()[1].1, Column::U64(_)));
    }
    let found = lines(&["topics", &topics, "-n", "2", "--json", "-"]);
    assert_eq!(found.len(), 2);
    assert!((found.iter().map(|topic| topic["share"].as_f64().unwrap()).sum::<f64>() - 1.0).abs() < 1e-9, "{found:?}");
    assert!(found.iter().all(|topic| topic["words"].as_array().unwrap().len() <= 2), "{found:?}");
    let documents = lines(&["topics", &topics, "--documents", &posts, "--json", "-"]);
    assert_eq!((documents.len(), &documents[1]["document"]), (2, &"2".into()));
    let shares = documents[0]["topics"].as_array().unwrap().iter().map(|topic| topic["share"].as_f64().unwrap());
    assert!((shares.sum::<f64>() - 1.0).abs() < 1e-5, "{documents:?}");
    fails(&["topics", "m", "--documents", "d", "--output", "o", "--json", "-"], 2, &["cannot be used with"]);
}

/// What a model is asked by is laid out as what it was trained on, unless it is said how.
#[test]
fn columns_are_those_of_the_training() {
    let place = Place::new();
    let lines = |of: &dyn Fn(u32, u32) -> String| -> String {
        (0..60).filter(|n| n % 7 != 3).map(|n| of(n % 10, n / 10 + 20)).collect()
    };
    let plain = place.file("plain.csv", lines(&|user, item| format!("{user},{item},{}\n", 1 + (user + item) % 5)));
    let turned = place.file("turned.tsv", lines(&|user, item| format!("{item}\t{user}\t{}\n", 1 + (user + item) % 5)));
    let named = place.file("named.csv", lines(&|user, item| format!("{item},x,{user}\n")));
    for algorithm in ["mf", "als"] {
        let [model, other] = ["model", "other"].map(|name| place.name(&format!("{algorithm}-{name}")));
        let fit = ["--dims", "2", "--iterations", "5", "-w", "1", "-q", "--model"];
        done(&[&[algorithm, &turned, "--columns", "user=2,item=1"], &fit[..], &[&model]].concat());
        done(&[&[algorithm, &plain], &fit[..], &[&other]].concat());
        let same = |args: &[&str], more: &[&str], of: [&str; 2]| {
            let [turned, plain] = [(&model, of[0], more), (&other, of[1], &[][..])]
                .map(|(model, ratings, more)| done(&[&[args[0], model], &args[1..], &[ratings], more].concat()));
            assert_eq!(turned, plain, "{algorithm} {args:?}");
            assert!(turned.lines().count() > 5, "{turned}");
        };
        same(&["recommend", "--all", "-n", "6", "--exclude"], &[], [&turned, &plain]);
        same(&["recommend", "--all", "-n", "6", "--exclude"], &["--columns", "user=3,item=1"], [&named, &plain]);
        same(&["recommend", "-n", "6", "--fold-in"], &[], [&turned, &plain]);
        same(&["predict"], &[], [&turned, &plain]);
        same(&["predict"], &["--columns", "user=3,item=1"], [&named, &plain]);
        if algorithm == "mf" {
            let [turned, plain] = [(&model, &turned), (&other, &plain)]
                .map(|(model, ratings)| done(&["predict", model, ratings, "--quality"]));
            assert_eq!(turned, plain);
        }
    }
}

//! Data as people have them: columns by role, quotes, JSON lines, pipes and patterns.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use megagrid_datasets::output::{Column, write_table};

use crate::command::Ran;
use crate::{Place, done, fails, json, run};

/// Trains, and returns the bytes of the model's arrays and the checksum of the data.
fn model(place: &Place, command: &[&str]) -> (Vec<Vec<u8>>, String) {
    let model = place.name("model");
    done(&[command, &["--iterations", "3", "-w", "1", "-q", "--model", &model]].concat());
    let checksum = json(place.path("model/model.json"))["data"]["checksum"].as_str().unwrap().to_owned();
    let arrays = ["users.npy", "items.npy"].map(|array| fs::read(place.path(&format!("model/{array}"))).unwrap());
    fs::remove_dir_all(&model).unwrap();
    (arrays.to_vec(), checksum)
}

/// Runs the program with text on standard input.
fn piped(args: &[&str], text: &[u8]) -> Ran {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // What is refused is not read.
    let _ = child.stdin.take().unwrap().write_all(text);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The fields of the ratings, line by line.
fn fields(ratings: &str) -> Vec<[String; 3]> {
    let lines = fs::read_to_string(ratings).unwrap();
    lines.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap()).collect()
}

#[test]
fn the_same_ratings_in_any_table_train_the_same_model() {
    let place = Place::new();
    let ratings = place.ratings();
    let plain = model(&place, &["mf", &ratings]);
    let lines = fields(&ratings);
    let table = |header: &str, line: &dyn Fn(&[String; 3]) -> String| {
        header.to_owned() + &lines.iter().map(|fields| line(fields) + "\n").collect::<String>()
    };
    let swapped = place.file("swapped.csv", table("", &|[user, item, rating]| format!("{item},x,{user},{rating}")));
    // A title with a line end in it.
    let quoted =
        |[user, item, rating]: &[String; 3]| format!("\"{rating}\";\"a \"\"title\"\";\r\n{user}\";{item};\"{user}\"\r");
    let quoted = place.file("quoted.csv", table("\u{feff}stars;title;what;who\n", &quoted));
    let objects =
        |[user, item, rating]: &[String; 3]| format!(r#"{{"stars": {rating}, "what": "{item}", "who": "{user}"}}"#);
    let objects = place.file("ratings.jsonl", table("", &objects));
    let parquet = place.path("ratings.parquet");
    let column = |at: usize| Column::Strings(lines.iter().map(|fields| fields[at].clone()).collect());
    let stars: Vec<f32> = lines.iter().map(|fields| fields[2].parse().unwrap()).collect();
    write_table(&parquet, &[("what", column(1)), ("stars", Column::F32(stars.into())), ("who", column(0))]).unwrap();
    let names = "user=who,item=what,rating=stars";
    for (input, columns) in [
        (&swapped, "user=3,item=1,rating=4"),
        (&quoted, names),
        (&quoted, "rating=1,item=3,user=4"),
        (&objects, names),
        (&parquet.to_str().unwrap().to_owned(), names),
    ] {
        assert_eq!(model(&place, &["mf", input, "--columns", columns]), plain, "{input}");
        let together = model(&place, &["launch", "-n", "3", "--", "mf", input, "--columns", columns]);
        assert_eq!(together.1, plain.1, "{input} in three processes");
        let cache = place.name("of.mgrid");
        done(&["convert", input, &cache, "--columns", columns]);
        assert_eq!(model(&place, &["mf", &cache]), plain, "{input} as a cache");
        fs::remove_file(cache).unwrap();
        let plan = done(&["plan", "mf", input, "--columns", columns]);
        assert_eq!(plan, done(&["plan", "mf", &ratings]), "{input}");
    }
}

#[test]
fn graphs_and_words_are_read_by_columns() {
    let place = Place::new();
    let links = place.file("links.csv", "to|weight|from\n2|0.5|1\n3|0.5|1\n3|1|2\n1|2|3\n");
    let plain = place.file("plain.txt", "1 2\n1 3\n2 3\n3 1\n");
    let scores = [&[&*links, "--columns", "from=from,to=to"][..], &[&*plain]].map(|input| {
        done(&[&["pagerank", "-q", "-w", "1", "--model", &place.name("ranks")], input].concat());
        let scores = fs::read(place.path("ranks/scores.parquet")).unwrap();
        fs::remove_dir_all(place.path("ranks")).unwrap();
        scores
    });
    assert!(scores[0] == scores[1]);
    let words = place.file("words.tsv", "word\tdocument\tcount\ntea\td1\t3\nrye\td1\t1\nrye\td2\t2\n");
    let found = done(&["inspect", &words, "--columns", "document=document"]);
    assert!(found.contains("corpus of 2 documents, 2 words, 3 entries"), "{found}");
    done(&["lda", &words, "--columns", "word=1,document=2", "-k", "2", "--iterations", "2", "-q"]);
}

#[test]
fn what_comes_through_a_pipe_is_read_once() {
    let place = Place::new();
    let ratings = place.ratings();
    let text = fs::read(&ratings).unwrap();
    let file = done(&["inspect", &ratings]);
    let body = |said: &str| said.split_once('\n').unwrap().1.to_owned();
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&text).unwrap();
        encoder.finish().unwrap()
    };
    for (input, bytes) in [("-", &text), ("/dev/stdin", &text), ("-", &gzip)] {
        let ran = piped(&["inspect", input], bytes);
        assert_eq!((ran.code, body(&ran.stdout)), (Some(0), body(&file)), "{}", ran.stderr);
    }
    let ran = piped(&["inspect", "-"], &gzip[..gzip.len() / 2]);
    assert!(ran.code == Some(1) && ran.stderr.contains("-: the gzip data end early"), "{}", ran.stderr);
    let ran =
        piped(&["inspect", "-", "--format", "mtx"], b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n");
    assert!(ran.stderr.contains("announces 2 entries, found 1; is the file complete?"), "{}", ran.stderr);
    let ran = piped(&["inspect", "-", "--columns", "user=1"], b"1,2,3\n1,\"2,3\n");
    assert!(ran.stderr.contains("-:2: quoted field"), "{}", ran.stderr);
    let ran = piped(&["mf", "-", "--test", "-", "-q"], &text);
    assert!(ran.stderr.contains("standard input has been read already"), "{}", ran.stderr);
    let ran = piped(&["inspect", "-"], b"");
    assert!(ran.stderr.contains("-: no lines in it"), "{}", ran.stderr);
    let ran = piped(&["inspect", "-", "--format", "parquet"], b"PAR1");
    assert!(ran.stderr.contains("save it in a file"), "{}", ran.stderr);
    fails(&["launch", "-n", "2", "--", "mf", "-"], 2, &["can be read once, by one; save it in a file"]);
    fails(&["mf", "-", "--cache", &place.name("caches")], 2, &["--cache keeps what has a name"]);
}

#[test]
fn a_pattern_is_the_files_that_fit_it() {
    let place = Place::new();
    let ratings = fs::read_to_string(place.ratings()).unwrap();
    let lines: Vec<&str> = ratings.lines().collect();
    for (day, lines) in lines.chunks(200).enumerate() {
        place.file(&format!("day-{day}.csv"), format!("user,item,rating\n{}\n", lines.join("\n")));
    }
    let pattern = place.name("day-*.csv");
    let plain = model(&place, &["mf", &place.name("ratings.csv")]);
    assert_eq!(model(&place, &["mf", &pattern]), plain);
    assert_eq!(model(&place, &["launch", "-n", "2", "--", "mf", &pattern]).1, plain.1);
    fails(&["mf", &place.name("night-*.csv")], 1, &["night-*.csv: no file fits this pattern"]);
    place.file("odd.1.edges", "1 2\n");
    place.file("odd.2.jsonl", "{}\n");
    fails(&["inspect", &place.name("odd.*")], 1, &["odd.2.jsonl is of the format jsonl, others are edges"]);
}

#[test]
fn columns_that_there_are_not_are_told() {
    let place = Place::new();
    let table = place.file("table.csv", "who,what,stars\nann,tea,4\nbob,tea,2\n");
    let wrong = |columns: &str, code: i32, said: &str| fails(&["mf", &table, "--columns", columns], code, &[said]);
    wrong("user=name", 1, "table.csv: there is no column name for user; its columns are 1 who, 2 what, 3 stars");
    wrong("user=9", 1, "there is no column 9 for user; it has 3 columns without names");
    wrong("from=1", 1, "--columns says which is from, but what is read has user, item, rating");
    fails(&["mf", &table, "--columns", "rater=1"], 2, &["there is no role \"rater\"; expected one of user, item"]);
    let samples = place.file("samples.txt", "1 1:1\n-1 2:1\n");
    fails(
        &["blockpg", &samples, "--columns", "user=1"],
        1,
        &["--columns says which is user, but what is read has label, weight, text"],
    );
    let ran = run(&[
        "inspect",
        &place.file("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n"),
        "--columns",
        "user=1",
    ]);
    assert!(ran.code == Some(1) && ran.stderr.contains("has no columns to name"), "{}", ran.stderr);
}

#[test]
fn columns_of_names_that_are_not_known_are_told_in_their_order() {
    let place = Place::new();
    let input = place.file("h.csv", "stars,who,what\n1,2,3\n4,5,3\n");
    let said = run(&["mf", &input, "--dims", "1", "--iterations", "1"]).stderr;
    let told = r#"columns are read in their order: user in "stars", item in "who", rating in "what""#;
    assert_eq!(said.matches(told).count(), 1, "{said}");
    let known = place.file("k.csv", "user,rating,item\n1,2,3\n4,5,3\n");
    assert!(!run(&["mf", &known, "--dims", "1", "--iterations", "1"]).stderr.contains("in their order"));
}

/// A table of samples as pandas writes it, with its header, and the same as JSON lines.
fn members(label: &str) -> (String, String) {
    let (mut csv, mut json) = (format!("age,member,{label},city\n"), String::new());
    for row in 0..60_u32 {
        let (age, is_member, city) = (20 + row * 7 % 31, row % 3 > 0, ["Oslo", "Rome"][row as usize % 2]);
        let class = u32::from(age > 34 || row % 11 == 0);
        let member = if is_member { "True" } else { "False" };
        csv += &format!("{age},{member},{class},{city}\n");
        json += &format!("{{\"age\": {age}, \"member\": {is_member}, \"{label}\": {class}, \"city\": \"{city}\"}}\n");
    }
    (csv, json)
}

/// The same in Parquet.
fn members_in_parquet(place: &Place) -> String {
    let rows = 0..60_i64;
    let column = |of: fn(i64) -> i64| Column::I64(rows.clone().map(of).collect());
    let cities: Vec<String> = rows.clone().map(|row| ["Oslo", "Rome"][row as usize % 2].to_owned()).collect();
    let columns = [
        ("age", column(|row| 20 + row * 7 % 31)),
        ("member", column(|row| i64::from(row % 3 > 0))),
        ("class", column(|row| i64::from(20 + row * 7 % 31 > 34 || row % 11 == 0))),
        ("city", Column::Strings(cities.into())),
    ];
    write_table(&place.path("members.parquet"), &columns).unwrap();
    place.name("members.parquet")
}

#[test]
fn samples_of_any_table_are_one_model_without_a_word() {
    let place = Place::new();
    let (csv, json) = members("class");
    let (csv, jsonl) = (place.file("members.csv", &csv), place.file("members.jsonl", &json));
    let fit = ["--l1", "0.1", "--intercept", "-q", "-w", "1", "--model"];
    let parquet = members_in_parquet(&place);
    let models = [&csv, &jsonl, &parquet].map(|input| {
        let model = place.name(&format!("of-{}", input.rsplit_once('.').unwrap().1));
        done(&[&["blockpg", input][..], &fit, &[&model]].concat());
        model
    });
    let weights = models.each_ref().map(|model| fs::read(format!("{model}/weights.parquet")).unwrap());
    assert!(weights[0] == weights[1] && weights[0] == weights[2]);
    let expected = done(&["predict", &models[0], &csv]);
    assert_eq!(expected.lines().count(), 60);
    let unlabelled = place.file("unlabelled", "member,age\nTRUE,30\n,\n");
    for model in &models {
        assert!([&csv, &jsonl, &parquet].iter().all(|input| done(&["predict", model, input]) == expected));
        assert_eq!(done(&["predict", model, &unlabelled]).lines().count(), 2);
        done(&["predict", model, &csv, "--quality"]);
    }
    // What arrives may be written in another way, and have other names of columns if that is said.
    let renamed = place.file("renamed.csv", members("bought").0);
    let next = place.name("next");
    done(&["update", &models[1], &renamed, "--columns", "label=bought", "--model", &next, "-q"]);
    let described = done(&["inspect", &parquet, "--as", "samples"]);
    assert!(described.contains("60 samples"), "{described}");
    done(&["convert", "--as", "samples", &parquet, &place.name("members.mgrid")]);
    let again = place.file("again.csv", "age,member,class,city\n30,true,0,Bern\n");
    done(&["update", &next, &again, "-q"]);
    assert!(done(&["predict", &next, &csv]).lines().count() == 60);
    fails(&["blockpg", &renamed], 1, &["no column is called label, class, target, y; say with --columns label=COLUMN"]);
    let bare = place.file("bare.csv", "1,2,3,4\n0,3,4,5\n");
    fails(&["blockpg", &bare], 1, &["--format table", "--columns label=COLUMN"]);
    let one = place.file("one.csv", "age\n30\n31\n");
    let of_frame = place.name("of-frame");
    fs::create_dir(&of_frame).unwrap();
    for file in fs::read_dir(&models[0]).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), format!("{of_frame}/{}", file.file_name().to_str().unwrap())).unwrap();
    }
    let manifest = fs::read_to_string(format!("{of_frame}/model.json")).unwrap().replace("\"table\"", "\"auto\"");
    fs::write(format!("{of_frame}/model.json"), manifest).unwrap();
    assert_eq!(done(&["predict", &of_frame, &csv]), expected);
    fails(&["predict", &of_frame, &one], 1, &["one.csv: no features in it", "--format table"]);
}

#[test]
fn weights_of_samples_may_stand_in_a_column() {
    let place = Place::new();
    let (csv, _) = members("class");
    let weight = |row: usize| (row % 4).to_string();
    let mut lines = csv.lines();
    let mut weighted = format!("{},seen\n", lines.next().unwrap());
    weighted.extend(lines.enumerate().map(|(row, line)| format!("{line},{}\n", weight(row))));
    let weights = place.file("weights.txt", (0..60).map(|row| weight(row) + "\n").collect::<String>());
    let (csv, weighted) = (place.file("members.csv", csv), place.file("weighted.csv", weighted));
    let fit = |input: &str, more: &[&str], model: &str| {
        let model = place.name(model);
        let fixed = ["blockpg", input, "--l1", "0.1", "--intercept", "-q", "--holdout", "0.3", "--model", &model];
        done(&[&fixed[..], more].concat());
        (fs::read(format!("{model}/weights.parquet")).unwrap(), json(format!("{model}/model.json"))["metrics"].clone())
    };
    let of_column = ["--columns", "weight=seen"];
    let expected = fit(&csv, &["--sample-weights", &weights], "of-file");
    assert!(fit(&weighted, &of_column, "of-column") == expected);
    assert!(fit(&csv, &[], "of-none").0 != expected.0);
    // What is predicted may lack them, and its quality counts them.
    let model = place.name("of-column");
    assert_eq!(done(&["predict", &model, &csv]), done(&["predict", &model, &weighted]));
    let quality = |more: &[&str]| done(&[&["predict", &model[..], &weighted, "--quality"], more].concat());
    assert_ne!(quality(&[]), quality(&["--columns", "label=class,without=seen"]));
    let new = place.file("new.csv", "age,member,class,city,seen\n30,True,0,Bern,2\n");
    done(&["update", &model, &new, "-q"]);
    let both = [&["blockpg", &weighted[..], "--sample-weights", &weights][..], &of_column].concat();
    fails(&both, 2, &["--sample-weights and --columns weight=COLUMN both say what samples weigh"]);
    let cache = place.name("kept.mgrid");
    let caches = place.name("caches");
    let cached = [&["blockpg", &weighted[..], "--cache", &caches][..], &of_column].concat();
    fails(&cached, 2, &["--cache keeps no weights of samples; leave it out"]);
    // Whatever it was trained on, and however what is predicted is written.
    let (json, unseen) = (
        place.file("m.jsonl", "{\"age\":30,\"class\":1,\"seen\":2}\n{\"age\":20,\"class\":0,\"seen\":1}\n"),
        place.name("of-json"),
    );
    done(&["blockpg", &json, "--columns", "weight=seen", "--l1", "0.1", "-q", "--model", &unseen]);
    assert_eq!(done(&["predict", &unseen, &csv]).lines().count(), 60);
    let nothing = place.file("nothing.csv", "age,class,seen\n30,1,0\n20,0,0\n");
    fails(&["predict", &unseen, &nothing, "--quality"], 1, &["all samples to test on weigh 0"]);
    let of_samples = ["--columns", "label=class,weight=seen"];
    let kept = [&["convert", &weighted[..], &cache][..], &of_samples].concat();
    fails(&kept, 1, &["a cache holds no weights of samples; use the file that has them"]);
    fails(&[&["geeps", "mlr", &weighted[..]][..], &of_samples].concat(), 2, &["leave weight out of --columns"]);
}

#[test]
fn columns_without_names_are_those_of_the_training() {
    let place = Place::new();
    let lines: Vec<[u32; 4]> =
        (0..80_u32).map(|row| [u32::from(row * 7 % 31 > 14), row * 7 % 31, row % 5, 1 + row % 3]).collect();
    let table = |from: usize, to: usize| {
        let line = |line: &[u32; 4]| line[from..to].iter().map(u32::to_string).collect::<Vec<_>>().join(",") + "\n";
        lines.iter().map(line).collect::<String>()
    };
    let (train, unlabelled) = (place.file("train.csv", table(0, 4)), place.file("unlabelled.csv", table(1, 4)));
    let model = place.name("model");
    done(&["blockpg", &train, "--columns", "label=1", "--l1", "0.1", "--intercept", "-q", "--model", &model]);
    assert_eq!(done(&["predict", &model, &unlabelled]), done(&["predict", &model, &train]));
    // A cache that was kept of it knows of its columns.
    let (kept, cached) = (place.name("caches"), place.name("cached"));
    let fit = ["--columns", "label=1", "--l1", "0.1", "--intercept", "-q", "--cache", &kept, "--model", &cached];
    done(&[&["blockpg", &train][..], &fit].concat());
    assert_eq!(done(&["predict", &cached, &unlabelled]), done(&["predict", &cached, &train]));
    let narrow = place.file("narrow.csv", table(2, 4));
    let said =
        "2 columns without names, and the model was trained on 4; expected as many, or 3 without column 1, the labels";
    fails(&["predict", &model, &narrow], 1, &[said]);
    fails(&["update", &model, &narrow], 1, &["2 columns without names, and the model was trained on 4"]);
}

#[test]
fn samples_without_features_are_predicted_and_texts_among_numbers_are_told() {
    let place = Place::new();
    let train = place.file("train.libsvm", "1 1:1\n0 2:1\n1 1:2\n0 2:2 3:1\n".repeat(5));
    let model = place.name("model");
    done(&["blockpg", &train, "--l1", "0.1", "--intercept", "-q", "--model", &model]);
    let predict = |text: &str| -> Vec<String> {
        done(&["predict", &model, &place.file("new.libsvm", text)]).lines().map(str::to_owned).collect()
    };
    let all = predict("1:1\n\n2:1\n\n");
    assert_eq!((all.len(), &all[1..2]), (3, &predict("1\n")[..]));
    fails(&["blockpg", &place.file("bare.libsvm", "1\n0\n")], 1, &["bare.libsvm: no features in it"]);

    let table = place.file("people.csv", "label,age\n1,40\n0,\"1,000\"\n1,50\n0,7\n");
    let ran = run(&["blockpg", &table, "--l1", "0.1"]);
    let told = "people.csv: age: 1 of 4 values are no numbers, the first \"1,000\" (write numbers as digits, with a decimal point)";
    assert!(ran.code == Some(0) && ran.stderr.matches(told).count() == 1, "{}", ran.stderr);
    let ran = run(&["blockpg", &table, "--l1", "0.1", "--columns", "label=label,category=age"]);
    assert!(ran.code == Some(0) && !ran.stderr.contains(told), "{}", ran.stderr);
}

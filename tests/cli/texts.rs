//! Classification of texts in a column of a table: against samples whose words were found and counted naively.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use megagrid_datasets::hashed_name;
use megagrid_datasets::output::{Column, read_table, write_table};

use crate::{Place, done, fails, json, run};

const WORDS: [&str; 12] =
    ["Fig", "plum", "APPLE", "iron", "Zinc", "tin", "oak", "Birch", "ash", "the", "of", "well-known"];
const CLASSES: [&str; 3] = ["fruit", "metal", "wood"];

/// Returns texts with their classes, most of whose words are of the class.
fn texts(rows: u32) -> Vec<(&'static str, String)> {
    let mut state = 7_u32;
    let mut below = |limit: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % limit
    };
    let mut text = |class: u32| {
        let word = |at: u32| WORDS[at as usize];
        let mut words = String::new();
        for _ in 0..3 + below(5) {
            let own = 3 * class + below(3);
            let at = if below(3) == 0 { below(12) } else { own };
            write!(words, "{}{}", word(at), [" ", ", ", "; ", "\n"][below(4) as usize]).unwrap();
        }
        words
    };
    (0..rows).map(|row| (CLASSES[row as usize % 3], text(row % 3))).collect()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn csv(place: &Place, name: &str, texts: &[(&str, String)]) -> String {
    let lines = texts.iter().enumerate().map(|(at, (class, text))| format!("{at},{class},{}\n", quoted(text)));
    place.file(name, format!("id,kind,body\n{}", lines.collect::<String>()))
}

fn json_lines(place: &Place, name: &str, texts: &[(&str, String)]) -> String {
    let line = |(class, text): &(&str, String)| {
        format!("{}\n", serde_json::json!({ "body": text, "kind": class, "id": { "x": [1] } }))
    };
    place.file(name, texts.iter().map(line).collect::<String>())
}

/// Counts words in lower case, and pairs of those that follow one another.
fn counted(text: &str) -> BTreeMap<String, u32> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split([' ', ',', ';', '\n']).filter(|word| !word.is_empty()).collect();
    let pairs = words.windows(2).map(|pair| pair.join(" "));
    let mut counts = BTreeMap::new();
    words.iter().map(|&word| word.to_owned()).chain(pairs).for_each(|word| *counts.entry(word).or_insert(0) += 1);
    counts
}

/// Writes the same as LIBSVM text, with features by the numbers that words have.
fn numbered(place: &Place, name: &str, texts: &[(&str, String)], mut number: impl FnMut(&str) -> u64) -> String {
    let mut all = String::new();
    for (class, text) in texts {
        let mut values = BTreeMap::new();
        counted(text).iter().for_each(|(word, count)| *values.entry(number(word)).or_insert(0) += count);
        let values: String = values.iter().map(|(feature, value)| format!(" {feature}:{value}")).collect();
        writeln!(all, "{class}{values}").unwrap();
    }
    place.file(name, all)
}

const READING: [&str; 5] = ["--lower-case", "--split", "punctuation", "--bigrams", "--normalize"];

/// Trains, and returns the objective.
fn fitted(place: &Place, input: &str, model: &str, options: &[&str]) -> f64 {
    let (model, record) = (place.name(model), place.name("run.json"));
    let fit = ["blockpg", input, "--l1", "0.1", "--intercept", "-w", "1", "-q", "--model", &model, "--json", &record];
    done(&[&fit[..], options].concat());
    json(&record)["result"]["objective"].as_f64().unwrap()
}

fn predicted(place: &Place, model: &str, input: &str) -> Vec<Vec<f64>> {
    let table = done(&["predict", &place.name(model), input]);
    let rows = table.lines().skip(1).map(|line| line.split(',').skip(2).map(|field| field.parse().unwrap()).collect());
    rows.collect()
}

fn assert_near(found: &[Vec<f64>], expected: &[Vec<f64>]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((found - expected).abs() < 1e-4, "{found}, expected {expected}");
    }
}

#[test]
fn texts_are_classified_as_their_counted_words_are() {
    let place = Place::new();
    let (train, test) = (texts(240), texts(300).split_off(240));
    let of_table = ["--columns", "text=body,label=kind"];
    for (bits, hashing) in [(None, &[][..]), (Some(5), &["--hash-bits", "5"]), (Some(20), &["--hash-bits", "20"])] {
        let mut known = BTreeMap::new();
        let mut number = |word: &str| match bits {
            Some(bits) => hashed_name(word, bits),
            None => {
                let next = known.len() as u64;
                *known.entry(word.to_owned()).or_insert(next)
            }
        };
        let naive = numbered(&place, "train.libsvm", &train, &mut number);
        let unseen = numbered(&place, "test.libsvm", &test, &mut number);
        let expected = fitted(&place, &naive, "naive", &["--normalize"]);
        let chances = predicted(&place, "naive", &unseen);
        let options = [&of_table[..], &READING, hashing].concat();
        for (at, input) in
            [csv(&place, "train.csv", &train), json_lines(&place, "train.jsonl", &train)].iter().enumerate()
        {
            let model = format!("model{at}");
            let found = fitted(&place, input, &model, &options);
            assert!((found / expected - 1.0).abs() < 2e-6, "{hashing:?}: {found}, naively {expected}");
            for unseen in [csv(&place, "test.csv", &test), json_lines(&place, "test.jsonl", &test)] {
                assert_near(&predicted(&place, &model, &unseen), &chances);
            }
            // Without labels, and with other names.
            let bodies: String = test.iter().map(|(_, text)| format!("{};x\n", quoted(text))).collect();
            let bodies = place.file("bodies.csv", format!("what;more\n{bodies}"));
            let (model, unseen) = (place.name(&model), csv(&place, "test.csv", &test));
            let renamed = done(&["predict", &model, &bodies, "--columns", "text=what"]);
            assert_eq!(renamed, done(&["predict", &model, &unseen]));
            fs::remove_dir_all(&model).unwrap();
        }
        fs::remove_dir_all(place.name("naive")).unwrap();
    }
}

#[test]
fn columns_of_a_table_are_features_and_a_test_is_read_as_the_training() {
    let place = Place::new();
    let row = |at: u32| {
        let (age, city) = (at * 7 % 50, ["Oslo", "New York", ""][at as usize % 3]);
        let label = if age + 9 * (at % 3) > 30 { "yes" } else { "no" };
        (age, city, label)
    };
    let table: String = (0..200).map(row).map(|(age, city, label)| format!("{age},\"{city}\",{label}\n")).collect();
    let table = place.file("people.csv", format!("age,city,bought\n{table}"));
    let naive: String = (0..200).map(row).fold(String::new(), |mut all, (age, city, label)| {
        let city = if city.is_empty() { String::new() } else { format!(" {}:1", if city == "Oslo" { 2 } else { 3 }) };
        writeln!(all, "{label} 1:{age}{city}").unwrap();
        all
    });
    let naive = place.file("people.libsvm", naive);
    let expected = fitted(&place, &naive, "naive", &[]);
    let found = fitted(&place, &table, "model", &["--columns", "label=bought", "--test", &table]);
    assert!((found / expected - 1.0).abs() < 2e-6, "{found}, naively {expected}");
    let quality = done(&["predict", &place.name("model"), &table, "--quality"]);
    assert_eq!(quality, done(&["predict", &place.name("naive"), &naive, "--quality"]));
    let tested = json(place.path("run.json"))["result"]["metrics"]["test_accuracy"].as_f64().unwrap();
    assert!(quality.contains(&format!("accuracy {tested:.6}")), "{quality}, tested {tested}");
    let top = done(&["top", &place.name("model"), "-n", "3"]);
    assert!(top.contains("  city=Oslo\n") && top.contains("  age\n"), "{top}");
    fails(&["blockpg", &table], 1, &["people.csv"]);
    fails(
        &["blockpg", &table, "--format", "table"],
        1,
        &["say with --columns label=COLUMN", "1 age, 2 city, 3 bought"],
    );
    fails(&["blockpg", &table, "--columns", "user=age"], 1, &["--columns says which is user"]);
    fails(&["mf", &table, "--columns", "text=city"], 1, &["--columns says which is text"]);
    fails(&["blockpg", &naive, "--hash-bits", "32"], 2, &["--hash-bits"]);
}

#[test]
fn topics_are_found_of_bigrams_too() {
    let place = Place::new();
    let corpus: String = texts(90).iter().map(|(_, text)| text.replace('\n', " ") + "\n").collect();
    let (corpus, model) = (place.file("corpus.txt", corpus), place.name("model"));
    let reading = ["--lower-case", "--split", "punctuation", "--bigrams", "--stop-words", "english"];
    done(&[&["lda", &corpus, "-k", "3", "--iterations", "5", "-q", "--model", &model], &reading[..]].concat());
    let topics = done(&["topics", &model, "-n", "200"]);
    assert!(topics.contains("iron zinc") && !topics.contains("the "), "{topics}");
    let new = place.file("new.txt", "Iron zinc! And iron zinc.\n");
    let found = done(&["topics", &model, "--documents", &new]);
    assert_eq!(found.lines().count(), 1, "{found}");
}

/// A table of new documents has its columns where that of the corpus had them, or where it is said.
#[test]
fn new_documents_have_the_columns_of_the_corpus() {
    let place = Place::new();
    let line = |at: usize, word: &str| format!("2,{word},d{at}\n");
    let of = |at: usize| if at.is_multiple_of(2) { ["sea", "ship"] } else { ["rye", "salt"] };
    let counts: String = (0..20).flat_map(|at| of(at).map(|word| line(at, word))).collect();
    let (table, other) = (place.file("counts.csv", &counts), place.file("other.csv", "d1,rye,2\nd1,salt,1\n"));
    let model = place.name("model");
    done(&[
        "lda",
        &table,
        "--columns",
        "document=3,word=2,count=1",
        "-k",
        "2",
        "--iterations",
        "20",
        "--model",
        &model,
        "-q",
    ]);
    let found = done(&["topics", &model, "--documents", &table, "--json", "-"]);
    assert!(found.lines().count() == 20 && found.contains("\"d19\""), "{found}");
    let columns = ["--columns", "document=1,word=2,count=3"];
    let found = done(&[&["topics", &model, "--documents", &other, "--json", "-"], &columns[..]].concat());
    assert!(found.lines().count() == 1 && found.contains("\"d1\""), "{found}");
}

/// Lines of two or three words are documents where the corpus was text, and not edges or counts.
#[test]
fn short_lines_are_documents_where_the_corpus_was_text() {
    let place = Place::new();
    let (texts, short) = (
        place.file("texts.txt", "tea cup tea pot\nrye oat rye bread 3\n".repeat(20)),
        place.file("short.txt", "tea cup\nrye oat\n".repeat(20)),
    );
    let (numbered, model, record) =
        (place.file("numbered.txt", "tea cup 3\n"), place.name("model"), place.name("run.json"));
    let fit =
        ["lda", &texts, "-k", "2", "--iterations", "20", "--test", &short, "--model", &model, "-q", "--json", &record];
    done(&fit);
    assert!(json(&record)["result"]["metrics"]["test_perplexity"].is_number());
    for (file, documents) in [(&short, 40), (&numbered, 1)] {
        let [auto, text] = [&[][..], &["--format", "text"]]
            .map(|more| done(&[&["topics", &model, "--documents", file, "--json", "-"], more].concat()));
        assert_eq!((&auto, auto.lines().count()), (&text, documents), "{file}");
    }
    fails(&["lda", &short, "-k", "2"], 1, &["short.txt", "say --format text if they are documents"]);
}

/// What a topic model has of documents that are numbered.
fn topics_of(place: &Place, input: &str, model: &str, options: &[&str]) -> Vec<Vec<u8>> {
    let model = place.name(model);
    let fit = ["lda", input, "-k", "3", "--iterations", "5", "-w", "1", "-q", "--model", &model];
    done(&[&fit[..], &READING[..4], options].concat());
    let files = ["topics", "words", "word_topics", "documents", "document_topics"];
    files.iter().map(|file| fs::read(place.path(&format!("{model}/{file}.parquet"))).unwrap()).collect()
}

fn parquet(place: &Place, name: &str, column: &str, texts: &[(&str, String)]) -> String {
    let ids: Vec<i64> = (0..texts.len() as i64).collect();
    let bodies: Vec<String> = texts.iter().map(|(_, text)| text.clone()).collect();
    write_table(&place.path(name), &[("id", Column::I64(ids.into())), (column, Column::Strings(bodies.into()))])
        .unwrap();
    place.name(name)
}

#[test]
fn a_column_of_texts_is_a_corpus_as_its_lines_are() {
    let place = Place::new();
    let all = texts(90);
    let lines =
        |texts: &[(&str, String)]| texts.iter().map(|(_, text)| text.replace('\n', " ") + "\n").collect::<String>();
    let plain = place.file("posts.txt", lines(&all));
    let expected = topics_of(&place, &plain, "plain", &["--test", &plain]);
    let (table, objects) = (csv(&place, "posts.csv", &all), json_lines(&place, "posts.jsonl", &all));
    // A header and keys that are known are followed.
    let known = |path: &str, name: &str| place.file(name, fs::read_to_string(path).unwrap().replace("body", "Text"));
    let tabs: String = all.iter().map(|(class, text)| format!("{class}\t{}\n", quoted(text))).collect();
    let tabs = place.file("tabs.tsv", format!("kind\tbody\n{tabs}"));
    fs::create_dir(place.path("parts")).unwrap();
    csv(&place, "parts/a.csv", &all[..40]);
    csv(&place, "parts/b.csv", &all[40..]);
    for (at, (input, columns)) in [
        (table.clone(), "text=body"),
        (objects.clone(), "text=body"),
        (parquet(&place, "posts.parquet", "body", &all), "text=body"),
        (place.name("parts"), "text=body"),
        (tabs, ""),
        (known(&table, "known.csv"), ""),
        (known(&objects, "known.jsonl"), ""),
        (parquet(&place, "known.parquet", "Text", &all), ""),
    ]
    .into_iter()
    .enumerate()
    {
        let model = format!("model{at}");
        let options = if columns.is_empty() { vec![] } else { vec!["--columns", columns] };
        let found = topics_of(&place, &input, &model, &[&options[..], &["--test", &input]].concat());
        assert!(found == expected, "{input}");
        let new = done(&["topics", &place.name(&model), "--documents", &input]);
        assert_eq!(new, done(&["topics", &place.name("plain"), "--documents", &plain]), "{input}");
    }
    let manifest = json(place.path("model5/model.json"));
    assert_eq!(manifest["config"]["columns"], "text=Text");
}

#[test]
fn documents_are_named_by_a_column_and_updated_by_it() {
    let place = Place::new();
    let all = texts(60);
    let (first, more) = all.split_at(40);
    let rows = |from: usize, texts: &[(&str, String)]| {
        let row = |(at, (_, text)): (usize, &(&str, String))| format!("{},{}\n", quoted(text), 500 - from - at);
        let rows: String = texts.iter().enumerate().map(row).collect();
        place.file(&format!("{from}.csv"), format!("post,id\n{rows}"))
    };
    let (first, more) = (rows(0, first), rows(40, more));
    topics_of(&place, &first, "model", &["--columns", "document=id,text=post"]);
    let model = place.name("model");
    let ids = |model: &str| read_table(&place.path(model).join("documents.parquet")).unwrap().remove(0).1;
    // Names that are integers are in their order, whatever that of the records is.
    assert_eq!(ids("model").len(), 40);
    let Column::U64(numbers) = ids("model") else { panic!("{:?}", ids("model")) };
    assert!(numbers.contains(&461) && numbers.contains(&500), "{numbers:?}");
    done(&["update", &model, &more, "-q", "--model", &place.name("updated")]);
    assert_eq!(ids("updated").len(), 60);
    let listed = done(&["topics", &model, "--documents", &more, "--json", "-"]);
    assert!(listed.lines().count() == 20 && listed.contains("\"document\":\"441\""), "{listed}");
    fails(&["lda", &first, "--columns", "text=post,count=id"], 1, &["leave word and count out of --columns"]);
    fails(&["lda", &first, "--columns", "text=posts"], 1, &["there is no column posts for text", "1 post, 2 id"]);
    done(&["lda", &first, "--format", "table", "-k", "2", "--iterations", "2", "-q"]);
}

#[test]
fn tables_whose_texts_nobody_names_are_told() {
    let place = Place::new();
    let table = place.file("p.csv", "id,day,what\n1,mon,\"sea, ship\"\n2,tue,rye and salt\n3,wed,tea\n");
    let said = run(&["lda", &table, "-k", "2", "--iterations", "2", "-q"]).stderr;
    assert!(said.contains("--columns text=NAME") && said.contains("1 id, 2 day, 3 what"), "{said}");
    let stated = run(&["lda", &table, "-k", "2", "--iterations", "2", "-q", "--format", "text"]).stderr;
    assert_eq!(stated, "");
    let keys = place.file("p.jsonl", "{\"id\": 1, \"what\": \"sea ship\"}\n");
    fails(&["lda", &keys], 1, &["id, what; name it with --columns text=KEY, or document=KEY,word=KEY,count=KEY"]);
    let rows = place.path("p.parquet");
    let column = |texts: [&str; 2]| Column::Strings(texts.map(str::to_owned).to_vec().into());
    let columns =
        [("id", column(["a", "b"])), ("what", column(["sea ship", "rye salt"])), ("label", column(["x", "y"]))];
    write_table(&rows, &columns).unwrap();
    fails(&["lda", rows.to_str().unwrap()], 1, &["column label holds", "name it with --columns text=COLUMN"]);
    done(&["lda", rows.to_str().unwrap(), "-k", "2", "--iterations", "2", "-q", "--columns", "text=what"]);
    let wide = place.file("wide.csv", "id,text\n1,sea\n2,sea, ship\n");
    fails(&["lda", &wide], 1, &["wide.csv:3: document: found", "a field that has commas in it needs quotes"]);
}

#[test]
fn pairs_of_documents_and_words_are_counted() {
    let place = Place::new();
    let pairs = "a,sea\na,ship\nb,rye\na,sea\nb,salt\nb,rye\n";
    let counts = place.file("counts.csv", "document,word,count\na,sea,2\na,ship,1\nb,rye,2\nb,salt,1\n");
    let fit = |input: &str, model: &str, options: &[&str]| {
        let model = place.name(model);
        let fit = ["lda", input, "-k", "2", "--iterations", "5", "-w", "1", "-q", "--model", &model];
        done(&[&fit[..], options].concat());
        ["words", "documents", "word_topics"]
            .map(|file| fs::read(place.path(&format!("{model}/{file}.parquet"))).unwrap())
    };
    let expected = fit(&counts, "counts", &[]);
    let headed = place.file("pairs.csv", format!("document,word\n{pairs}"));
    let other = place.file("other.csv", format!("doc,term\n{pairs}"));
    let bare = place.file("bare.csv", pairs);
    assert_eq!(fit(&headed, "headed", &[]), expected);
    assert_eq!(fit(&other, "other", &["--columns", "document=doc,word=term,count=none"]), expected);
    assert_eq!(fit(&bare, "bare", &["--columns", "count=none"]), expected);
    fails(&["lda", &other], 1, &["--columns document=COLUMN,word=COLUMN,count=none", "--columns text=COLUMN"]);
}

#[test]
fn words_that_are_counted_stay_as_they_are() {
    let place = Place::new();
    let counts = place.file("counts.csv", "a,sea,2\na,ship,1\nb,rye,2\nb,salt,1\n");
    let cache = place.name("counts.mgrid");
    done(&["convert", &counts, &cache, "--as", "corpus"]);
    for input in [&counts, &cache] {
        let lda = ["lda", input, "-k", "2", "--iterations", "2", "-q"];
        for options in [&["--lower-case"][..], &["--split", "punctuation"], &["--bigrams"]] {
            assert!(run(&[&lda[..], options].concat()).stderr.contains("are counted already, and stay as they are"));
        }
        assert_eq!(run(&[&lda[..], &["--split", "space"]].concat()).stderr, "");
    }
    let few = place.file("few.txt", "sea ship\nrye salt tea\n");
    fails(&["lda", &few, "--format", "text", "--holdout", "0.0001"], 1, &["of 2 documents leaves none"]);
}

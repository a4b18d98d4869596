//! What data say that may not be meant: it is told.

use std::fs;

use crate::{Place, done, fails, run};

#[test]
fn columns_that_a_file_lacks_are_told() {
    let place = Place::new();
    let line = |at: usize| {
        let (age, income) = (at % 7, at % 5);
        format!("{},{age},{income},{}\n", ["no", "yes"][usize::from(age + income > 4)], ["oslo", "rome"][at / 3 % 2])
    };
    let lines: String = (0..60).map(line).collect();
    let train = place.file("train.csv", format!("bought,age,income,city\n{lines}"));
    let renamed = place.file("renamed.csv", format!("bought,Age,income,city\n{lines}"));
    let model = place.name("model");
    let trained =
        done(&["blockpg", &train, "--columns", "label=bought", "--l1", "0.01", "--intercept", "--model", &model]);
    assert!(trained.contains("labels of column bought: no (26), yes (34)"), "{trained}");
    let lacks = "renamed.csv: there is no column age (it has Age)";
    for args in [
        &["predict", &model, &renamed][..],
        &["blockpg", &train, "--columns", "label=bought", "--test", &renamed, "-q"],
        &["update", &model, &renamed, "--model", &place.name("next")],
    ] {
        let ran = run(args);
        assert!(ran.code == Some(0) && ran.stderr.contains(lacks), "{args:?}: {}", ran.stderr);
    }
    for same in [&train, &place.file("same.jsonl", "{\"age\": 3}\n{\"income\": 2}\n")] {
        assert_eq!(run(&["predict", &model, same]).stderr, "");
    }
}

#[test]
fn what_may_be_no_class_and_no_category_is_told() {
    let place = Place::new();
    let lines: String = (0..40).map(|at| format!("{},\"{at},5\"\n", ["ham", "spam"][at % 2])).collect();
    let told = |args: &[&str]| {
        let ran = run(&[&["blockpg"], args, &["--iterations", "3", "-q"]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stderr
    };
    let table = place.file("table.csv", format!("label,x\n{lines}"));
    assert!(told(&[&table]).contains("x: 40 different texts in 40 samples, the first \"0,5\""));
    assert_eq!(told(&[&table, "--columns", "category=x"]), "");
    let rooms: String = (0..40).map(|at| format!("class{},A{},{at}\n", at % 25, at % 9)).collect();
    assert_eq!(told(&[&place.file("rooms.csv", format!("label,room,n\n{rooms}"))]), "");
    let header = place.file("header.csv", format!("v1,v2\n{lines}"));
    assert!(
        told(&[&header, "--columns", "label=1,text=2"]).contains("the first line, \"v1, v2\", is read as a sample")
    );
    let numbers: String = (0..60).map(|at| format!("{}.5,{at}\n", at * 7 % 31)).collect();
    let numbers = place.file("numbers.csv", format!("target,x\n{numbers}"));
    assert!(told(&[&numbers]).contains("the labels of 60 samples are 31 classes"));
    let missing = place.file("missing.csv", "label,x\n1,2\nNA,3\n0,1\n");
    fails(&["blockpg", &missing], 1, &["missing.csv:3: label: found \"NA\"", "leave out samples that have none"]);
}

/// As models of before have them.
#[test]
fn truth_as_labels_is_one_class_however_it_is_written() {
    let place = Place::new();
    let lines = |ways: [&str; 2]| -> String {
        (0..60).map(|at| format!("{},{},{}\n", ways[usize::from(at % 3 == 0)], at % 7, at % 5)).collect()
    };
    let train = place.file("train.csv", format!("label,age,n\n{}", lines(["FALSE", "True"])));
    let more = place.file("more.csv", format!("label,age,n\n{}", lines(["False", "true"])));
    let model = place.name("model");
    let weights = ["--class-weight", "True=2,FALSE=1"];
    let trained = done(&[&["blockpg", &train, "--model", &model], &weights[..]].concat());
    assert!(trained.contains("labels of column label: false (40), true (20)"), "{trained}");
    let manifest = place.path("model/model.json");
    let named =
        fs::read_to_string(&manifest).unwrap().replace("\"false\"", "\"False\"").replace("\"true\"", "\"True\"");
    fs::write(&manifest, named).unwrap();
    assert_eq!(run(&["predict", &model, &more, "--quality"]).code, Some(0));
    done(&["blockpg", &train, "--from", &model, "-q"]);
    let updated = done(&["update", &model, &more]);
    assert!(updated.contains("updated on all data; new features: 0") && !updated.contains("new classes"), "{updated}");
}

#[test]
fn lines_of_one_word_and_document_add_up() {
    let place = Place::new();
    let counts = "a,sea,1\na,sea,2\nb,rye,1\na,salt,1\na,sea,1\nb,salt,1\n";
    let counts = place.file("counts.csv", format!("document,word,count\n{counts}"));
    let said = done(&["lda", &counts, "-k", "2", "--iterations", "3"]);
    assert!(said.contains("2 × 3 vertices, 4 edges"), "{said}");
}

use std::collections::BTreeMap;

use super::*;
use crate::Split;
use crate::{Label, Roles};

const WORDS: Tokenizer = Tokenizer { lower_case: true, split: Split::Punctuation, bigrams: false };

fn read_as(text: &str, format: Format, roles: &str, labelled: Labelled<'_>) -> Result<Samples, String> {
    let roles = if roles.is_empty() { Roles::default() } else { roles.parse().unwrap() };
    let input = Input::from_bytes(text.as_bytes()).with_roles(&roles);
    read(&input, format, labelled, WORDS).map_err(|error| error.to_string())
}

/// Reads a table without a header as a model that was trained on as many columns does.
fn read_bare(text: &str, roles: &str, num_columns: usize, labelled: Labelled<'_>) -> Result<Samples, String> {
    let roles = roles.parse::<Roles>().unwrap().with_num_columns(Some(num_columns));
    let input = Input::from_bytes(text.as_bytes()).with_roles(&roles);
    read(&input, Format::Table, labelled, WORDS).map_err(|error| error.to_string())
}

/// Returns the label of each sample and the values of its features.
fn shown(samples: &Samples) -> Vec<(String, BTreeMap<String, f32>)> {
    let Samples { data, labels, .. } = samples;
    let label = |at: usize| labels.of.get(at).map_or(String::new(), |&of| labels.classes[of as usize].clone());
    let mut all: Vec<_> = (0..data.edges.num_left).map(|at| (label(at), BTreeMap::new())).collect();
    for ((&left, &right), &value) in data.edges.left.iter().zip(&data.edges.right).zip(&data.edges.data) {
        let name = data.right_names().name(right).into_owned();
        assert!(all[left as usize].1.insert(name, value).is_none(), "each once");
    }
    all
}

fn sample(label: &str, values: &[(&str, f32)]) -> (String, BTreeMap<String, f32>) {
    (label.to_owned(), values.iter().map(|&(name, value)| (name.to_owned(), value)).collect())
}

#[test]
fn words_of_a_column_are_features_in_any_syntax() {
    let expected = [
        sample("4", &[("good", 2.0), ("very", 1.0), ("a", 1.0)]),
        sample("1", &[("bad", 1.0), ("a", 1.0), ("b", 1.0)]),
        sample("4", &[]),
    ];
    let csv = "id,stars,body\n1,4,\"Good, very good\na\"\n\n2,1,\"bad; \"\"a\"\" b\"\n3,4,\n";
    let tabs = "Good very good a\t4\nbad a b\t1\n\t4\n";
    let json = r#"{"body": "Good, very\ngood a", "stars": 4, "id": [1]}
        {"stars": 1, "body": "bad \u0022a\u0022 b", "more": {"x": 1}}
        {"stars": 4, "body": null}"#;
    for (text, format, roles) in [
        (csv, Format::Table, "text=body,label=stars"),
        (csv.split_once('\n').unwrap().1, Format::Table, "text=3,label=2"),
        (tabs, Format::Table, "text=1,label=2"),
        (json, Format::JsonLines, "text=body,label=stars"),
    ] {
        let read = read_as(text, format, roles, Labelled::As(&[])).unwrap();
        assert_eq!(shown(&read), expected, "{text}");
    }
    let signs = read_as(csv, Format::Table, "text=body,label=stars", Labelled::As(&[Label::Number(4.0)])).unwrap();
    assert_eq!(shown(&signs).iter().map(|(label, _)| &label[..]).collect::<Vec<_>>(), ["1", "-1", "1"]);
    let unknown = read_as("body\ngood a\n", Format::Table, "text=body,label=stars", Labelled::No).unwrap();
    assert_eq!(shown(&unknown), [sample("", &[("good", 1.0), ("a", 1.0)])]);
}

#[test]
fn columns_that_are_named_count_beside_a_text() {
    let expected = [sample("1", &[("good", 1.0), ("price", 2.5), ("zip=104", 1.0)]), sample("0", &[("price", 1.0)])];
    let csv = "id,y,body,price,zip\n7,1,good,2.5,104\n8,0,,1,\n";
    let json = "{\"price\": 2.5, \"zip\": 104, \"body\": \"good\", \"y\": 1, \"id\": 7}\n{\"y\": 0, \"body\": null, \"price\": 1}";
    for (text, format) in [(csv, Format::Table), (json, Format::JsonLines)] {
        let read = read_as(text, format, "text=body,feature=price,category=zip", Labelled::As(&[])).unwrap();
        assert_eq!(shown(&read), expected, "{text}");
    }
    for (text, format) in [(csv, Format::Table), (json, Format::JsonLines)] {
        let only = read_as(text, format, "feature=price", Labelled::As(&[])).unwrap();
        assert_eq!(shown(&only), [sample("1", &[("price", 2.5)]), sample("0", &[("price", 1.0)])], "{text}");
    }
    for (roles, expected) in [
        ("text=body,feature=cost", "there is no column cost for feature"),
        ("feature=price,category=price", "column price has two roles"),
    ] {
        let said = read_as(csv, Format::Table, roles, Labelled::As(&[])).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn columns_are_features_by_name() {
    let expected = [
        sample("no", &[("age", 41.5), ("city=Oslo", 1.0)]),
        sample("yes", &[("age", -3.0), ("city=New York", 1.0), ("is_new", 1.0)]),
        sample("yes", &[]),
    ];
    let csv = "age;Class;city;is_new\n41.5;no;Oslo;0\n-3;yes;\"New York\";1\n;yes;;\n";
    let json = r#"{"age": 41.5, "label": "no", "city": "Oslo", "is_new": false}
        {"is_new": true, "city": "New York", "age": -3, "label": "yes"}
        {"label": "yes", "city": "", "age": null, "is_new": 0}"#;
    for (text, format) in [(csv, Format::Table), (json, Format::JsonLines)] {
        assert_eq!(shown(&read_as(text, format, "", Labelled::As(&[])).unwrap()), expected);
    }
}

#[test]
fn truth_and_what_is_missing_are_as_in_json() {
    let csv = "y,member,age\n1,True,NA\n0,false,nan\n1,TRUE,7\n0,\\N,None\n1,null,N/A\n";
    let json = r#"{"y": 1, "member": true, "age": null}
        {"y": 0, "member": false}
        {"y": 1, "member": true, "age": 7}
        {"y": 0}
        {"y": 1, "age": ""}"#;
    let [csv, json] = [(csv, Format::Table), (json, Format::JsonLines)]
        .map(|(text, format)| shown(&read_as(text, format, "", Labelled::As(&[])).unwrap()));
    assert_eq!(csv, json);
    assert_eq!(csv[2], sample("1", &[("member", 1.0), ("age", 7.0)]));
}

#[test]
fn columns_are_left_out_and_numbers_are_categories_where_that_is_said() {
    let expected = [sample("1", &[("zip=0150", 1.0), ("n", 2.0)]), sample("0", &[("zip=7", 1.0)]), sample("1", &[])];
    let csv = "id,y,zip,n,when\n17,1,0150,2,monday\n18,0,7,,noon\n19,1,NA,0,\n";
    let bare = csv.split_once('\n').unwrap().1;
    let json = r#"{"id": 17, "y": 1, "zip": "0150", "n": 2}
        {"y": 0, "zip": 7, "when": "noon"}
        {"y": 1, "zip": null, "id": 19}"#;
    let roles = "label=y,without=id,category=zip,without=when";
    for (text, format) in [(csv, Format::Table), (json, Format::JsonLines)] {
        assert_eq!(shown(&read_as(text, format, roles, Labelled::As(&[])).unwrap()), expected);
    }
    let read = read_as(bare, Format::Table, "label=2,without=1,category=3,without=5", Labelled::As(&[])).unwrap();
    assert_eq!(shown(&read)[0], sample("1", &[("3=0150", 1.0), ("4", 2.0)]));
    // A header where the column of labels is not named by its number.
    let read = read_as("id,y\n1,1\n2,0\n", Format::Table, "without=1", Labelled::As(&[])).unwrap();
    assert_eq!(shown(&read), [sample("1", &[]), sample("0", &[])]);
    // What is predicted may lack such columns, and that of labels.
    let read = read_as("n\n2\n", Format::Table, roles, Labelled::No).unwrap();
    assert_eq!(shown(&read), [sample("", &[("n", 2.0)])]);
}

#[test]
fn columns_without_names_stay_where_they_were_without_the_labels() {
    let read = |text: &str, labelled| read_bare(text, "label=2", 3, labelled);
    let expected = [sample("", &[("1", 5.0), ("3", 6.0)])];
    assert_eq!(shown(&read("5,1,6\n", Labelled::No).unwrap()), expected);
    assert_eq!(shown(&read("5,6\n", Labelled::No).unwrap()), expected);
    let said = read("5,6,7,8\n", Labelled::No).unwrap_err();
    assert!(said.contains("4 columns without names, and the model was trained on 3"), "{said}");
    let said = read("5,6\n", Labelled::As(&[])).unwrap_err();
    assert!(said.contains("2 columns without names, and the model was trained on 3"), "{said}");
}

#[test]
fn a_column_says_what_samples_weigh() {
    let csv = "n,seen,y\n1,2.5,1\n2,0,0\n";
    let json = "{\"y\": 1, \"n\": 1, \"seen\": 2.5}\n{\"seen\": \"0\", \"y\": 0, \"n\": 2}\n";
    for (text, format, roles, name) in [
        (csv, Format::Table, "weight=seen", "n"),
        (json, Format::JsonLines, "label=y,weight=seen", "n"),
        ("1,2.5,1\n2,0,0\n", Format::Table, "label=3,weight=2", "1"),
    ] {
        let read = read_as(text, format, roles, Labelled::As(&[])).unwrap();
        assert_eq!(shown(&read), [sample("1", &[(name, 1.0)]), sample("0", &[(name, 2.0)])]);
        assert_eq!(read.weights, [2.5, 0.0]);
        assert_eq!(read.clone().in_degree_order().weights.iter().sum::<f32>(), 2.5);
        let plain = Samples { weights: Vec::new(), ..read.clone() };
        assert_eq!(read.clone().append(plain.clone()).weights, [2.5, 0.0, 1.0, 1.0]);
        assert_eq!(plain.clone().append(read).weights, [1.0, 1.0, 2.5, 0.0]);
        assert!(plain.clone().append(plain).weights.is_empty());
        // What is predicted may lack weights, and they are not looked at.
        let read = read_as(text, format, roles, Labelled::No).unwrap();
        assert_eq!((shown(&read).len(), read.weights), (2, Vec::new()));
    }
    let read_bare = |text: &str| read_bare(text, "label=3,weight=2", 4, Labelled::No);
    for text in ["1,9,0,4\n", "1,4\n"] {
        assert_eq!(shown(&read_bare(text).unwrap()), [sample("", &[("1", 1.0), ("4", 4.0)])], "{text}");
    }
    let said = read_bare("1,9,4\n").unwrap_err();
    assert!(said.contains("or 2 without column 3, the labels, and column 2, the weights"), "{said}");
    // What the first object lacks is no feature of later ones.
    let json = "{\"n\": 1}\n{\"n\": 2, \"seen\": 3, \"y\": 1}\n";
    let read = read_as(json, Format::JsonLines, "label=y,weight=seen", Labelled::No).unwrap();
    assert_eq!(shown(&read), [sample("", &[("n", 1.0)]), sample("", &[("n", 2.0)])]);
}

#[test]
fn samples_may_be_without_features() {
    let read = read_as("y,a\n1,0\n0,\n", Format::Table, "", Labelled::No).unwrap();
    assert_eq!(shown(&read), [sample("", &[]), sample("", &[])]);
    assert!(read_as("y,a\n", Format::Table, "", Labelled::No).unwrap_err().contains("no features in it"));
}

#[test]
fn what_is_wrong_with_a_table_is_told() {
    for (text, format, roles, expected) in [
        (
            "a,b\n1,2\n",
            Format::Table,
            "",
            "no column is called label, class, target, y; say with --columns label=COLUMN",
        ),
        ("a,b\n1,2\n", Format::Table, "label=c", "there is no column c for label; its columns are 1 a, 2 b"),
        ("a,b\n1,2\n", Format::Table, "label=a,text=a", "column a would be both label and text"),
        (
            "label,b\n1,2\n2,3,4\n",
            Format::Table,
            "",
            "<bytes>:3: sample: found \"2,3,4\", expected 2 fields separated by commas",
        ),
        ("b,label\n1\n", Format::Table, "", "<bytes>:2: label: found \"1\", expected a record with a label"),
        ("label,b\n,2\n", Format::Table, "", "<bytes>:2: label: found \"\", expected a label"),
        (
            "{\"label\":1,\"b\":[2]}",
            Format::JsonLines,
            "",
            "<bytes>:1: value: found \"[2]\", expected a number, a text",
        ),
        (
            "{\"label\":1,\"b\":1e60}",
            Format::JsonLines,
            "",
            "<bytes>:1: value: found \"1e60\", expected a finite number",
        ),
        (
            "{\"label\":1,\"b\":\"x\"}\n{\"label\":2}",
            Format::JsonLines,
            "text=b,label=label",
            "<bytes>:2: text: found \"{\\\"label\\\":2}\", expected a value of \"b\", or null",
        ),
        ("{\"label\":1,\"b\":1}\n{\"b\":2}", Format::JsonLines, "", "<bytes>:2: label: found"),
        ("{\"label\":1,", Format::JsonLines, "label=label", "there is no column label for label"),
        ("label,a,b,a\n1,2,3,4\n", Format::Table, "", "columns 2 and 4 are both called a; give one another name"),
        (
            ",label,a\n0,1,2\n",
            Format::Table,
            "",
            "<bytes>:2: sample: found \"0,1,2\", expected nothing in column 1, which has no name; --columns without=1 leaves it out",
        ),
        (
            "label,b\n1,2\n",
            Format::Table,
            "without=c",
            "there is no column c for without; its columns are 1 label, 2 b",
        ),
        ("label,b\n1,2\n", Format::Table, "category=label", "column label would be category and label, weight or text"),
        ("label,b\n1,2\n", Format::Table, "weight=label", "column label would be both label and weight"),
        (
            "label,b\n1,-2\n",
            Format::Table,
            "weight=b",
            "<bytes>:2: weight: found \"-2\", expected a number, 0 or above",
        ),
        (
            "b,label\n1,2\n,2\n",
            Format::Table,
            "weight=b",
            "<bytes>:3: weight: found \"\", expected a number, 0 or above",
        ),
        ("{\"y\":1,\"b\":1}\n{\"y\":1}", Format::JsonLines, "weight=b", "<bytes>:2: weight: found \"{\\\"y\\\":1}\""),
        ("{\"label\":1}\n[1]", Format::JsonLines, "", "<bytes>:2: JSON: found \"[1]\", expected an object"),
    ] {
        let said = read_as(text, format, roles, Labelled::As(&[])).unwrap_err();
        assert!(said.contains(expected), "{text:?}: {said}");
    }
}

#[test]
fn labels_that_are_not_there_are_refused() {
    for missing in ["NA", "NULL", "\\N", ""] {
        let csv = format!("label,x\n1,2\n{missing},3\n");
        for labelled in [Labelled::As(&[]), Labelled::As(&[Label::Number(1.0)])] {
            let problem = read_as(&csv, Format::Table, "", labelled).unwrap_err();
            assert!(problem.contains("leave out samples that have none"), "{problem}");
        }
        assert!(read_as(&csv, Format::Table, "", Labelled::No).is_ok(), "they are not looked at");
    }
    let read = read_as("label,x\nNone,2\nmild,3\n", Format::Table, "", Labelled::As(&[])).unwrap();
    assert_eq!(read.labels.classes, ["None", "mild"]);
}

#[test]
fn the_value_of_a_key_that_cannot_be_read_is_told_with_it() {
    let problem = read_as(r#"{"label": 1, "more": {"id": 0}}"#, Format::JsonLines, "", Labelled::As(&[])).unwrap_err();
    assert!(problem.contains("for \"more\"; --columns without=more leaves it out"), "{problem}");
}

#[test]
fn a_first_line_that_reads_like_a_header_is_doubtful() {
    let first = |text: &str, roles: &str| {
        let roles: Roles = roles.parse().unwrap();
        let reader = Reader { roles: &roles, is_json: false, labelled: Labelled::As(&[]), tokenizer: WORDS };
        reader.doubtful_first(&mut Input::from_bytes(text.as_bytes()).head().unwrap())
    };
    let lines = |line: fn(usize) -> String| (0..40).map(line).collect::<String>();
    let mails = lines(|at| format!("{},mail {at}\n", ["ham", "spam"][at % 2]));
    assert_eq!(first(&format!("v1,v2\n{mails}"), "label=1,text=2").as_deref(), Some("v1, v2"));
    let ages = lines(|at| format!("{},{at}\n", ["yes", "no"][at % 2]));
    assert_eq!(first(&format!("bought,age\n{ages}"), "label=1").as_deref(), Some("bought, age"));
    for (text, roles) in [
        (mails.clone(), "label=1,text=2"),
        (ages, "label=1"),
        (lines(|at| format!("{},{at}\n", usize::from(at == 0))), "label=1"),
        (lines(|at| format!("{},x{at}\n", if at == 0 { "fraud" } else { "ok" })), "label=1,text=2"),
        (lines(|at| format!("{},x{at}\n", ["y", "n"][at % 2])), "label=1,text=2"),
        (format!("yes,NA\n{}", lines(|at| format!("no,{at}\n"))), "label=1"),
        ("red,5\n7,6\n".to_owned(), "label=1"),
    ] {
        assert_eq!(first(&text, roles), None, "{text}");
    }
}

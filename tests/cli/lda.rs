//! Topic models: what is trained, written, folded in and refused.

use std::fs;
use std::path::Path;

use megagrid_datasets::output::{Column, read_npy, read_table};

use crate::{Place, done, fails, json, run};

pub(crate) const FRUIT: [&str; 5] = ["apple", "pear", "plum", "fig", "quince"];
const METAL: [&str; 5] = ["iron", "zinc", "lead", "tin", "nickel"];

/// Writes 60 documents, every other one about fruit and about metal.
pub(crate) fn documents(place: &Place) -> String {
    let document = |n: usize| -> String {
        let words = if n.is_multiple_of(2) { FRUIT } else { METAL };
        (0..20).map(|at| format!("{} ", words[(n * at + at * at + n / 7) % 5])).collect::<String>() + "\n"
    };
    place.file("posts.txt", (0..60).map(document).collect::<String>())
}

/// Trains two topics with further options; returns the model's place.
pub(crate) fn train(place: &Place, name: &str, options: &[&str]) -> String {
    let (posts, model) = (documents(place), place.name(name));
    let mut args = vec!["lda", &posts, "-k", "2", "--alpha", "0.1", "--model", &model, "-q"];
    args.extend(options);
    for default in [["-w", "1"], ["--iterations", "30"]] {
        args.extend(default.iter().filter(|_| !options.contains(&default[0])));
    }
    done(&args);
    model
}

fn counts(model: &str, file: &str) -> [Vec<u32>; 3] {
    let columns = read_table(&Path::new(model).join(file)).unwrap();
    columns
        .into_iter()
        .map(|(_, column)| if let Column::U32(values) = column { values.into_owned() } else { panic!("{column:?}") })
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

#[test]
fn the_record_counts_tokens_and_evaluates_when_asked_to() {
    let place = Place::new();
    let (posts, path) = (documents(&place), place.name("run.json"));
    let args = ["lda", &posts, "-k", "2", "--iterations", "42", "--evaluate-every", "4", "--alpha", "0.2/K"];
    let text = done(&[&args[..], &["--holdout", "0.2", "--json", &path, "-w", "2"]].concat());
    for shown in ["tokens/s", "per_token", "test_perplexity", "coherence_npmi", "Log likelihood per token", "top words"]
    {
        assert!(text.contains(shown), "no {shown} in: {text}");
    }
    let record = json(&path);
    let evaluated: Vec<bool> =
        record["iterations"].as_array().unwrap().iter().map(|one| !one["objective"].is_null()).collect();
    let expected: Vec<bool> = (1..=42).map(|at| at % 4 == 0 || at == 42).collect();
    assert_eq!(evaluated, expected);
    let last = &record["iterations"][41];
    let tokens = record["input"]["left"].as_f64().unwrap() * 20.0;
    assert_eq!(last["updates"].as_f64().unwrap(), tokens);
    let [joint, per_token] = ["log_likelihood", "per_token"].map(|name| last["metrics"][name].as_f64().unwrap());
    assert!((joint / tokens - per_token).abs() < 1e-9 && last["objective"].as_f64() == Some(joint));
    let perplexity = last["metrics"]["test_perplexity"].as_f64().unwrap();
    // Five words of ten, nearly as frequent as each other, once topics are told apart.
    assert!((3.0..7.0).contains(&perplexity), "{perplexity}");
    assert_eq!(record["config"]["alpha"], 0.1);
}

#[test]
fn models_hold_every_token_once_and_topics_are_listed() {
    let place = Place::new();
    for (sampler, name) in [("dense", "d"), ("sparse", "s"), ("mh", "m")] {
        let model = train(&place, name, &["--sampler", sampler]);
        let totals = read_npy::<u64>(&Path::new(&model).join("topic_tokens.npy"), 1).unwrap().values;
        assert_eq!(totals.iter().sum::<u64>(), 1200);
        for file in ["word_topics.parquet", "document_topics.parquet"] {
            let [rows, topics, tokens] = counts(&model, file);
            assert!(rows.is_sorted());
            for topic in 0..2 {
                let of_topic = topics.iter().zip(&tokens).filter(|(at, _)| **at == topic).map(|(_, &n)| u64::from(n));
                assert_eq!(of_topic.sum::<u64>(), totals[topic as usize], "{file}");
            }
        }
        let topics = done(&["topics", &model, "-n", "5"]);
        assert_eq!(topics.lines().count(), 3);
        for line in topics.lines().skip(1) {
            let mut words: Vec<&str> = line.split_whitespace().rev().take(5).collect();
            let mut expected = if FRUIT.contains(&words[0]) { FRUIT } else { METAL };
            words.sort_unstable();
            expected.sort_unstable();
            assert_eq!(words, expected, "{sampler}");
        }
    }
}

#[test]
fn new_documents_are_folded_in() {
    let place = Place::new();
    let model = train(&place, "model", &[]);
    let new = place.file("new.txt", "apple pear fig apple unicorn\ntin zinc lead\nunicorn dragon\n");
    let ran = run(&["topics", &model, "--documents", &new, "--format", "text"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("3 of 10 words are not in the model's vocabulary"), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3);
    let best = |line: &str| line.split_whitespace().nth(1).unwrap().split_once(':').unwrap().0.to_owned();
    assert_ne!(best(lines[0]), best(lines[1]), "{}", ran.stdout);
    assert_eq!(lines[2].trim(), "3", "nothing tells its topics");
    assert!(ran.stderr.contains("1 document without a word that the model knows"), "{}", ran.stderr);
    done(&["topics", &model, "--documents", &new, "--format", "text", "--output", &place.name("new")]);
    let mixtures = read_npy::<f32>(&place.path("new").join("mixtures.npy"), 2).unwrap();
    assert_eq!(mixtures.shape, [3, 2]);
    assert!(mixtures.values.chunks(2).all(|one| (one[0] + one[1] - 1.0).abs() < 1e-5));
    let none = place.file("none.txt", "unicorn dragon\ndragon wyvern\n");
    fails(&["topics", &model, "--documents", &none, "--format", "text"], 1, &["none.txt", "knows none of its words"]);
}

#[test]
fn words_are_chosen_by_options() {
    let place = Place::new();
    let posts = place.file("posts.txt", "The Cat, the dog; and Zoë!\nA cat and a dog.\nthe end\n");
    let words = |name: &str, options: &[&str]| {
        let model = place.name(name);
        let args = ["lda", &posts, "--format", "text", "-k", "2", "--iterations", "2", "--model", &model, "-q"];
        done(&[&args[..], options].concat());
        let table = read_table(&Path::new(&model).join("words.parquet")).unwrap();
        let Column::Strings(words) = &table[0].1 else { panic!("{table:?}") };
        let mut words = words.to_vec();
        words.sort_unstable();
        (words.join(" "), json(Path::new(&model).join("model.json")))
    };
    let plain = words("plain", &[]).0;
    assert!(plain.contains("Cat,") && plain.contains("cat "), "{plain}");
    let (tidy, manifest) = words("tidy", &["--lower-case", "--split", "punctuation", "--stop-words", "english"]);
    assert_eq!(tidy, "cat dog end zoë");
    assert_eq!(manifest["data"]["left"], 3);
    assert_eq!(manifest["config"]["split"], "punctuation");
    let stop = place.file("stop.txt", "cat\nend\n");
    let options = ["--lower-case", "--split", "punctuation", "--stop-words", &stop, "--min-word-length", "3"];
    assert_eq!(words("own", &options).0, "and dog the zoë");
    let options = ["--lower-case", "--split", "punctuation", "--min-documents", "2", "--max-documents", "0.9"];
    assert_eq!(words("share", &options).0, "and cat dog the");
    let model = place.name("tidy");
    let new = place.file("new.txt", "CAT: dog?\nno\n");
    let listed = run(&["topics", &model, "--documents", &new, "--format", "text"]);
    assert!(listed.stderr.contains("1 of 3 words"), "as the corpus was read: {}", listed.stderr);
}

#[test]
fn documents_without_words_are_kept() {
    let place = Place::new();
    place.file("vocab.c.txt", "ale\nbun\n");
    let corpus = place.file("docword.c.txt", "3\n2\n2\n1 1 4\n3 2 5\n");
    let model = place.name("model");
    done(&["lda", &corpus, "-k", "2", "--model", &model, "--iterations", "3", "-q"]);
    assert_eq!(json(Path::new(&model).join("model.json"))["data"]["left"], 3);
    assert_eq!(counts(&model, "document_topics.parquet")[2].iter().sum::<u32>(), 9);
}

#[test]
fn a_line_without_words_is_a_document_that_tells_no_topics() {
    let place = Place::new();
    // Lines 2 and 5 are blank, the stop words leave nothing of line 4.
    let posts = place.file("posts.txt", "ale bun ale\n\nbun the rye\nthe\n   \nrye ale\n");
    let stop = place.file("stop.txt", "the\n");
    let model = place.name("model");
    let args = ["lda", &posts, "--format", "text", "-k", "2", "--iterations", "3", "--stop-words", &stop];
    done(&[&args[..], &["--model", &model, "-q"]].concat());
    assert_eq!(json(Path::new(&model).join("model.json"))["data"]["left"], 6);
    let with_words: std::collections::BTreeSet<u32> =
        counts(&model, "document_topics.parquet")[0].iter().copied().collect();
    assert_eq!(with_words.len(), 3);
    let text = run(&["topics", &model, "--documents", &posts, "--format", "text"]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    for line in [1, 3, 4] {
        assert_eq!(lines[line].trim_end(), (line + 1).to_string());
    }
}

#[test]
fn extra_topics_are_given_up() {
    let place = Place::new();
    for sampler in ["dense", "sparse"] {
        let options = ["--extra-topics", "3", "--sampler", sampler, "-w", "2"];
        let model = train(&place, sampler, &options);
        let alpha = read_npy::<f32>(&Path::new(&model).join("alpha.npy"), 1).unwrap().values;
        assert!(alpha.len() == 2 && alpha.iter().all(|&alpha| alpha > 0.0), "{alpha:?}");
        assert!(counts(&model, "word_topics.parquet")[1].iter().all(|&topic| topic < 2));
        assert_eq!(counts(&model, "document_topics.parquet")[2].iter().sum::<u32>(), 1200);
    }
    let posts = documents(&place);
    let refused = |options: &[&str], parts: &[&str]| fails(&[&["lda", &posts][..], options].concat(), 2, parts);
    refused(&["--extra-topics", "1", "--sampler", "mh"], &["extra-topics is not for the sampler mh"]);
    refused(&["--extra-topics", "1", "--iterations", "1"], &["expected 2 iterations or more"]);
    refused(&["--extra-topics", "4000", "-k", "100"], &["4096 at most"]);
}

#[test]
fn the_same_run_writes_the_same_bytes_and_goes_on_from_a_checkpoint() {
    let place = Place::new();
    for sampler in ["dense", "sparse"] {
        for workers in ["1", "2"] {
            let bytes = |name: &str, options: &[&str]| {
                let name = format!("{name}-{sampler}-{workers}");
                let model = train(&place, &name, &[&["--sampler", sampler, "-w", workers][..], options].concat());
                fs::read(Path::new(&model).join("word_topics.parquet")).unwrap()
            };
            let straight = bytes("straight", &[]);
            assert_eq!(straight, bytes("again", &[]));
            let directory = place.name(&format!("checkpoint-{sampler}-{workers}"));
            bytes("half", &["--checkpoint", &directory, "--iterations", "12"]);
            assert_eq!(straight, bytes("rest", &["--resume", &directory]), "{sampler}, {workers} workers");
        }
    }
    let directory = place.name("checkpoint-dense-1");
    let args = ["lda", &documents(&place), "-k", "2", "--alpha", "0.2", "--sampler", "dense", "--resume", &directory];
    fails(&args, 1, &["alpha 0.1, and now it is 0.2"]);
}

#[test]
fn caches_train_as_their_text() {
    let place = Place::new();
    let (posts, cache) = (documents(&place), place.name("posts.mgrid"));
    done(&["convert", &posts, &cache, "--format", "text"]);
    let trained = |input: &str, name: &str| {
        let model = place.name(name);
        done(&["lda", input, "-k", "3", "--iterations", "5", "--model", &model, "-w", "1", "-q"]);
        counts(&model, "word_topics.parquet")
    };
    assert_eq!(trained(&posts, "text"), trained(&cache, "cache"));
}

#[test]
fn bad_input_is_named() {
    let place = Place::new();
    place.file("vocab.c.txt", "ale\nbun\n");
    for (line, parts) in [
        ("1 3 4", ["docword.c.txt:4: word", "\"3\""]),
        ("1 0 4", ["docword.c.txt:4: word", "\"0\""]),
        ("9 1 4", ["docword.c.txt:4: document", "\"9\""]),
        ("1 1 -4", ["docword.c.txt:4: count", "\"-4\""]),
        ("1 1", ["docword.c.txt:4: count", "expected an integer"]),
    ] {
        fails(&["lda", &place.file("docword.c.txt", format!("3\n2\n1\n{line}\n"))], 1, &parts);
    }
    fails(&["lda", &place.file("docword.c.txt", "3\n5\n1\n1 1 1\n")], 1, &["5 words", "2 lines"]);
    let ldac = place.file("bad.ldac", "2 0:1 1:2\n3 0:1\n");
    fails(&["lda", &ldac], 1, &["bad.ldac:2: number of terms"]);
    fails(&["lda", &place.name("none.txt")], 1, &["none.txt", "No such file"]);
    fails(&["lda", &place.file("bytes.txt", b"fine\n\xff\xfe\n"), "--format", "text"], 1, &["bytes.txt:2"]);
    let ratings = place.ratings();
    fails(&["lda", &ratings], 1, &["count: found", "expected an integer from 1"]);
    let posts = documents(&place);
    fails(&["lda", &posts, "--min-documents", "99"], 1, &["no word is left"]);
    fails(&["lda", &posts, "--stop-words", &place.name("none")], 1, &["none", "No such file"]);
    let test = place.file("t.txt", "unicorn dragon\ndragon wyvern wyrm\n");
    fails(&["lda", &posts, "--test", &test], 1, &["t.txt: none of its words is in the corpus"]);
    let model = train(&place, "model", &[]);
    fails(&["recommend", &model, "1"], 1, &["a model of kind lda, expected mf"]);
    let whole = fs::read(place.path("model").join("word_topics.parquet")).unwrap();
    fs::write(place.path("model").join("word_topics.parquet"), &whole[..whole.len() / 2]).unwrap();
    fails(&["topics", &model], 1, &["word_topics.parquet"]);
}

#[test]
fn options_out_of_range_are_refused() {
    let place = Place::new();
    let posts = documents(&place);
    let lda = |option: &str, value: &str, parts: &[&str]| fails(&["lda", &posts, option, value], 2, parts);
    lda("--topics", "0", &["topics is 0; expected 1 to 65535"]);
    lda("--topics", "65536", &["topics is 65536; expected 1 to 65535"]);
    lda("--topics", "1201", &["topics is 1201, more than the 1200 tokens"]);
    for alpha in ["0", "-1/K", "NaN", "inf"] {
        lda("--alpha", alpha, &["alpha is"]);
    }
    lda("--alpha", "K/50", &["--alpha", "expected a number"]);
    lda("--beta", "0", &["beta is 0"]);
    lda("--holdout", "1", &["holdout 1 is out of range"]);
    lda("--max-documents", "0", &["max-documents is 0"]);
    lda("--work-per-clock", "2.5", &["work-per-clock is 2.5"]);
    lda("--tolerance", "-1", &["tolerance is -1"]);
    lda("--split", "letters", &["letters", "expected space or punctuation"]);
    fails(&["plan", "lda", &posts, "-k", "0"], 2, &["topics is 0"]);
    assert!(done(&["plan", "lda", &posts, "-k", "4", "-w", "2"]).contains("memory"));
    assert!(done(&["inspect", &posts, "--format", "text"]).contains("memory of lda"));
}

#[test]
fn the_demo_finds_its_topics() {
    let place = Place::new();
    let path = place.name("demo.json");
    let text = done(&["demo", "--algorithm", "lda", "--json", &path]);
    let found = text.lines().find(|line| line.contains("planted topics found")).unwrap();
    let number: u32 = found.split_whitespace().next().unwrap().parse().unwrap();
    assert!(number >= 17, "{text}");
    assert!(text.contains("Next: megagrid lda"), "{text}");
    assert_eq!(json(&path)["command"], "lda");
}

#[test]
fn python_opens_topics() {
    let place = Place::new();
    train(&place, "model", &[]);
    let numpy = "alpha = numpy.load('model/alpha.npy'); assert alpha.shape == (2,) and alpha.dtype == 'float32'\n\
                 assert numpy.load('model/topic_tokens.npy').sum() == 1200\n";
    let pandas = "topics = pandas.read_parquet('model/topics.parquet')\n\
                  assert list(topics.columns) == ['topic', 'rank', 'word', 'probability']\n\
                  table = pandas.read_parquet('model/word_topics.parquet'); assert table['tokens'].sum() == 1200\n\
                  words = pandas.read_parquet('model/words.parquet')['id']\n\
                  assert set(words[table['word']]) == set(words)\n";
    place.python("numpy", numpy);
    place.python("pandas, pyarrow", pandas);
}

/// Trains on two documents about fruit for each one about metal; returns alpha.
fn alpha(place: &Place, name: &str, options: &[&str]) -> Vec<f32> {
    let document = |n: usize| -> String {
        let words = if n % 3 < 2 { FRUIT } else { METAL };
        (0..20).map(|at| format!("{} ", words[(n * at + at * at + n / 7) % 5])).collect::<String>() + "\n"
    };
    let posts = place.file("uneven.txt", (0..60).map(document).collect::<String>());
    let model = place.name(name);
    let args = ["lda", &posts, "-k", "2", "--alpha", "0.1", "--model", &model, "-q", "-w", "1", "--iterations", "30"];
    done(&[&args[..], options].concat());
    read_npy::<f32>(&Path::new(&model).join("alpha.npy"), 1).unwrap().values
}

#[test]
fn the_prior_is_fitted_as_asked_for() {
    let place = Place::new();
    let given = [0.1_f32; 2];
    assert_eq!(alpha(&place, "fixed", &["--prior", "fixed"]), given);
    let symmetric = alpha(&place, "symmetric", &["--prior", "symmetric"]);
    assert!(symmetric[0] == symmetric[1] && symmetric[0] != 0.1, "{symmetric:?}");
    let asymmetric = alpha(&place, "asymmetric", &["--prior", "asymmetric"]);
    assert_ne!(asymmetric[0], asymmetric[1]);
}

#[test]
fn a_tolerance_ends_no_run_while_it_is_annealed() {
    let place = Place::new();
    let record = place.name("record.json");
    for (annealing, least) in [("0", 1), ("20", 20)] {
        alpha(&place, annealing, &["--annealing", annealing, "--tolerance", "0.9", "--json", &record]);
        let record: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
        let iterations = record["result"]["iterations"].as_u64().unwrap();
        assert_eq!(record["result"]["ended_by"], "tolerance", "{record}");
        assert!((least..least + 5).contains(&iterations), "annealing {annealing}: {iterations}");
    }
}

#[test]
fn the_prior_is_fitted_after_the_annealing_and_every_so_often() {
    let place = Place::new();
    let given = [0.1_f32; 2];
    assert_eq!(alpha(&place, "annealed", &["--annealing", "31"]), given);
    assert_ne!(alpha(&place, "at-once", &["--annealing", "0"]), given);
    assert_eq!(alpha(&place, "never", &["--annealing", "0", "--optimize-every", "31"]), given);
    assert_ne!(alpha(&place, "once", &["--annealing", "0", "--optimize-every", "30"]), given);
}

#[test]
fn as_many_top_words_are_shown_as_asked_for() {
    let place = Place::new();
    let (posts, record) = (documents(&place), place.name("run.json"));
    let run = |number: &str| {
        let args = ["lda", &posts, "-k", "2", "-w", "1", "--iterations", "5", "--json", &record, "--top-words", number];
        let text = done(&args);
        (text, json(&record)["result"]["metrics"].get("coherence_npmi").is_some())
    };
    let words = |text: &str| -> Vec<usize> {
        let topics = text.lines().skip_while(|line| !line.contains("top words")).skip(1);
        let is_word = |word: &&str| FRUIT.contains(word) || METAL.contains(word);
        topics.map(|line| line.split_whitespace().filter(is_word).count()).collect()
    };
    let (text, is_coherence_measured) = run("3");
    assert_eq!((words(&text), is_coherence_measured), (vec![3, 3], true), "{text}");
    let (text, is_coherence_measured) = run("0");
    assert_eq!((words(&text), is_coherence_measured), (vec![0, 0], false), "{text}");
}

//! Bad input: each message names the file, the line, what was found and what was expected.

use std::fs;
use std::path::PathBuf;

use megagrid_datasets::{
    Dictionary, Error, Format, Label, parse_corpus, parse_graph, parse_ratings, parse_samples, read_corpus, read_graph,
};
use proptest::prelude::*;

use crate::formats::gzip;

fn message(format: Format, text: &str) -> String {
    let bytes = text.as_bytes();
    let error = match format {
        Format::Edges => parse_graph(bytes, format).err(),
        Format::Ratings | Format::MatrixMarket => parse_ratings(bytes, format).err(),
        Format::Libsvm => parse_samples(bytes, format, &[]).err(),
        _ => parse_corpus(bytes, format, None).err(),
    };
    error.unwrap_or_else(|| panic!("{format}: {text:?} was accepted")).to_string()
}

#[test]
fn messages_name_line_field_and_expectation() {
    let real = "%%MatrixMarket matrix coordinate real general\n";
    use Format::*;
    let cases = [
        (
            Edges,
            "1 2\n3\n",
            "<bytes>:2: edge: found \"3\", expected a source vertex and a target vertex separated by white space",
        ),
        (Edges, "# x\n1 -2\n", "<bytes>:2: target vertex: found \"-2\", expected an id from 0 to"),
        (Edges, "18446744073709551616 1\n", "<bytes>:1: source vertex: found \"18446744073709551616\""),
        (Edges, "", "no edges in it"),
        (Edges, "# only\n# comments\n\n", "no edges in it"),
        (Ratings, "1 2 3\n1 2\n", "<bytes>:2: rating: found \"1 2\", expected a user, an item and a number"),
        (
            Ratings,
            "1\t2\t3\n\n1\t2\t4,5\n",
            "<bytes>:3: rating: found \"4,5\", expected a finite number; use a decimal point",
        ),
        (Ratings, "1,2,nan\n", "<bytes>:1: rating: found \"nan\", expected a finite number"),
        (Ratings, "1,2,3\n1,2,inf\n", "<bytes>:2: rating: found \"inf\""),
        (Ratings, "1,2,1e39\n", "<bytes>:1: rating: found \"1e39\""),
        (Ratings, "1,2,3\n1,,3\n", "<bytes>:2: item: found \"\", expected an id"),
        (Ratings, "u,i,r\n", "no ratings in it"),
        (MatrixMarket, "1 1 1\n", "<bytes>:1: first line: found \"1 1 1\""),
        (
            MatrixMarket,
            "%%MatrixMarket matrix array real general\n1 1\n",
            "expected \"%%MatrixMarket matrix coordinate\"",
        ),
        (MatrixMarket, &format!("{real}% only comments\n"), "numbers of rows, columns and entries is missing"),
        (MatrixMarket, &format!("{real}2 2\n"), "<bytes>:2: sizes: found \"2 2\""),
        (MatrixMarket, &format!("{real}-2 2 1\n1 1 1\n"), "<bytes>:2: number of rows: found \"-2\""),
        (MatrixMarket, &format!("{real}2 2 2\n1 1 1\n"), "announces 2 entries, found 1"),
        (MatrixMarket, &format!("{real}2 2 1\n1 1 1\n2 2 1\n"), "announces 1 entries, found 2"),
        (
            MatrixMarket,
            &format!("{real}2 2 1\n3 1 1\n"),
            "<bytes>:3: row: found \"3\", expected an integer from 1 to 2",
        ),
        (MatrixMarket, &format!("{real}2 2 1\n1 0 1\n"), "<bytes>:3: column: found \"0\""),
        (MatrixMarket, &format!("{real}2 2 1\n1 1\n"), "<bytes>:3: value: found \"\""),
        (MatrixMarket, &format!("{real}2 2 1\n1 1 NaN\n"), "<bytes>:3: value: found \"NaN\""),
        (MatrixMarket, &format!("{real}4000000000 2 1\n1 1 1\n"), "announces a side of 4000000000 for 1 entries"),
        (
            MatrixMarket,
            &format!("{real}2 2 1152921504606846976\n1 1 1\n"),
            "announces 1152921504606846976 entries, found 1",
        ),
        (MatrixMarket, &format!("{real}2 2 0\n"), "no entries in it"),
        (Libsvm, "3:1 1:1\n", "<bytes>:1: label: found \"3:1\", expected a number or the name of a class"),
        (Libsvm, "1 1:1\nnan 1:1\n", "<bytes>:2: label: found \"nan\", expected a number or the name of a class"),
        (Libsvm, "1 1\n", "<bytes>:1: feature: found \"1\", expected index:value"),
        (Libsvm, "1 -1:1\n", "<bytes>:1: feature index: found \"-1\""),
        (Libsvm, "1 99999999999999999999:1\n", "<bytes>:1: feature index: found \"99999999999999999999\""),
        (Libsvm, "1 1:inf\n", "<bytes>:1: feature value: found \"inf\""),
        (Libsvm, "1\n-1\n", "no features in it"),
        (BagOfWords, "", "no lines in it"),
        (BagOfWords, "1\n2\n", "<bytes>:2: number of entries: found \"\""),
        (BagOfWords, "1\nx\n1\n1 1 1\n", "<bytes>:2: number of words: found \"x\""),
        (BagOfWords, "1\n2\n2\n1 1 1\n", "announces 2 entries, found 1"),
        (BagOfWords, "1\n2\n1152921504606846976\n1 1 1\n", "announces 1152921504606846976 entries, found 1"),
        (BagOfWords, "1\n2\n1\n2 1 1\n", "<bytes>:4: document: found \"2\", expected an integer from 1 to 1"),
        (BagOfWords, "1\n2\n1\n1 3 1\n", "<bytes>:4: word: found \"3\", expected an integer from 1 to 2"),
        (BagOfWords, "1\n2\n1\n1 0 1\n", "<bytes>:4: word: found \"0\""),
        (BagOfWords, "1\n2\n1\n1 1 0\n", "<bytes>:4: count: found \"0\""),
        (BagOfWords, "1\n2\n1\n1 1 1 1\n", "<bytes>:4: entry: found \"1 1 1 1\""),
        (LdaC, "2 0:1\n", "<bytes>:1: number of terms: found \"2\", expected 1, as many as follow"),
        (LdaC, "1 0:1\n1 0:-1\n", "<bytes>:2: count: found \"-1\""),
        (LdaC, "1 x:1\n", "<bytes>:1: term: found \"x:1\""),
        (Text, " \n", "no words in it"),
        (Parquet, "PAR1", "Parquet is read only from files"),
        (
            JsonLines,
            "{\"document\": 1, \"word\": \"a\", \"count\": 1.5}\n",
            "<bytes>:1: count: found \"1.5\", expected an integer from 1",
        ),
    ];
    for (format, text, expected) in cases {
        let message = message(format, text);
        assert!(message.contains(expected), "{format}: {text:?}\n  said     {message}\n  expected {expected}");
        assert!(message.starts_with("<bytes>:"), "{message}");
    }
}

#[test]
fn names_have_to_be_text() {
    let error = parse_graph(b"a b\na \xff\xfe\n", Format::Edges).unwrap_err().to_string();
    assert!(error.starts_with("<bytes>:2: target vertex: found"), "{error}");
}

#[test]
fn long_fields_are_shortened() {
    let message = message(Format::Ratings, &format!("1,2,{}\n", "x".repeat(10_000)));
    assert!(message.len() < 200, "{message}");
}

#[test]
fn a_vocabulary_of_another_corpus() {
    let names = Some(Dictionary::from_strings(["a", "b", "c"]));
    let error = parse_corpus(b"1\n2\n1\n1 1 1\n", Format::BagOfWords, names.clone()).unwrap_err().to_string();
    assert!(error.contains("has 2 words, but the vocabulary beside it has 3 lines"), "{error}");
    let error = parse_corpus(b"1 3:1\n", Format::LdaC, names).unwrap_err().to_string();
    assert!(error.contains("has 4 words, but the vocabulary beside it has 3 lines"), "{error}");
}

fn folder_with(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn missing_and_unknown_files() {
    let error = read_graph("no/such/file", None).unwrap_err();
    assert!(matches!(error, Error::Io { .. }) && error.to_string().starts_with("no/such/file: "), "{error}");
    let (folder, path) = folder_with("odd", b"\x00\x01\x02 \xff\n");
    assert!(matches!(read_graph(&path, None).unwrap_err(), Error::UnknownFormat { .. }));
    fs::remove_file(&path).unwrap();
    let error = read_graph(folder.path(), None).unwrap_err();
    assert!(matches!(error, Error::Empty { .. }), "{error}");
    let (_folder, path) = folder_with("empty", b"");
    assert!(matches!(read_graph(&path, None).unwrap_err(), Error::Empty { .. }));
    assert!(matches!("cvs".parse::<Format>().unwrap_err(), Error::UnknownFormatName { .. }));
}

#[test]
fn the_wrong_format_for_a_command() {
    let (_folder, path) = folder_with("samples", b"1 1:1 2:1\n-1 1:1\n");
    let error = read_graph(&path, None).unwrap_err().to_string();
    assert!(
        error.contains(
            "the format is libsvm, which does not hold a graph; expected edges, mtx, jsonl, parquet; --format"
        ),
        "{error}"
    );
    let error = read_corpus(&path, None).unwrap_err().to_string();
    assert!(error.contains("does not hold a corpus"), "{error}");
}

#[test]
fn counted_formats_are_one_file() {
    let (folder, _path) = folder_with("docword.a", b"1\n1\n1\n1 1 1\n");
    fs::write(folder.path().join("docword.b"), b"").unwrap();
    let error = read_corpus(folder.path(), None).unwrap_err().to_string();
    assert!(error.contains("2 files"), "{error}");
}

#[test]
fn a_malformed_line_in_a_part_file_names_the_part() {
    let (folder, _path) = folder_with("part-0", b"1 2\n");
    fs::write(folder.path().join("part-1"), b"1 2\n3\n").unwrap();
    let error = read_graph(folder.path(), None).unwrap_err().to_string();
    assert!(error.contains("part-1:2: edge: found \"3\""), "{error}");
}

#[test]
fn truncated_and_damaged_compressed_files() {
    let text: String = (0..3000).map(|i| format!("{} {}\n", i * 7919 % 1009, i * 31 % 777)).collect();
    let gzip = gzip(text.as_bytes());
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (name, bytes) in [("a.gz", &gzip), ("a.zst", &zstd)] {
        for end in [5, bytes.len() / 2, bytes.len() - 1] {
            let (_folder, path) = folder_with(name, &bytes[..end]);
            let error = read_graph(&path, Some(Format::Edges)).unwrap_err();
            assert!(matches!(error, Error::Truncated { .. }), "{name} cut at {end}: {error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
    let mut damaged = gzip.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 8].fill(0xff);
    let (_folder, path) = folder_with("b.gz", &damaged);
    let error = read_graph(&path, Some(Format::Edges)).unwrap_err().to_string();
    assert!(error.contains("b.gz: "), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever the bytes, the outcome is a data set or an error.
    #[test]
    fn nothing_panics(bytes in prop::collection::vec(prop::sample::select(b"012-9:.,# \t\r\n%ax\xff".to_vec()), 0..80)) {
        for format in [Format::Edges, Format::MatrixMarket] {
            let _ = parse_graph(&bytes, format);
        }
        let _ = parse_ratings(&bytes, Format::Ratings);
        let _ = parse_ratings(&[b"%%MatrixMarket matrix coordinate real symmetric\n", &bytes[..]].concat(), Format::MatrixMarket);
        for format in [Format::Libsvm, Format::Table, Format::JsonLines] {
            let _ = parse_samples(&bytes, format, &[]);
        }
        let _ = parse_samples(&[b"label,\"x\"\n", &bytes[..]].concat(), Format::Table, &[Label::Number(1.0)]);
        for format in [Format::BagOfWords, Format::LdaC, Format::Text] {
            let _ = parse_corpus(&bytes, format, None);
        }
    }
}

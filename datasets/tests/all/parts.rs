//! Every format in parts: what several processes read of it together is what one would.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use megagrid_datasets::output::{Column, write_table};
use megagrid_datasets::{
    Format, Layout, Readers, Tokenizer, load_graph, load_graph_with, load_ratings, load_ratings_with, read_corpus,
    read_corpus_with, read_ratings, read_samples, read_samples_with,
};

use crate::formats::gzip;
use crate::together::{Local, check, counted, together};

/// Looks that several processes take at an input, beside their parts of it: its beginning, and samples.
const LOOKS: u64 = 5 << 20;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// Frames of zstd, which end anywhere in the text.
fn frames(text: &str, bytes: usize) -> Vec<u8> {
    text.as_bytes().chunks(bytes).flat_map(|part| zstd::encode_all(part, 1).unwrap()).collect()
}

fn ratings(lines: std::ops::Range<u64>) -> String {
    lines.map(|at| format!("user{},{},{}.5\n", at * at % 97, at * 31 % 89, at % 5)).collect()
}

fn check_ratings(path: &Path) {
    let value = |rating: &f32| f64::from(*rating);
    let expected = read_ratings(path, None).unwrap();
    for processes in 1..6 {
        let part = |readers: &Arc<dyn Readers>| load_ratings_with(path, None, Some(readers));
        check(processes, value, || load_ratings(path, None), part);
        for found in together(processes, |readers| part(&readers).unwrap().into_dataset().unwrap()) {
            assert_eq!(found, expected, "{processes} processes");
        }
    }
}

#[test]
fn a_directory_is_divided_by_bytes() {
    let folder = Folder::new();
    for (name, text) in [("1.csv", ratings(0..900)), ("2.csv", String::new()), ("3.csv", ratings(900..1000))] {
        folder.file(&format!("plain/{name}"), text);
    }
    check_ratings(&folder.0.path().join("plain"));
    // Each with a header.
    let header = "user,item,rating\n";
    folder.file("mixed/1.csv", format!("{header}{}", ratings(0..300)));
    folder.file("mixed/2.gz", gzip(format!("{header}{}", ratings(300..800)).as_bytes()));
    folder.file("mixed/3.zst", frames(&format!("{header}{}", ratings(800..1500)), 1000));
    folder.file("mixed/4.csv", format!("{header}{}", ratings(1500..1700).trim_end()));
    check_ratings(&folder.0.path().join("mixed"));
}

#[test]
fn a_zstd_file_is_divided_between_its_frames() {
    let folder = Folder::new();
    let text = ratings(0..500);
    // Some frames have no line end, or end with one.
    for bytes in [3, 11, 100, 5000, 1 << 20] {
        check_ratings(&folder.file(&format!("{bytes}.csv.zst"), frames(&text, bytes)));
    }
    let line = text.find('\n').unwrap() + 1;
    check_ratings(&folder.file("lines.csv.zst", frames(&text, line)));
    check_ratings(&folder.file("whole.csv.gz", gzip(text.as_bytes())));
}

#[test]
fn a_matrix_is_divided_after_its_header() {
    let folder = Folder::new();
    for entries in [3_u32, 40, 1000] {
        let comment = "% a comment\n".repeat(9);
        let lines: String =
            (0..entries).map(|at| format!("{} {} {}\n", at * at % 97 + 1, at * 31 % 89 + 1, at)).collect();
        let text = format!("%%MatrixMarket matrix coordinate real general\n{comment}97 97 {entries}\n{lines}");
        let path = folder.file("a.mtx", &text);
        check_ratings(&path);
        check_ratings(&folder.file("frames.mtx", frames(&text, 13)));
        for processes in 1..5 {
            let part = |readers: &Arc<dyn Readers>| load_graph_with(&path, None, Some(readers));
            let format = Some(Format::MatrixMarket);
            check(processes, |()| 0.0, || load_graph(&path, format), part);
        }
    }
    let short = folder.file("short.mtx", "%%MatrixMarket matrix coordinate pattern general\n9 9 4\n1 1\n1 2\n1 3\n");
    let said = together(3, |readers| load_ratings_with(&short, None, Some(&readers)).unwrap_err().to_string());
    assert!(said.iter().all(|said| said.contains("announces 4 entries, found 3")), "{said:?}");
}

#[test]
fn parquet_is_divided_by_row_groups() {
    let folder = Folder::new();
    let write = |name: &str, rows: u32, name_of: fn(u32) -> String| {
        let path = folder.file(name, "");
        let users = Column::Strings((0..rows).map(|at| name_of(at * at % 97)).collect());
        let items = Column::U32((0..rows).map(|at| at * 31 % 89).collect::<Vec<_>>().into());
        let values = Column::F32((0..rows).map(|at| (at % 7) as f32).collect::<Vec<_>>().into());
        write_table(&path, &[("user", users), ("item", items), ("rating", values)]).unwrap();
    };
    // Numbers at first.
    write("names/1.parquet", 300, |user| user.to_string());
    write("names/2.parquet", 1, |user| user.to_string());
    write("names/3.parquet", 200, |user| format!("user {user}"));
    check_ratings(&folder.0.path().join("names"));
    let path = folder.file("groups.parquet", "");
    let rows = 2_100_000_u64;
    let column = |of: fn(u64) -> u64| Column::U32((0..rows).map(|at| of(at) as u32).collect::<Vec<_>>().into());
    let columns = [("source", column(|at| at * at % 1009)), ("target", column(|at| at * 7919 % 10_007))];
    write_table(&path, &columns).unwrap();
    let whole = load_graph(&path, None).unwrap().into_dataset().unwrap();
    let bytes = fs::metadata(&path).unwrap().len();
    for (found, read) in
        counted(2, |readers| load_graph_with(&path, None, Some(&readers)).unwrap().into_dataset().unwrap())
    {
        assert!(found == whole);
        assert!((bytes / 3..bytes * 2 / 3).contains(&(read - 128 * 4096)), "{read} of {bytes}");
    }
}

#[test]
fn samples_are_divided_by_lines() {
    let folder = Folder::new();
    let sample = |at: u32| {
        format!("{} {}:1 {}:{}.5\n", if at.is_multiple_of(3) { "+1" } else { "-1" }, at % 9, 9 + at % 50, at % 4)
    };
    let text: String = (0..400).map(sample).collect::<String>() + "# the end\n\n-1\n";
    let one = folder.file("a.libsvm", &text);
    folder.file("parts/1", &text[..text.len() / 2]);
    let files = [one, folder.file("a.svm.zst", frames(&text, 700)), folder.file("b.svm.gz", gzip(text.as_bytes()))];
    for path in files {
        let expected = read_samples(&path, None, &[]).unwrap();
        for processes in 1..5 {
            for found in together(processes, |readers| {
                read_samples_with(&path, None, &[], Tokenizer::default(), Some(&readers)).unwrap()
            }) {
                assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn rows_of_parquet_are_divided_by_row_groups() {
    let folder = Folder::new();
    for (part, rows) in [(0, 300), (1, 1), (2, 200)] {
        let text = |at: i64| format!("word{} and word{}", at * at % 31, part);
        let path = folder.file(&format!("{part}.parquet"), "");
        let columns = [
            ("label", Column::I64((0..rows).map(|at| at % 3).collect())),
            ("body", Column::Strings((0..rows).map(text).collect())),
            ("age", Column::F64((0..rows).map(|at| at as f64 / 4.0).collect())),
        ];
        write_table(&path, &columns).unwrap();
    }
    let (path, texts) = (folder.0.path(), Layout { roles: "text=body".parse().unwrap(), ..Layout::default() });
    let weights = Layout { roles: "weight=age,category=body".parse().unwrap(), ..Layout::default() };
    for layout in [Layout::default(), texts.clone(), weights] {
        let expected = read_samples(path, &layout, &[]).unwrap();
        for processes in 1..6 {
            let read = |readers| read_samples_with(path, &layout, &[], Tokenizer::default(), Some(&readers)).unwrap();
            assert!(together(processes, read).iter().all(|found| *found == expected), "{processes} processes");
        }
    }
    let expected = read_corpus(path, &texts).unwrap();
    for processes in 1..6 {
        let read = |readers| read_corpus_with(path, &texts, Tokenizer::default(), Some(&readers)).unwrap();
        assert!(together(processes, read).iter().all(|found| *found == expected), "{processes} processes");
    }
}

#[test]
fn corpora_are_divided_by_lines() {
    let folder = Folder::new();
    let text: String = (0..300).map(|at| format!("word{} and word{} é{}\n\n", at % 50, at * at % 31, at)).collect();
    let ldac: String = (0..300).map(|at| format!("2 {}:1 {}:{}\n", at % 20, 20 + at % 9, at % 4 + 1)).collect();
    let entries: String = (0..300).map(|at| format!("{} {} {}\n", at + 1, at * at % 40 + 1, at % 4 + 1)).collect();
    let uci = folder.file("uci/docword.a.txt", format!("301\n40\n300\n{entries}"));
    folder.file("uci/vocab.a.txt", (0..40).map(|at| format!("w{at}\n")).collect::<String>());
    let files = [folder.file("t/a.txt", text), folder.file("l/a.ldac", ldac), uci];
    for path in files {
        let expected = read_corpus(&path, None).unwrap();
        for processes in 1..5 {
            let read = |readers| read_corpus_with(&path, None, Tokenizer::default(), Some(&readers)).unwrap();
            for found in together(processes, read) {
                assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn two_processes_read_half_each() {
    let folder = Folder::new();
    let line =
        |at: u32| format!("{} {}:0.25 {}:1.5\n", if at.is_multiple_of(3) { 1 } else { -1 }, at % 7919, 8000 + at % 97);
    let samples: String = (0..800_000).map(line).collect();
    let text: String =
        (0..400_000).map(|at| format!("word{} and word{} are of this document\n", at % 5000, at * 7 % 3001)).collect();
    let bytes = [samples.len() as u64, text.len() as u64];
    let (samples, text) = (folder.file("a.libsvm", samples), folder.file("a.txt", text));
    (0..8).for_each(|part| drop(folder.file(&format!("edges/{part}"), ratings(0..100_000))));
    let directory = folder.0.path().join("edges");
    let of_directory = 8 * fs::metadata(directory.join("0")).unwrap().len();
    let read: [Vec<u64>; 3] = [
        counted(2, |readers| {
            drop(read_samples_with(&samples, None, &[], Tokenizer::default(), Some(&readers)).unwrap())
        }),
        counted(2, |readers| drop(read_corpus_with(&text, None, Tokenizer::default(), Some(&readers)).unwrap())),
        counted(2, |readers| drop(load_ratings_with(&directory, None, Some(&readers)).unwrap())),
    ]
    .map(|counted| counted.into_iter().map(|((), read)| read).collect());
    for (read, bytes) in read.iter().zip([bytes[0], bytes[1], of_directory]) {
        assert!(bytes > 3 * LOOKS / 2, "{bytes}");
        for &read in read {
            assert!((bytes / 2..bytes / 2 + LOOKS).contains(&(read + 4096)), "{read} of {bytes}");
        }
    }
}

#[test]
fn a_line_that_is_wrong_has_its_number_in_any_file() {
    let folder = Folder::new();
    let mut lines: Vec<String> = ratings(0..1000).lines().map(str::to_owned).collect();
    lines[920] = "user1,2,much".to_owned();
    let text = format!("user,item,rating\n{}", lines.join("\n"));
    folder.file("parts/1.csv", ratings(0..1000));
    folder.file("parts/2.csv", &text);
    let format = Some(Format::Ratings);
    let files = [("2.csv", folder.0.path().join("parts")), ("a.zst", folder.file("a.zst", frames(&text, 999)))];
    for (name, path) in files {
        let error = load_ratings_with(&path, format, Some(&Local::lonely(2, 3))).unwrap_err().to_string();
        assert!(error.contains(&format!("{name}:922: rating: found \"much\"")), "{error}");
        assert!(load_ratings_with(&path, format, Some(&Local::lonely(0, 3))).is_ok());
    }
}

#[test]
fn a_directory_that_differs_is_refused() {
    let folder = Folder::new();
    for process in 0..2 {
        (0..3).for_each(|part| drop(folder.file(&format!("{process}/{part}.csv"), ratings(0..50))));
    }
    fs::remove_file(folder.0.path().join("1/2.csv")).unwrap();
    let said = together(2, |readers| {
        let path = folder.0.path().join(readers.process().to_string());
        load_ratings_with(path, None, Some(&readers)).unwrap_err().to_string()
    });
    assert!(said[0].contains("process 1 has other files"), "{said:?}");
}

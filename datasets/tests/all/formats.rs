//! Every format: round trips, one fixture in all formats, compression, part files, and detection.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use megagrid_datasets::{
    Dataset, Dictionary, Format, parse_corpus, parse_graph, parse_ratings, parse_samples, read_corpus, read_graph,
    read_ratings, read_ratings_with, read_samples,
};
use proptest::prelude::*;

/// The edges of a data set under the names of their ends.
fn named<T: Clone>(data: &Dataset<T>) -> Vec<(String, String, T)> {
    let edges = &data.edges;
    assert_eq!((edges.num_left, edges.num_right), (data.left_names.len(), data.right_names().len()));
    let ends = edges.left.iter().zip(&edges.right).zip(&edges.data);
    let name = |names: &Dictionary, id: u32| names.name(id).into_owned();
    ends.map(|((&left, &right), value)| (name(&data.left_names, left), name(data.right_names(), right), value.clone()))
        .collect()
}

fn lines<T>(records: &[T], line: impl Fn(&T) -> String) -> String {
    records.iter().map(|record| line(record) + "\n").collect()
}

/// Integers of several sizes, so that the dense, the sparse and the 64-bit numbering all occur.
fn id() -> impl Strategy<Value = u64> {
    prop_oneof![0..20u64, 0..100_000u64, any::<u32>().prop_map(u64::from), any::<u64>()]
}

/// Names without `::`, which would separate fields.
fn name() -> impl Strategy<Value = String> {
    "[a-zé0-9_:.-]{1,3}".prop_filter("a separator", |name| !name.contains("::"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn integer_edges_round_trip(edges in prop::collection::vec((id(), id()), 1..60)) {
        let graph = parse_graph(lines(&edges, |(a, b)| format!("{a}\t{b}")).as_bytes(), Format::Edges).unwrap();
        let expected: Vec<_> = edges.iter().map(|(a, b)| (a.to_string(), b.to_string(), ())).collect();
        prop_assert_eq!(named(&graph), expected);
        prop_assert!(graph.left_names.as_integers().unwrap().windows(2).all(|pair| pair[0] < pair[1]), "ascending");
    }

    #[test]
    fn named_edges_round_trip(edges in prop::collection::vec(("[a-zé]{1,3}", name()), 1..60)) {
        let graph = parse_graph(lines(&edges, |(a, b)| format!("{a} {b}")).as_bytes(), Format::Edges).unwrap();
        let expected: Vec<_> = edges.iter().map(|(a, b)| (a.clone(), b.clone(), ())).collect();
        prop_assert_eq!(named(&graph), expected);
        let mut order: Vec<&String> = Vec::new();
        for name in edges.iter().flat_map(|(a, b)| [a, b]) {
            if !order.contains(&name) {
                order.push(name);
            }
        }
        prop_assert!(graph.left_names.iter().eq(order.iter().map(|name| name.as_str())), "first appearance");
    }

    #[test]
    fn ratings_round_trip(
        ratings in prop::collection::vec((id(), "[a-z ]{0,3}[a-z]", -10f32..10.0), 1..60),
        separator in prop::sample::select(vec!["\t", ",", "::"]),
        header in any::<bool>(),
        end in prop::sample::select(vec!["\n", "\r\n", " \n", "\n\n"]),
    ) {
        let names = ["user", "item", "rating", "more"].join(separator);
        let head = if header { names + end } else { String::new() };
        let body: String =
            ratings.iter().map(|(u, i, r)| format!("{u}{separator}{i}{separator}{r}{separator}extra{end}")).collect();
        let read = parse_ratings((head + &body).as_bytes(), Format::Ratings).unwrap();
        let expected: Vec<_> = ratings.iter().map(|(u, i, r)| (u.to_string(), i.trim().to_string(), *r)).collect();
        prop_assert_eq!(named(&read), expected);
    }

    #[test]
    fn matrices_round_trip(entries in prop::collection::vec((1..9u32, 1..7u32, -1e6f32..1e6), 1..60)) {
        let body = lines(&entries, |(row, column, value)| format!("{row} {column} {value}"));
        let text = format!("%%MatrixMarket matrix coordinate real general\n% note\n9 7 {}\n{body}", entries.len());
        let read = parse_ratings(text.as_bytes(), Format::MatrixMarket).unwrap();
        let expected: Vec<_> = entries.iter().map(|(r, c, v)| (r.to_string(), c.to_string(), *v)).collect();
        prop_assert_eq!(named(&read), expected);
        prop_assert_eq!((read.edges.num_left, read.edges.num_right), (9, 7));
    }

    #[test]
    fn samples_round_trip(
        samples in prop::collection::vec((any::<bool>(), prop::collection::btree_map(0..50u64, -5f32..5.0, 1..6)), 1..30)
    ) {
        let features = |features: &BTreeMap<u64, f32>| features.iter().fold(String::new(), |mut text, (index, value)| {
            let _ = write!(text, " {index}:{value}");
            text
        });
        let text = lines(&samples, |(positive, row)| format!("{}{}", if *positive { "+1" } else { "0" }, features(row)));
        let read = parse_samples(text.as_bytes(), Format::Libsvm, &[]).unwrap();
        let expected: Vec<_> = samples.iter().enumerate().flat_map(|(sample, (_, row))| {
            row.iter().map(move |(index, value)| ((sample + 1).to_string(), index.to_string(), *value))
        }).collect();
        prop_assert_eq!(named(&read.data), expected);
        let labels: Vec<f32> = samples.iter().map(|&(positive, _)| if positive { 1.0 } else { -1.0 }).collect();
        prop_assert_eq!(read.labels.classes.iter().all(|name| ["0", "1"].contains(&&name[..])), true);
        let found: Vec<f32> = read.labels.numbers().unwrap().into_iter().map(|label| 2.0 * label - 1.0).collect();
        prop_assert_eq!(found, labels);
    }

    #[test]
    fn corpora_round_trip(documents in prop::collection::vec(prop::collection::vec(0..12usize, 1..20), 1..20)) {
        let vocabulary: Vec<String> = (0..12).map(|word| format!("word{word}")).collect();
        // Document, word, count: in order of the words' first appearance in the document, as the text reader has it.
        let mut entries: Vec<(usize, usize, u32)> = Vec::new();
        for (document, words) in documents.iter().enumerate() {
            for &word in words {
                match entries.iter_mut().find(|entry| (entry.0, entry.1) == (document, word)) {
                    Some(entry) => entry.2 += 1,
                    None => entries.push((document, word, 1)),
                }
            }
        }
        let text = lines(&documents, |words| words.iter().map(|&w| vocabulary[w].as_str()).collect::<Vec<_>>().join(" "));
        let ldac = lines(&documents.iter().enumerate().collect::<Vec<_>>(), |(document, _)| {
            let terms: Vec<_> = entries.iter().filter(|e| e.0 == *document).map(|e| format!("{}:{}", e.1, e.2)).collect();
            format!("{} {}", terms.len(), terms.join(" "))
        });
        let bow = format!("{}\n12\n{}\n", documents.len(), entries.len())
            + &lines(&entries, |(document, word, count)| format!("{} {} {count}", document + 1, word + 1));
        let names = Some(Dictionary::from_strings(&vocabulary));
        let text = parse_corpus(text.as_bytes(), Format::Text, None).unwrap();
        let ldac = parse_corpus(ldac.as_bytes(), Format::LdaC, names.clone()).unwrap();
        let bow = parse_corpus(bow.as_bytes(), Format::BagOfWords, names).unwrap();
        prop_assert_eq!(named(&text.data), named(&bow.data));
        prop_assert_eq!(&ldac, &bow);
        let tokens: usize = documents.iter().map(Vec::len).sum();
        prop_assert_eq!(bow.num_tokens, tokens as u64);
    }
}

#[test]
fn one_graph_in_every_format() {
    let expected = named(&parse_graph(b"1 2\n2 3\n3 1\n3 3\n", Format::Edges).unwrap());
    for (text, format) in [
        ("# comment\r\n1\t2\r\n2\t3 \r\n\r\n3\t1\r\n3\t3", Format::Edges),
        ("1,2,9.5\n2,3,1\n3,1,1\n3,3,1\n", Format::Edges),
        ("% konect\n1 2 1\n2 3 1\n3 1 1\n3 3 1\n", Format::Edges),
        ("%%MatrixMarket matrix coordinate pattern general\n3 3 4\n1 2\n2 3\n3 1\n3 3\n", Format::MatrixMarket),
        (
            "%%matrixmarket MATRIX coordinate integer general\n%\n3 3 4\n1 2 7\n2 3 7\n3 1 7\n3 3 7\n",
            Format::MatrixMarket,
        ),
    ] {
        assert_eq!(named(&parse_graph(text.as_bytes(), format).unwrap()), expected, "{text}");
    }
}

#[test]
fn symmetric_matrices_are_completed() {
    let text = b"%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 3 2\n";
    let read = parse_ratings(text, Format::MatrixMarket).unwrap();
    let entry = |row: &str, column: &str, value| (row.to_string(), column.to_string(), value);
    assert_eq!(named(&read), [entry("2", "1", 0.5), entry("1", "2", 0.5), entry("3", "3", 2.0)]);
}

#[test]
fn a_name_late_in_a_column_makes_all_of_it_names() {
    let read = parse_ratings(b"10\t7\t1\n9\t7\t2\n10\tx\t3\n", Format::Ratings).unwrap();
    assert_eq!(read.left_names.as_integers(), Some(&[9, 10][..]), "users stay integers, ascending");
    assert!(read.right_names().iter().eq(["7", "x"]));
    let graph = parse_graph(b"10 9\n9 007\n7 10\n", Format::Edges).unwrap();
    assert!(graph.left_names.iter().eq(["10", "9", "007", "7"]));
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compression_is_told_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let text = lines(&(0..5000).collect::<Vec<u32>>(), |i| format!("{} {}", i * 7919 % 500, i * 104_729 % 700));
    let expected = parse_graph(text.as_bytes(), Format::Edges).unwrap();
    let (half, rest) = text.split_at(text[..2000].rfind('\n').unwrap() + 5);
    for (name, bytes) in [
        ("plain", text.clone().into_bytes()),
        ("gzip", gzip(text.as_bytes())),
        ("two-members.txt", [gzip(half.as_bytes()), gzip(rest.as_bytes())].concat()),
        ("zstd.gz", zstd::encode_all(text.as_bytes(), 1).unwrap()),
    ] {
        let path = folder.path().join(name);
        write(&path, &bytes);
        assert_eq!(read_graph(&path, None).unwrap(), expected, "{name}");
    }
}

#[test]
fn part_files_are_read_in_order_of_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let parts =
        [("part-2", "b,y,2\n"), ("part-0.csv", "user,item,value\na,x,1\n"), ("part-1", ""), ("part-3", "c,x,3\n")];
    for (name, text) in parts {
        write(&folder.path().join(name), text.as_bytes());
    }
    write(&folder.path().join("part-9"), &gzip(b"a,z,4\n"));
    write(&folder.path().join("_SUCCESS"), b"");
    write(&folder.path().join(".hidden"), b"nonsense");
    fs::create_dir(folder.path().join("sub")).unwrap();
    let read = read_ratings(folder.path(), None).unwrap();
    let whole = parse_ratings(b"a,x,1\nb,y,2\nc,x,3\na,z,4\n", Format::Ratings).unwrap();
    assert_eq!(read, whole);
}

#[test]
fn formats_are_told_by_name_and_content() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, expected) in [
        ("a.mtx.gz", "", Format::MatrixMarket),
        ("docword.x.txt.gz", "", Format::BagOfWords),
        ("x.mgrid", "", Format::Cache),
        ("x.parquet", "", Format::Parquet),
        ("a", "%%MatrixMarket matrix coordinate real general\n", Format::MatrixMarket),
        ("b", "# Nodes: 3\n1 2 3\n", Format::Edges),
        ("c", "1 2\n2 3\n", Format::Edges),
        ("d", "u i r\n1 2 3\n", Format::Ratings),
        ("e", "1::2::3.5::77\n", Format::Ratings),
        ("f", "+1 1:1 7:0.5 \n-1\n", Format::Libsvm),
        ("g", "2 0:1 7:5\n1 3:2\n", Format::LdaC),
        ("h", "2\n3\n1\n1 2 3\n", Format::BagOfWords),
        ("i", "the cat sat on the mat\na dog ran\n", Format::Text),
        ("j", "#user,item,rating,time\nann,x,3,7\n", Format::Ratings),
        ("k", "# who, what, stars\nann,x,3\n", Format::Ratings),
        ("l", "# user item rating\r\n1 2 3\r\n", Format::Ratings),
        ("m", "#user,item\n1,2\n", Format::Edges),
        ("n", "# Directed graph: a.txt\n# FromNodeId\tToNodeId\tSign\n1\t2\t-1\n", Format::Edges),
        ("o", "# FromNodeId\tToNodeId\n1\t2\n", Format::Edges),
        ("p", "# my little graph\n1 2 3\n", Format::Edges),
        ("q", "% a, b, c\n1,2,3\n", Format::Edges),
        ("r", "#\n1 2 3\n", Format::Edges),
        ("s", "My top 10 list\nThe best 5 films\nOur new 3 phones ever\n", Format::Text),
        ("t", "My top 10 list\nThe best 5 films\n", Format::Text),
        ("u", "The quick brown fox\nMy top 10\nThe best 5\n", Format::Text),
        ("v", "So, yes, 5\nWell, no, 3, or 4\n", Format::Text),
        ("w", "196 242 3 881250949\n186 302 3 891717742\n", Format::Ratings),
        ("x", "ann tea 3 2026-11-25\nbob rye 4 2026-11-26\n", Format::Ratings),
        ("y", "user item rating note\nann tea 3 very good\nbob rye 4 good\n", Format::Ratings),
        ("z", "ann,tea,3,good\nbob,rye,4,\n", Format::Ratings),
        ("aa", "ann\ttea\t3\tgood\nbob\trye\t4\t\n", Format::Ratings),
        ("ab", "#metoo is trending right now\nall of us say so\n#so it is\nand we go on\n", Format::Text),
        ("ac", "# friends\nann bob\nbob cid\n", Format::Edges),
        ("ad", "# friends\nsource target weight\nann bob 0.5\n", Format::Edges),
        ("ae", "# friends\n1 2 best friend\n2 3 foe\n", Format::Edges),
        ("af", "% proteins\nA\tB\tbinds\nB\tC\tbinds\tweakly\n", Format::Edges),
        ("ag", "# nothing else\n", Format::Edges),
        ("ah", "кот сидел на окне\nсобака спит\n", Format::Text),
        ("ai", "बिल्ली सो रही है\n貓 在 睡覺\n", Format::Text),
    ] {
        let path = folder.path().join(name);
        write(&path, text.as_bytes());
        assert_eq!(Format::detect(&path).unwrap(), expected, "{name}: {text}");
    }
    for name in Format::NAMES {
        assert_eq!(name.parse::<Format>().unwrap().to_string(), name);
    }
}

#[test]
fn weighted_edges_are_a_graph_and_a_vocabulary_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("docword.toy-train.txt");
    write(&path, b"2\n2\n2\n1 1 3\n2 2 1\n");
    write(&folder.path().join("vocab.toy.txt"), b"cat\r\ndog\r\n");
    write(&folder.path().join("vocab.other.txt"), b"x\n");
    let corpus = read_corpus(&path, None).unwrap();
    assert!(corpus.data.right_names().iter().eq(["cat", "dog"]));
    let blank = folder.path().join("blank.lda-c");
    write(&blank, b"1 0:2\n2 2:3 0:1\n");
    write(&folder.path().join("vocab.blank.txt"), b"cat\n\n#dog\n\n\n");
    let corpus = read_corpus(&blank, Some(Format::LdaC)).unwrap();
    assert!(corpus.data.right_names().iter().eq(["cat", "(line 2)", "#dog"]), "a word's id is its line");
    let weighted = folder.path().join("weighted");
    write(&weighted, b"1 2 0.5\n2 1 0.5\n");
    assert_eq!(read_graph(&weighted, None).unwrap().edges.num_edges(), 2);
    let samples = folder.path().join("samples");
    write(&samples, b"1 3:1 # note\n-1\n");
    assert_eq!(read_samples(&samples, None, &[]).unwrap().labels.numbers().unwrap(), [1.0, -1.0]);
}

#[test]
fn parts_of_a_directory_are_read_as_what_they_are() {
    let edges = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| write(&folder.path().join(name), text.as_bytes()));
        read_graph(folder.path(), None).map(|graph| graph.edges.num_edges()).map_err(|error| error.to_string())
    };
    // A part without records has its header all the same.
    assert_eq!(edges(&[("a.csv", "from,to\n1,2\n"), ("b.csv", "from,to\n")]), Ok(1));
    // Names end a pass over integers: a line after them is looked at by the next.
    let late = format!("{}x y\n{}-5 7\n", "1 2\n".repeat(200), "3 4\n".repeat(40_000));
    assert_eq!(edges(&[("a.txt", &late), ("b.txt", "1 2\n")]), Ok(40_203));
    let said = edges(&[("a.csv", "1 2\r3 4\r5 6\r")]).unwrap_err();
    assert!(said.contains("a.csv: its lines end with carriage returns only"), "{said}");
}

#[test]
fn a_rating_that_is_missing_is_no_name_of_a_column() {
    for missing in ["NA", "", "null", "?"] {
        let said = parse_ratings(format!("ann,tea,{missing}\nbob,tea,4\n").as_bytes(), Format::Ratings);
        let said = said.unwrap_err().to_string();
        assert!(said.starts_with(&format!("<bytes>:1: rating: found \"{missing}\"")), "{said}");
    }
}

#[test]
fn test_ratings_keep_the_unknown_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.csv");
    write(&path, b"7,x,1\n8,x,2\n7,new,3\n9,new,4\n");
    let train = parse_ratings(b"7,y,5\n8,x,5\n", Format::Ratings).unwrap();
    let test = read_ratings_with(&path, Some(Format::Ratings), &train.left_names, train.right_names()).unwrap();
    assert_eq!((test.known.left, test.known.right, test.known.data), (vec![0, 1], vec![1, 1], vec![1.0, 2.0]));
    let others: Vec<_> = test.others.iter().map(|other| (other.left, other.right, other.rating)).collect();
    assert_eq!(others, [(Some(0), None, 3.0), (None, None, 4.0)]);
}

#[test]
fn every_label_is_a_class_where_these_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("classes.svm");
    fs::write(&path, "7 1:2\n-0 3:1\n\n0.5 1:1 2:4 # a comment\n7 2:1\n0 1:3\n").unwrap();
    let read = read_samples(&path, None, &[]).unwrap();
    assert_eq!(read.labels.classes, ["0", "0.5", "7"]);
    assert_eq!(read.labels.of, [2, 0, 1, 2, 0]);
    assert_eq!(read.data.edges.left, [0, 1, 2, 2, 3, 4]);
    assert_eq!(read.data.edges.data, [2.0, 1.0, 1.0, 4.0, 1.0, 3.0]);
    fs::write(&path, "7 1:2\nNaN 3:1\n").unwrap();
    let error = read_samples(&path, None, &[]).unwrap_err().to_string();
    assert!(error.contains("classes.svm:2: label") && error.contains("a number or the name of a class"), "{error}");
}

//! The cache gives back the graph that was put in, and any damage to it is seen or harmless.
#![cfg(unix)]

use std::fmt::Debug;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use megagrid_datasets::cache::{Cache, EdgeData, FORMAT_VERSION, info};
use megagrid_datasets::{Dataset, Dictionary, Error, Format, Labels, Prepared, Samples, parse_graph, parse_ratings};
use megagrid_partition::{EdgeList, EdgeSource, Side};
use proptest::prelude::*;

const BOTH: [Side; 2] = [Side::Left, Side::Right];

/// All edges of a source, by left name, right name and data, as the groups of `side` have them.
fn named_edges<T: EdgeData>(
    prepared: &Prepared<T>,
    side: Side,
    rows_at_a_time: usize,
) -> Vec<(String, String, String)> {
    let [left, right] = BOTH.map(|side| prepared.names.get(side).unwrap().into_owned());
    let offsets = prepared.edges.offsets(side);
    let mut edges = Vec::new();
    for start in (0..offsets.len() - 1).step_by(rows_at_a_time) {
        let rows = start..(offsets.len() - 1).min(start + rows_at_a_time);
        let visit = &mut |far_ends: &[u32], data: &[T]| {
            assert_eq!(far_ends.len() as u64, offsets[rows.end] - offsets[rows.start]);
            for row in rows.clone() {
                let group =
                    (offsets[row] - offsets[rows.start]) as usize..(offsets[row + 1] - offsets[rows.start]) as usize;
                assert!(far_ends[group.clone()].is_sorted());
                for at in group {
                    let (near, far) = (row as u32, far_ends[at]);
                    let (l, r) = if side == Side::Left { (near, far) } else { (far, near) };
                    edges.push((left.name(l).into_owned(), right.name(r).into_owned(), format!("{:?}", data[at])));
                }
            }
        };
        prepared.edges.visit_rows(side, rows.clone(), visit).unwrap();
    }
    edges
}

fn input_edges<T: Debug>(dataset: &Dataset<T>) -> Vec<(String, String, String)> {
    let edges = &dataset.edges;
    let named = (0..edges.num_edges()).map(|at| {
        let (left, right) = (dataset.left_names.name(edges.left[at]), dataset.right_names().name(edges.right[at]));
        (left.into_owned(), right.into_owned(), format!("{:?}", edges.data[at]))
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

/// Checks the way through a cache against the way through memory and against the input.
fn check<T: EdgeData>(dataset: Dataset<T>, directory: &Path) -> PathBuf {
    let path = directory.join("x.mgrid");
    let _ = fs::remove_file(&path);
    let (expected, square) = (input_edges(&dataset), dataset.edges.square);
    let prepared = Prepared::new(dataset.in_degree_order(), &BOTH);
    prepared.write_cache(&path).unwrap();
    let cached = Prepared::<T>::open(&path).unwrap();
    for side in BOTH {
        assert_eq!(cached.edges.offsets(side), prepared.edges.offsets(side));
        let whole = named_edges(&prepared, side, usize::MAX / 2);
        for rows_at_a_time in [1, 3, 1000] {
            assert_eq!(named_edges(&cached, side, rows_at_a_time), whole, "the same edges in the same order");
        }
        let mut sorted = whole;
        sorted.sort();
        assert_eq!(sorted, expected);
    }
    let degrees = |side| cached.edges.offsets(side).windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<u64>>();
    let [left, right] = BOTH.map(degrees);
    // Of a square graph, where no vertices may stand out, only those without an edge are last for sure.
    let is_used = left.iter().zip(&right).map(|(out, inwards)| out + inwards > 0);
    assert!(if square { is_used.is_sorted_by(|a, b| a >= b) } else { left.is_sorted_by(|a, b| a >= b) });
    let described = info(&path).unwrap();
    assert_eq!(described.num_edges, expected.len() as u64);
    assert_eq!((described.edge_type, described.version), (T::TYPE, FORMAT_VERSION));
    assert_eq!(described.file_bytes, fs::metadata(&path).unwrap().len());
    // A data set read back from the cache is grouped into the same again.
    let again = Prepared::new(Cache::<T>::open(&path).unwrap().to_dataset().unwrap().in_degree_order(), &[Side::Right]);
    assert_eq!(named_edges(&again, Side::Right, 7), named_edges(&cached, Side::Right, 7));
    path
}

fn dataset<T>(square: bool, edges: Vec<(u32, u32, T)>, strings: bool) -> Dataset<T> {
    let names = |size: usize| {
        if strings {
            Dictionary::from_strings((0..size).map(|id| format!("zoë {}", id * 7)))
        } else {
            Dictionary::from_integers((0..size as u64).map(|id| id * 7).collect())
        }
    };
    let (num_left, num_right) = if square { (12, 12) } else { (12, 9) };
    let mut list = EdgeList { num_left, num_right, square, left: vec![], right: vec![], data: vec![] };
    for (left, right, data) in edges {
        list.push(left, right % num_right as u32, data);
    }
    Dataset { edges: list, left_names: names(num_left), right_names: (!square).then(|| names(num_right)) }
}

fn edges<T: Debug>(data: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<(u32, u32, T)>> {
    proptest::collection::vec((0..12u32, 0..12u32, data), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ratings_survive(edges in edges(-9.0f32..9.0), square: bool, strings: bool) {
        check(dataset(square, edges, strings), tempfile::tempdir().unwrap().path());
    }

    #[test]
    fn counts_survive(edges in edges(1u32..5), square: bool, strings: bool) {
        check(dataset(square, edges, strings), tempfile::tempdir().unwrap().path());
    }

    #[test]
    fn graphs_survive(edges in edges(Just(())), square: bool, strings: bool) {
        check(dataset(square, edges, strings), tempfile::tempdir().unwrap().path());
    }

    #[test]
    fn splits_do_not_depend_on_the_way(edges in edges(0.0f32..5.0), seed: u64) {
        let directory = tempfile::tempdir().unwrap();
        let (text, path) = (dataset(false, edges, false).in_degree_order(), directory.path().join("x.mgrid"));
        Prepared::new(text.clone(), &BOTH).write_cache(&path).unwrap();
        let cached = Cache::<f32>::open(&path).unwrap().to_dataset().unwrap();
        let split = |dataset| megagrid_datasets::split(dataset, 0.3, seed);
        if let (Ok((train, test)), Ok((train_cached, test_cached))) = (split(&text), split(&cached)) {
            for (a, b) in [(train, train_cached), (test, test_cached)] {
                let [a, b] = [a, b].map(|part| named_edges(&Prepared::new(part, &BOTH), Side::Right, 5));
                prop_assert_eq!(a, b);
            }
        } else {
            prop_assert!(split(&text).is_err() && split(&cached).is_err());
        }
    }
}

#[test]
fn several_pieces_are_checked_window_by_window() {
    // Far ends of 3.2 MB: four pieces.
    let edge = |i: u32| (i.wrapping_mul(2_654_435_761) % 12, i.wrapping_mul(40_503) % 9, i as f32);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.mgrid");
    let prepared = Prepared::new(dataset(false, (0..800_000).map(edge).collect(), false).in_degree_order(), &BOTH);
    prepared.write_cache(&path).unwrap();
    let cached = Prepared::<f32>::open(&path).unwrap();
    for side in BOTH {
        assert_eq!(named_edges(&cached, side, 1), named_edges(&prepared, side, 100));
    }
    // A changed byte in the last piece of the right far ends is seen by a visit of the last rows and by no other.
    let start = 512 + 128 + 128;
    change_byte(&path, start + 3_199_990);
    let damaged = Cache::<f32>::open(&path).unwrap();
    damaged.visit_rows(Side::Right, 0..1, &mut |_, _| {}).unwrap();
    damaged.visit_rows(Side::Left, 0..12, &mut |_, _| {}).unwrap();
    let error = damaged.visit_rows(Side::Right, 8..9, &mut |_, _| panic!("visited")).unwrap_err();
    assert!(error.to_string().contains("wrong checksum in the far ends by right vertex"), "{error}");
}

fn change_byte(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x41], at).unwrap();
}

type Contents = (Vec<Vec<(String, String, String)>>, Option<Labels>);

fn contents(path: &Path) -> Result<Contents, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let prepared = Prepared::<f32>::open(path).map_err(|error| text(&error))?;
    for side in BOTH {
        prepared.names.get(side).map_err(|error| text(&error))?;
        let rows = 0..prepared.edges.num_vertices(side);
        prepared.edges.visit_rows(side, rows, &mut |_, _| {}).map_err(|error| text(&error))?;
    }
    Ok((BOTH.map(|side| named_edges(&prepared, side, 100)).to_vec(), prepared.labels))
}

#[test]
fn labels_are_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let labelled = |of: &[&str]| {
        let data = dataset(false, vec![(0, 0, 1.0), (1, 0, 2.0)], true);
        let labels = Labels { classes: of.iter().map(ToString::to_string).collect(), of: vec![1; data.edges.num_left] };
        Prepared::from_samples(Samples::new(data, labels), &BOTH)
    };
    let path = directory.path().join("words.mgrid");
    let message = labelled(&["news", "sports"]).write_cache(&path).unwrap_err().to_string();
    assert!(message.contains("\"news\" is none"), "{message}");
    let path = directory.path().join("numbers.mgrid");
    labelled(&["-1", "2.5"]).write_cache(&path).unwrap();
    let found = Prepared::<f32>::open(&path).unwrap().labels.unwrap();
    assert_eq!((found.classes, found.of[3]), (vec!["2.5".to_owned()], 0));
}

#[test]
fn any_changed_byte_is_seen_or_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.mgrid");
    let data = dataset(false, (0..40).map(|i| (i * i % 12, i % 9, i as f32)).collect(), true);
    let labels = Labels::of_signs((0..12).map(|id| if id % 5 < 2 { 1.0 } else { -1.0 }));
    Prepared::from_samples(Samples::new(data, labels).in_degree_order(), &BOTH).write_cache(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    let expected = contents(&path).unwrap();
    let mut num_harmless = 0;
    for at in 0..whole.len() {
        change_byte(&path, at as u64);
        match contents(&path) {
            Ok(found) => {
                assert_eq!(found, expected, "byte {at}");
                num_harmless += 1;
            }
            Err(message) => assert!(message.contains("x.mgrid: "), "{message}"),
        }
        change_byte(&path, at as u64);
    }
    assert_eq!(contents(&path).unwrap(), expected);
    // Only what lies between sections.
    assert!(num_harmless < 9 * 64, "{num_harmless}");
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let message = Cache::<f32>::open(&path).map(drop).unwrap_err().to_string();
        let named = if length < 8 { "not a .mgrid cache" } else { "truncated" };
        assert!(message.contains(named), "cut to {length} bytes: {message}");
    }
}

#[test]
fn each_refusal_says_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.mgrid");
    let ratings = parse_ratings(b"1 2 3\n1 3 4\n", Format::Ratings).unwrap();
    let prepared = Prepared::new(ratings, &BOTH);
    prepared.write_cache(&path).unwrap();

    assert!(matches!(prepared.write_cache(&path), Err(Error::OutputExists { .. })));
    let error = Cache::<()>::open(&path).unwrap_err();
    assert!(matches!(error, Error::CacheEdgeType { .. }));
    let said = "holds edges with numbers (f32), expected edges with no data; convert its input again with --as graph";
    assert!(error.to_string().ends_with(said), "{error}");
    let error = Cache::<u32>::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("expected edges with counts (u32); convert its input again with --as corpus"), "{error}");

    let version = OpenOptions::new().write(true).open(&path).unwrap();
    version.write_all_at(&7u32.to_le_bytes(), 8).unwrap();
    let error = info(&path).unwrap_err();
    assert!(error.to_string().contains("format version 7, expected 1"), "{error}");
    assert!(matches!(error, Error::CacheVersion { found: 7, .. }));

    let text = directory.path().join("graph.txt");
    fs::write(&text, "1 2\n2 3\n".repeat(200)).unwrap();
    assert!(matches!(Cache::<()>::open(&text), Err(Error::NotACache { .. })));
    let absent = Cache::<()>::open(directory.path().join("absent")).unwrap_err();
    assert!(matches!(absent, Error::Io { .. }), "{absent}");

    let one_sided = Prepared::new(parse_graph(b"1 2\n", Format::Edges).unwrap(), &[Side::Right]);
    let target = directory.path().join("y.mgrid");
    assert!(one_sided.write_cache(&target).is_err());
    assert!(!target.exists());
}

#[test]
fn real_data_survive() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let (ratings, graph) = (data.join("movielens-100k/u.data.gz"), data.join("wiki-Vote/wiki-Vote.txt.gz"));
    if !ratings.exists() || !graph.exists() {
        eprintln!("skipped: no data in {}", data.display());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    check(megagrid_datasets::read_ratings(ratings, None).unwrap(), directory.path());
    check(megagrid_datasets::read_graph(graph, None).unwrap(), directory.path());
}

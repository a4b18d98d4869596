//! Every public data set of the project loads to the counts that its description gives.

use std::path::Path;

use megagrid_datasets::{Format, Label, read_corpus, read_graph, read_ratings, read_ratings_with, read_samples};

use crate::Test;

/// The tests, by name.
pub const TESTS: &[(&str, Test)] = &[
    ("formats::graphs", graphs),
    ("formats::ratings", ratings),
    ("formats::mean_rating_of_movielens", mean_rating_of_movielens),
    ("formats::test_ratings_of_movielens", test_ratings_of_movielens),
    ("formats::samples", samples),
    ("formats::amazon_reviews", amazon_reviews),
    ("formats::unseen_features_are_dropped", unseen_features_are_dropped),
    ("formats::many_classes_or_a_choice", many_classes_or_a_choice),
    ("formats::corpora", corpora),
];

fn graphs(data: &Path) {
    for (file, vertices, edges, self_loops) in [
        ("cnr-2000/cnr-2000.txt.gz", 325_557, 3_216_152, 87_442),
        ("soc-Slashdot0902/soc-Slashdot0902.txt.gz", 82_168, 948_464, 78_303),
        ("soc-Epinions1/soc-Epinions1.txt.gz", 75_879, 508_837, 0),
        ("wiki-Vote/wiki-Vote.txt.gz", 7_115, 103_689, 0),
    ] {
        let path = data.join(file);
        assert_eq!(Format::detect(&path).unwrap(), Format::Edges, "{file}");
        let graph = read_graph(&path, None).unwrap();
        let list = &graph.edges;
        assert_eq!((list.num_left, list.num_right, list.num_edges()), (vertices, vertices, edges), "{file}");
        assert!(list.square && graph.left_names.is_integers(), "{file}");
        let loops = list.left.iter().zip(&list.right).filter(|(left, right)| left == right).count();
        assert_eq!(loops, self_loops, "{file}");
    }
}

fn ratings(data: &Path) {
    for (file, users, items, ratings) in [
        ("movielens-100k/u.data.gz", 943, 1_682, 100_000),
        ("movielens-100k/u1.base.gz", 943, 1_650, 80_000),
        ("ciao/ratings.tsv.gz", 7_375, 105_114, 284_086),
        ("anime/anime_ratings.dat.gz", 4_714, 7_157, 419_943),
    ] {
        let path = data.join(file);
        assert_eq!(Format::detect(&path).unwrap(), Format::Ratings, "{file}");
        let edges = read_ratings(&path, None).unwrap().edges;
        assert_eq!((edges.num_left, edges.num_right, edges.num_edges()), (users, items, ratings), "{file}");
    }
}

fn mean_rating_of_movielens(data: &Path) {
    let edges = read_ratings(data.join("movielens-100k/u.data.gz"), None).unwrap().edges;
    let mean = edges.data.iter().map(|&rating| f64::from(rating)).sum::<f64>() / edges.num_edges() as f64;
    assert!((mean - 3.52986).abs() < 1e-9, "{mean}");
}

fn test_ratings_of_movielens(data: &Path) {
    let train = read_ratings(data.join("movielens-100k/u1.base.gz"), None).unwrap();
    let (users, items) = (&train.left_names, train.right_names());
    let test = read_ratings_with(data.join("movielens-100k/u1.test.gz"), None, users, items).unwrap();
    assert_eq!(test.known.num_edges() + test.others.len(), 20_000);
    assert_eq!((test.known.num_left, test.known.num_right), (943, 1_650));
    // u1.base has all users, so what is unknown is always the item.
    assert!(test.others.iter().all(|other| other.left.is_some() && other.right.is_none()));
    assert!(!test.others.is_empty());
}

fn samples(data: &Path) {
    /// File, samples, features that occur (where known), non-zeros, positives, largest index.
    type Expected = (&'static str, usize, Option<usize>, usize, usize, u64);
    let files: [Expected; 10] = [
        ("a9a/a9a.gz", 32_561, Some(123), 451_592, 7_841, 123),
        ("a9a/a9a.t.gz", 16_281, Some(122), 225_731, 3_846, 122),
        ("w8a/w8a.gz", 49_749, Some(300), 579_586, 1_479, 300),
        ("ipinyou/train.fm.txt.gz", 26_773, Some(14_745), 428_368, 255, 133_464),
        ("ipinyou/test.fm.txt.gz", 21_150, Some(7_264), 338_400, 50, 133_464),
        ("frappe/frappe.validation.libfm.gz", 57_722, None, 577_220, 19_063, 5_381),
        ("frappe/frappe.test.libfm.gz", 28_860, None, 288_600, 9_536, 5_381),
        ("rcv1-small/rcv1_small.libsvm.gz", 1_000, None, 77_739, 459, 47_117),
        ("rcv1-small/rcv1_small.t.libsvm.gz", 500, None, 39_448, 245, 47_117),
        ("amazon-reviews/books_train.svmlight.gz", 2_000, None, 0, 1_000, 4_999),
    ];
    for (file, samples, features, nonzeros, positives, largest) in files {
        let path = data.join(file);
        assert_eq!(Format::detect(&path).unwrap(), Format::Libsvm, "{file}");
        let read = read_samples(&path, None, &[]).unwrap();
        let edges = &read.data.edges;
        assert_eq!((edges.num_left, read.labels.of.len()), (samples, samples), "{file}");
        assert!(features.is_none_or(|features| features == edges.num_right), "{file}: {} features", edges.num_right);
        assert!(nonzeros == 0 || nonzeros == edges.num_edges(), "{file}");
        assert_eq!(read.labels.counts()[1], positives, "{file}");
        let names = read.data.right_names().as_integers().unwrap();
        assert!(*names.last().unwrap() <= largest, "{file}: index {}", names.last().unwrap());
    }
}

fn amazon_reviews(data: &Path) {
    for (part, samples, nonzeros, positives) in [("train", 8_000, 637_744, 4_000), ("test", 19_677, 1_502_686, 9_882)] {
        let mut sum = (0, 0, 0);
        for domain in ["books", "dvd", "electronics", "kitchen"] {
            let file = format!("amazon-reviews/{domain}_{part}.svmlight.gz");
            let read = read_samples(data.join(file), None, &[]).unwrap();
            sum.0 += read.labels.of.len();
            sum.1 += read.data.edges.num_edges();
            sum.2 += read.labels.counts()[1];
        }
        assert_eq!(sum, (samples, nonzeros, positives), "{part}");
    }
}

fn unseen_features_are_dropped(data: &Path) {
    let train = read_samples(data.join("ipinyou/train.fm.txt.gz"), None, &[]).unwrap();
    let test = read_samples(data.join("ipinyou/test.fm.txt.gz"), None, &[]).unwrap();
    let known = train.data.right_names();
    let unseen = test.data.right_names().translate(known).iter().filter(|id| id.is_none()).count();
    assert_eq!(unseen, 5_544);
    let edges = test.data.edges.num_edges();
    let (test, dropped) = test.data.with_right_names(known);
    assert_eq!(test.edges.num_edges() + dropped, edges);
    assert_eq!((test.edges.num_left, test.edges.num_right), (21_150, 14_745));
}

fn many_classes_or_a_choice(data: &Path) {
    let path = data.join("news20/news20.gz");
    let classes = read_samples(&path, None, &[]).unwrap().labels;
    assert!(classes.classes.iter().cloned().eq((1..=20).map(|class| class.to_string())));
    assert!(classes.counts().iter().all(|count| (780..=800).contains(count)), "{:?}", classes.counts());
    let read = read_samples(&path, None, &[Label::Number(1.0)]).unwrap();
    assert_eq!((read.labels.of.len(), read.data.edges.num_edges()), (15_935, 1_272_569));
    let positives = read.labels.counts()[1];
    assert!((780..=800).contains(&positives), "{positives}");
}

fn corpora(data: &Path) {
    for (file, format, documents, words, entries, tokens) in [
        ("uci-kos/docword.kos.txt.gz", Format::BagOfWords, 3_430, 6_906, 353_160, 467_714),
        ("20newsgroups/docword.20ng-train.txt.gz", Format::BagOfWords, 11_269, 61_188, 1_467_345, 2_765_300),
        ("20newsgroups/docword.20ng-test.txt.gz", Format::BagOfWords, 7_505, 61_188, 967_874, 1_796_919),
        ("associated-press/ap.dat.gz", Format::LdaC, 2_246, 10_473, 302_031, 435_838),
    ] {
        let path = data.join(file);
        assert_eq!(Format::detect(&path).unwrap(), format, "{file}");
        let corpus = read_corpus(&path, None).unwrap();
        let edges = &corpus.data.edges;
        assert_eq!((edges.num_left, edges.num_right, edges.num_edges()), (documents, words, entries), "{file}");
        assert_eq!(corpus.num_tokens, tokens, "{file}");
        assert!(!corpus.data.right_names().is_integers(), "{file}: the vocabulary was not found");
    }
}

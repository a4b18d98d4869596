//! Generated data, written as text and read again.

use megagrid_datasets::synthetic::{
    ClicksSettings, CorpusSettings, RatingsSettings, RmatSettings, SyntheticCorpus, write_edges,
};
use megagrid_datasets::{Format, output, read_corpus, read_graph, read_ratings, read_samples};

/// What is made, the same on any number of threads.
fn made<T: Send + PartialEq + std::fmt::Debug>(make: impl Fn() -> T + Send + Sync) -> T {
    let [one, three] =
        [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(&make));
    assert_eq!(one, three);
    one
}

#[test]
fn a_graph_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("graph.txt");
    let graph = RmatSettings { scale: 12, ..RmatSettings::default() }.generate().unwrap();
    write_edges(&path, &graph).unwrap();
    let read = read_graph(&path, Some(Format::Edges)).unwrap();
    // Vertices without edges are not in the text.
    let name = |id: u32| read.left_names.name(id).parse::<u32>().unwrap();
    assert!(read.edges.left.iter().map(|&id| name(id)).eq(graph.left.iter().copied()));
    assert!(read.edges.right.iter().map(|&id| name(id)).eq(graph.right.iter().copied()));
    assert!(write_edges(&path, &graph).unwrap_err().to_string().contains("exists already"));
}

#[test]
fn ratings_come_back_with_their_truth() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ratings.tsv");
    let made = made(|| RatingsSettings::default().generate().unwrap());
    made.write(&path).unwrap();
    // Every user and item has a rating under these settings.
    assert_eq!(read_ratings(&path, Some(Format::Ratings)).unwrap(), made.data);
    made.truth.write(directory.path()).unwrap();
    let users = output::read_npy::<f32>(&directory.path().join("users.npy"), 2).unwrap();
    assert_eq!((users.shape, users.values), (vec![1000, 8], made.truth.users));
}

#[test]
fn a_corpus_comes_back_with_its_vocabulary() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("docword.made.txt");
    let made = made(|| CorpusSettings::default().generate().unwrap());
    made.write(&path).unwrap();
    assert!(SyntheticCorpus::vocabulary_path(&path).exists());
    assert_eq!(read_corpus(&path, None).unwrap(), made.corpus);
    made.truth.write(directory.path()).unwrap();
    let topics = output::read_npy::<f32>(&directory.path().join("topics.npy"), 2).unwrap();
    assert_eq!((topics.shape, topics.values), (vec![10, 2000], made.truth.topics));
}

#[test]
fn clicks_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("clicks.svm");
    // Few features, so that each occurs.
    let settings = ClicksSettings { num_features: 50, ..ClicksSettings::default() };
    let made = made(|| settings.generate().unwrap());
    made.write(&path).unwrap();
    assert_eq!(read_samples(&path, None, &[]).unwrap(), made.samples);
    made.truth.write(directory.path()).unwrap();
    let weights = output::read_npy::<f32>(&directory.path().join("weights.npy"), 1).unwrap();
    assert_eq!(weights.values, made.truth.weights);
}

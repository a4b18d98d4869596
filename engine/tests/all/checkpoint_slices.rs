//! Checkpoints of programs that keep slices on their edges: topic models go on as if they had not stopped.

use megagrid_algorithms::lda::{Config, Dense, Mh, Model, Prior, Sparse, Tokens};
use megagrid_engine::checkpoint::{load, save};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use tempfile::tempdir;

use crate::checkpoint;
use crate::made::{Counted, model, settings, topics};

const TOPICS: usize = 6;
const DOCUMENTS: usize = 60;
const WORDS: usize = 50;

/// Pairs of a document and a word, some of them repeated with the same and with other counts.
fn documents(seed: u64) -> GroupedEdges<u32> {
    let mut random = SplitMix::new(seed, 0);
    let mut list = EdgeList { num_left: DOCUMENTS, num_right: WORDS, ..EdgeList::default() };
    for _ in 0..1500 {
        let document = random.below(DOCUMENTS as u64) as u32;
        let word = (random.unit() * random.unit() * WORDS as f64) as u32;
        list.push(document, word, 1 + random.below(3) as u32);
    }
    GroupedEdges::new(list, &[Side::Right])
}

fn goes_on<S: Counted>(edges: &GroupedEdges<u32>, config: &Config) {
    let tokens = Tokens::count(edges).unwrap().total as i64;
    let make = |workers| topics::<S>(edges, config, &settings(workers, TOPICS));
    checkpoint::goes_on(make, model, |other, _| {
        // Tokens whose topics were of other edges would take counts below zero.
        let Model { topics, words, documents } = model(other);
        assert_eq!(topics.totals.iter().sum::<i64>(), tokens);
        for table in [words, documents] {
            assert_eq!(table.counts.iter().map(|&count| i64::from(count)).sum::<i64>(), tokens);
        }
    });
}

#[test]
fn topic_models_go_on_bit_by_bit_and_on_other_numbers_of_workers() {
    let (edges, config) = (documents(1), Config { clocks: 3, ..Config::new(TOPICS) });
    goes_on::<Dense>(&edges, &config);
    goes_on::<Sparse>(&edges, &config);
    goes_on::<Mh>(&edges, &Config { prior: Prior::Symmetric, ..config });
}

#[test]
fn another_corpus_of_the_same_size_is_refused() {
    let of = |seed| topics::<Dense>(&documents(seed), &Config::new(TOPICS), &settings(1, TOPICS));
    let dir = tempdir().unwrap();
    save(&mut of(1), dir.path()).unwrap();
    let error = load(&mut of(2), dir.path()).unwrap_err().to_string();
    assert!(error.contains("edge data digest"), "{error}");
}

//! Links with weights, and links both ways: from every format, in parts, and whatever their ids.

use std::sync::Arc;

use megagrid_datasets::{
    Dataset, Layout, Readers, load_weighted_graph_with, read_graph, read_ratings, read_weighted_graph,
};
use megagrid_partition::Side;
use proptest::prelude::*;

use crate::together::together;

fn written(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

/// Names of the ends and the weight of each link, in order.
fn links(read: &Dataset<f32>) -> Vec<(String, String, f32)> {
    let name = |&id: &u32| read.left_names.name(id).into_owned();
    let ends = read.edges.left.iter().zip(&read.edges.right).zip(&read.edges.data);
    ends.map(|((left, right), &weight)| (name(left), name(right), weight)).collect()
}

fn undirected() -> Layout {
    Layout { undirected: true, ..Layout::default() }
}

/// Integers that take 32 bits or more, or names from some line on.
fn id(kind: u8, at: usize, number: u32) -> String {
    match kind {
        0 => number.to_string(),
        1 => (u64::MAX - u64::from(number)).to_string(),
        _ if at < 120 => number.to_string(),
        _ => format!("page {number}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn each_link_is_followed_by_the_one_back(
        records in prop::collection::vec((0..30_u32, 0..30_u32, 0..9_u8), 1..300),
        kind in 0..3_u8,
        processes in 1..4_usize,
    ) {
        let named = records.iter().enumerate().map(|(at, &(from, to, weight))| {
            (id(kind, at, from), id(kind, at, to), f32::from(weight) / 4.0)
        });
        let mut expected = Vec::new();
        let mut text = String::new();
        for (from, to, weight) in named {
            text += &format!("{from},{to},{weight}\n");
            expected.push((from.clone(), to.clone(), weight));
            if from != to {
                expected.push((to, from, weight));
            }
        }
        let file = written(&text);
        let read = read_weighted_graph(file.path(), undirected()).unwrap();
        prop_assert_eq!(links(&read), &expected[..]);
        let one_way = read_weighted_graph(file.path(), None).unwrap();
        prop_assert_eq!(links(&one_way.both_ways()), &expected[..]);
        prop_assert_eq!(read_graph(file.path(), undirected()).unwrap().edges.left, &read.edges.left[..]);
        // Sums of weights are exact here, whoever adds them up.
        let mut sums = vec![0.0; read.edges.num_left];
        read.edges.left.iter().zip(&read.edges.data).for_each(|(&from, &w)| sums[from as usize] += f64::from(w));
        let part = |readers: Arc<dyn Readers>| {
            let loaded = load_weighted_graph_with(file.path(), undirected(), Some(&readers)).unwrap();
            let prepared = loaded.prepare(Side::Right, false).unwrap();
            prepared.edges.left_sums(|&weight| f64::from(weight)).unwrap()
        };
        for found in together(processes, part) {
            prop_assert_eq!(&found, &sums);
        }
        let alone = load_weighted_graph_with(file.path(), undirected(), None).unwrap();
        let alone = alone.prepare(Side::Right, false).unwrap();
        prop_assert_eq!(alone.edges.left_sums(|&weight| f64::from(weight)).unwrap(), sums);
    }
}

#[test]
fn a_symmetric_matrix_has_both_ways_already() {
    let text = |kind: &str| format!("%%MatrixMarket matrix coordinate real {kind}\n3 3 3\n1 1 2\n2 1 3\n3 2 0.5\n");
    let (symmetric, general) = (written(&text("symmetric")), written(&text("general")));
    let expected = read_weighted_graph(general.path(), undirected()).unwrap();
    assert_eq!(expected.edges.num_edges(), 5);
    for layout in [Layout::default(), undirected()] {
        assert_eq!(read_weighted_graph(symmetric.path(), layout).unwrap(), expected);
    }
}

#[test]
fn ratings_have_a_direction() {
    let said = read_ratings(written("1 2 3\n").path(), undirected()).unwrap_err().to_string();
    assert!(said.contains("is to be read as undirected, which only edges of a graph can be"), "{said}");
}

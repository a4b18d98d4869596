//! Models of real data, trained by the command.

use std::collections::HashMap;
use std::path::Path;

use megagrid_datasets::output::{Column, read_table};
use megagrid_datasets::{read_graph, read_samples};
use petgraph::Direction::{Incoming, Outgoing};
use petgraph::Graph;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;
use serde_json::Value;

use crate::Test;
use crate::command::{Place, assert_halved, done, json};

/// The tests, by name.
pub const TESTS: &[(&str, Test)] = &[
    ("models::counts", counts),
    ("models::scores_are_those_of_a_plain_power_iteration", scores),
    ("models::hubs_are_those_of_a_plain_power_iteration", hubs),
    ("models::ratings_of_unseen_pairs_are_predicted", ratings),
    ("models::sparse_weights_have_a_certificate", weights),
    ("models::topics_are_as_likely_as_exact_sampling_makes_them", topics),
    ("models::cuts_of_ratings_send_at_most_half", cuts),
];

/// Trains on a data set; returns the record's result and the model's folder.
fn train(algorithm: &str, input: &Path, options: &[&str]) -> (Value, Place) {
    let place = Place::new();
    let (model, record) = (place.name("model"), place.name("run.json"));
    let files = [algorithm, input.to_str().unwrap(), "-q", "--model", &model, "--json", &record];
    done(&[&files[..], options].concat());
    (json(record)["result"].clone(), place)
}

/// Reads a model's table of names and numbers.
fn table(place: &Place, name: &str) -> HashMap<String, f64> {
    let read = read_table(&place.path("model").join(name)).unwrap();
    let values: Vec<f64> = match &read[1].1 {
        Column::F32(values) => values.iter().map(|&value| f64::from(value)).collect(),
        Column::F64(values) => values.to_vec(),
        other => panic!("{other:?}"),
    };
    let names: Vec<String> = match &read[0].1 {
        Column::U64(ids) => ids.iter().map(u64::to_string).collect(),
        Column::Strings(names) => names.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    };
    names.into_iter().zip(values).collect()
}

/// Checks scores, and that there are as many.
fn assert_near(found: &HashMap<String, f64>, graph: &Graph<String, ()>, expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (name, &expected) in graph.node_weights().zip(expected) {
        let found = found[name];
        assert!((found - expected).abs() <= 1e-6 + 1e-4 * expected, "{name}: {found}, expected {expected}");
    }
}

/// Counts of real data sets, as published.
fn counts(data: &Path) {
    let inspect = |file: &str| -> Value {
        serde_json::from_str(&done(&["inspect", data.join(file).to_str().unwrap(), "--json", "-"])).unwrap()
    };
    let graph = inspect("soc-Epinions1/soc-Epinions1.txt.gz");
    assert_eq!((&graph["left"]["vertices"], &graph["edges"]), (&75_879.into(), &508_837.into()));
    assert_eq!((&graph["dangling"], &graph["right"]["without_edges"]), (&15_538.into(), &23_922.into()));
    assert_eq!((&graph["left"]["max"], &graph["right"]["max"]), (&1_801.into(), &3_035.into()));
    assert_eq!((&graph["duplicates"], &graph["self_loops"]), (&0.into(), &0.into()));
    let ratings = inspect("ciao/ratings.tsv.gz");
    assert_eq!((&ratings["left"]["vertices"], &ratings["right"]["vertices"]), (&7_375.into(), &105_114.into()));
    assert_eq!((&ratings["edges"], &ratings["duplicates"]), (&284_086.into(), &1_436.into()));
    let samples = inspect("w8a/w8a.gz");
    assert_eq!((&samples["labels"][1]["class"], &samples["labels"][1]["samples"]), (&"1".into(), &1_479.into()));
    assert_eq!(samples["left"]["without_edges"], 4_203);
    let corpus = inspect("associated-press/ap.dat.gz");
    assert_eq!((&corpus["tokens"], &corpus["right"]["vertices"]), (&435_838.into(), &10_473.into()));
}

/// PageRank by its definition, in 64 bits, on a `petgraph` graph.
fn scores(data: &Path) {
    let input = data.join("wiki-Vote/wiki-Vote.txt.gz");
    let graph = read_graph(&input, None).unwrap().to_petgraph().unwrap();
    let uniform = 1.0 / graph.node_count() as f64;
    let mut scores = vec![uniform; graph.node_count()];
    for _ in 0..100 {
        let share = |page| scores[NodeIndex::index(page)] / graph.edges_directed(page, Outgoing).count() as f64;
        let dangling: f64 = graph.externals(Outgoing).map(|page| scores[NodeIndex::index(page)]).sum();
        let rank = |page| {
            let links: f64 = graph.edges_directed(page, Incoming).map(|link| share(link.source())).sum();
            0.15 * uniform + 0.85 * (dangling * uniform + links)
        };
        scores = graph.node_indices().map(rank).collect();
    }
    let (_, place) = train("pagerank", &input, &["--tolerance", "1e-7", "-w", "2"]);
    assert_near(&table(&place, "scores.parquet"), &graph, &scores);
}

/// Hubs and authorities by their definition.
fn hubs(data: &Path) {
    let input = data.join("wiki-Vote/wiki-Vote.txt.gz");
    let graph = read_graph(&input, None).unwrap().to_petgraph().unwrap();
    let unit = |values: Vec<f64>| -> Vec<f64> {
        let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
        values.into_iter().map(|value| value / norm).collect()
    };
    let mut hubs = vec![1.0; graph.node_count()];
    let mut authorities = Vec::new();
    for _ in 0..200 {
        let linked =
            |page| graph.edges_directed(page, Incoming).map(|link| hubs[NodeIndex::index(link.source())]).sum();
        authorities = unit(graph.node_indices().map(linked).collect());
        let links = |page| graph.edges(page).map(|link| authorities[NodeIndex::index(link.target())]).sum();
        hubs = unit(graph.node_indices().map(links).collect());
    }
    let (_, place) = train("hits", &input, &["--tolerance", "1e-7", "--iterations", "300", "-w", "2"]);
    assert_near(&table(&place, "hubs.parquet"), &graph, &hubs);
    assert_near(&table(&place, "authorities.parquet"), &graph, &authorities);
}

/// Biased matrix factorization reaches 0.92 to 0.96 on this split (Koren's surveys and later libraries).
fn ratings(data: &Path) {
    let [train_on, test] = ["u1.base.gz", "u1.test.gz"].map(|file| data.join("movielens-100k").join(file));
    let (result, _place) = train("mf", &train_on, &["--test", test.to_str().unwrap()]);
    let rmse = result["metrics"]["test_rmse"].as_f64().unwrap();
    assert!((0.90..0.95).contains(&rmse), "{rmse}");
}

/// No weights are better by more than the gap to the value of a dual feasible point, which the weights give.
fn weights(data: &Path) {
    let input = data.join("rcv1-small/rcv1_small.libsvm.gz");
    let (result, place) = train("blockpg", &input, &["--l1", "1", "--tolerance", "1e-5", "--iterations", "300"]);
    let weights = table(&place, "weights.parquet");
    let samples = read_samples(&input, None, &[]).unwrap();
    let (edges, names) = (&samples.data.edges, samples.data.right_names());
    let weight: Vec<f64> = names.iter().map(|name| weights.get(&*name).copied().unwrap_or(0.0)).collect();
    let values = || {
        edges
            .left
            .iter()
            .zip(&edges.right)
            .zip(&edges.data)
            .map(|((&s, &f), &x)| (s as usize, f as usize, f64::from(x)))
    };
    let sign: Vec<f64> = samples.labels.signs().map(f64::from).collect();
    let mut margins = vec![0.0; sign.len()];
    values().for_each(|(sample, feature, x)| margins[sample] += sign[sample] * weight[feature] * x);
    let loss: f64 = margins.iter().map(|margin| (-margin).exp().ln_1p()).sum();
    let primal = loss + weight.iter().map(|weight| weight.abs()).sum::<f64>();
    let slopes: Vec<f64> = margins.iter().map(|margin| 1.0 / (1.0 + margin.exp())).collect();
    let mut gradient = vec![0.0; weight.len()];
    values().for_each(|(sample, feature, x)| gradient[feature] += sign[sample] * slopes[sample] * x);
    let scale = 1.0 / gradient.iter().fold(1.0_f64, |most, slope| most.max(slope.abs()));
    let entropy = |p: f64| -p * p.ln() - (1.0 - p) * (1.0 - p).ln();
    let dual: f64 = slopes.iter().map(|slope| entropy(slope * scale)).sum();
    assert!((primal - dual) / dual <= 1e-4, "{primal} against {dual}");
    assert!((result["objective"].as_f64().unwrap() / primal - 1.0).abs() < 1e-6, "{result}, {primal}");
}

/// Exact collapsed Gibbs sampling by tomotopy 0.14 has −8.1426 a token after as many iterations (`benches/peers/run lda-quality`).
fn topics(data: &Path) {
    let input = data.join("uci-kos/docword.kos.txt.gz");
    let options = ["-k", "50", "--alpha", "0.1", "--beta", "0.01", "--prior", "fixed", "--iterations", "200"];
    let (result, _place) = train("lda", &input, &options);
    let likelihood = result["metrics"]["per_token"].as_f64().unwrap();
    assert!((-8.16..-8.05).contains(&likelihood), "{likelihood}");
}

fn cuts(data: &Path) {
    for processes in ["2", "4", "8"] {
        assert_halved(data.join("movielens-100k/u.data.gz").to_str().unwrap(), processes);
    }
}

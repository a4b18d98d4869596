//! Hubs and authorities against closed forms and a dense power iteration.

use std::collections::HashMap;
use std::fmt::Write;

use megagrid_datasets::{Format, parse_graph};
use megagrid_training::graph::{Graph, Ranked};
use megagrid_training::hits::{Authorities, HitsOptions, HubsAndAuthorities, Links};
use megagrid_training::{Job, Processes, RunOptions, train};

/// Trains on links, one a line; returns the model and the iterations.
fn trained(links: &str, workers: usize) -> (Authorities, u64) {
    let graph = parse_graph(links.as_bytes(), Format::Edges).unwrap().in_degree_order();
    let run = RunOptions { workers: Some(workers), ..RunOptions::default() };
    let options = HitsOptions { iterations: 1000, tolerance: 1e-7 };
    let processes = Processes::default();
    let origin = serde_json::json!({});
    let job = Job::<HubsAndAuthorities>::new(Links(Graph::new(graph)), origin, options, &run, &processes).unwrap();
    let trained = train(job, &processes, &()).unwrap();
    assert_eq!(trained.record.result.ended_by, "tolerance");
    (trained.model.unwrap(), trained.record.result.iterations)
}

fn by_name(ranked: &Ranked) -> HashMap<u64, f64> {
    let name = |at: usize| ranked.names.name(at as u32).parse().unwrap();
    ranked.scores.iter().enumerate().map(|(at, &score)| (name(at), f64::from(score))).collect()
}

#[test]
fn a_star_has_one_authority_and_equal_hubs() {
    // 1 to 16 link to 0.
    let links: String = (1..=16).map(|leaf| format!("{leaf} 0\n")).collect();
    for workers in [1, 2, 3] {
        let (model, iterations) = trained(&links, workers);
        let (hubs, authorities) = (by_name(&model.hubs), by_name(&model.authorities));
        assert!((authorities[&0] - 1.0).abs() < 1e-6 && hubs[&0] == 0.0);
        for leaf in 1..=16 {
            assert!((hubs[&leaf] - 0.25).abs() < 1e-6 && authorities[&leaf] == 0.0, "{leaf}");
        }
        assert!(iterations <= 3, "the first is the answer, the second finds no change: {iterations}");
        assert_eq!(model.authorities.names.name(0), "0");
    }
}

#[test]
fn a_bipartite_clique_has_equal_hubs_and_equal_authorities() {
    // 4 hubs, 9 authorities.
    let links: String = (0..4).flat_map(|hub| (4..13).map(move |page| format!("{hub} {page}\n"))).collect();
    let (model, _) = trained(&links, 2);
    let (hubs, authorities) = (by_name(&model.hubs), by_name(&model.authorities));
    assert!((0..4).all(|hub| (hubs[&hub] - 0.5).abs() < 1e-6 && authorities[&hub] == 0.0));
    assert!((4..13).all(|page| (authorities[&page] - 1.0 / 3.0).abs() < 1e-6 && hubs[&page] == 0.0));
}

#[test]
fn any_graph_has_the_singular_vectors_of_its_matrix() {
    const PAGES: usize = 40;
    let mut matrix = vec![[0.0_f64; PAGES]; PAGES];
    let mut links = String::new();
    for (from, row) in matrix.iter_mut().enumerate() {
        for (to, count) in row.iter_mut().enumerate().filter(|(to, _)| (from * from + 7 * to + from * to) % 11 < 3) {
            // Some links twice.
            for _ in 0..1 + (from + to) % 2 {
                writeln!(links, "{from} {to}").unwrap();
                *count += 1.0;
            }
        }
    }
    let unit = |vector: Vec<f64>| -> Vec<f64> {
        let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        vector.iter().map(|x| x / length).collect()
    };
    let (mut hubs, mut authorities) = (vec![1.0; PAGES], vec![0.0; PAGES]);
    for _ in 0..10_000 {
        authorities = unit((0..PAGES).map(|to| (0..PAGES).map(|from| matrix[from][to] * hubs[from]).sum()).collect());
        hubs = unit((0..PAGES).map(|from| (0..PAGES).map(|to| matrix[from][to] * authorities[to]).sum()).collect());
    }
    for workers in [1, 2, 3] {
        let (model, _) = trained(&links, workers);
        for (found, expected) in [(by_name(&model.hubs), &hubs), (by_name(&model.authorities), &authorities)] {
            for (page, expected) in (0..).zip(expected) {
                let found = found[&page];
                assert!((found - expected).abs() < 1e-5, "{page} with {workers} workers: {found}, not {expected}");
            }
        }
    }
}

#[test]
fn a_hub_of_many_links_loses_none_of_them() {
    // Page 0 links to n pages, page 1 to a tenth of them: the eigenvector of [[n, m], [m, m]].
    const MANY: f64 = 100_000.0;
    const FEW: f64 = 10_000.0;
    let links: String = (0..MANY as usize)
        .map(|page| {
            format!("0 {}\n", page + 2) + &if page % 10 == 0 { format!("1 {}\n", page + 2) } else { String::new() }
        })
        .collect();
    let largest = (MANY + FEW + ((MANY - FEW).powi(2) + 4.0 * FEW * FEW).sqrt()) / 2.0;
    let expected = (largest - MANY) / FEW;
    for workers in [1, 2] {
        let hubs = by_name(&trained(&links, workers).0.hubs);
        assert!((hubs[&1] / hubs[&0] / expected - 1.0).abs() < 1e-6, "{workers}: {} {}", hubs[&1] / hubs[&0], expected);
    }
}

#[test]
fn a_graph_without_links_has_no_scores() {
    let graph = megagrid_datasets::Dataset {
        edges: megagrid_partition::EdgeList { num_left: 3, num_right: 3, square: true, ..Default::default() },
        left_names: megagrid_datasets::Dictionary::from_integers(vec![1, 2, 3]),
        right_names: None,
    };
    let processes = Processes::default();
    let (run, origin) = (RunOptions { workers: Some(1), ..RunOptions::default() }, serde_json::json!({}));
    let job =
        Job::<HubsAndAuthorities>::new(Links(Graph::new(graph)), origin, HitsOptions::default(), &run, &processes)
            .unwrap();
    let model = train(job, &processes, &()).unwrap().model.unwrap();
    assert_eq!((model.hubs.scores, model.authorities.scores), (vec![0.0; 3], vec![0.0; 3]));
}

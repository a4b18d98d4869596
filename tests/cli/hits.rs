//! Hubs and authorities as their user sees them: all that the other algorithms have, too.

use std::fs;
use std::path::Path;

use megagrid_datasets::output::read_npy;

use crate::{Place, done, fails, json};

#[test]
fn both_tables_are_written_and_listed() {
    let place = Place::new();
    // Two hubs of three pages, one of which both link to.
    let graph = place.file("links.txt", "h1 a\nh1 b\nh2 b\nh2 c\n");
    let (model, record) = (place.name("pages"), place.name("run.json"));
    let text = done(&["hits", &graph, "--model", &model, "--json", &record, "-w", "2"]);
    assert!(text.contains("authorities\n") && text.contains("hubs\n"), "{text}");
    let first = |options: &[&str]| done(&[&["top", &model, "-n", "1"], options].concat());
    // b has the sum of both hubs: of (1, 2, 1) / √6.
    assert!(first(&[]).ends_with("  b\n") && first(&[]).contains("8.16496"), "{}", first(&[]));
    assert!(first(&["--hubs"]).contains("7.0710"), "{}", first(&["--hubs"]));
    for file in ["hubs.npy", "authorities.npy"] {
        let scores = read_npy::<f32>(&Path::new(&model).join(file), 1).unwrap().values;
        assert!((scores.iter().map(|score| score * score).sum::<f32>() - 1.0).abs() < 1e-5, "{file}");
    }
    assert_eq!(json(&record)["result"]["ended_by"], "tolerance");
    let ranks = place.name("ranks");
    done(&["pagerank", &graph, "--model", &ranks, "-q"]);
    fails(&["top", &ranks, "--hubs"], 2, &["a model of pagerank has no hubs"]);
    fails(&["hits", &graph, "--tolerance", "-1"], 2, &["tolerance is -1"]);
}

#[test]
fn plans_checkpoints_and_several_processes_come_with_the_framework() {
    let place = Place::new();
    let graph = place.name("graph.txt");
    done(&["generate", "rmat", &graph, "--scale", "8", "--edge-factor", "8"]);
    assert!(done(&["plan", "hits", &graph, "-w", "2"]).contains("memory"));
    let scores = |model: &str| fs::read(Path::new(model).join("hubs.npy")).unwrap();
    let hits = ["hits", &graph, "-q", "--tolerance", "0", "--model"];
    let [whole, rest, half, saved] = ["whole", "rest", "half", "saved"].map(|name| place.name(name));
    done(&[&hits[..], &[&whole, "-w", "2", "--iterations", "9"]].concat());
    done(&[&hits[..], &[&half, "-w", "2", "--iterations", "4", "--checkpoint", &saved]].concat());
    done(&[&hits[..], &[&rest, "-w", "2", "--iterations", "9", "--resume", &saved]].concat());
    assert_eq!(scores(&whole), scores(&rest));
    let two = place.name("two");
    done(&[&["launch", "-n", "2", "--"], &hits[..], &[&two, "-w", "1", "--iterations", "9"]].concat());
    // Processes add sums up in another order.
    let values = |model: &str| read_npy::<f32>(&Path::new(model).join("hubs.npy"), 1).unwrap().values;
    let pairs: Vec<(f32, f32)> = values(&whole).into_iter().zip(values(&two)).collect();
    assert!(!pairs.is_empty() && pairs.iter().all(|(one, two)| (one - two).abs() < 1e-6), "{pairs:?}");
    let virtual_ = place.name("virtual");
    done(&[&hits[..], &[&virtual_, "--iterations", "9", "--virtual-workers", "2", "--clock-cost", "1e-3"]].concat());
    assert_eq!(scores(&two), scores(&virtual_));
}

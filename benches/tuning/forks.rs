//! What a fork costs, against a copy of as many bytes from one place of the memory to another.

use megagrid_algorithms::mf::Config;
use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_benches::inputs;
use megagrid_benches::measure::{median, seconds};
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{GroupedEdges, Side};
use megagrid_stages::{Left, Right};

/// Measures a fork whose memory comes from a branch that was freed, and the first one, which has to ask for it; in turn with the
/// copy, medians.
pub fn run(users: usize, items: usize, ratings: usize, rounds: usize) {
    let config = Config { dims: 100, biases: false, ..Config::default() };
    let edges = GroupedEdges::new(inputs::ratings(users, items, ratings), &[Side::Right]);
    let settings = Settings { workers: 1, dims: config.row_dims(), ..Settings::default() };
    let sequence = in_place::sequence(config, ratings as u64);
    let mut engine = Engine::<Mf>::new(&edges, sequence, &settings).expect("memory for the ratings");
    engine.init(Left, |user, first| config.init_user(1, user, first.sync));
    engine.init(Right, |item, first| config.init_item(1, item, first.sync));

    let bytes = engine.grid().branch_bytes() as usize;
    let (from, mut into) = (vec![1_u8; bytes], vec![2_u8; bytes]);
    let mut first = None;
    let first_seconds = seconds(|| first = engine.fork().ok());
    first.into_iter().for_each(|branch| engine.free(branch));
    let (mut forks, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut branch = None;
        forks.push(seconds(|| branch = engine.fork().ok()));
        branch.into_iter().for_each(|branch| engine.free(branch));
        copies.push(seconds(|| {
            std::hint::black_box(&mut into).copy_from_slice(std::hint::black_box(&from));
        }));
    }
    let (fork, copy) = (median(forks), median(copies));
    let megabytes = bytes as f64 / 1e6;
    println!("fork of {ratings} ratings, {users} × {items}, k = 100: {megabytes:.1} MB that training changes");
    println!("  fork {:.2} ms, memory copy {:.2} ms, ratio {:.2}", fork * 1e3, copy * 1e3, fork / copy);
    println!("  the first fork, with new memory: {:.2} ms, ratio {:.2}", first_seconds * 1e3, first_seconds / copy);
}

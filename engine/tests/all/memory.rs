//! A run that the machine has no memory for is refused before anything is allocated; several processes share what it needs.

use megagrid_algorithms::mf::{
    Config,
    in_place::{self, Mf},
};
use std::net::TcpStream;
use std::sync::Arc;

use megagrid_engine::{Engine, Error, Peers, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side};

#[test]
fn more_memory_than_the_machine_has_is_refused_with_the_estimate() {
    let mut list = EdgeList { num_left: 2, num_right: 1, ..EdgeList::default() };
    list.push(0, 0, 3.0_f32);
    list.push(1, 0, 4.0);
    let source = GroupedEdges::new(list, &[Side::Right]);
    let sequence = in_place::sequence(Config::default(), 100);
    // Three rows of 2^40 numbers: 12 TiB.
    let settings = Settings { workers: 1, dims: 1 << 40, ..Settings::default() };
    let plan = megagrid_engine::plan(&source, &sequence, &settings).unwrap();
    assert!(plan.memory_bytes >= 12 << 40, "{}", plan.memory_bytes);
    match Engine::<Mf>::new(&source, sequence, &settings).map(|_| ()) {
        Err(Error::NotEnoughMemory { needed_bytes, available_bytes }) => {
            // Before a plan is made.
            assert!((12 << 40..=plan.memory_bytes).contains(&needed_bytes), "{needed_bytes}");
            assert!(available_bytes > 0 && available_bytes < needed_bytes);
        }
        other => panic!("expected a refusal, found {other:?}"),
    }
}

/// Processes that are not there.
#[derive(Debug)]
struct Absent(usize);

impl Peers for Absent {
    fn process(&self) -> usize {
        0
    }

    fn processes(&self) -> usize {
        self.0
    }

    fn all_gather(&self, _: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        unreachable!("a plan asks nobody")
    }

    fn gather(&self, _: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        unreachable!("a plan asks nobody")
    }

    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error> {
        unreachable!("a plan asks nobody")
    }
}

#[test]
fn processes_share_edges_and_users_and_each_has_the_items() {
    let (users, items) = (4000, 50);
    let pairs = (0..users as u32).flat_map(|user| (0..items as u32).map(move |item| (user, item)));
    let (left, right): (Vec<u32>, Vec<u32>) = pairs.unzip();
    let data = vec![1.0_f32; left.len()];
    let list = EdgeList { num_left: users, num_right: items, square: false, left, right, data };
    let source = GroupedEdges::new(list, &[Side::Right]);
    let sequence = in_place::sequence(Config::default(), 1 << 20);
    let bytes = |processes: usize| {
        let peers = (processes > 1).then(|| Arc::new(Absent(processes)) as Arc<dyn Peers>);
        let settings = Settings { workers: 1, dims: 32, peers, ..Settings::default() };
        megagrid_engine::plan(&source, &sequence, &settings).unwrap().memory_bytes
    };
    // A row of 32 numbers and the state of its step; an edge of two short ids and a number.
    let (row, edges) = (4 * 33, 8 * (users * items) as u64);
    let least = edges + row * (users + items) as u64;
    // What says where blocks are is little where these are few.
    assert!((least..least + least / 100).contains(&bytes(1)), "{}, expected {least}", bytes(1));
    for processes in [2, 4] {
        let share = (edges + row * users as u64) / processes as u64;
        let found = bytes(processes) - row * items as u64;
        assert!(found >= share && found < share + share / 20, "{processes} processes: {found}, expected {share}");
    }
}

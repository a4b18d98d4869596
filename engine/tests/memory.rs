//! A run that the machine has no memory for is refused before anything is allocated.

use megagrid_algorithms::mf::{
    Config,
    in_place::{self, Mf},
};
use megagrid_engine::{EdgeInput, Engine, Error, Input, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side};

#[test]
fn more_memory_than_the_machine_has_is_refused_with_the_estimate() {
    let list = EdgeList {
        num_left: 2,
        num_right: 1,
        left: vec![0, 1],
        right: vec![0, 0],
        data: vec![3.0_f32, 4.0],
        ..EdgeList::default()
    };
    let source = GroupedEdges::new(list, &[Side::Right]);
    let edge = EdgeInput { len: &|_| 1, fill: &|rating, items| items[0] = *rating };
    let input = Input { source: &source, edge, capacities: [None, None] };
    let sequence = in_place::sequence(Config::default(), 100).unwrap();
    // Three rows of 2^40 numbers: 12 TiB.
    let settings = Settings { workers: 1, dims: [1 << 40; 2], ..Settings::default() };
    let plan = megagrid_engine::plan(&input, &sequence, &settings).unwrap();
    assert!(plan.memory_bytes >= 12 << 40, "{}", plan.memory_bytes);
    match Engine::<Mf>::bipartite(&input, &sequence, (), &settings).map(|_| ()) {
        Err(Error::NotEnoughMemory { needed_bytes, available_bytes }) => {
            assert_eq!(needed_bytes, plan.memory_bytes);
            assert!(available_bytes > 0 && available_bytes < needed_bytes);
        }
        other => panic!("expected a refusal, found {other:?}"),
    }
}

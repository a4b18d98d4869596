//! What blocks of features cost on parameter servers.

use std::ops::ControlFlow;

use megagrid_algorithms::blockpg::Config;
use megagrid_baselines::apps::blockpg::{Job, run};
use megagrid_baselines::{Epoch, Run, System};
use megagrid_partition::{EdgeList, GroupedEdges, Side};

const SAMPLES: usize = 60;
const FEATURES: usize = 400;

/// Runs three iterations in a few blocks; returns the objective and the messages of each.
fn costs(system: System, prefetch: bool) -> Vec<(u64, u64)> {
    let mut list = EdgeList { num_left: SAMPLES, num_right: FEATURES, ..EdgeList::default() };
    for feature in 0..FEATURES {
        for sample in (feature % 7..SAMPLES).step_by(11) {
            list.left.push(sample as u32);
            list.right.push(feature as u32);
            list.data.push(((feature * sample) % 13) as f32 / 6.0 - 1.0);
        }
    }
    let values = GroupedEdges::new(list, &[Side::Right]);
    let labels: Vec<f32> = (0..SAMPLES).map(|sample| if sample % 3 == 0 { 1.0 } else { -1.0 }).collect();
    let config = Config::default();
    let job = Job {
        values: &values,
        labels: &labels,
        sample_weights: &[],
        intercept: None,
        config,
        block_values: 600,
        blocks: None,
    };
    let mut found = Vec::new();
    let mut report = |epoch: &Epoch| {
        found.push((epoch.objective.to_bits(), epoch.messages));
        ControlFlow::Continue(())
    };
    run(system, &job, &Run { iterations: 3, prefetch, ..Run::default() }, &mut report).unwrap();
    found
}

#[test]
fn rows_of_a_block_are_fetched_together() {
    let (one_by_one, together) = (costs(System::LazyTable, false), costs(System::LazyTable, true));
    let iterstore = costs(System::IterStore, true);
    println!("{one_by_one:?}, together {together:?}, iterstore {iterstore:?}");
    for ((one_by_one, together), iterstore) in one_by_one.iter().zip(&together).zip(&iterstore) {
        assert_eq!([one_by_one.0, together.0], [iterstore.0; 2], "objectives are the same, bit by bit");
        assert!(together.1 <= 100 && iterstore.1 <= 100, "{together:?}, iterstore {iterstore:?}");
        assert!(one_by_one.1 > 1000, "{one_by_one:?}");
    }
}

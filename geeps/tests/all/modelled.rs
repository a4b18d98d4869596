//! Modelled time: what it has to be whatever the rates are, and where it can be worked out by hand.

use megagrid_geeps::apps::Shapes;
use megagrid_geeps::apps::shapes::Shape;
use megagrid_geeps::memory::{Moves, Plan};
use megagrid_geeps::modelled::{Machine, Setting, Time, iterations};
use megagrid_geeps::run::record;
use megagrid_geeps::{Consistency, Session, Tables, VirtualIteration};
use proptest::prelude::*;

const BSP: Setting = Setting { workers: 1, consistency: Consistency::Bsp, prefetch: true, on_hosts: false };

/// Some layers of a few sizes.
fn network(layers: usize) -> Shapes {
    let layer = |at: usize| Shape {
        name: "layer",
        params: [4000, 0, 900][at % 3],
        outputs: 64 * (1 + at % 4),
        products: 40_000 * (1 + at % 2),
    };
    Shapes::new((0..layers).map(layer).collect(), 128, 10)
}

fn plan(network: &Shapes, part: u64) -> Plan {
    let (trace, _) = record(network, 0).expect("shapes are in order");
    let (least, full) = (Plan::least_budget(&trace), Plan::full_budget(&trace));
    let budget = least + (full - least) * part / 4;
    Plan::new(trace, budget, 0).expect("it is enough")
}

fn sum(times: &[Time]) -> Time {
    let add =
        |sum: Time, time: &Time| Time { seconds: sum.seconds + time.seconds, stalled: sum.stalled + time.stalled };
    times.iter().fold(Time::default(), add)
}

proptest! {
    /// No lane does more than it can, computing is never skipped, and waiting is what is left.
    #[test]
    fn no_lane_works_faster_than_its_rate(
        layers in 1_usize..7,
        part in 0_u64..5,
        workers in 1_usize..5,
        rates in proptest::array::uniform3(1e4_f64..1e9),
        prefetch in any::<bool>(),
        on_hosts in any::<bool>(),
    ) {
        let network = network(layers);
        let plan = plan(&network, part);
        let [operations, copy, network_rate] = rates;
        let machine = Machine { operations, memory: 1e30, copy, network: network_rate, latency: 1e-3 };
        let setting = Setting { workers, prefetch, on_hosts, ..BSP };
        let count = 5;
        let all = sum(&iterations(&plan, &machine, &setting, count));
        let room = 1.0 - 1e-9;
        let computed = all.seconds - all.stalled;
        // The costs of a layer are rounded up to a product of matrices.
        prop_assert!(computed >= room * count as f64 * 2.0 * network.products() as f64 / operations);
        prop_assert!(all.stalled >= -1e-9 * all.seconds);
        let mut moves = Moves::default();
        (0..count).for_each(|iteration| moves += plan.moves(iteration));
        let own = (moves.input + moves.output) as f64 / copy;
        prop_assert!(all.stalled >= room * own);
        prop_assert!(all.seconds >= room * (moves.read + moves.swapped_in) as f64 / copy);
        // Where nobody waits for them, the last posts may come after the end.
        let to_host = (moves.updates + moves.swapped_out) as f64 / copy;
        prop_assert!(!on_hosts || all.seconds >= room * (to_host + own));
    }

    /// Each of these can only help: fetching ahead, a cache on the device, a looser bound.
    #[test]
    fn looser_settings_are_not_slower(layers in 1_usize..7, part in 0_u64..5, copy in 1e5_f64..1e8, network_rate in 1e5_f64..1e8) {
        let network = network(layers);
        let plan = plan(&network, part);
        let machine = Machine { operations: 1e7, memory: 1e30, copy, network: network_rate, latency: 1e-3 };
        let time = |setting: Setting| sum(&iterations(&plan, &machine, &setting, 6)).seconds;
        let usual = Setting { workers: 4, ..BSP };
        let most = 1.0 + 1e-9;
        for slower in [Setting { prefetch: false, ..usual }, Setting { on_hosts: true, ..usual }] {
            prop_assert!(time(usual) <= most * time(slower), "{slower:?}");
        }
        let kinds = [Consistency::Bsp, Consistency::Ssp { slack: 1 }, Consistency::Ssp { slack: 3 }, Consistency::Async];
        let times = kinds.map(|consistency| time(Setting { consistency, ..usual }));
        prop_assert!(times.windows(2).all(|pair| pair[1] <= most * pair[0]), "{times:?}");
    }
}

/// One layer without parameters, pinned: the input comes, then it computes, forward and twice that backward.
#[test]
fn a_layer_takes_its_input_and_its_products() {
    let shape = Shape { name: "only", params: 0, outputs: 64, products: 10_000 };
    let network = Shapes::new(vec![shape], 128, 10);
    let plan = plan(&network, 4);
    let machine = Machine { operations: 1e6, memory: 1e30, copy: 1e5, network: 1.0, latency: 1.0 };
    let times = iterations(&plan, &machine, &BSP, 2);
    // 1280 values at 100 kB/s. 2 · 10 · (10,000 + 20,022) operations at 1 M a second: 20,000 is no square, so 141 ·
    // 142 products.
    let (copied, computed) = (0.0512, 0.2 + 0.40044);
    for time in times {
        assert!((time.seconds - copied - computed).abs() < 1e-9, "{time:?}");
        assert!((time.stalled - copied).abs() < 1e-9, "{time:?}");
    }
}

/// Two machines, and time only on the network between them: half of the rows that a worker reads, and of those that it updates, are on
/// the other one. What a clock sends has to be there before the next one reads.
#[test]
fn a_row_that_is_there_several_times_is_sent_once() {
    let sent = |keys: Vec<u32>| {
        let (mut tables, width) = (Tables::default(), 128);
        let table = tables.add("rows", 64, width);
        let mut session = VirtualIteration::new(tables);
        let len = keys.len() * width;
        let rows = session.rows(table, keys).expect("keys of the table");
        let read = session.read(rows).expect("declared");
        session.post_read(read).expect("held");
        let update = session.pre_update(rows).expect("declared");
        session.update(update).expect("held");
        session.table_clock(table).expect("a table");
        let trace = session.finish().expect("all was posted");
        let least = Plan::least_budget(&trace);
        let plan = Plan::new(trace, least, 0).expect("it is enough");
        let Moves { read, updates, .. } = plan.moves(0);
        assert_eq!([read, updates], [4 * len as u64; 2], "all of the batch is copied to the device, and from it");
        let machine = Machine { operations: 1e30, memory: 1e30, copy: 1e30, network: 1.0, latency: 0.0 };
        let times = iterations(&plan, &machine, &Setting { workers: 2, ..BSP }, 2);
        [0, 1].map(|iteration: usize| times[iteration].seconds / (0.5 * 4.0 * width as f64))
    };
    for (keys, distinct) in [(vec![3, 1, 40, 0], 4.0), (vec![3, 1, 3, 3], 2.0), (vec![7; 4], 1.0)] {
        let [read, both] = sent(keys.clone());
        assert!((read - distinct).abs() < 1e-9 && (both - 2.0 * distinct).abs() < 1e-9, "{keys:?}: {read}, {both}");
    }
}

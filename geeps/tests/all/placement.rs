//! Algorithm 5: what is pinned is within the budget and worth it.

use megagrid_geeps::memory::{Held, Need, Placement, Plan, Shortage, place};
use megagrid_geeps::run::record;
use megagrid_geeps::{Error, apps::network::Optimizer};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::data::{factorization, network};

/// Up to six local data, three tables and some layers that hold a few of them.
fn need() -> impl Strategy<Value = Need> {
    let lens = |count| vec((1_usize..20).prop_map(|len| 64 * len), 0..count);
    (lens(6), lens(3)).prop_flat_map(|(locals, tables)| {
        let held = proptest::sample::subsequence((0..locals.len()).collect::<Vec<_>>(), 0..=locals.len());
        let layer = (held, 0_usize..20).prop_map(|(locals, buffers)| Held { locals, buffers: 64 * buffers });
        (Just(locals), Just(tables), vec(layer, 1..5)).prop_map(|(locals, tables, layers)| {
            let of = |held: &Held| held.buffers + held.locals.iter().map(|&local| locals[local]).sum::<usize>();
            let iteration = layers.iter().map(of).sum();
            Need { locals, tables, layers, iteration }
        })
    })
}

/// Buffers of the largest layer where some local data are pinned.
fn largest(need: &Need, pinned: &[bool]) -> usize {
    let buffers = |held: &Held| {
        held.buffers + held.locals.iter().filter(|&&at| !pinned[at]).map(|&at| need.locals[at]).sum::<usize>()
    };
    need.layers.iter().map(buffers).max().unwrap_or(0)
}

fn pinned(need: &Need, placement: &Placement) -> usize {
    let all = need.locals.iter().chain(&need.tables).zip(placement.locals.iter().chain(&placement.tables));
    all.filter(|(_, is_pinned)| **is_pinned).map(|(len, _)| len).sum()
}

proptest! {
    #[test]
    fn nothing_goes_over_the_budget_and_two_layers_have_room(need in need(), budget in (0_usize..400).prop_map(|len| 64 * len)) {
        match place(&need, budget) {
            Ok(placement) => {
                prop_assert!(pinned(&need, &placement) + placement.ring <= budget);
                prop_assert!(placement.ring >= 2 * largest(&need, &placement.locals));
            }
            Err(Shortage { lacking, layer }) => {
                prop_assert!(lacking > 0 && layer < need.layers.len());
                // What is said to be lacking is enough, and no less is.
                prop_assert!(place(&need, budget + lacking).is_ok());
                prop_assert!(place(&need, budget + lacking - 1).is_err());
            }
        }
    }

    /// A budget that is enough with everything swapped is enough; no layer needs more buffers for what is pinned.
    #[test]
    fn pins_are_never_worse_than_none(need in need(), spare in (0_usize..200).prop_map(|len| 64 * len)) {
        let none = largest(&need, &vec![false; need.locals.len()]);
        let placement = place(&need, 2 * none + spare);
        prop_assert!(placement.is_ok());
        let placement = placement.expect("just looked at");
        prop_assert!(largest(&need, &placement.locals) <= none);
    }

    #[test]
    fn what_could_be_pinned_beside_the_rest_is(need in need(), budget in (0_usize..400).prop_map(|len| 64 * len)) {
        if let Ok(placement) = place(&need, budget) {
            let free = budget - pinned(&need, &placement) - 2 * largest(&need, &placement.locals);
            let tables = need.tables.iter().zip(&placement.tables);
            for (&len, _) in tables.filter(|(_, is_pinned)| !**is_pinned) {
                prop_assert!(len > free, "a table of {len} is swapped beside {free} free values");
            }
        }
    }
}

#[test]
fn two_layers_of_one_size_do_not_stop_the_algorithm() {
    // Pinning data of one layer makes nothing smaller before the other's are pinned: as printed, the algorithm stops
    // at the first.
    let held = |local| Held { locals: vec![local], buffers: 64 };
    let need = Need { locals: vec![640, 640], tables: vec![], layers: vec![held(0), held(1)], iteration: 1408 };
    // Swapped they need 2 · 704 values, pinned 1280 + 2 · 64.
    let placement = place(&need, 1408).expect("either way fits");
    assert_eq!(placement, Placement { locals: vec![true, true], tables: vec![], ring: 128 });
    assert_eq!(place(&need, 1407), Err(Shortage { lacking: 1, layer: 0 }));
}

#[test]
fn a_budget_below_a_layer_says_what_is_lacking_and_where() {
    let (trace, _) = record(&network(1, Optimizer::Sgd), 0).expect("the application is in order");
    let least = Plan::least_budget(&trace);
    assert!(Plan::new(trace.clone(), least, 0).is_ok());
    let error = Plan::new(trace.clone(), least - 1024, 0).expect_err("too little");
    assert!(matches!(error, Error::Budget { lacking: 1024, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("lacks 1024 for layer ") && text.contains("weights 1"), "{text}");
}

#[test]
fn more_than_the_least_memory_moves_no_more_bytes() {
    let networks = [Optimizer::Sgd, Optimizer::AdaGrad].map(|optimizer| network(1, optimizer));
    let mut traces: Vec<_> = networks.iter().map(|network| record(network, 0).expect("in order").0).collect();
    traces.push(record(&factorization(1), 0).expect("in order").0);
    for trace in traces {
        let (least, full) = (Plan::least_budget(&trace), Plan::full_budget(&trace));
        let plan = |budget| Plan::new(trace.clone(), budget, 0).expect("it is enough");
        let swapped = plan(least).moves(1).total();
        for percent in [5, 25, 50, 75, 100] {
            let some = plan(least + (full - least) * percent / 100);
            assert!(some.moves(1).total() <= swapped, "{percent} %");
            assert!(some.resident_bytes() <= some_budget(least, full, percent));
        }
        let all = plan(full);
        let [local, of_all] = all.local_bytes();
        assert_eq!(local, of_all, "everything is pinned");
        assert_eq!(all.moves(1).swapped_in + all.moves(1).swapped_out, 0);
        assert!(all.moves(1).total() < swapped);
    }
}

fn some_budget(least: u64, full: u64, percent: u64) -> u64 {
    least + (full - least) * percent / 100
}

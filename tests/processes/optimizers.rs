//! Factorization by optimizers that remember coordinates: several processes against one.

use std::path::Path;

use megagrid_algorithms::mf::{self, by_coordinate};

use super::checkpoint::{CHANGES, go_on, in_two_shapes};
use super::{BSP, SHAPES, check, local, ratings, ratings_of_many_items, settings, train};
use crate::made::{factorization, factors};
use crate::optimizers::{RULES, config};

#[test]
fn batch_gradients_have_the_same_objectives_in_every_shape() {
    let edges = ratings(9000);
    for rule in RULES {
        let config = config(rule);
        let run = |shape| train(&edges, shape, config, BSP, || by_coordinate::batch::sequence(config, 3000));
        let (expected, _) = run((1, 1));
        assert!(expected[19] < expected[0], "{rule:?}: {expected:?}");
        for shape in SHAPES {
            let (objectives, factors) = run(shape);
            check(&objectives, &expected, 1e-5, (shape, rule));
            assert_eq!(factors, run(shape).1, "{shape:?} {rule:?}: a second run");
        }
    }
}

#[test]
fn steps_in_place_end_at_the_same_objective_in_every_shape() {
    // Of many items it is the users that rotate.
    for (edges, rules) in [(ratings(9000), &RULES[..]), (ratings_of_many_items(9000), &RULES[..1])] {
        for &rule in rules {
            let config = config(rule);
            let run = |shape| train(&edges, shape, config, BSP, || by_coordinate::in_place::sequence(config, 9000));
            let (expected, _) = run((1, 1));
            assert!(expected[19] < 0.7 * expected[0], "{rule:?}: {expected:?}");
            for shape in SHAPES {
                let (found, factors) = run(shape);
                check(&found[19..], &expected[19..], 0.02, (shape, rule));
                assert_eq!(factors, run(shape).1, "{shape:?} {rule:?}: a second run");
            }
        }
    }
}

#[test]
fn what_is_remembered_goes_on_bit_by_bit_in_the_same_shape_and_near_it_in_others() {
    let edges = ratings(7000);
    for rule in RULES {
        let config = config(rule);
        let run = |(processes, workers), dir: Option<&Path>, last| {
            local::run(processes, |peers| {
                let sequence = by_coordinate::in_place::sequence(config, 7000);
                let mut engine = factorization(&edges, config, sequence, &settings(peers, workers, config.row_dims()));
                go_on(&mut engine, dir, last);
                let sums = engine.total(mf::SquaredErrors(config)).unwrap();
                (mf::Objective::new(sums, config.lambda).value, factors(&engine))
            })
        };
        let (expected, _) = run((1, 1), None, 20);
        for (begin, end) in CHANGES {
            let (found, _) = in_two_shapes(begin, end, 20, run);
            assert!(
                (found / expected - 1.0).abs() < 0.02,
                "{rule:?}, {begin:?}, then {end:?}: {found}, not {expected}"
            );
            assert_eq!(in_two_shapes(begin, begin, 10, run), run(begin, None, 10), "{begin:?} {rule:?}");
        }
    }
}

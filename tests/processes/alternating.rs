//! Factorization by alternating least squares in every shape: objectives and factors up to rounding, bit for bit in a second run, and
//! near that end with slack.

use megagrid_algorithms::mf::{Config, Optimizer, alternating};

use super::{BSP, SHAPES, check, ratings, ratings_of_many_items, train};

#[test]
fn least_squares_are_the_same_in_every_shape() {
    for edges in [ratings(9000), ratings_of_many_items(9000)] {
        let config = Config { dims: 20, optimizer: Optimizer::Alternating, ..super::config() };
        let run = |shape, consistency| train(&edges, shape, config, consistency, || alternating::sequence(config));
        let (expected, rows) = run((1, 1), BSP);
        for shape in SHAPES {
            let (objectives, factors) = run(shape, BSP);
            check(&objectives, &expected, 1e-4, shape);
            let pairs = factors.iter().flatten().zip(rows.iter().flatten());
            let furthest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(furthest < 1e-3, "{shape:?}: {furthest}");
            assert_eq!(factors, run(shape, BSP).1, "{shape:?}: a second run");
            // With slack the objective is known at looks only, of which the end is one.
            let (with_slack, _) = run(shape, (Some(2), false));
            check(&with_slack[with_slack.len() - 1..], &expected[19..], 0.1, (shape, "with slack"));
        }
    }
}

//! Implicit feedback in every shape: factors and objective up to the order in which Gramians are summed, and bit for bit in a second run.

use megagrid_algorithms::als::{self, Als, Config, Gramians};
use megagrid_engine::Engine;
use megagrid_stages::{Left, Right};

use super::{ITEMS, USERS, local, ratings, settings};

#[test]
fn implicit_feedback_is_the_same_in_every_shape() {
    let edges = ratings(3000);
    let config = Config { dims: 20, ..Config::default() };
    let run = |(processes, workers)| {
        local::run(processes, |peers| {
            let settings = settings(peers, workers, config.dims);
            let mut engine = Engine::<Als>::new(&edges, als::sequence(config, [USERS, ITEMS]), &settings).unwrap();
            engine.set_global(Gramians::new(&config, ITEMS, |item, row| config.init_item(1, item, row)));
            engine.init(Right, |item, first| config.init_item(1, item, first.sync));
            engine.iterate(4).unwrap();
            engine.collect().unwrap();
            let (users, items) = (engine.on(Left), engine.on(Right));
            let rows = (0..USERS).map(|user| users.sync(user)).chain((0..ITEMS).map(|item| items.sync(item)));
            (engine.global().objective(&config), rows.flatten().copied().collect::<Vec<f32>>())
        })
    };
    let (objective, rows) = run((1, 1));
    for shape in super::SHAPES {
        let (found, of_shape) = run(shape);
        assert!((found - objective).abs() < 1e-6 * objective, "{shape:?}: {found}, not {objective}");
        let furthest = rows.iter().zip(&of_shape).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(furthest < 1e-5, "{shape:?}: {furthest}");
        assert!((found, of_shape) == run(shape), "{shape:?}: a second run");
    }
}

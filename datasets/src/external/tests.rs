//! Edges in files are those in memory.

use megagrid_partition::{EdgeSource, Side};
use proptest::prelude::*;

use crate::cache::EdgeData;
use crate::records::{Link, Rating};
use crate::text::Input;
use crate::{Dataset, Error, Loaded, Prepared, delimited};

/// How ids of a text are written: integers of 32 bits, some of them longer, or names.
#[derive(Clone, Copy, Debug)]
enum Ids {
    Narrow,
    Wide,
    Names,
    /// Integers at first.
    LateNames,
}

fn id(ids: Ids, line: usize, number: u32) -> String {
    match ids {
        Ids::Narrow => (7 * number).to_string(),
        Ids::Wide if number.is_multiple_of(3) => (u64::MAX - u64::from(number)).to_string(),
        Ids::LateNames if line < 150 => number.to_string(),
        Ids::Wide => number.to_string(),
        Ids::Names | Ids::LateNames => format!("page {number}"),
    }
}

fn ids() -> impl Strategy<Value = Ids> {
    prop_oneof![Just(Ids::Narrow), Just(Ids::Wide), Just(Ids::Names), Just(Ids::LateNames)]
}

fn edges() -> impl Strategy<Value = Vec<(u32, u32, u8)>> {
    // Low numbers have more edges.
    let number = (0..40u32, 0..40u32).prop_map(|(a, b)| a * b / 40);
    prop::collection::vec((number.clone(), number, 0..6u8), 1..400)
}

/// Checks that edges read with little room become the same as those read with much.
fn check<T: EdgeData>(read: impl Fn(usize) -> Result<Loaded<T>, Error>, side: Side, degree_order: bool, room: usize) {
    let whole: Dataset<T> = read(usize::MAX).unwrap().into_dataset().unwrap();
    assert_eq!(read(room).unwrap().into_dataset().unwrap(), whole);
    let expected = read(usize::MAX).unwrap().prepare(side, degree_order).unwrap();
    let found = read(room).unwrap().prepare(side, degree_order).unwrap();
    assert!(matches!(found.edges, crate::Edges::External(_)));
    assert_eq!(
        (found.edges.is_square(), found.edges.num_edges()),
        (expected.edges.is_square(), whole.edges.num_edges())
    );
    for side in [Side::Left, Side::Right] {
        assert_eq!(found.edges.offsets(side), expected.edges.offsets(side));
        assert_eq!(found.names.get(side).unwrap(), expected.names.get(side).unwrap());
    }
    let rows = found.edges.num_vertices(side);
    for rows in [0..rows, 0..rows / 3, rows / 3..rows, rows..rows] {
        assert_eq!(visited(&found, side, rows.clone()), visited(&expected, side, rows.clone()));
        if side == Side::Right {
            assert_eq!(ends(&found, rows.clone()), ends(&expected, rows));
        }
    }
    assert_eq!(found.edges.windows().into_iter().flatten().collect::<Vec<_>>(), (0..rows).collect::<Vec<_>>());
    let other = found.edges.visit_rows(side.other(), 0..0, &mut |_, _| {});
    assert_eq!(other.unwrap_err().kind(), std::io::ErrorKind::Unsupported);
}

fn visited<T: EdgeData>(prepared: &Prepared<T>, side: Side, rows: std::ops::Range<usize>) -> (Vec<u32>, Vec<T>) {
    let mut visited = None;
    prepared.edges.visit_rows(side, rows, &mut |far, data| visited = Some((far.to_vec(), data.to_vec()))).unwrap();
    visited.unwrap()
}

fn ends<T: EdgeData>(prepared: &Prepared<T>, rows: std::ops::Range<usize>) -> Vec<u64> {
    let mut all = Vec::new();
    prepared.edges.visit_ends(rows, &mut |ends| all.extend_from_slice(ends)).unwrap();
    all.sort_unstable();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_graph_is_the_same_in_a_file(
        (kind, edges, side, degree_order) in (ids(), edges(), prop_oneof![Just(Side::Left), Just(Side::Right)], any::<bool>()),
        (window, room) in (1..2000usize, 0..8usize),
    ) {
        let line = |(at, &(a, b, _)): (usize, &(u32, u32, u8))| format!("{}\t{}\n", id(kind, at, a), id(kind, at, b));
        let text: String = edges.iter().enumerate().map(line).collect();
        let input = Input::from_bytes(text.as_bytes()).with_window(window);
        check(|room| delimited::read::<Link>(&input, room), side, degree_order, room);
    }

    #[test]
    fn ratings_are_the_same_in_a_file(
        (users, items, edges) in (ids(), ids(), edges()),
        (side, degree_order) in (prop_oneof![Just(Side::Left), Just(Side::Right)], any::<bool>()),
        (window, room) in (1..2000usize, 0..12usize),
    ) {
        let line = |(at, &(a, b, rating)): (usize, &(u32, u32, u8))| {
            format!("{}\t{}\t{rating}.5\n", id(users, at, a), id(items, at, b))
        };
        let text: String = edges.iter().enumerate().map(line).collect();
        let input = Input::from_bytes(text.as_bytes()).with_window(window);
        check(|room| delimited::read::<Rating>(&input, room), side, degree_order, room);
    }
}

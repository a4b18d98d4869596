//! Sums over all edges between iterations: each edge counts once, also where two processes have it.

use megagrid_engine::{Engine, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Add, Context, Left, Master, Max, Read, Right, Sequence, Update, program, vertex};

use super::{SHAPES, local, ratings, settings};

vertex! { struct Row { sync: u32 } }
vertex! { struct Column { sync: u32 } }
program! { struct Visiting { left: Row, right: Column, edge: [u32], worker: u64 } }

fn count(_: Read<Row>, _: Read<Column>, cx: &mut Context<Visiting>) {
    *cx.worker += 1;
}

#[test]
fn edges_of_whole_vertices_count_once() {
    let edges = ratings(5000);
    for (processes, workers) in SHAPES {
        let found = local::run(processes, |peers| {
            let source = Source::slices(&edges, |_| 1, |_, _| {});
            let visit = Sequence::new()
                .incident(Left, |row: Update<Row>, items: &mut [u32]| *row.sync = items.len() as u32)
                .incident(Right, |column: Update<Column>, items: &mut [u32]| *column.sync = items.len() as u32);
            let mut engine = Engine::<Visiting>::new(source, visit, &settings(peers, workers, 1)).unwrap();
            engine.iterate(1).unwrap();
            engine.total(count).unwrap()
        });
        assert_eq!(found, edges.num_edges() as u64, "{processes} x {workers}");
    }
}

vertex! { struct Reader { sync: u32 } }
vertex! { struct Book { sync: u32, delta: Max<u32> } }
program! { struct Reading { left: Reader, right: Book } }

#[test]
fn a_delta_may_be_the_largest_of_all() {
    let edges = ratings(5000);
    let value = |left: u32| left * 7919 % 1000;
    let of = |right: usize| edges.row(Side::Right, right).0.iter().map(|&left| value(left)).max().unwrap_or(0);
    let expected: Vec<u32> = (0..edges.num_vertices(Side::Right)).map(of).collect();
    for (processes, workers) in SHAPES {
        let found: Vec<u32> = local::run(processes, |peers| {
            let largest = Sequence::new()
                .exchange(|from: Read<Reader>, to: Add<Book>| to.delta.see(*from.sync))
                .apply(Right, |book: Master<Book>| *book.sync = book.delta.0);
            let source = Source::map(&edges, |_| ());
            let mut engine = Engine::<Reading>::new(source, largest, &settings(peers, workers, 1)).unwrap();
            engine.init(Left, |id, reader| *reader.sync = value(id as u32));
            engine.iterate(1).unwrap();
            engine.collect().unwrap();
            engine.on(Right).iter().copied().collect()
        });
        assert_eq!(found, expected, "{processes} x {workers}");
    }
}

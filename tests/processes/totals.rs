//! Sums over all edges between iterations: each edge counts once, also where two processes have it.

use megagrid_engine::{Engine, Source};
use megagrid_partition::EdgeSource;
use megagrid_stages::{Context, Left, Read, Right, Sequence, Update, program, vertex};

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

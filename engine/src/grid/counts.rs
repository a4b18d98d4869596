//! How many edges there are: of each vertex, and between two.

use megagrid_partition::ShardId;
use megagrid_stages::Program;

use super::Grid;
use super::on_workers::on_workers;
use crate::plan::Plan;

/// Edges, and the items of their data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub edges: u32,
    pub items: u64,
}

/// Counts the items of the edges that this process answers for.
pub fn count_items<P: Program>(grid: &Grid<P>, plan: &Plan) -> u64 {
    let mut items = 0;
    let visit = |(shard, block): (usize, usize), _| items += grid.columns[shard].edges.items(block).len() as u64;
    each_block((grid, plan), 0..grid.columns.len(), visit);
    items
}

/// Counts the edges of each vertex that this process answers for, by id, left and right.
pub fn count<P: Program>(grid: &Grid<P>, plan: &Plan) -> [Vec<u32>; 2] {
    let rows = [0, 1].map(|side| grid.orders[side].len());
    let parts = on_workers(plan, |worker| {
        let mut degrees = rows.map(|rows| vec![0_u32; rows]);
        each_block((grid, plan), part(grid, plan, worker), |(shard, block), [first_left, first_right]| {
            let edges = &grid.columns[shard].edges;
            let lefts = &mut degrees[0][first_left..];
            edges.each_left(block, |left| lefts[left] += 1);
            let rights = &mut degrees[1][first_right..];
            edges.each_right(block, |right, degree| rights[right] += degree);
        });
        degrees
    });
    let mut by_row = rows.map(|rows| vec![0; rows]);
    for degrees in parts {
        for (all, part) in by_row.iter_mut().zip(degrees) {
            all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
        }
    }
    let by_id = |side: usize| {
        let order = &grid.orders[side];
        (0..order.len()).map(|id| by_row[side][order.row(id)]).collect()
    };
    [by_id(0), by_id(1)]
}

/// Counts the edges that this process answers for between the ends of each pair, by id, right ones in the upper halves, ascending.
pub fn find<P: Program>(grid: &Grid<P>, plan: &Plan, ends: &[u64]) -> Vec<Counts> {
    let mut is_asked = vec![false; grid.orders[1].len()];
    ends.iter().for_each(|&ends| is_asked[grid.orders[1].row((ends >> 32) as usize)] = true);
    let parts = on_workers(plan, |worker| {
        let mut found = vec![Counts::default(); ends.len()];
        each_block((grid, plan), part(grid, plan, worker), |(shard, block), [first_left, first_right]| {
            // Other vertices' edges are not looked at.
            let mut next = 0;
            grid.columns[shard].edges.each_right(block, |right, degree| {
                let edges = next..next + degree as usize;
                next = edges.end;
                if is_asked[first_right + right] {
                    let right = (grid.orders[1].id(first_right + right) as u64) << 32;
                    grid.columns[shard].edges.each_of(block, edges, |left, items| {
                        if let Ok(at) = ends.binary_search(&(right | grid.orders[0].id(first_left + left) as u64)) {
                            found[at].edges += 1;
                            found[at].items += items.len() as u64;
                        }
                    });
                }
            });
        });
        found
    });
    let mut all = vec![Counts::default(); ends.len()];
    for part in parts {
        for (all, part) in all.iter_mut().zip(part) {
            (all.edges, all.items) = (all.edges + part.edges, all.items + part.items);
        }
    }
    all
}

/// Returns a worker's part of the columns.
fn part<P: Program>(grid: &Grid<P>, plan: &Plan, worker: usize) -> impl Iterator<Item = usize> {
    (worker % plan.threads()..grid.columns.len()).step_by(plan.threads())
}

/// Calls `visit` with the blocks of some columns that this process answers for, by column and number, and the first rows of their shards.
fn each_block<P: Program>(
    (grid, plan): (&Grid<P>, &Plan),
    columns: impl Iterator<Item = usize>,
    mut visit: impl FnMut((usize, usize), [usize; 2]),
) {
    for shard in columns {
        for block in 0..grid.columns[shard].edges.blocks().len() {
            let left = block % grid.left_shards;
            if plan.answers_for(ShardId(left), ShardId(shard)) {
                visit((shard, block), [plan.left.rows(left).start, plan.right.rows(shard).start]);
            }
        }
    }
}

//! How large shards are: what fits a cache, blocks that are worth a visit, and two shards for each worker where they rotate.

use megagrid_stages::Side;

use super::input::Input;
use super::outline::{StageInfo, StageKind};
use super::shape::Sizing;

/// A block should hold this many edges on average: below, its fixed costs show.
const MIN_BLOCK_EDGES: u64 = 2048;
/// Shards a side for a rotation (measured: MF is best between 8 and 32).
const ROTATION_SHARDS: usize = 16;
/// Rows of a rotation's shard, at least: an edge waits for the one before it where both change one row, and steps along one row after
/// another lead astray (measured: 60 items cut into shards of one, an iteration of MF takes twice as long and its error falls slower).
const MIN_ROTATION_ROWS: usize = 64;
/// Part of the second-level cache that one shard's rows may fill.
const CACHE_SHARE: usize = 4;

/// Sizes the shards of both sides.
pub fn sizing(
    input: &Input<'_>,
    (grouped, rotates): (bool, bool),
    owned: [bool; 2],
    edges: u64,
    bounds: &[Vec<usize>; 2],
) -> [Sizing; 2] {
    let batches = [bounds[0].len() - 1, bounds[1].len() - 1].map(|n| n.max(1));
    let chunks = owned.map(|owned| if owned { input.workers } else { 1 });
    if !input.grid {
        let max_rows = usize::MAX;
        return chunks.map(|chunks| Sizing { chunks, shards_per_chunk: 1, max_rows });
    }
    let cache = input.topology.l2_bytes / CACHE_SHARE;
    let fitting = input.row_bytes.map(|bytes| (cache / bytes.max(1)).clamp(256, 1 << 16));
    if !rotates {
        let max_rows = widen(fitting, input.rows, edges, batches, chunks);
        return [0, 1].map(|side| Sizing { chunks: chunks[side], shards_per_chunk: 1, max_rows: max_rows[side] });
    }
    // A rotation needs at least two rotating shards for each worker, and blocks that are worth a visit.
    let by_cache = [0, 1].map(|side| input.rows[side].div_ceil(fitting[side]));
    let by_edges = ((edges / MIN_BLOCK_EDGES) as f64).sqrt() as usize;
    let most = by_edges.max(2 * input.workers);
    let shards = by_cache[0].max(by_cache[1]).max(ROTATION_SHARDS).min(most);
    let of_side = |side: usize| shards.min((input.rows[side] / MIN_ROTATION_ROWS).max(2 * input.workers));
    // Grouped, one right row at a time is at hand, and its visits are the fewer the larger the left shards.
    let shards = if grouped { [by_cache[0].min(most), ROTATION_SHARDS.min(most)] } else { [0, 1].map(of_side) };
    [0, 1].map(|side| {
        let chunks = if side == 1 { 1 } else { input.workers };
        let shards_per_chunk = shards[side].div_ceil(chunks * batches[side]);
        Sizing { chunks, shards_per_chunk, max_rows: 1 << 16 }
    })
}

/// Cuts the sides whose vertices are visited with all their edges so that the data of a shard's edges fit a cache. Where no
/// Exchange runs on blocks, rows need not.
pub fn fit_edges(sizing: &mut [Sizing; 2], input: &Input<'_>, stages: &[StageInfo], bounds: &[Vec<usize>; 2]) {
    if !input.grid {
        return;
    }
    let exchanges = stages.iter().any(|stage| matches!(stage.kind, StageKind::Exchange(..)));
    let most = ((input.edges / MIN_BLOCK_EDGES) as f64).sqrt() as usize;
    let fitting = (input.edge_bytes as usize).div_ceil(input.topology.l2_bytes / CACHE_SHARE).min(most);
    for side in [Side::Left, Side::Right] {
        if stages.iter().any(|stage| stage.kind == StageKind::Incident(side)) {
            let sizing = &mut sizing[side as usize];
            sizing.chunks = input.workers;
            let batches = (bounds[side as usize].len() - 1).max(1);
            sizing.shards_per_chunk = sizing.shards_per_chunk.max(fitting.div_ceil(input.workers * batches));
            if !exchanges {
                sizing.max_rows = 1 << 16;
            }
        }
    }
}

/// Enlarges shards until a block averages enough edges, first the side with more shards.
fn widen(mut rows: [usize; 2], all: [usize; 2], edges: u64, batches: [usize; 2], chunks: [usize; 2]) -> [usize; 2] {
    let count = |rows: [usize; 2], side: usize| all[side].div_ceil(rows[side]).max(batches[side] * chunks[side]);
    let floor = |side: usize| batches[side] * chunks[side];
    while edges < MIN_BLOCK_EDGES * (count(rows, 0) * count(rows, 1)) as u64 {
        let side = usize::from(count(rows, 1) > count(rows, 0));
        let side = if count(rows, side) > floor(side) { side } else { 1 - side };
        if count(rows, side) <= floor(side) {
            break;
        }
        rows[side] *= 2;
    }
    rows
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::machine::topology::Topology;
    use crate::plan::{Processes, Strategy};

    /// Shards of each side where both ends of an edge are changed.
    fn rotation(rows: [usize; 2], edges: u64, workers: usize) -> [usize; 2] {
        let input = Input {
            degrees: [Box::new(|_| 1), Box::new(|_| 1)],
            rows,
            edges,
            row_bytes: [160; 2],
            edge_bytes: 4 * edges,
            square: false,
            workers,
            processes: Processes::default(),
            strategy: Strategy::BiCut,
            crossing_bytes: [[4, 4]; 2],
            slack: Some(0),
            look_every: None,
            passes_per_clock: 1,
            topology: &Topology::synthetic(1, workers),
            grid: true,
            early: true,
        };
        let sizing = sizing(&input, (false, true), [true, false], edges, &rows.map(|rows| vec![0, rows]));
        sizing.map(|sizing| sizing.chunks * sizing.shards_per_chunk)
    }

    #[test]
    fn few_rows_are_not_cut_into_shards_of_one() {
        let [users, items] = rotation([60_000, 60], 2_000_000, 2);
        assert!(users > 30, "{users}");
        assert_eq!(items, 4, "two for each worker");
        assert_eq!(rotation([60_000, 640], 2_000_000, 2)[1], 10);
        let [users, items] = rotation([60_000, 60_000], 2_000_000, 2);
        assert!(users - items < 2, "as many of each, but for what a worker has: {users}, {items}");
    }
}

//! What a run will need of the machine's memory, before any of it is asked for.

use megagrid_partition::Side;
use megagrid_stages::{EdgeItem, Program, Store, Vertex, row_width};

use super::settings::Settings;
use crate::Error;
use crate::grid::{Block, Capacities, RowOrder, Source, role_bytes};
use crate::machine::os;
use crate::plan::Plan;

/// Refuses a run that the machine has no memory for.
pub fn check(needed_bytes: u64) -> Result<(), Error> {
    match os::available_memory_bytes() {
        Some(available_bytes) if needed_bytes > available_bytes => {
            Err(Error::NotEnoughMemory { needed_bytes, available_bytes })
        }
        _ => Ok(()),
    }
}

/// Returns a bound below which no estimate is: the rows of all vertices, dealt to all processes. A plan takes memory for each vertex too,
/// and is not to be made for a run that cannot be.
pub fn least<P: Program, T>(source: &Source<'_, T, P>, settings: &Settings) -> u64 {
    let (edges, width) = (source.edges, row_width(settings.dims));
    let rows = [Side::Left, Side::Right].map(|side| edges.num_vertices(side) as u64);
    let [left, right] = [role_bytes::<P::Left>(rows[0], width, 0), role_bytes::<P::Right>(rows[1], width, 0)]
        .map(|[sync, mirror, master, _]| sync + mirror + master);
    let processes = settings.peers.as_ref().map_or(1, |peers| peers.processes());
    (left + if edges.is_square() { 0 } else { right }) / processes as u64
}

/// Estimates the bytes of grid and vertex data, of edges that have this many items of data, in the process that has most.
pub fn estimate<P: Program, T>(
    plan: &Plan,
    source: &Source<'_, T, P>,
    orders: &[RowOrder; 2],
    dims: usize,
    items: u64,
) -> u64 {
    let left = side::<P::Left>(plan, Side::Left, dims, source.capacities[0]);
    let right = side::<P::Right>(plan, Side::Right, dims, source.capacities[1]);
    let edges = plan.most_edges(&|side, row| {
        let (id, offsets) = (orders[side as usize].id(row), source.edges.offsets(side));
        offsets[id + 1] - offsets[id]
    });
    let items = part(items, edges, plan.edges);
    let id = if plan.wide { 4 } else { 2 };
    // Grouped blocks name a right vertex once; a tenth more than the left ids is typical.
    let ids = if plan.grouped { edges * id + edges * id / 10 } else { 2 * edges * id };
    let offsets = if P::Edge::SHAPE.is_slice() { 4 * edges } else { 0 };
    let data = items * size_of::<EdgeItem<P>>() as u64;
    let places = [Side::Left, Side::Right].map(|side| {
        let mut indexing = plan.stages.iter().filter(|stage| stage.indexes(side)).peekable();
        let is_indexed = indexing.peek().is_some();
        let items = if indexing.any(|stage| stage.gathers) { 2 * items } else { items };
        let rows = plan.side(side).bounds.last().map_or(0, |&rows| rows as u64);
        if is_indexed { 4 * (items + rows) } else { 0 }
    });
    let blocks =
        [plan.layers, plan.left.num_shards(), plan.right.num_shards()].iter().map(|&n| n as u64).product::<u64>();
    let blocks = blocks / plan.processes.count as u64 * size_of::<Block>() as u64;
    left + if plan.square { 0 } else { right } + ids + offsets + data + blocks + places.iter().sum::<u64>()
}

/// Counts the items of all edges' data. Reads the edges where their data is in slices.
pub fn edge_items<P: Program, T>(source: &Source<'_, T, P>) -> Result<u64, Error> {
    if let Some(items) = source.items {
        return Ok(items);
    }
    if !P::Edge::SHAPE.is_slice() {
        return Ok(source.edges.num_edges() as u64);
    }
    let mut items = 0;
    for rows in source.edges.windows() {
        source.edges.visit_rows(Side::Right, rows, &mut |_, data| {
            items += data.iter().map(|value| source.fill.len(value) as u64).sum::<u64>();
        })?;
    }
    Ok(items)
}

fn side<V: Vertex>(plan: &Plan, side: Side, dims: usize, capacities: Capacities<'_>) -> u64 {
    let rows = plan.most_rows(side) as u64;
    let capacities = capacities.unwrap_or_default();
    let counts: u64 = capacities.iter().map(|&capacity| u64::from(capacity)).sum();
    let counts = part(counts, rows, capacities.len() as u64);
    let copies = plan.copies[side as usize];
    let [sync, mirror, master, delta] = role_bytes::<V>(rows, row_width(dims), counts);
    sync + mirror + master + copies as u64 * delta
}

/// Returns the share of a sum that this many of all have.
fn part(sum: u64, some: u64, all: u64) -> u64 {
    if all == 0 { sum } else { (u128::from(sum) * u128::from(some) / u128::from(all)) as u64 }
}

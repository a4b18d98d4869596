//! Where the memory of a run is, as events of `tracing`: for tools that ask the system on which node each page lies, and from which it is
//! used (`benches/numa`). An event has `what` is there, and `begin` and `end`, the addresses. Where nobody listens, a flag is tested.

use std::ops::Range;

use megagrid_partition::Side;
use megagrid_stages::Program;

use crate::grid::Grid;

/// The target of the events; their level is `TRACE`.
pub const MEMORY: &str = "megagrid::memory";

/// Tells where the rows of both sides and the edges are.
pub fn tell<P: Program>(grid: &Grid<P>) {
    if !tracing::enabled!(target: MEMORY, tracing::Level::TRACE) {
        return;
    }
    let tell = |what: &str, addresses: Range<usize>| {
        tracing::trace!(target: MEMORY, what, begin = addresses.start, end = addresses.end);
    };
    let of = |side: Side| move |role: &str, addresses| tell(&format!("{side} {role}"), addresses);
    grid.left.each_role(of(Side::Left));
    if !grid.is_square() {
        grid.right.each_role(of(Side::Right));
    }
    for column in &grid.columns {
        let [left, right] = column.edges.addresses_of_ids();
        tell("edges left ids", left);
        tell("edges right ids", right);
    }
    grid.data.iter().for_each(|data| tell("edges data", data.addresses()));
}

//! Rows that a message is lent: they are copied once, from where they lie to where they are sent from.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::cast_slice;
use megagrid_stages::Vertex;

use super::codec::pack_sync;
use super::form::row_bytes;
use super::message::{Body, Lend};
use super::pick::Slice;
use crate::grid::{SharedRows, VertexArrays, hold};

/// Synced data of the rows of some pieces.
struct LentRows<V: Vertex> {
    arrays: Arc<VertexArrays<V>>,
    pieces: Range<usize>,
    dims: usize,
    bytes: Range<usize>,
}

impl<V: Vertex> Lend for LentRows<V> {
    fn show(&self, look: &mut dyn FnMut(&[u8])) {
        let rows = hold(|| self.arrays.try_share(self.pieces.clone()));
        let items = rows.sync.side_by_side(self.dims).unwrap_or(&[]);
        look(&cast_slice(items)[self.bytes.clone()]);
    }
}

/// Returns a message's body with the synced data of rows of `pieces`, which are held as `rows`: lent if they lie side by side, packed
/// otherwise.
pub fn sync_body<V: Vertex>(
    arrays: &Arc<VertexArrays<V>>,
    pieces: Range<usize>,
    rows: &SharedRows<'_, V>,
    slice: &Slice<'_>,
    dims: usize,
) -> Body {
    let (Slice::Range(numbers), Some(width), Some(_)) =
        (slice, row_bytes::<V, V::Sync>(dims), rows.sync.side_by_side(dims))
    else {
        return Body::Own(pack_sync(rows, slice, dims));
    };
    let bytes = numbers.start * width..numbers.end * width;
    Body::Lent(bytes.len(), Arc::new(LentRows { arrays: Arc::clone(arrays), pieces, dims, bytes }))
}

#[cfg(test)]
mod tests {
    use megagrid_stages::vertex;

    use super::*;
    use crate::sync::Pick;

    vertex! { struct Wide { sync: [f32], delta: [f32] } }

    const ROWS: usize = 30;

    /// Every row is `(10 × row + at) × by`.
    fn set(arrays: &VertexArrays<Wide>, by: f32) {
        let mut rows = arrays.try_own(0..2).unwrap();
        for row in 0..ROWS {
            rows.row(row).sync.iter_mut().enumerate().for_each(|(at, item)| *item = by * (10 * row + at) as f32);
        }
    }

    #[test]
    fn rows_side_by_side_are_lent_and_read_when_they_leave() {
        for (dims, is_lent) in [(64, true), (60, false)] {
            let arrays: Arc<VertexArrays<Wide>> = VertexArrays::new(vec![0, 10, ROWS], dims, 1, None).unwrap().into();
            set(&arrays, 1.0);
            let picks = [(Pick::All(20), is_lent), (Pick::Some((0..20).step_by(2).collect()), false)];
            let rows = arrays.try_share(1..2).unwrap();
            let mut bodies = Vec::new();
            for (pick, is_lent) in &picks {
                let slice = pick.part(3..9);
                let body = sync_body(&arrays, 1..2, &rows, &slice, dims);
                assert_eq!(matches!(body, Body::Lent(..)), *is_lent);
                let packed = pack_sync(&rows, &slice, dims);
                assert_eq!((body.len(), &*body.bytes()), (packed.len(), &packed[..]));
                bodies.push((body, packed));
            }
            drop(rows);
            let mut own = bodies[0].0.clone();
            own.own();
            set(&arrays, 2.0);
            assert_eq!(*own.bytes(), bodies[0].1);
            assert_eq!(
                *bodies[0].0.bytes() != bodies[0].1,
                is_lent,
                "a lender changes nothing before the message has left"
            );
        }
    }
}

//! Vertices by id, between iterations.

use megagrid_stages::Vertex;

use crate::grid::{RowOrder, SharedRows, VertexArrays, hold};

/// All vertices of a side by id, between iterations. While it is there the engine cannot change them:
/// ```compile_fail,E0502
/// # use megagrid_stages::*;
/// # vertex! { struct Page { sync: u32 } }
/// # program! { struct Links { vertices: Page } }
/// fn set(engine: &mut megagrid_engine::Engine<Links>) {
///     let pages = engine.on(Right);
///     engine.init(Right, |id, page| *page.sync = id as u32);
///     assert_eq!(*pages.sync(3), 3);
/// }
/// ```
/// ```compile_fail,E0502
/// # use megagrid_stages::*;
/// # vertex! { struct Page { sync: u32 } }
/// # program! { struct Links { vertices: Page, edge: [u16] } }
/// fn visit(engine: &mut megagrid_engine::Engine<Links>) {
///     let pages = engine.on(Right);
///     engine.visit(Right, |page: Update<Page>, topics: &mut [u16]| *page.sync = topics.len() as u32);
///     assert_eq!(*pages.sync(3), 3);
/// }
/// ```
pub struct Vertices<'v, V: Vertex> {
    rows: SharedRows<'v, V>,
    order: &'v RowOrder,
}

impl<'v, V: Vertex> Vertices<'v, V> {
    pub(super) fn of(arrays: &'v VertexArrays<V>, order: &'v RowOrder) -> Self {
        let pieces = arrays.bounds().len() - 1;
        Self { rows: hold(|| arrays.try_share(0..pieces)), order }
    }

    /// Returns the number of vertices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Tells whether there is no vertex.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Iterates over the vertices' synced data, by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &V::Sync> {
        (0..self.len()).map(|id| self.sync(id))
    }

    /// Views a vertex's synced data. Rows have their padding.
    #[must_use]
    #[inline]
    pub fn sync(&self, id: usize) -> &V::Sync {
        self.rows.sync.view(self.order.row(id))
    }

    /// Views a vertex's master data.
    #[must_use]
    #[inline]
    pub fn master(&self, id: usize) -> &V::Master {
        self.rows.master.view(self.order.row(id))
    }

    /// Views a vertex's mirror data.
    #[must_use]
    #[inline]
    pub fn mirror(&self, id: usize) -> &V::Mirror {
        self.rows.mirror.view(self.order.row(id))
    }
}

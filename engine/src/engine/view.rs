//! Vertices by id, between iterations.

use megagrid_stages::{Store, Vertex};

use crate::grid::{RowOrder, SharedRows, VertexArrays};

/// The first values of a vertex.
pub struct InitView<'a, V: Vertex> {
    /// Synced data.
    pub sync: <V::Sync as Store>::Mut<'a>,
    /// Data of the master.
    pub master: <V::Master as Store>::Mut<'a>,
    /// Data of the replica.
    pub mirror: <V::Mirror as Store>::Mut<'a>,
}

/// All vertices of a side by id.
pub struct SideView<'v, V: Vertex> {
    rows: SharedRows<'v, V>,
    order: &'v RowOrder,
}

impl<'v, V: Vertex> SideView<'v, V> {
    pub(super) fn of(arrays: &'v VertexArrays<V>, order: &'v RowOrder) -> Self {
        let pieces = arrays.bounds().len() - 1;
        loop {
            if let Some(rows) = arrays.try_share(0..pieces) {
                return Self { rows, order };
            }
            std::thread::yield_now();
        }
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

    /// Views a vertex's synced data.
    #[must_use]
    pub fn sync(&self, id: usize) -> <V::Sync as Store>::Ref<'_> {
        self.rows.sync.view(self.order.row(id))
    }

    /// Views a vertex's master data.
    #[must_use]
    pub fn master(&self, id: usize) -> <V::Master as Store>::Ref<'_> {
        self.rows.master.view(self.order.row(id))
    }

    /// Views a vertex's mirror data.
    #[must_use]
    pub fn mirror(&self, id: usize) -> <V::Mirror as Store>::Ref<'_> {
        self.rows.mirror.view(self.order.row(id))
    }
}

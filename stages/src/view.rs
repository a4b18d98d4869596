//! Views: what stage functions are shown of a vertex.
//!
//! | view | given to | fields |
//! |---|---|---|
//! | [`Read`], [`Add`], [`Update`] | functions on edges, by [mode](crate::mode) | synced data, mirror data, delta |
//! | [`Update`] | functions on a vertex and its edges ([`Incident`](crate::Incident)) | synced data, mirror data |
//! | [`Master`] | functions on vertices ([`Apply`](crate::Apply)) | synced data, master data, summed delta |
//! | [`Total`] | sums over vertices ([`Aggregate`](crate::Aggregate)) | synced data, master data |
//! | [`First`] | what sets first values | synced data, master data, mirror data |

use crate::vertex::Vertex;

/// A vertex that is looked at.
///
/// It cannot be written, and has no delta:
/// ```compile_fail,E0594
/// # use megagrid_stages::*;
/// # vertex! { struct Page { sync: u32, delta: u32 } }
/// # program! { struct Links { vertices: Page } }
/// let stage = |from: Read<Page>, to: Add<Page>| *from.sync = 1;
/// # Sequence::<Links>::new().exchange(stage);
/// ```
/// ```compile_fail,E0609
/// # use megagrid_stages::*;
/// # vertex! { struct Page { sync: u32, delta: u32 } }
/// # program! { struct Links { vertices: Page } }
/// let stage = |from: Read<Page>, to: Add<Page>| *from.delta += 1;
/// # Sequence::<Links>::new().exchange(stage);
/// ```
pub struct Read<'a, V: Vertex> {
    /// The synced data.
    pub sync: &'a V::Sync,
    /// The replica's own data.
    pub mirror: &'a V::Mirror,
}

/// A vertex that is looked at, and whose delta is added to.
pub struct Add<'a, V: Vertex> {
    /// The synced data.
    pub sync: &'a V::Sync,
    /// The replica's own data.
    pub mirror: &'a V::Mirror,
    /// What the master will be given at the next Apply.
    pub delta: &'a mut V::Delta,
}

/// A vertex that is changed in place.
pub struct Update<'a, V: Vertex> {
    /// The synced data.
    pub sync: &'a mut V::Sync,
    /// The replica's own data.
    pub mirror: &'a mut V::Mirror,
}

/// A vertex at its master, with what was added to it.
pub struct Master<'a, V: Vertex> {
    /// The synced data; what it is set to goes to the mirrors.
    pub sync: &'a mut V::Sync,
    /// The master's own data.
    pub master: &'a mut V::Master,
    /// The summed delta of all replicas; zero afterwards.
    pub delta: &'a V::Delta,
}

/// A vertex at its master that is looked at.
pub struct Total<'a, V: Vertex> {
    /// The synced data.
    pub sync: &'a V::Sync,
    /// The master's own data.
    pub master: &'a V::Master,
}

/// The first values of a vertex: all-zero bytes until they are set.
pub struct First<'a, V: Vertex> {
    /// The synced data.
    pub sync: &'a mut V::Sync,
    /// The master's own data.
    pub master: &'a mut V::Master,
    /// The replica's own data.
    pub mirror: &'a mut V::Mirror,
}

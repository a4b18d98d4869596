//! Rows: the four roles of the vertices of one side, each in one array over all rows, held by pieces.
//!
//! Pieces are the common refinement of the shard boundaries of the sides that index these vertices: one side's
//! boundaries, or on a square graph both sides'.

mod each_row;

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Zeroable;
use megagrid_stages::mode::{Access, Mode};
use megagrid_stages::simd::prefetch_to_write;
use megagrid_stages::{Additive, Shape, Store, Vertex, row_width};

use super::disjoint::{Disjoint, Held, HeldRows, HeldStore, Owned, Shared};
use crate::Error;
pub use each_row::EachRow;

/// How many items each vertex has in stores with a capacity per vertex, by row.
pub type Capacities<'c> = Option<&'c [u32]>;

/// The items of one store for all rows.
struct Array<S: Store + ?Sized> {
    items: Disjoint<S::Item>,
    /// Items per row, or 0 where `offsets` says.
    stride: usize,
    offsets: Arc<[usize]>,
}

impl<S: Store + ?Sized> Array<S> {
    fn new(bounds: &[usize], width: usize, capacities: Capacities<'_>) -> Result<Self, Error> {
        let stride = match S::SHAPE {
            Shape::Entries => 0,
            Shape::Nothing | Shape::Value => 1,
            Shape::Row => width,
        };
        if S::SHAPE != Shape::Entries {
            let items = Disjoint::new(bounds.iter().map(|row| row * stride).collect())?;
            return Ok(Self { items, stride, offsets: Arc::default() });
        }
        let capacities = capacities.ok_or(Error::NoCapacities)?;
        let mut offsets = Vec::with_capacity(capacities.len() + 1);
        offsets.push(0);
        for &capacity in capacities {
            offsets.push(offsets[offsets.len() - 1] + capacity as usize);
        }
        let items = Disjoint::new(bounds.iter().map(|&row| offsets[row]).collect())?;
        Ok(Self { items, stride, offsets: offsets.into() })
    }

    /// Allocates zero items for the same rows.
    fn like(&self) -> Result<Self, Error> {
        Ok(Self { items: self.items.like()?, stride: self.stride, offsets: Arc::clone(&self.offsets) })
    }

    fn held<'h>(&'h self, rows: &Range<usize>, items: Held<'h, S>) -> HeldStore<'h, S> {
        let offsets = if self.offsets.is_empty() { &[][..] } else { &self.offsets[rows.start..rows.end + 1] };
        HeldStore { items, offsets }
    }

    fn try_share(&self, pieces: &Range<usize>) -> Option<Held<'_, S>> {
        match S::SHAPE {
            Shape::Nothing => Some(Held::Absent),
            _ => self.items.try_share(pieces.clone()).map(Held::Shared),
        }
    }

    fn try_own(&self, pieces: &Range<usize>) -> Option<Held<'_, S>> {
        match S::SHAPE {
            Shape::Nothing => Some(Held::Absent),
            _ => self.items.try_own(pieces.clone()).map(Held::Owned),
        }
    }

    /// Tells whether nothing lies between the items of rows of `dims` items.
    fn has_no_gaps(&self, dims: usize) -> bool {
        match S::SHAPE {
            Shape::Value => true,
            Shape::Row => self.stride == dims,
            Shape::Nothing | Shape::Entries => false,
        }
    }

    /// Returns where the items of `row` lie among those of rows that begin with `first`.
    #[inline(always)]
    fn span(&self, first: usize, row: usize) -> Range<usize> {
        match S::SHAPE {
            Shape::Nothing | Shape::Value => row - first..row - first + 1,
            Shape::Row => (row - first) * self.stride..(row - first + 1) * self.stride,
            Shape::Entries => self.offsets[row] - self.offsets[first]..self.offsets[row + 1] - self.offsets[first],
        }
    }
}

/// One role's items, held alone, addressed by row.
pub struct RoleMut<'h, S: Store + ?Sized> {
    array: &'h Array<S>,
    items: Owned<'h, S::Item>,
    first: usize,
}

impl<S: Store + ?Sized> RoleMut<'_, S> {
    /// Returns the items of a row.
    #[inline(always)]
    pub fn items(&mut self, row: usize) -> &mut [S::Item] {
        &mut self.items[self.array.span(self.first, row)]
    }

    /// Fetches a row that is written soon, where a row is one value.
    #[inline(always)]
    fn fetch(&self, row: usize) {
        if S::SHAPE == Shape::Value {
            prefetch_to_write(self.items.as_ptr().wrapping_add(row - self.first), 1);
        }
    }

    /// Returns the first row.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Returns the items of all rows, of `dims` items each, where nothing lies between them.
    pub fn side_by_side(&mut self, dims: usize) -> Option<&mut [S::Item]> {
        self.array.has_no_gaps(dims).then_some(&mut *self.items)
    }
}

/// One role's items, shared with other readers, addressed by row.
pub struct Role<'h, S: Store + ?Sized> {
    array: &'h Array<S>,
    items: Shared<'h, S::Item>,
    first: usize,
}

impl<S: Store + ?Sized> Role<'_, S> {
    /// Returns the first row.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Returns the items of all rows, of `dims` items each, where nothing lies between them.
    pub fn side_by_side(&self, dims: usize) -> Option<&[S::Item]> {
        self.array.has_no_gaps(dims).then_some(&*self.items)
    }

    /// Returns the number of items of all rows.
    pub fn num_items(&self) -> usize {
        self.items.len()
    }

    /// Returns the items of a row.
    #[inline(always)]
    pub fn items(&self, row: usize) -> &[S::Item] {
        &self.items[self.array.span(self.first, row)]
    }

    /// Views a row.
    #[inline(always)]
    pub fn view(&self, row: usize) -> &S {
        S::view(self.items(row))
    }
}

/// The vertices of one side, or of both sides of a square graph.
pub struct VertexArrays<V: Vertex> {
    bounds: Box<[usize]>,
    width: usize,
    /// Items of a row before padding.
    dims: usize,
    sync: Array<V::Sync>,
    mirror: Array<V::Mirror>,
    master: Array<V::Master>,
    /// One array, or one for each worker where partial deltas are reduced.
    deltas: Box<[Array<V::Delta>]>,
}

impl<V: Vertex> VertexArrays<V> {
    /// Allocates zero rows. `bounds` are the pieces' rows, `dims` the items of a row before padding, `copies` the number
    /// of delta arrays.
    ///
    /// # Errors
    /// Not enough memory; a store of entries without capacities.
    pub fn new(bounds: Vec<usize>, dims: usize, copies: usize, capacities: Capacities<'_>) -> Result<Self, Error> {
        let width = row_width(dims);
        let deltas = (0..copies).map(|_| Array::new(&bounds, width, capacities)).collect::<Result<_, _>>()?;
        Ok(Self {
            sync: Array::new(&bounds, width, capacities)?,
            mirror: Array::new(&bounds, width, capacities)?,
            master: Array::new(&bounds, width, capacities)?,
            deltas,
            width,
            dims,
            bounds: bounds.into(),
        })
    }

    /// Allocates zero rows of the same vertices.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn like(&self) -> Result<Self, Error> {
        Ok(Self {
            bounds: self.bounds.clone(),
            width: self.width,
            dims: self.dims,
            sync: self.sync.like()?,
            mirror: self.mirror.like()?,
            master: self.master.like()?,
            deltas: self.deltas.iter().map(Array::like).collect::<Result<_, _>>()?,
        })
    }

    /// Copies every role of the rows of `pieces` from arrays of the same vertices. `None`: refused.
    pub fn try_copy(&self, from: &Self, pieces: &Range<usize>) -> Option<()> {
        self.sync.items.try_copy(&from.sync.items, pieces.clone())?;
        self.mirror.items.try_copy(&from.mirror.items, pieces.clone())?;
        self.master.items.try_copy(&from.master.items, pieces.clone())?;
        let mut deltas = self.deltas.iter().zip(&from.deltas);
        deltas.try_for_each(|(into, from)| into.items.try_copy(&from.items, pieces.clone()))
    }

    /// Returns the items of a row before padding.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the padded width of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the pieces' boundaries in rows.
    pub fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    /// Returns the size of all roles in bytes.
    pub fn bytes(&self) -> usize {
        self.sync.items.bytes()
            + self.mirror.items.bytes()
            + self.master.items.bytes()
            + self.deltas.iter().map(|delta| delta.items.bytes()).sum::<usize>()
    }

    fn rows(&self, pieces: &Range<usize>) -> Range<usize> {
        self.bounds[pieces.start]..self.bounds[pieces.end]
    }

    /// Holds the rows of `pieces` as mode `A` needs them; a delta is taken from array `copy`. `None`: refused.
    pub fn try_hold<A: Access<V>>(&self, pieces: Range<usize>, copy: usize) -> Option<HeldRows<'_, V, A>> {
        let rows = self.rows(&pieces);
        let (sync, mirror) = match A::MODE {
            Mode::Read | Mode::Add => (self.sync.try_share(&pieces)?, self.mirror.try_share(&pieces)?),
            Mode::Update => (self.sync.try_own(&pieces)?, self.mirror.try_own(&pieces)?),
        };
        let delta = match A::MODE {
            Mode::Add => self.deltas[copy].try_own(&pieces)?,
            Mode::Read | Mode::Update => Held::Absent,
        };
        Some(HeldRows::new(
            rows.len(),
            self.width,
            self.sync.held(&rows, sync),
            self.mirror.held(&rows, mirror),
            self.deltas[copy].held(&rows, delta),
        ))
    }

    /// Holds every role of the rows of `pieces` alone. `None`: refused.
    pub fn try_own(&self, pieces: Range<usize>) -> Option<OwnedRows<'_, V>> {
        let first = self.bounds[pieces.start];
        Some(OwnedRows {
            rows: self.rows(&pieces),
            sync: own(&self.sync, &pieces, first)?,
            mirror: own(&self.mirror, &pieces, first)?,
            master: own(&self.master, &pieces, first)?,
            deltas: self.deltas.iter().map(|delta| own(delta, &pieces, first)).collect::<Option<_>>()?,
            padding: self.dims..self.width,
        })
    }

    /// Shares the delta arrays of the rows of `pieces` with other readers. `None`: refused.
    pub fn try_share_deltas(&self, pieces: Range<usize>) -> Option<Vec<Role<'_, V::Delta>>> {
        let first = self.bounds[pieces.start];
        let share = |array| Some(Role { array, items: array.items.try_share(pieces.clone())?, first });
        self.deltas.iter().map(share).collect()
    }

    /// Shares the synced and the master data of the rows of `pieces` with other readers. `None`: refused.
    pub fn try_share(&self, pieces: Range<usize>) -> Option<SharedRows<'_, V>> {
        let first = self.bounds[pieces.start];
        Some(SharedRows {
            rows: self.rows(&pieces),
            sync: Role { array: &self.sync, items: self.sync.items.try_share(pieces.clone())?, first },
            mirror: Role { array: &self.mirror, items: self.mirror.items.try_share(pieces.clone())?, first },
            master: Role { array: &self.master, items: self.master.items.try_share(pieces)?, first },
        })
    }
}

fn own<'h, S: Store + ?Sized>(array: &'h Array<S>, pieces: &Range<usize>, first: usize) -> Option<RoleMut<'h, S>> {
    Some(RoleMut { array, items: array.items.try_own(pieces.clone())?, first })
}

/// All roles of a range of rows, held alone: what Apply works on.
pub struct OwnedRows<'h, V: Vertex> {
    /// Which rows.
    pub rows: Range<usize>,
    /// Synced data.
    pub sync: RoleMut<'h, V::Sync>,
    /// Data of the replica.
    pub mirror: RoleMut<'h, V::Mirror>,
    /// Data of the master.
    pub master: RoleMut<'h, V::Master>,
    deltas: Vec<RoleMut<'h, V::Delta>>,
    /// The items of a row that are zero.
    pub padding: Range<usize>,
}

/// One row's roles at its master.
pub struct OwnedRow<'r, V: Vertex> {
    /// Which row.
    pub row: usize,
    /// Synced data.
    pub sync: &'r mut [<V::Sync as Store>::Item],
    /// Data of the replica.
    pub mirror: &'r mut [<V::Mirror as Store>::Item],
    /// Data of the master.
    pub master: &'r mut [<V::Master as Store>::Item],
    /// The summed delta.
    pub delta: &'r mut [<V::Delta as Store>::Item],
}

impl<V: Vertex> OwnedRow<'_, V> {
    /// Checks, in debug builds, that the padding of the row is still zero after a stage; its delta was read or reduced.
    ///
    /// # Panics
    /// When it is not, with the stage's name.
    #[inline(always)]
    pub fn check_padding(&self, padding: &Range<usize>, stage: impl Fn() -> String) {
        if cfg!(debug_assertions) {
            let is_zero = has_zeros::<V::Sync>(self.sync, padding)
                && has_zeros::<V::Mirror>(self.mirror, padding)
                && has_zeros::<V::Master>(self.master, padding);
            assert!(
                is_zero,
                "{} left items of row {} behind its {} that are not zero",
                stage(),
                self.row,
                padding.start
            );
        }
    }
}

/// Tells whether rows of items have zeros in their padding.
pub(super) fn has_zeros<S: Store + ?Sized>(items: &[S::Item], padding: &Range<usize>) -> bool {
    let is_zero = |row: &[S::Item]| bytemuck::cast_slice::<_, u8>(&row[padding.clone()]).iter().all(|byte| *byte == 0);
    S::SHAPE != Shape::Row || padding.is_empty() || items.chunks_exact(padding.end).all(is_zero)
}

impl<'h, V: Vertex> OwnedRows<'h, V> {
    /// Returns the roles of any of the rows; the delta is the first array's.
    pub fn row(&mut self, row: usize) -> OwnedRow<'_, V> {
        OwnedRow {
            row,
            sync: self.sync.items(row),
            mirror: self.mirror.items(row),
            master: self.master.items(row),
            delta: self.deltas[0].items(row),
        }
    }

    /// Reduces the partial deltas of all rows, in ascending worker order.
    pub fn reduce(&mut self) {
        if self.deltas.len() > 1 {
            self.rows.clone().for_each(|row| self.reduce_row(row));
        }
    }

    fn reduce_row(&mut self, row: usize) {
        if let Some((delta, partials)) = self.deltas.split_first_mut() {
            reduce::<V>(partials, row, delta.items(row));
        }
    }

    /// Reduces partial deltas, and returns every row's roles, in row order.
    pub fn each_row(&mut self) -> EachRow<'_, 'h, V> {
        self.reduce();
        self.each_row_in_parts()
    }

    /// Returns every row's roles, in row order, with partial deltas that are reduced for each row by itself.
    pub fn each_row_in_parts(&mut self) -> EachRow<'_, 'h, V> {
        EachRow::new(self)
    }
}

/// Adds a row's partial deltas and leaves zeros.
#[inline(always)]
fn reduce<V: Vertex>(partials: &mut [RoleMut<'_, V::Delta>], row: usize, delta: &mut [<V::Delta as Store>::Item]) {
    for partial in partials {
        let from = partial.items(row);
        V::Delta::view_mut(delta).add(V::Delta::view(from));
        from.fill(Zeroable::zeroed());
    }
}

/// Synced, mirror and master data of a range of rows, shared with other readers.
pub struct SharedRows<'h, V: Vertex> {
    /// Which rows.
    pub rows: Range<usize>,
    /// Synced data.
    pub sync: Role<'h, V::Sync>,
    /// Data of the replica.
    pub mirror: Role<'h, V::Mirror>,
    /// Data of the master.
    pub master: Role<'h, V::Master>,
}

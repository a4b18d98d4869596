//! Rows: the four roles of the vertices of one side, each in one array over all rows, held by pieces.
//!
//! Pieces are the common refinement of the shard boundaries of the sides that index these vertices: one side's
//! boundaries, or on a square graph both sides'.

use std::ops::Range;

use bytemuck::Zeroable;
use megagrid_stages::mode::{Access, Mode};
use megagrid_stages::{Store, Total, Vertex, row_width};

use super::array::{Array, Capacities, Role, RoleMut};
use super::awake::{Rest, Rests};
use super::ends::{Held, HeldRows, HeldStore};
use super::owned::OwnedRows;
use super::width::{PADDING, has_zeros};
use crate::Error;

/// The vertices of one side, or of both sides of a square graph.
pub struct VertexArrays<V: Vertex> {
    bounds: Box<[usize]>,
    width: usize,
    /// Items of a row before padding.
    dims: usize,
    sync: Array<V::Sync>,
    mirror: Array<V::Mirror>,
    master: Array<V::Master>,
    /// One array, or one for each worker of the process where partial deltas are reduced.
    deltas: Box<[Array<V::Delta>]>,
    /// Which rows of each piece are awake.
    rests: Box<[Rest]>,
}

impl<V: Vertex> VertexArrays<V> {
    /// Allocates zero rows. `bounds` are the pieces' rows, `dims` the items of a row before padding, `copies` the number
    /// of delta arrays. Nothing is written: whoever writes a row first decides on which node of memory it lies.
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
            rests: rests::<V>(&bounds),
            bounds: bounds.into(),
        })
    }

    /// Lets the rows before each of some pieces and those from it on lie on different nodes of memory. A worker's own delta array is
    /// on its node.
    pub fn split_pages(self, joints: &[usize]) -> Self {
        let of_deltas = if self.deltas.len() > 1 { &[] } else { joints };
        Self {
            sync: self.sync.split_pages(joints),
            mirror: self.mirror.split_pages(joints),
            master: self.master.split_pages(joints),
            deltas: self.deltas.into_iter().map(|deltas| deltas.split_pages(of_deltas)).collect(),
            ..self
        }
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
            rests: rests::<V>(&self.bounds),
        })
    }

    /// Copies every role of the rows of `pieces` from arrays of the same vertices, but for the delta arrays of workers. `None`:
    /// refused.
    pub fn try_copy(&self, from: &Self, pieces: &Range<usize>) -> Option<()> {
        self.sync.items.try_copy(&from.sync.items, pieces.clone())?;
        self.mirror.items.try_copy(&from.mirror.items, pieces.clone())?;
        self.master.items.try_copy(&from.master.items, pieces.clone())?;
        self.rests(pieces).wake();
        match (&*self.deltas, &*from.deltas) {
            ([into], [from]) => into.items.try_copy(&from.items, pieces.clone()),
            _ => Some(()),
        }
    }

    /// Copies a worker's own delta array for the rows of `pieces`, by the worker's number in the process. `None`: refused.
    pub fn try_copy_deltas(&self, from: &Self, pieces: Range<usize>, thread: usize) -> Option<()> {
        self.deltas[thread].items.try_copy(&from.deltas[thread].items, pieces)
    }

    /// Writes zeros to a worker's own delta array for the rows of `pieces`, by the worker's number in the process. `None`: refused.
    pub fn try_clear_deltas(&self, pieces: Range<usize>, thread: usize) -> Option<()> {
        self.deltas[thread].items.try_own(pieces)?.fill(Zeroable::zeroed());
        Some(())
    }

    /// Returns the number of delta arrays.
    pub fn num_deltas(&self) -> usize {
        self.deltas.len()
    }

    /// Tells whether each worker of the process adds to a delta array of its own.
    pub fn has_partials(&self) -> bool {
        self.deltas.len() > 1
    }

    /// Shows where the rows of each role are in memory; each worker's own deltas are a role.
    pub fn each_role(&self, mut show: impl FnMut(&str, Range<usize>)) {
        show("sync", self.sync.items.addresses());
        show("mirror", self.mirror.items.addresses());
        show("master", self.master.items.addresses());
        for (thread, deltas) in self.deltas.iter().enumerate() {
            let role = if self.has_partials() { format!("delta of worker {thread}") } else { "delta".to_owned() };
            show(&role, deltas.items.addresses());
        }
    }

    /// Returns the capacity of each row, where some role is a store of entries.
    pub fn capacities(&self) -> Option<Vec<u32>> {
        let all = [&self.sync.offsets, &self.mirror.offsets, &self.master.offsets, &self.deltas[0].offsets];
        let offsets = all.into_iter().find(|offsets| !offsets.is_empty())?;
        Some(offsets.windows(2).map(|ends| (ends[1] - ends[0]) as u32).collect())
    }

    /// Returns the items of a row before padding.
    pub fn dims(&self) -> usize {
        self.dims
    }

    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the pieces' boundaries in rows.
    pub fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    pub fn bytes(&self) -> usize {
        self.sync.items.bytes()
            + self.mirror.items.bytes()
            + self.master.items.bytes()
            + self.deltas.iter().map(|delta| delta.items.bytes()).sum::<usize>()
    }

    /// Returns which rows of `pieces` are awake.
    pub fn rests(&self, pieces: &Range<usize>) -> Rests<'_> {
        Rests::new::<V>(&self.rests, &self.bounds, pieces)
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
        if A::MODE == Mode::Update {
            self.rests(&pieces).wake();
        }
        let delta = match A::MODE {
            Mode::Add => self.deltas[copy].try_own(&pieces)?,
            Mode::Read | Mode::Update => Held::Absent,
        };
        let roles =
            (self.sync.held(&rows, sync), self.mirror.held(&rows, mirror), self.deltas[copy].held(&rows, delta));
        Some(HeldRows::new(rows.len(), self.width, roles))
    }

    /// Holds every role of the rows of `pieces` exclusively. `None`: refused.
    pub fn try_own(&self, pieces: Range<usize>) -> Option<OwnedRows<'_, V>> {
        self.try_own_copies(pieces, 0..self.deltas.len())
    }

    /// As [`Self::try_own`], with only some of the delta arrays.
    pub fn try_own_copies(&self, pieces: Range<usize>, copies: Range<usize>) -> Option<OwnedRows<'_, V>> {
        let owned = self.try_own_awake(pieces, copies)?;
        owned.rests.wake();
        Some(owned)
    }

    /// As [`Self::try_own_copies`], for those who wake no row that rests.
    pub fn try_own_awake(&self, pieces: Range<usize>, copies: Range<usize>) -> Option<OwnedRows<'_, V>> {
        let first = self.bounds[pieces.start];
        Some(OwnedRows {
            rows: self.rows(&pieces),
            sync: own(&self.sync, &pieces, first)?,
            mirror: own(&self.mirror, &pieces, first)?,
            master: own(&self.master, &pieces, first)?,
            deltas: self.deltas[copies].iter().map(|delta| own(delta, &pieces, first)).collect::<Option<_>>()?,
            padding: self.dims..self.width,
            rests: self.rests(&pieces),
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
            master: Role { array: &self.master, items: self.master.items.try_share(pieces.clone())?, first },
            rests: self.rests(&pieces),
        })
    }
}

/// Synced, mirror and master data of a range of rows, shared with other readers.
pub struct SharedRows<'h, V: Vertex> {
    pub rows: Range<usize>,
    pub sync: Role<'h, V::Sync>,
    /// Data of the replica.
    pub mirror: Role<'h, V::Mirror>,
    pub master: Role<'h, V::Master>,
    /// Which of them are awake.
    pub rests: Rests<'h>,
}

/// Begins with all rows awake.
fn rests<V: Vertex>(bounds: &[usize]) -> Box<[Rest]> {
    let pieces = if V::RESTS { bounds.len() - 1 } else { 0 };
    (0..pieces).map(|_| Rest::default()).collect()
}

impl<V: Vertex> SharedRows<'_, V> {
    /// Returns what an Aggregate sees of a row.
    #[inline(always)]
    pub fn total(&self, row: usize) -> Total<'_, V> {
        Total { sync: self.sync.view(row), master: self.master.view(row) }
    }
}

fn own<'h, S: Store + ?Sized>(array: &'h Array<S>, pieces: &Range<usize>, first: usize) -> Option<RoleMut<'h, S>> {
    Some(RoleMut { array, items: array.items.try_own(pieces.clone())?, first })
}

impl<V: Vertex, A: Access<V>> HeldRows<'_, V, A> {
    /// Checks, in debug builds, that rows of `dims` items of `width` still have zeros behind them after a stage on edges.
    ///
    /// # Panics
    /// When they have not, with the stage's name.
    #[inline(always)]
    pub fn check_padding(&self, dims: usize, width: usize, stage: impl Fn() -> String) {
        fn is_zero<S: Store + ?Sized>(held: &HeldStore<'_, S>, padding: &Range<usize>) -> bool {
            if let Held::Owned(items) = &held.items { has_zeros::<S>(items, padding) } else { true }
        }
        if cfg!(debug_assertions) {
            let ((sync, mirror, delta), padding) = (self.roles(), dims..width);
            let is_zero = is_zero(sync, &padding) && is_zero(mirror, &padding) && is_zero(delta, &padding);
            assert!(is_zero, "{} wrote to items of a row behind its {dims}; {PADDING}", stage());
        }
    }
}

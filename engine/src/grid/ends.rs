//! The rows that the ends of edges name: references, of which each side of an edge has one at a time.
//!
//! Here, on what [`disjoint`](super::disjoint) holds: [`Ends`] turn ids that were checked when the block was listed into references
//! without a bounds check, to the roles that the access mode shows.
#![allow(unsafe_code, reason = "references to two rows of one array cannot be expressed otherwise; proofs below")]

use std::marker::PhantomData;
use std::ops::Range;

use megagrid_partition::Side;
use megagrid_stages::mode::{Access, Mode, Replica};
use megagrid_stages::{Add, Read, Shape, Store, Update, Vertex};

use super::block::{Id, LocalEdges};
use super::disjoint::{Owned, Shared};
use super::prefetch::{Addresses, DeltaItem, MirrorItem, SyncItem};
use super::width::Width;

/// Where a store's items of a range of rows are, and by what right.
pub enum Held<'h, S: Store + ?Sized> {
    /// Not held: the mode does not show this role.
    Absent,
    /// Shared with other readers.
    Shared(Shared<'h, S::Item>),
    /// Held by this worker only.
    Owned(Owned<'h, S::Item>),
}

/// A store's items of the held rows, with where each row begins (only stores with a capacity per vertex need it).
pub struct HeldStore<'h, S: Store + ?Sized> {
    pub items: Held<'h, S>,
    /// Absolute offsets of the held rows and of their end, for stores with a capacity per vertex; else empty.
    pub offsets: &'h [usize],
}

impl<S: Store + ?Sized> HeldStore<'_, S> {
    /// Asserts that the items of `rows` rows are held, as the mode needs them.
    fn check(&self, rows: usize, width: usize, needed: bool, owned: bool) {
        let (len, is_owned) = match &self.items {
            Held::Absent => {
                return assert!(!needed || S::SHAPE == Shape::Nothing, "a role that the mode shows is held");
            }
            Held::Shared(items) => (items.len(), false),
            Held::Owned(items) => (items.len(), true),
        };
        assert!(is_owned || !owned, "a role that the mode changes is held by this worker only");
        let items = match S::SHAPE {
            Shape::Nothing => 0,
            Shape::Value => rows,
            Shape::Row => rows.saturating_mul(width),
            Shape::Entries => {
                let offsets = self.offsets;
                assert!(offsets.len() == rows + 1 && offsets.is_sorted(), "offsets cover the rows");
                offsets[rows] - offsets[0]
            }
        };
        assert!(items <= len, "{rows} rows need {items} items, {len} are held");
    }

    #[inline(always)]
    fn line(&mut self) -> Line<'_, S::Item> {
        let items = match &mut self.items {
            Held::Absent => std::ptr::NonNull::dangling().as_ptr(),
            Held::Shared(items) => items.as_ptr().cast_mut(),
            Held::Owned(items) => items.as_mut_ptr(),
        };
        Line { items, offsets: self.offsets.as_ptr(), held: PhantomData }
    }
}

/// What is held of each role: synced and mirror data, and the delta.
pub type Roles<'h, V> =
    (HeldStore<'h, <V as Vertex>::Sync>, HeldStore<'h, <V as Vertex>::Mirror>, HeldStore<'h, <V as Vertex>::Delta>);

/// The rows of one side that a task holds, in every role that its access mode shows.
pub struct HeldRows<'h, V: Vertex, A: Access<V>> {
    rows: usize,
    width: usize,
    roles: Roles<'h, V>,
    mode: PhantomData<fn() -> A>,
}

impl<'h, V: Vertex, A: Access<V>> HeldRows<'h, V, A> {
    /// Joins what is held. Panics when a role is not held as the mode needs it, or has not `rows` rows of `width` items.
    pub fn new(rows: usize, width: usize, roles: Roles<'h, V>) -> Self {
        let (add, update) = (A::MODE == Mode::Add, A::MODE == Mode::Update);
        roles.0.check(rows, width, true, update);
        roles.1.check(rows, width, true, update);
        roles.2.check(rows, width, add, add);
        Self { rows, width, roles, mode: PhantomData }
    }

    pub fn roles(&self) -> &Roles<'h, V> {
        &self.roles
    }

    /// Returns one end of a block's edges. Panics when fewer rows are held than the ids need, or rows of another width.
    #[inline(always)]
    pub fn ends<'r, I: Id, W: Width>(
        &'r mut self,
        side: Side,
        (edges, block): (&'r LocalEdges<I>, usize),
        width: W,
    ) -> Ends<'r, V, A, I, W> {
        let block = &edges.blocks()[block];
        let (ids, rows) = match side {
            Side::Left => (edges.left(block), block.left_rows),
            Side::Right => (edges.right(block), edges.right_rows()),
        };
        assert!(rows <= self.rows, "all rows of the block are held");
        assert!(self.width == width.get(), "rows have the width that is held");
        Ends { ids, lines: self.lines(width) }
    }

    /// Reads the first rows. Panics when fewer are held, or of another width.
    #[inline(always)]
    pub fn reads<W: Width>(&mut self, rows: usize, width: W) -> impl Iterator<Item = Read<'_, V>> {
        assert!(rows <= self.rows && self.width == width.get(), "the rows are held");
        let lines = self.lines(width);
        (0..rows).map(move |row| Endpoint { lines, row, kept: None }.read())
    }

    #[inline(always)]
    fn lines<W: Width>(&mut self, width: W) -> Lines<'_, V, A, W> {
        let (sync, mirror, delta) = &mut self.roles;
        Lines { sync: sync.line(), mirror: mirror.line(), delta: delta.line(), width, mode: PhantomData }
    }
}

/// A store's items as raw parts. Copied into registers for the time of a block.
#[derive(Clone, Copy)]
struct Line<'r, T> {
    items: *mut T,
    offsets: *const usize,
    held: PhantomData<&'r mut T>,
}

impl<'r, T> Line<'r, T> {
    /// # Safety
    /// `row` is below the number of rows that `HeldRows::new` checked this store for.
    #[inline(always)]
    unsafe fn span<S: Store<Item = T> + ?Sized>(self, row: usize, width: impl Width) -> (*mut T, usize) {
        const { assert!(!matches!(S::SHAPE, Shape::Nothing) || size_of::<T>() == 0, "nothing has no bytes") };
        // SAFETY: `HeldRows::new` checked that this many items are held for every row; one without bytes is anywhere.
        unsafe {
            match S::SHAPE {
                Shape::Nothing => (self.items, 1),
                Shape::Value => (self.items.add(row), 1),
                Shape::Row => (self.items.add(row * width.get()), width.get()),
                Shape::Entries => {
                    let (first, begin, end) = (*self.offsets, *self.offsets.add(row), *self.offsets.add(row + 1));
                    (self.items.add(begin - first), end - begin)
                }
            }
        }
    }

    /// # Safety
    /// As `span`; nobody writes the row during `'r`.
    #[inline(always)]
    unsafe fn view<S: Store<Item = T> + ?Sized>(self, row: usize, width: impl Width) -> &'r S {
        // SAFETY: `span` is within the held items; the caller vouches for the sharing.
        unsafe {
            let (items, len) = self.span::<S>(row, width);
            S::view(std::slice::from_raw_parts(items, len))
        }
    }

    /// # Safety
    /// As `span`; the row is held by this worker only, and no other reference to it lives during `'r`.
    #[inline(always)]
    unsafe fn view_mut<S: Store<Item = T> + ?Sized>(self, row: usize, width: impl Width) -> &'r mut S {
        // SAFETY: `span` is within the held items; the caller vouches for the exclusion.
        unsafe {
            let (items, len) = self.span::<S>(row, width);
            S::view_mut(std::slice::from_raw_parts_mut(items, len))
        }
    }
}

/// The held rows as raw parts.
struct Lines<'r, V: Vertex, A: Access<V>, W: Width> {
    sync: Line<'r, SyncItem<V>>,
    mirror: Line<'r, MirrorItem<V>>,
    delta: Line<'r, DeltaItem<V>>,
    width: W,
    mode: PhantomData<fn() -> A>,
}

impl<V: Vertex, A: Access<V>, W: Width> Copy for Lines<'_, V, A, W> {}
impl<V: Vertex, A: Access<V>, W: Width> Clone for Lines<'_, V, A, W> {
    fn clone(&self) -> Self {
        *self
    }
}

/// One end of a block's edges: ids, each below the number of rows that are held, and the rows that they name. It borrows the
/// held rows, and what it lends borrows it: of a side one endpoint lives at a time.
pub struct Ends<'r, V: Vertex, A: Access<V>, I, W: Width> {
    ids: &'r [I],
    lines: Lines<'r, V, A, W>,
}

impl<'r, V: Vertex, A: Access<V>, I: Id, W: Width> Ends<'r, V, A, I, W> {
    #[inline(always)]
    pub fn ids(&self) -> &'r [I] {
        self.ids
    }

    #[inline(always)]
    pub fn part(&mut self, span: Range<usize>) -> Ends<'_, V, A, I, W> {
        Ends { ids: &self.ids[span], lines: self.lines }
    }

    /// Lends the first `N` ends, if there are as many, and goes on behind them.
    #[inline(always)]
    pub fn take<const N: usize>(&mut self) -> Option<Ends<'_, V, A, I, W>> {
        let (ids, rest) = self.ids.split_first_chunk::<N>()?;
        self.ids = rest;
        Some(Ends { ids, lines: self.lines })
    }

    #[inline(always)]
    pub fn at(&mut self, end: usize) -> Endpoint<'_, V, A, W> {
        Endpoint { lines: self.lines, row: self.ids[end].index(), kept: None }
    }

    /// Returns the addresses of synced data and deltas, to fetch rows ahead, and the width of a row.
    #[inline(always)]
    pub fn addresses(&self) -> Addresses<V, W> {
        let Lines { sync, delta, width, .. } = self.lines;
        Addresses { sync: sync.items, delta: delta.items, width }
    }
}

/// One endpoint of the edge that is being run.
pub struct Endpoint<'r, V: Vertex, A: Access<V>, W: Width> {
    lines: Lines<'r, V, A, W>,
    row: usize,
    /// What replaces the delta in memory, where the walk keeps it at hand.
    kept: Option<&'r mut [DeltaItem<V>]>,
}

impl<V: Vertex, A: Access<V>, W: Width> Endpoint<'_, V, A, W> {
    /// Lends it for one edge, with a delta in place of that in memory if there is one.
    #[inline(always)]
    pub fn again<'e>(&'e mut self, kept: Option<&'e mut [DeltaItem<V>]>) -> Endpoint<'e, V, A, W> {
        Endpoint { lines: self.lines, row: self.row, kept }
    }

    /// Returns the delta in memory.
    #[inline(always)]
    pub fn delta(&mut self) -> &mut V::Delta {
        assert!(A::MODE == Mode::Add, "the mode is Add");
        // SAFETY: see below.
        unsafe { self.lines.delta.view_mut(self.row, self.lines.width) }
    }
}

// SAFETY of all: `row` is below the rows that `HeldRows::new` checked: `ends` and `read` compared them with what the ids of a
// `LocalEdges`, which checked them and does not let them change, may be. `Ends` and `Endpoint` are made of a `&mut HeldRows`
// or lent by each other, mutably, and what a view is made of is consumed: no other reference to the row comes from this
// side. Each method asserts its mode (the assertion folds away), and `HeldRows::new` checked that roles are held as the mode
// needs them: by this worker only where a `&mut` is given, else shared. On a square graph both endpoints may be the same row:
// then both lines of the sync store are shared holds (an exclusive hold on either side would have refused the other), and
// deltas belong to one side.
impl<'r, V: Vertex, A: Access<V>, W: Width> Replica<'r, V> for Endpoint<'r, V, A, W> {
    #[inline(always)]
    fn read(self) -> Read<'r, V> {
        let Lines { sync, mirror, width, .. } = self.lines;
        // SAFETY: see above.
        unsafe { Read { sync: sync.view(self.row, width), mirror: mirror.view(self.row, width) } }
    }

    #[inline(always)]
    fn add(self) -> Add<'r, V> {
        assert!(A::MODE == Mode::Add, "the mode is Add");
        let Lines { sync, mirror, delta, width, .. } = self.lines;
        // SAFETY: see above.
        unsafe {
            let (sync, mirror) = (sync.view(self.row, width), mirror.view(self.row, width));
            let delta = match self.kept {
                Some(items) => V::Delta::view_mut(items),
                None => delta.view_mut(self.row, width),
            };
            Add { sync, mirror, delta }
        }
    }

    #[inline(always)]
    fn update(self) -> Update<'r, V> {
        assert!(A::MODE == Mode::Update, "the mode is Update");
        let Lines { sync, mirror, width, .. } = self.lines;
        // SAFETY: see above.
        unsafe { Update { sync: sync.view_mut(self.row, width), mirror: mirror.view_mut(self.row, width) } }
    }
}

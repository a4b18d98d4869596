//! Disjoint slices: arrays whose pieces are held by one worker, or shared by readers, at a time.
//!
//! This file is the whole of the engine's argument that plain references to rows are sound: a [`Disjoint`] array gives out
//! `&mut` to a piece only while its hold word says that nobody else has it, and a block's walk turns ids that were
//! checked when the block was built into references to distinct rows.
#![allow(unsafe_code, reason = "references to disjoint parts of one array cannot be expressed otherwise; proofs below")]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

use megagrid_stages::mode::{Access, Mode, Replica};
use megagrid_stages::simd::{prefetch, prefetch_to_write};
use megagrid_stages::{Add, Additive, Context, EdgeItem, Exchange, Item, Program, Read, Shape, Store, Update, Vertex};

use super::block::{Block, Id, LocalEdges, Run};
use super::hold::Hold;
use super::rows::has_zeros;
use crate::Error;
use crate::os::AlignedBuffer;

/// An array in pieces. Pieces are contiguous and are held by range.
pub struct Disjoint<T> {
    items: *mut T,
    bounds: Box<[usize]>,
    holds: Box<[Hold]>,
    /// Owns what `items` points to; not touched while the array lives.
    _memory: AlignedBuffer<T>,
}

// SAFETY: the pointer owns its memory, and `T` is plain data that may move between threads.
unsafe impl<T: Item> Send for Disjoint<T> {}
// SAFETY: all access goes through holds: shared holds give `&[T]`, exclusive holds give `&mut [T]`, never both (`Hold`).
unsafe impl<T: Item> Sync for Disjoint<T> {}

impl<T: Item> Disjoint<T> {
    /// Allocates an array of zero bytes; piece `i` is `bounds[i]..bounds[i + 1]`.
    ///
    /// # Errors
    /// Not enough memory.
    ///
    /// # Panics
    /// When `bounds` is empty, does not begin at 0 or decreases.
    pub fn new(bounds: Vec<usize>) -> Result<Self, Error> {
        assert!(bounds.first() == Some(&0) && bounds.is_sorted(), "bounds of pieces begin at 0 and do not decrease");
        let mut memory = AlignedBuffer::zeroed(bounds[bounds.len() - 1])?;
        let items = memory.as_mut_ptr();
        let holds = (1..bounds.len()).map(|_| Hold::default()).collect();
        Ok(Self { items, bounds: bounds.into(), holds, _memory: memory })
    }

    /// Returns the number of pieces.
    pub fn num_pieces(&self) -> usize {
        self.holds.len()
    }

    /// Allocates an array of zero bytes in the same pieces.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn like(&self) -> Result<Self, Error> {
        Self::new(self.bounds.to_vec())
    }

    /// Copies the items of some pieces from an array in the same pieces. `None`: a hold was refused.
    pub fn try_copy(&self, from: &Self, pieces: Range<usize>) -> Option<()> {
        let (mut into, from) = (self.try_own(pieces.clone())?, from.try_share(pieces)?);
        into.copy_from_slice(&from);
        Some(())
    }

    /// Returns the size of the array in bytes.
    pub fn bytes(&self) -> usize {
        self.bounds[self.bounds.len() - 1] * size_of::<T>()
    }

    /// Takes shared holds on a range of pieces; `None` when any of them is owned.
    pub fn try_share(&self, pieces: Range<usize>) -> Option<Shared<'_, T>> {
        take(&self.holds[pieces.clone()], Hold::try_share, Hold::end_share)?;
        Some(Shared { array: self, pieces })
    }

    /// Takes exclusive holds on a range of pieces; `None` when any of them is held.
    pub fn try_own(&self, pieces: Range<usize>) -> Option<Owned<'_, T>> {
        take(&self.holds[pieces.clone()], Hold::try_own, Hold::end_own)?;
        Some(Owned { array: self, pieces })
    }

    fn span(&self, pieces: &Range<usize>) -> Range<usize> {
        self.bounds[pieces.start]..self.bounds[pieces.end]
    }
}

/// Takes every hold or none.
fn take(holds: &[Hold], take: impl Fn(&Hold) -> bool, give_back: impl Fn(&Hold)) -> Option<()> {
    match holds.iter().position(|hold| !take(hold)) {
        None => Some(()),
        Some(refused) => {
            holds[..refused].iter().for_each(give_back);
            None
        }
    }
}

/// Pieces that readers share.
pub struct Shared<'h, T: Item> {
    array: &'h Disjoint<T>,
    pieces: Range<usize>,
}

impl<T: Item> Deref for Shared<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let span = self.array.span(&self.pieces);
        // SAFETY: `span` lies within the allocation (`bounds` ends at its length), and while the shared holds on these
        // pieces last, `try_own` refuses them, so nobody writes.
        unsafe { std::slice::from_raw_parts(self.array.items.add(span.start), span.len()) }
    }
}

impl<T: Item> Drop for Shared<'_, T> {
    fn drop(&mut self) {
        self.array.holds[self.pieces.clone()].iter().for_each(Hold::end_share);
    }
}

/// Pieces that one worker has alone.
pub struct Owned<'h, T: Item> {
    array: &'h Disjoint<T>,
    pieces: Range<usize>,
}

impl<T: Item> Deref for Owned<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let span = self.array.span(&self.pieces);
        // SAFETY: as in `deref_mut`, and `&self` keeps `&mut` away.
        unsafe { std::slice::from_raw_parts(self.array.items.add(span.start), span.len()) }
    }
}

impl<T: Item> DerefMut for Owned<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let span = self.array.span(&self.pieces);
        // SAFETY: `span` lies within the allocation, and while the exclusive holds on these pieces last, both
        // `try_share` and `try_own` refuse them, so this is the only reference to these items.
        unsafe { std::slice::from_raw_parts_mut(self.array.items.add(span.start), span.len()) }
    }
}

impl<T: Item> Drop for Owned<'_, T> {
    fn drop(&mut self) {
        self.array.holds[self.pieces.clone()].iter().for_each(Hold::end_own);
    }
}

/// Where a store's items of a range of rows are, and by what right.
pub enum Held<'h, S: Store + ?Sized> {
    /// Not held: the mode does not show this role.
    Absent,
    /// Shared with other readers.
    Shared(Shared<'h, S::Item>),
    /// Held alone.
    Owned(Owned<'h, S::Item>),
}

impl<S: Store + ?Sized> Held<'_, S> {
    /// Tells whether the padding of rows that are held alone is zero.
    fn has_zeros(&self, padding: &Range<usize>) -> bool {
        if let Self::Owned(items) = self { has_zeros::<S>(items, padding) } else { true }
    }

    fn items(&mut self) -> (*mut S::Item, usize, bool) {
        match self {
            Self::Absent => (std::ptr::NonNull::dangling().as_ptr(), 0, false),
            Self::Shared(items) => (items.as_ptr().cast_mut(), items.len(), false),
            Self::Owned(items) => (items.as_mut_ptr(), items.len(), true),
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl<const N: usize> Sealed for super::Fixed<N> {}
    impl Sealed for super::Runtime {}
}

/// How many items a row has in a store: a compile-time width for common rows, so that their loops unroll. Sealed: the walk
/// relies on getting the same answer each time.
pub trait Width: sealed::Sealed + Copy {
    /// Returns the items of a row.
    fn get(self) -> usize;
}

/// A width known when the engine is compiled.
#[derive(Clone, Copy)]
pub struct Fixed<const N: usize>;

impl<const N: usize> Width for Fixed<N> {
    #[inline(always)]
    fn get(self) -> usize {
        N
    }
}

/// Any other width.
#[derive(Clone, Copy)]
pub struct Runtime(pub usize);

impl Width for Runtime {
    #[inline(always)]
    fn get(self) -> usize {
        self.0
    }
}

/// The rows of one side that a task holds, in every role that its access mode shows.
pub struct HeldRows<'h, V: Vertex, A: Access<V>> {
    rows: usize,
    width: usize,
    sync: Held<'h, V::Sync>,
    mirror: Held<'h, V::Mirror>,
    delta: Held<'h, V::Delta>,
    sync_offsets: &'h [usize],
    mirror_offsets: &'h [usize],
    delta_offsets: &'h [usize],
    mode: PhantomData<fn() -> A>,
}

/// What a store's items of the held rows are, with where each row begins (only stores with a capacity per vertex need it).
pub struct HeldStore<'h, S: Store + ?Sized> {
    /// The items.
    pub items: Held<'h, S>,
    /// Absolute offsets of the held rows and of their end, for stores with a capacity per vertex; else empty.
    pub offsets: &'h [usize],
}

impl<'h, V: Vertex, A: Access<V>> HeldRows<'h, V, A> {
    /// Joins what is held of each role.
    ///
    /// # Panics
    /// When a role is not held as the mode needs it, or its items do not cover `rows` rows of `width`.
    pub fn new(
        rows: usize,
        width: usize,
        sync: HeldStore<'h, V::Sync>,
        mirror: HeldStore<'h, V::Mirror>,
        delta: HeldStore<'h, V::Delta>,
    ) -> Self {
        let update = A::MODE == Mode::Update;
        check(&sync, rows, width, true, update);
        check(&mirror, rows, width, true, update);
        check(&delta, rows, width, A::MODE == Mode::Add, A::MODE == Mode::Add);
        Self {
            rows,
            width,
            sync: sync.items,
            mirror: mirror.items,
            delta: delta.items,
            sync_offsets: sync.offsets,
            mirror_offsets: mirror.offsets,
            delta_offsets: delta.offsets,
            mode: PhantomData,
        }
    }

    /// Checks, in debug builds, that rows of `dims` items still have zeros behind them after a stage on edges.
    ///
    /// # Panics
    /// When they have not, with the stage's name.
    #[inline(always)]
    pub fn check_padding(&self, dims: usize, stage: impl Fn() -> String) {
        if cfg!(debug_assertions) {
            let padding = dims..self.width;
            let is_zero =
                self.sync.has_zeros(&padding) && self.mirror.has_zeros(&padding) && self.delta.has_zeros(&padding);
            assert!(is_zero, "{} left items of a row behind its {dims} that are not zero", stage());
        }
    }

    fn lines<W: Width>(&mut self, width: W) -> Lines<'_, V, A, W> {
        Lines {
            sync: Line::new(&mut self.sync, self.sync_offsets),
            mirror: Line::new(&mut self.mirror, self.mirror_offsets),
            delta: Line::new(&mut self.delta, self.delta_offsets),
            width,
            mode: PhantomData,
        }
    }
}

fn check<S: Store + ?Sized>(held: &HeldStore<'_, S>, rows: usize, width: usize, needed: bool, owned: bool) {
    let len = match &held.items {
        Held::Absent => {
            assert!(!needed || S::SHAPE == Shape::Nothing, "a role that the access mode shows is held");
            return;
        }
        Held::Shared(items) => {
            assert!(!owned, "a role that the access mode changes is held alone");
            items.len()
        }
        Held::Owned(items) => items.len(),
    };
    let items = match S::SHAPE {
        Shape::Nothing => 0,
        Shape::Value => rows,
        Shape::Row => rows.saturating_mul(width),
        Shape::Entries => {
            let offsets = held.offsets;
            assert!(offsets.len() == rows + 1 && offsets.is_sorted(), "offsets cover the rows");
            offsets[rows] - offsets[0]
        }
    };
    assert!(items <= len, "{rows} rows need {items} items, {len} are held");
}

/// A store's items as raw parts. Copied into registers for the time of a block.
struct Line<'r, S: Store + ?Sized> {
    items: *mut S::Item,
    offsets: *const usize,
    held: PhantomData<&'r mut S::Item>,
}

impl<S: Store + ?Sized> Clone for Line<'_, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: Store + ?Sized> Copy for Line<'_, S> {}

impl<'r, S: Store + ?Sized> Line<'r, S> {
    fn new(held: &'r mut Held<'_, S>, offsets: &'r [usize]) -> Self {
        Self { items: held.items().0, offsets: offsets.as_ptr(), held: PhantomData }
    }

    /// # Safety
    /// `row` is below the number of rows that `HeldRows::new` checked this store for.
    #[inline(always)]
    unsafe fn span<W: Width>(self, row: usize, width: W) -> (*mut S::Item, usize) {
        // SAFETY: `HeldRows::new` checked that this many items are held for every row below `rows`; one without bytes is
        // anywhere.
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
    unsafe fn view<W: Width>(self, row: usize, width: W) -> &'r S {
        // SAFETY: `span` is within the held items; the caller vouches for the sharing.
        unsafe {
            let (items, len) = self.span(row, width);
            S::view(std::slice::from_raw_parts(items, len))
        }
    }

    /// # Safety
    /// As `span`; the row is held alone, and no other reference to it lives during `'r`.
    #[inline(always)]
    unsafe fn view_mut<W: Width>(self, row: usize, width: W) -> &'r mut S {
        // SAFETY: `span` is within the held items; the caller vouches for the exclusion.
        unsafe {
            let (items, len) = self.span(row, width);
            S::view_mut(std::slice::from_raw_parts_mut(items, len))
        }
    }
}

/// The held rows as raw parts.
struct Lines<'r, V: Vertex, A: Access<V>, W: Width> {
    sync: Line<'r, V::Sync>,
    mirror: Line<'r, V::Mirror>,
    delta: Line<'r, V::Delta>,
    width: W,
    mode: PhantomData<fn() -> A>,
}

impl<V: Vertex, A: Access<V>, W: Width> Clone for Lines<'_, V, A, W> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<V: Vertex, A: Access<V>, W: Width> Copy for Lines<'_, V, A, W> {}

impl<V: Vertex, A: Access<V>, W: Width> Lines<'_, V, A, W> {
    /// Rows are fetched ahead where they fill cache lines of their own.
    #[inline(always)]
    fn prefetch(&self, row: usize) {
        if V::Sync::SHAPE == Shape::Row {
            let bytes = self.width.get() * size_of::<<V::Sync as Store>::Item>();
            prefetch(self.sync.items.wrapping_add(row * self.width.get()), bytes);
        }
        if A::MODE == Mode::Add && V::Delta::SHAPE == Shape::Row {
            let bytes = self.width.get() * size_of::<<V::Delta as Store>::Item>();
            prefetch(self.delta.items.wrapping_add(row * self.width.get()), bytes);
        }
    }

    /// Whether rows are one large value: those of a shard may not stay near the processor.
    const LARGE_VALUE: bool = matches!(V::Sync::SHAPE, Shape::Value) && size_of::<<V::Sync as Store>::Item>() >= LARGE;

    /// Fetches the cache line where a row's value begins.
    #[inline(always)]
    fn prefetch_value(&self, row: usize) {
        let value = self.sync.items.wrapping_add(row);
        if A::MODE == Mode::Update { prefetch_to_write(value, 1) } else { prefetch(value, 1) }
    }
}

/// One endpoint of the edge that is being run. `delta` replaces the delta in memory where the walk keeps it at hand.
struct Endpoint<'r, V: Vertex, A: Access<V>, W: Width> {
    lines: Lines<'r, V, A, W>,
    row: usize,
    delta: Option<&'r mut [<V::Delta as Store>::Item]>,
}

// SAFETY of all three: an `Endpoint` is made by the walks below alone, one per side for each edge, and is consumed before
// the next is made (`is_active` and `begin` read a right row before its edges run); `row` was checked when the block was
// built, or is below the rows that are held. Each method asserts its mode (the assertion folds away), and `HeldRows::new`
// checked that roles are held as the mode needs them: alone where a `&mut` is given, else shared. On a square graph both
// endpoints may be the same row: then both lines of the sync store are shared holds (an exclusive hold on either side
// would have refused the other), and deltas belong to one side.
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
            let delta = match self.delta {
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

/// How many edges ahead rows are fetched (measured: MF at k = 32 and 100).
const PREFETCH_AHEAD: usize = 6;

/// Everything that the walk over a block needs; `run` is compiled for each vector level.
pub struct Walk<'w, 'h, P: Program, E: Exchange<P>, I, W> {
    /// The edges of the block's column.
    pub edges: &'w LocalEdges<I>,
    /// Which of its blocks.
    pub block: usize,
    /// The rows of the block's left shard.
    pub left: &'w mut HeldRows<'h, P::Left, E::Left>,
    /// The rows of the block's right shard.
    pub right: &'w mut HeldRows<'h, P::Right, E::Right>,
    /// The data of the block's edges.
    pub data: &'w mut [EdgeItem<P>],
    /// Which rows of the right shard are active; empty before its first block.
    pub active: &'w mut Vec<bool>,
    /// The edge function.
    pub stage: &'w E,
    /// Items per row, left and right.
    pub widths: (W, W),
}

impl<P: Program, E: Exchange<P>, I: Id, W: Width> Walk<'_, '_, P, E, I, W> {
    const ROTATES: bool = !matches!(E::Left::MODE, Mode::Read) && !matches!(E::Right::MODE, Mode::Read);

    /// Runs the edge function on every edge of the block.
    ///
    /// # Panics
    /// When fewer rows are held than the block's ids need, or rows of another width.
    #[inline(always)]
    pub fn run(self, cx: &mut Context<'_, P>) {
        let Self { edges, block, left, right, data, active, stage, widths } = self;
        let block = &edges.blocks()[block];
        assert!(block.left_rows <= left.rows && edges.right_rows() <= right.rows, "all rows of the block are held");
        assert!((left.width, right.width) == (widths.0.get(), widths.1.get()), "rows have the width that is held");
        let (left, right) = (left.lines(widths.0), right.lines(widths.1));
        let mut data = Data::<P>::new(edges, block, data);
        // A function whose edges have one form is compiled for that form alone.
        if E::GROUPED {
            assert!(edges.grouped(), "a function that asks for groups gets them");
            if active.is_empty() {
                let rows = (0..edges.right_rows()).map(|row| Endpoint { lines: right, row, delta: None }.read());
                active.extend(rows.map(|row| stage.is_active(row, cx)));
            }
            active_groups::<P, E, I, W>(edges, block, left, right, &mut data, active, stage, cx);
        } else if Self::ROTATES {
            assert!(!edges.grouped(), "a function that changes both ends runs on pairs");
            pairs::<P, E, I, W>(edges, block, left, right, &mut data, stage, cx);
        } else if edges.grouped() {
            grouped::<P, E, I, W>(edges, block, left, right, &mut data, stage, cx);
        } else {
            pairs::<P, E, I, W>(edges, block, left, right, &mut data, stage, cx);
        }
    }
}

/// The data of a block's edges, in their order.
struct Data<'d, P: Program> {
    items: &'d mut [EdgeItem<P>],
    /// Where an edge's slice begins, for data in slices.
    offsets: &'d [u32],
}

impl<'d, P: Program> Data<'d, P> {
    #[inline(always)]
    fn new<I: Id>(edges: &'d LocalEdges<I>, block: &Block, items: &'d mut [EdgeItem<P>]) -> Self {
        let offsets = if P::Edge::SHAPE.is_slice() { edges.slice_offsets(block) } else { &[] };
        assert!(P::Edge::SHAPE.is_slice() || items.len() == block.edges.len(), "one item of data for each edge");
        Self { items, offsets }
    }

    #[inline(always)]
    fn at(&mut self, edge: usize) -> &mut P::Edge {
        if P::Edge::SHAPE.is_slice() {
            let first = self.offsets[0];
            P::Edge::view_mut(
                &mut self.items[(self.offsets[edge] - first) as usize..(self.offsets[edge + 1] - first) as usize],
            )
        } else {
            // SAFETY: `edge` is below the number of the block's edges, to which `new` compared the length.
            P::Edge::view_mut(unsafe { std::slice::from_raw_parts_mut(self.items.as_mut_ptr().add(edge), 1) })
        }
    }

    /// Fetches the first data of some edges.
    #[inline(always)]
    fn prefetch(&self, edge: usize, edges: usize) {
        if !P::Edge::SHAPE.is_slice() {
            let bytes = edges * size_of::<EdgeItem<P>>();
            prefetch(self.items.as_ptr().wrapping_add(edge), FETCHED.min(bytes));
        }
    }
}

/// Edges as shuffled pairs: both endpoints' rows are fetched a few edges ahead.
#[inline(always)]
fn pairs<P: Program, E: Exchange<P>, I: Id, W: Width>(
    edges: &LocalEdges<I>,
    block: &Block,
    left: Lines<'_, P::Left, E::Left, W>,
    right: Lines<'_, P::Right, E::Right, W>,
    data: &mut Data<'_, P>,
    stage: &E,
    cx: &mut Context<'_, P>,
) {
    let (lefts, rights) = (edges.left(block), edges.right(block));
    let n = lefts.len();
    assert_eq!(n, rights.len(), "pairs have two ends");
    for edge in 0..n {
        if edge + PREFETCH_AHEAD < n {
            left.prefetch(lefts[edge + PREFETCH_AHEAD].index());
            right.prefetch(rights[edge + PREFETCH_AHEAD].index());
        }
        let near = Endpoint { lines: left, row: lefts[edge].index(), delta: None };
        let far = Endpoint { lines: right, row: rights[edge].index(), delta: None };
        stage.exchange(E::Left::view(near), E::Right::view(far), data.at(edge), cx);
    }
}

/// Edges grouped by right vertex, vertices with equally many edges side by side, so that the loops' lengths can be
/// predicted.
#[inline(always)]
fn grouped<P: Program, E: Exchange<P>, I: Id, W: Width>(
    edges: &LocalEdges<I>,
    block: &Block,
    left: Lines<'_, P::Left, E::Left, W>,
    right: Lines<'_, P::Right, E::Right, W>,
    data: &mut Data<'_, P>,
    stage: &E,
    cx: &mut Context<'_, P>,
) {
    let rights = edges.right(block);
    let mut group = Group::<P, E, I, W> { ends: edges.left(block), left, right };
    let (mut edge, mut vertex) = (0, 0);
    for run in edges.runs(block) {
        let (degree, vertices) = (run.degree as usize, run.vertices as usize);
        let rows = &rights[vertex..vertex + vertices];
        // Where an edge is a few instructions, a length known beforehand saves half of them.
        match degree {
            _ if !Group::<P, E, I, W>::AT_HAND => group.run(rows, edge, degree, data, stage, cx),
            1 => group.run(rows, edge, 1, data, stage, cx),
            2 => group.run(rows, edge, 2, data, stage, cx),
            3 => group.run(rows, edge, 3, data, stage, cx),
            4 => group.run(rows, edge, 4, data, stage, cx),
            _ => group.run(rows, edge, degree, data, stage, cx),
        }
        vertex += vertices;
        edge += degree * vertices;
    }
}

/// As [`grouped`], for the active right vertices alone. They are collected before their edges run, so that which are active
/// need not be predicted, and what each needs is fetched while others run.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "a walk's parts, inlined into it")]
fn active_groups<P: Program, E: Exchange<P>, I: Id, W: Width>(
    edges: &LocalEdges<I>,
    block: &Block,
    left: Lines<'_, P::Left, E::Left, W>,
    right: Lines<'_, P::Right, E::Right, W>,
    data: &mut Data<'_, P>,
    is_active: &[bool],
    stage: &E,
    cx: &mut Context<'_, P>,
) {
    let mut group = Group::<P, E, I, W> { ends: edges.left(block), left, right };
    let (mut runs, mut visits) = (Runs::new(edges.runs(block)), [Visit::default(); LOOKED_AT]);
    for (n, rows) in edges.right(block).chunks(LOOKED_AT).enumerate() {
        let mut found = 0;
        for (vertex, row) in rows.iter().enumerate() {
            visits[found].first = vertex;
            found += usize::from(is_active[row.index()]);
        }
        for visit in &mut visits[..found] {
            let row = rows[visit.first].index();
            let (degree, first) = runs.find(n * LOOKED_AT + visit.first);
            if Group::<P, E, I, W>::AT_HAND {
                // Another worker may have written it last.
                prefetch_to_write(right.delta.items.wrapping_add(row), 1);
            }
            *visit = Visit { row, first, degree };
        }
        group.visits(&visits[..found], data, stage, cx);
    }
}

/// Right vertices that are looked at before the edges of the first of them run.
const LOOKED_AT: usize = 128;
/// How many active ones ahead what one needs is fetched (measured: BlockPG).
const VISITS_AHEAD: usize = 3;
/// How many edges ahead the left end's value is fetched, where it takes so many bytes (measured: BlockPG, 48 and 120 bytes).
const ENDS_AHEAD: usize = 32;
const LARGE: usize = 32;
/// Bytes of ids, and of data, that are fetched ahead; what follows the processor foresees.
const FETCHED: usize = 256;

/// The runs of a block, to be asked for its vertices in ascending order.
struct Runs<'r> {
    rest: std::slice::Iter<'r, Run>,
    degree: usize,
    /// Vertices of the runs before this one, and with it.
    vertices: Range<usize>,
    /// Edges of the runs before.
    edges: usize,
}

impl<'r> Runs<'r> {
    fn new(runs: &'r [Run]) -> Self {
        Self { rest: runs.iter(), degree: 0, vertices: 0..0, edges: 0 }
    }

    /// Returns the degree of a vertex, by its number in the block, and its first edge.
    #[inline(always)]
    fn find(&mut self, vertex: usize) -> (usize, usize) {
        while vertex >= self.vertices.end {
            let Some(run) = self.rest.next() else { break };
            self.edges += self.degree * self.vertices.len();
            self.degree = run.degree as usize;
            self.vertices = self.vertices.end..self.vertices.end + run.vertices as usize;
        }
        (self.degree, self.edges + (vertex - self.vertices.start) * self.degree)
    }
}

/// A right vertex whose edges are to run.
#[derive(Clone, Copy, Default)]
struct Visit {
    row: usize,
    /// Its first edge in the block.
    first: usize,
    /// Its edges.
    degree: usize,
}

/// Right vertices with their edges. The delta of the right vertex is kept at hand while its edges run, where it is one value.
struct Group<'g, P: Program, E: Exchange<P>, I, W: Width> {
    ends: &'g [I],
    left: Lines<'g, P::Left, E::Left, W>,
    right: Lines<'g, P::Right, E::Right, W>,
}

/// Sums kept at hand are split over this many, so that an addition need not wait for the one before it.
const LANES: usize = 4;

type DeltaItem<V> = <<V as Vertex>::Delta as Store>::Item;

impl<P: Program, E: Exchange<P>, I: Id, W: Width> Group<'_, P, E, I, W> {
    /// Whether the delta of the right vertex is one value, to be kept at hand.
    const AT_HAND: bool = matches!((E::Right::MODE, <P::Right as Vertex>::Delta::SHAPE), (Mode::Add, Shape::Value));

    /// Runs vertices that have equally many edges, one after the other from edge `first`.
    #[inline(always)]
    fn run(
        &mut self,
        rows: &[I],
        first: usize,
        degree: usize,
        data: &mut Data<'_, P>,
        stage: &E,
        cx: &mut Context<'_, P>,
    ) {
        for (n, row) in rows.iter().enumerate() {
            self.vertex(Visit { row: row.index(), first: first + n * degree, degree }, data, stage, cx);
        }
    }

    #[inline(always)]
    fn visits(&mut self, visits: &[Visit], data: &mut Data<'_, P>, stage: &E, cx: &mut Context<'_, P>) {
        for (n, &visit) in visits.iter().enumerate() {
            if let Some(&Visit { first, degree, .. }) = visits.get(n + VISITS_AHEAD) {
                prefetch(self.ends.as_ptr().wrapping_add(first), FETCHED.min(degree * size_of::<I>()));
                data.prefetch(first, degree);
            }
            stage.begin(Endpoint { lines: self.right, row: visit.row, delta: None }.read(), cx);
            match visit.degree {
                1 if Self::AT_HAND => self.vertex(Visit { degree: 1, ..visit }, data, stage, cx),
                2 if Self::AT_HAND => self.vertex(Visit { degree: 2, ..visit }, data, stage, cx),
                _ => self.vertex(visit, data, stage, cx),
            }
            stage.end(E::Right::view(Endpoint { lines: self.right, row: visit.row, delta: None }), cx);
        }
    }

    #[inline(always)]
    fn vertex(&mut self, visit: Visit, data: &mut Data<'_, P>, stage: &E, cx: &mut Context<'_, P>) {
        let Visit { row, first, degree } = visit;
        let ends = &self.ends[first..first + degree];
        let mut kept = [<DeltaItem<P::Right> as bytemuck::Zeroable>::zeroed(); LANES];
        let in_lanes = if Self::AT_HAND && degree >= 2 * LANES { degree / LANES } else { 0 };
        let (lanes, rest) = ends.split_at(in_lanes * LANES);
        for (group, ends) in lanes.chunks_exact(LANES).enumerate() {
            for lane in 0..LANES {
                self.edge(ends[lane], row, &mut kept[lane..=lane], data, first + group * LANES + lane, stage, cx);
            }
        }
        for (edge, &end) in rest.iter().enumerate() {
            self.edge(end, row, &mut kept[..1], data, first + lanes.len() + edge, stage, cx);
        }
        if Self::AT_HAND {
            for lane in 0..if in_lanes > 0 { LANES } else { 1 } {
                let kept = <P::Right as Vertex>::Delta::view(&kept[lane..=lane]);
                <P::Right as Vertex>::Delta::view_mut(self.delta(row)).add(kept);
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "one edge's parts, inlined into the loop")]
    fn edge(
        &self,
        end: I,
        row: usize,
        kept: &mut [DeltaItem<P::Right>],
        data: &mut Data<'_, P>,
        edge: usize,
        stage: &E,
        cx: &mut Context<'_, P>,
    ) {
        if Lines::<P::Left, E::Left, W>::LARGE_VALUE
            && let Some(end) = self.ends.get(edge + ENDS_AHEAD)
        {
            self.left.prefetch_value(end.index());
        }
        let near = Endpoint { lines: self.left, row: end.index(), delta: None };
        let delta = if Self::AT_HAND { Some(kept) } else { None };
        let far = Endpoint { lines: self.right, row, delta };
        stage.exchange(E::Left::view(near), E::Right::view(far), data.at(edge), cx);
    }

    #[inline(always)]
    fn delta(&mut self, row: usize) -> &mut [DeltaItem<P::Right>] {
        // SAFETY: `row` is an id of the block, checked when it was built, and `HeldRows::new` checked that the deltas are
        // held alone.
        unsafe {
            let (items, len) = self.right.delta.span(row, self.right.width);
            std::slice::from_raw_parts_mut(items, len)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

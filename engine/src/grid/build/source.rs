//! What an engine is made of: edges, and what becomes of their data.

use std::sync::Arc;

use megagrid_partition::EdgeSource;
use megagrid_stages::{EdgeItem, Item, Program, Store};

use crate::grid::Capacities;

/// Returns how many items an edge has; asked only for data in slices.
type Len<'f, T> = Arc<dyn Fn(&T) -> usize + Send + Sync + 'f>;
/// Writes the items of edges of the program from edges of the source, equally many for each.
type Write<'f, T, I> = Arc<dyn Fn(&[T], &mut [I]) + Send + Sync + 'f>;

/// How an edge of the source becomes edge data of the program.
pub struct Fill<'f, T, I> {
    pub(super) len: Len<'f, T>,
    pub(in crate::grid) write: Write<'f, T, I>,
}

impl<T, I> Fill<'_, T, I> {
    /// Returns how many items an edge has, for data in slices.
    pub(crate) fn len(&self, edge: &T) -> usize {
        (self.len)(edge)
    }

    /// Returns an item for each edge.
    pub(in crate::grid) fn items(&self, edges: &[T]) -> Vec<I>
    where
        I: bytemuck::Zeroable + Clone,
    {
        let mut items = vec![I::zeroed(); edges.len()];
        (self.write)(edges, &mut items);
        items
    }
}

impl<T, I> Clone for Fill<'_, T, I> {
    fn clone(&self) -> Self {
        Self { len: Arc::clone(&self.len), write: Arc::clone(&self.write) }
    }
}

/// A graph as a program's input: its edges and what becomes of their data.
///
/// Edges that carry what the program's edges carry are a source as they are: `Engine::new(&edges, ..)`. Others are mapped.
///
/// # Examples
/// ```
/// use megagrid_engine::{Engine, Settings, Source};
/// use megagrid_datasets::Edges;
/// use megagrid_stages::*;
///
/// vertex! { struct Page { sync: f32, delta: f32 } }
/// program! { struct Weighted { vertices: Page, edge: f32 } }
/// let edges = Edges::square(3, [(0, 2, 5_u32), (1, 2, 7)]).unwrap();
/// let sum = Sequence::new()
///     .exchange(|_: Read<Page>, to: Add<Page>, weight: &mut f32| *to.delta += *weight)
///     .apply(Right, |page: Master<Page>| *page.sync = *page.delta);
/// let mut engine = Engine::<Weighted>::new(Source::map(&edges, |&n| n as f32), sum, &Settings::default())?;
/// engine.iterate(1)?;
/// assert_eq!(*engine.on(Right).sync(2), 12.0);
/// # Ok::<(), megagrid_engine::Error>(())
/// ```
pub struct Source<'s, T, P: Program> {
    pub(crate) edges: &'s dyn EdgeSource<T>,
    pub(crate) fill: Fill<'s, T, EdgeItem<P>>,
    /// Capacities of stores of entries, by vertex id, left and right.
    pub(crate) capacities: [Capacities<'s>; 2],
    /// The items of all edges' data, where they are known to be in slices and cannot be counted before the edges are distributed.
    pub(crate) items: Option<u64>,
}

impl<'s, T, P: Program> Source<'s, T, P> {
    /// Gives each edge of the program a value that follows from the edge of the source.
    #[must_use]
    pub fn map(edges: &'s dyn EdgeSource<T>, value: impl Fn(&T) -> P::Edge + Send + Sync + 's) -> Self
    where
        P::Edge: Item,
    {
        Self::slices(edges, |_| 1, move |edge, items| *P::Edge::view_mut(items) = value(edge))
    }

    /// Gives each edge of the program `len` items, all-zero bytes at first, which `fill` sets: for edges of the type `[T]`.
    #[must_use]
    pub fn slices(
        edges: &'s dyn EdgeSource<T>,
        len: impl Fn(&T) -> usize + Send + Sync + 's,
        fill: impl Fn(&T, &mut [EdgeItem<P>]) + Send + Sync + 's,
    ) -> Self {
        let write = move |edges: &[T], items: &mut [EdgeItem<P>]| {
            let len = items.len().checked_div(edges.len()).unwrap_or(0).max(1);
            edges.iter().zip(items.chunks_exact_mut(len)).for_each(|(edge, items)| fill(edge, items));
        };
        Self { edges, fill: Fill { len: Arc::new(len), write: Arc::new(write) }, capacities: [None, None], items: None }
    }

    /// Sets the capacities of vertices, by id, left and right: what stores of entries need.
    #[must_use]
    pub fn capacities(self, left: Capacities<'s>, right: Capacities<'s>) -> Self {
        Self { capacities: [left, right], ..self }
    }
}

impl<T, P: Program> Clone for Source<'_, T, P> {
    fn clone(&self) -> Self {
        Self { edges: self.edges, fill: self.fill.clone(), ..*self }
    }
}

impl<'s, T: Item, P: Program<Edge = T>> From<&'s dyn EdgeSource<T>> for Source<'s, T, P> {
    fn from(edges: &'s dyn EdgeSource<T>) -> Self {
        Self::map(edges, |value| *value)
    }
}

impl<'s, T: Item, P: Program<Edge = T>, E: EdgeSource<T>> From<&'s E> for Source<'s, T, P> {
    fn from(edges: &'s E) -> Self {
        Self::map(edges, |value| *value)
    }
}

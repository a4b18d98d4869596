//! From a data set or a cache to what a grid is built from: edges grouped by their ends, under final ids.
//!
//! A text and the cache that was made of it give the same ids and the same edges in the same order.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use megagrid_partition::{EdgeSource, GroupedEdges, Holders, Relabeling, Side, count_degrees};

use crate::cache::{self, Cache, CacheFile, EdgeData};
use crate::{Dataset, Dictionary, DistributedEdges, Error, ExternalEdges, Labels, Readers, Samples};

impl<T> Dataset<T> {
    /// Gives the vertices of each side their final ids, in descending order of degree: the vertices used most share
    /// cache lines. Equal degrees keep their order; vertices of a square graph are ordered by out-degree, then by
    /// in-degree, or keep their order where none stand out ([`Relabeling::by_degrees`]). Edges keep their order.
    #[must_use]
    pub fn in_degree_order(self) -> Self {
        self.relabeled().0
    }

    /// Returns also the new order of the left side.
    fn relabeled(mut self) -> (Self, Relabeling) {
        let edges = &mut self.edges;
        let degrees = [count_degrees(&edges.left, edges.num_left), count_degrees(&edges.right, edges.num_right)];
        let orders = Orders::new(&degrees, edges.square, true);
        orders.of(0).apply(&mut edges.left);
        orders.of(1).apply(&mut edges.right);
        let (left_names, right_names) = orders.reorder(self.left_names, self.right_names);
        (Self { edges: self.edges, left_names, right_names }, orders.left)
    }
}

/// The names of the left and of the right side; the latter `None` where the graph is square.
pub(crate) type NamesOfSides = (Dictionary, Option<Dictionary>);

/// The new order of each side; of both in one where the graph is square.
pub(crate) struct Orders {
    left: Relabeling,
    right: Option<Relabeling>,
}

impl Orders {
    /// Orders vertices with these degrees as [`Dataset::in_degree_order`] says, or leaves them as they are.
    pub(crate) fn new([left, right]: &[Vec<u32>; 2], is_square: bool, degree_order: bool) -> Self {
        if is_square && degree_order {
            return Self { left: Relabeling::by_degrees(left, right), right: None };
        }
        let order = |degrees: &[u32]| {
            if degree_order { Relabeling::by_degree(degrees) } else { Relabeling::identity(degrees.len()) }
        };
        Self { left: order(left), right: (!is_square).then(|| order(right)) }
    }

    /// Returns the order of the left (0) or the right side (1).
    pub(crate) fn of(&self, side: usize) -> &Relabeling {
        self.right.as_ref().filter(|_| side == 1).unwrap_or(&self.left)
    }

    /// Puts names in order.
    pub(crate) fn reorder(&self, left: Dictionary, right: Option<Dictionary>) -> NamesOfSides {
        (left.reorder(self.left.old_of_new()), right.map(|right| right.reorder(self.of(1).old_of_new())))
    }
}

impl Samples {
    /// Gives samples and features their final ids; see [`Dataset::in_degree_order`].
    #[must_use]
    pub fn in_degree_order(self) -> Self {
        let (data, order) = self.data.relabeled();
        let order = order.old_of_new();
        let weights = order.iter().filter_map(|&old| self.weights.get(old as usize).copied()).collect();
        Self { data, labels: self.labels.reorder(order), weights }
    }
}

/// Edges that a grid can be built from, and what belongs to them.
///
/// The parts are apart so that the edges can be dropped when the grid is built.
///
/// # Examples
/// ```
/// use megagrid_datasets::{Format, Prepared, parse_ratings};
/// use megagrid_partition::{EdgeSource, Side};
///
/// let ratings = parse_ratings(b"ann tea 4\nbob tea 2\nbob rye 5\n", Format::Ratings)?.in_degree_order();
/// let prepared = Prepared::new(ratings, &[Side::Left]);
/// // Bob rated more than Ann, so he comes first.
/// assert_eq!(prepared.edges.offsets(Side::Left), [0, 2, 3]);
/// assert_eq!(prepared.names.get(Side::Left)?.name(0), "bob");
/// # Ok::<(), megagrid_datasets::Error>(())
/// ```
#[derive(Debug)]
pub struct Prepared<T> {
    /// The edges.
    pub edges: Edges<T>,
    /// The names of the vertices.
    pub names: Names,
    /// The labels of the left vertices, if they have some.
    pub labels: Option<Labels>,
    /// Whether left vertices have weights, which no cache keeps.
    are_weighted: bool,
}

impl<T: EdgeData> Prepared<T> {
    /// Groups the edges by the vertices of each of `sides`. Ids stay as they are: see [`Dataset::in_degree_order`].
    ///
    /// # Panics
    /// Where an id is not below the number of vertices.
    #[must_use]
    pub fn new(dataset: Dataset<T>, sides: &[Side]) -> Self {
        let Dataset { edges, left_names, right_names } = dataset;
        Self::from_parts(Edges::Grouped(GroupedEdges::new(edges, sides)), left_names, right_names)
    }

    pub(crate) fn from_parts(edges: Edges<T>, left: Dictionary, right: Option<Dictionary>) -> Self {
        Self { edges, names: Names::new(left, right), labels: None, are_weighted: false }
    }

    /// Opens a cache.
    ///
    /// # Errors
    /// As [`Cache::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::of_cache(Cache::open(path)?)
    }

    /// Opens a cache together with other processes: see [`Cache::open_with`].
    ///
    /// # Errors
    /// As there.
    pub fn open_with(path: impl AsRef<Path>, readers: &Arc<dyn Readers>) -> Result<Self, Error> {
        Self::of_cache(Cache::open_with(path, readers)?)
    }

    fn of_cache(cache: Cache<T>) -> Result<Self, Error> {
        let (names, labels) = (Names(Source::Cache(cache.share_file())), cache.labels()?);
        Ok(Self { edges: Edges::Cached(cache), names, labels, are_weighted: false })
    }

    /// Writes a cache. The edges have to be grouped by both sides.
    ///
    /// # Errors
    /// As [`cache::write`]; classes whose names are no numbers; samples with weights.
    ///
    /// # Panics
    /// As [`cache::write`], where labels are not one per left vertex.
    pub fn write_cache(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let left = self.names.get(Side::Left)?;
        let right = if self.edges.is_square() { None } else { Some(self.names.get(Side::Right)?) };
        let path = path.as_ref();
        if self.are_weighted {
            let problem = "a cache holds no weights of samples; use the file that has them";
            return Err(Error::invalid(path, problem));
        }
        let labels = self.labels.as_ref().map(Labels::numbers).transpose().map_err(|name| {
            Error::invalid(
                path,
                format!(
                    "a cache holds labels that are numbers, and {name:?} is none; number the classes, or use the text"
                ),
            )
        })?;
        cache::write(path, &self.edges, &left, right.as_deref(), labels.as_deref())
    }
}

impl Prepared<f32> {
    /// Groups the edges of samples; see [`Prepared::new`].
    ///
    /// # Panics
    /// As [`Prepared::new`].
    #[must_use]
    pub fn from_samples(samples: Samples, sides: &[Side]) -> Self {
        let are_weighted = !samples.weights.is_empty();
        Self { labels: Some(samples.labels), are_weighted, ..Self::new(samples.data, sides) }
    }
}

/// Edges in memory, in a temporary file or in a cache.
#[derive(Debug)]
pub enum Edges<T> {
    /// In memory.
    Grouped(GroupedEdges<T>),
    /// In a temporary file.
    External(ExternalEdges<T>),
    /// In a cache.
    Cached(Cache<T>),
    /// In temporary files of several processes.
    Distributed(DistributedEdges<T>),
}

impl<T: EdgeData> Edges<T> {
    fn source(&self) -> &dyn EdgeSource<T> {
        match self {
            Self::Grouped(edges) => edges,
            Self::External(edges) => edges,
            Self::Cached(cache) => cache,
            Self::Distributed(edges) => edges,
        }
    }
}

impl<T: EdgeData> EdgeSource<T> for Edges<T> {
    fn is_square(&self) -> bool {
        self.source().is_square()
    }

    fn offsets(&self, side: Side) -> &[u64] {
        self.source().offsets(side)
    }

    fn held_offsets(&self) -> &[u64] {
        self.source().held_offsets()
    }

    fn distribute(&self, holders: Holders<'_>) -> io::Result<()> {
        self.source().distribute(holders)
    }

    fn windows(&self) -> Vec<Range<usize>> {
        self.source().windows()
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[T])) -> io::Result<()> {
        self.source().visit_rows(side, rows, visit)
    }

    fn visit_ends(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[u64])) -> io::Result<()> {
        self.source().visit_ends(rows, visit)
    }
}

/// The names of the vertices, in memory or still in a cache.
#[derive(Clone, Debug)]
pub struct Names(Source);

#[derive(Clone, Debug)]
enum Source {
    Memory { left: Dictionary, right: Option<Dictionary> },
    Cache(Arc<CacheFile>),
}

impl Names {
    /// Takes names in memory; `right` is `None` where both sides are the same vertices.
    #[must_use]
    pub fn new(left: Dictionary, right: Option<Dictionary>) -> Self {
        Self(Source::Memory { left, right })
    }

    /// Returns the names of a side; those of a square graph are the same for both. Those in a cache are read on every
    /// call.
    ///
    /// # Errors
    /// Where that part of a cache is damaged or cannot be read.
    pub fn get(&self, side: Side) -> Result<Cow<'_, Dictionary>, Error> {
        match &self.0 {
            Source::Memory { left, right } => {
                let right = right.as_ref().filter(|_| side == Side::Right);
                Ok(Cow::Borrowed(right.unwrap_or(left)))
            }
            Source::Cache(file) => file.names(side).map(Cow::Owned),
        }
    }
}

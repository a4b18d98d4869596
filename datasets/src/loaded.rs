//! Edges that have been read to build a grid from.

use megagrid_partition::Side;

use crate::cache::EdgeData;
use crate::external::ExternalList;
use crate::{Dataset, Error, Prepared};

/// Edges that have been read to build a grid from: in memory if they are few, else in a temporary file.
///
/// # Examples
/// ```no_run
/// use megagrid_datasets::load_ratings;
/// use megagrid_partition::Side;
///
/// let prepared = load_ratings("ratings.txt", None)?.prepare(Side::Right, true)?;
/// # Ok::<(), megagrid_datasets::Error>(())
/// ```
#[derive(Debug)]
pub struct Loaded<T>(Place<T>);

#[derive(Debug)]
enum Place<T> {
    Memory(Dataset<T>),
    File(Box<ExternalList<T>>),
}

impl<T> From<Dataset<T>> for Loaded<T> {
    fn from(dataset: Dataset<T>) -> Self {
        Self(Place::Memory(dataset))
    }
}

impl<T: EdgeData> Loaded<T> {
    pub(crate) fn external(list: ExternalList<T>) -> Self {
        Self(Place::File(Box::new(list)))
    }

    /// Brings all edges into memory, in every process if several have read a part each: all of them call it.
    ///
    /// # Errors
    /// Where the temporary file cannot be read; a lost process.
    pub fn into_dataset(self) -> Result<Dataset<T>, Error> {
        match self.0 {
            Place::Memory(dataset) => Ok(dataset),
            Place::File(list) => list.into_dataset(),
        }
    }

    /// Groups the edges by the vertices of `side`, under final ids: in descending order of degree
    /// ([`Dataset::in_degree_order`]) if `degree_order`.
    ///
    /// The result does not depend on where the edges are.
    ///
    /// # Errors
    /// Where the temporary file cannot be read or written.
    pub fn prepare(self, side: Side, degree_order: bool) -> Result<Prepared<T>, Error> {
        match self.0 {
            Place::Memory(dataset) => {
                let dataset = if degree_order { dataset.in_degree_order() } else { dataset };
                Ok(Prepared::new(dataset, &[side]))
            }
            Place::File(list) => {
                let (edges, (left, right)) = list.group(side, degree_order)?;
                Ok(Prepared::from_parts(edges, left, right))
            }
        }
    }
}

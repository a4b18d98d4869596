//! Tables of parameters, local data, and the rows that an access is about.

use std::sync::Arc;

use crate::device::VALUE_BYTES;
use crate::index::Index;
use crate::rows;

/// A table of a job, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub(crate) usize);

/// A list of rows of a table, by its number; each worker has its own lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowsId(pub(crate) usize);

/// Local data of a worker, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub(crate) usize);

/// A table of parameters, which all workers share: rows of a fixed number of values, with one data age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it is called in plans and messages.
    pub name: String,
    /// How many rows.
    pub rows: usize,
    /// Values in a row.
    pub width: usize,
}

impl Table {
    /// Returns how many values it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows * self.width
    }

    /// Tells whether it has no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The tables of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables(Vec<Table>);

impl Tables {
    /// Adds a table of `rows` rows of `width` values, 1 at least.
    ///
    /// # Panics
    /// No width, or more values than there can be.
    pub fn add(&mut self, name: impl Into<String>, rows: usize, width: usize) -> TableId {
        assert!(width > 0 && rows.checked_mul(width).is_some(), "a table of {rows} rows of {width} values");
        self.0.push(Table { name: name.into(), rows, width });
        TableId(self.0.len() - 1)
    }

    /// Returns a table.
    #[must_use]
    pub fn get(&self, id: TableId) -> &Table {
        &self.0[id.0]
    }

    /// Lists all of them.
    pub fn iter(&self) -> impl Iterator<Item = (TableId, &Table)> {
        self.0.iter().enumerate().map(|(id, table)| (TableId(id), table))
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Which rows an access is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// All of the table, in their order: no index is needed.
    All,
    /// Those of an index.
    Listed(Arc<Index>),
}

/// A list of rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowList {
    pub table: TableId,
    pub rows: Rows,
    /// Rows of the batch, and different ones among them.
    pub batch: usize,
    pub distinct: usize,
    pub width: usize,
}

impl RowList {
    pub fn all(id: TableId, table: &Table) -> Self {
        Self { table: id, rows: Rows::All, batch: table.rows, distinct: table.rows, width: table.width }
    }

    pub fn listed(id: TableId, table: &Table, keys: Vec<u32>) -> Self {
        let index = Index::new(keys);
        let (batch, distinct) = (index.keys().len(), index.targets().len());
        Self { table: id, rows: Rows::Listed(Arc::new(index)), batch, distinct, width: table.width }
    }

    /// Returns the list of its different rows, ascending: what servers are told of.
    pub fn different(&self) -> Self {
        match &self.rows {
            Rows::All => self.clone(),
            Rows::Listed(index) => {
                let rows = Rows::Listed(Arc::new(Index::new(index.targets().to_vec())));
                Self { rows, batch: self.distinct, ..self.clone() }
            }
        }
    }

    /// Returns the values of the application's buffer.
    pub fn len(&self) -> usize {
        self.batch * self.width
    }

    /// Returns its index; none is needed for all rows.
    pub fn index(&self) -> Option<&Index> {
        match &self.rows {
            Rows::All => None,
            Rows::Listed(index) => Some(index),
        }
    }

    /// Returns the values of the different rows, ascending, from a whole table.
    pub fn distinct_of(&self, table: &[f32]) -> Vec<f32> {
        match &self.rows {
            Rows::All => table.to_vec(),
            Rows::Listed(index) => rows::gather(table, index.targets(), self.width),
        }
    }

    /// Returns the batch, from the values of the different rows.
    pub fn batch_of(&self, distinct: Vec<f32>) -> Vec<f32> {
        match &self.rows {
            Rows::All => distinct,
            Rows::Listed(index) => {
                let [_, starts, order] = index.segments();
                let mut batch = vec![0.0; self.len()];
                for (row, bounds) in distinct.chunks_exact(self.width).zip(starts.windows(2)) {
                    for &at in &order[bounds[0] as usize..bounds[1] as usize] {
                        batch[at as usize * self.width..][..self.width].copy_from_slice(row);
                    }
                }
                batch
            }
        }
    }

    /// Returns the sums of a batch by row, in the order of the batch: those of the different rows, ascending.
    pub fn sums_of(&self, batch: Vec<f32>) -> Vec<f32> {
        match &self.rows {
            Rows::All => batch,
            Rows::Listed(index) => {
                let [_, starts, order] = index.segments();
                let targets: Vec<u32> = (0..self.distinct as u32).collect();
                let mut sums = vec![0.0; self.distinct * self.width];
                rows::scatter_add(&batch, [&targets, starts, order], &mut sums, self.width);
                sums
            }
        }
    }

    /// Adds the sums of a batch by row, which are made in its order, to a whole table.
    pub fn add_to(&self, table: &mut [f32], batch: &[f32]) {
        match &self.rows {
            Rows::All => rows::add(table, batch),
            Rows::Listed(index) => rows::scatter_add(batch, index.segments(), table, self.width),
        }
    }

    /// Adds the rows of a batch of this list to those of them that `other`, a list of the same table, has; `distinct`
    /// are its different rows.
    pub fn add_to_distinct(&self, other: &Self, distinct: &mut [f32], batch: &[f32]) {
        let width = self.width;
        match (&self.rows, &other.rows) {
            (_, Rows::All) => self.add_to(distinct, batch),
            (Rows::All, Rows::Listed(to)) => {
                rows::add(distinct, &rows::gather(batch, to.targets(), width));
            }
            (Rows::Listed(from), Rows::Listed(to)) => {
                let [targets, starts, order] = from.segments();
                let mut at = 0;
                for (to, row) in to.targets().iter().zip(distinct.chunks_exact_mut(width)) {
                    at += targets[at..].iter().take_while(|target| *target < to).count();
                    if targets.get(at) == Some(to) {
                        for &place in &order[starts[at] as usize..starts[at + 1] as usize] {
                            rows::add(row, &batch[place as usize * width..][..width]);
                        }
                    }
                }
            }
        }
    }
}

/// Returns the bytes of some values.
pub(crate) fn bytes(values: usize) -> u64 {
    values as u64 * VALUE_BYTES
}

//! Edges of a text, window by window in a temporary file, with the ids that they have there.

use std::marker::PhantomData;

use super::file::{TemporaryFile, error};
use crate::Error;
use crate::cache::EdgeData;
use crate::ids::{Ids, Window};

/// Windows of edges in a temporary file, one after another.
#[derive(Debug)]
pub(crate) struct Spill<T> {
    file: TemporaryFile,
    windows: Vec<Place>,
    bytes: u64,
    num_edges: usize,
    /// The largest id of each column.
    max: [u64; 2],
    data: PhantomData<T>,
}

/// Where a window is: its left ids, its right ids, its data.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: u64,
    num_edges: usize,
    /// Whether the ids of each column take 64 bits.
    wide: [bool; 2],
}

impl<T: EdgeData> Spill<T> {
    pub(crate) fn new() -> Result<Self, Error> {
        let file = TemporaryFile::new()?;
        Ok(Self { file, windows: Vec::new(), bytes: 0, num_edges: 0, max: [0; 2], data: PhantomData })
    }

    pub(crate) fn num_edges(&self) -> usize {
        self.num_edges
    }

    pub(crate) fn num_windows(&self) -> usize {
        self.windows.len()
    }

    /// Returns the largest id of a column.
    pub(crate) fn max(&self, column: usize) -> u64 {
        self.max[column]
    }

    pub(crate) fn push(&mut self, window: &Window<T>) -> Result<(), Error> {
        let mut place = Place { start: self.bytes, num_edges: window.data.len(), wide: [false; 2] };
        for (side, ids) in window.ids.iter().enumerate() {
            match ids {
                Ids::Narrow(ids) => self.file.write(self.bytes, ids)?,
                Ids::Wide(ids) => self.file.write(self.bytes, ids)?,
            }
            place.wide[side] = matches!(ids, Ids::Wide(_));
            self.bytes += ids.bytes() as u64;
            self.max[side] = self.max[side].max(ids.max());
        }
        self.file.write_data(self.bytes, &window.data)?;
        self.bytes += T::TYPE.bytes() * place.num_edges as u64;
        self.num_edges += place.num_edges;
        self.windows.push(place);
        Ok(())
    }

    /// Puts windows in the ascending order of their keys, one for each; those of equal keys keep theirs.
    pub(super) fn sort_windows(&mut self, keys: &[usize]) {
        let mut order: Vec<usize> = (0..self.windows.len()).collect();
        order.sort_by_key(|&window| keys[window]);
        self.windows = order.into_iter().map(|window| self.windows[window]).collect();
    }

    pub(crate) fn read(&self, at: usize) -> Result<Window<T>, Error> {
        let Place { mut start, num_edges, wide } = self.windows[at];
        let mut column = |wide: bool| {
            let ids = if wide {
                Ids::Wide(self.file.read(start, num_edges).map_err(error)?)
            } else {
                Ids::Narrow(self.file.read(start, num_edges).map_err(error)?)
            };
            start += ids.bytes() as u64;
            Ok::<_, Error>(ids)
        };
        let ids = [column(wide[0])?, column(wide[1])?];
        let data = self.file.read_data(start, num_edges).map_err(error)?;
        Ok(Window { ids, data })
    }
}

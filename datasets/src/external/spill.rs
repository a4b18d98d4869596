//! Edges of a text, window by window in a temporary file, with the ids that they have there.

use std::marker::PhantomData;

use megagrid_partition::parallel;

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

impl Place {
    /// Returns where the data begin.
    fn data(&self) -> u64 {
        self.start + self.wide.iter().map(|&wide| bytes_of_id(wide)).sum::<u64>() * self.num_edges as u64
    }
}

fn bytes_of_id(wide: bool) -> u64 {
    if wide { 8 } else { 4 }
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

    /// Appends a window, which comes in chunks.
    pub(crate) fn push(&mut self, chunks: &[Window<T>]) -> Result<(), Error> {
        let wide = [0, 1].map(|side| chunks.iter().any(|chunk| matches!(chunk.ids[side], Ids::Wide(_))));
        let num_edges = chunks.iter().map(|chunk| chunk.data.len()).sum();
        let place = Place { start: self.bytes, num_edges, wide };
        let mut firsts = Vec::with_capacity(chunks.len());
        chunks.iter().fold(0, |first, chunk| {
            firsts.push(first);
            first + chunk.data.len() as u64
        });
        let written = parallel::map(chunks.len(), |at| self.write(&place, firsts[at], &chunks[at]));
        for max in written {
            let max = max?;
            [0, 1].iter().for_each(|&side| self.max[side] = self.max[side].max(max[side]));
        }
        self.bytes = place.data() + T::TYPE.bytes() * num_edges as u64;
        self.num_edges += num_edges;
        self.windows.push(place);
        Ok(())
    }

    /// Writes a chunk of a window, whose edges begin with the window's edge `first`; returns the largest ids.
    fn write(&self, place: &Place, first: u64, chunk: &Window<T>) -> Result<[u64; 2], Error> {
        let mut start = place.start;
        for (ids, &wide) in chunk.ids.iter().zip(&place.wide) {
            let at = start + bytes_of_id(wide) * first;
            match ids {
                Ids::Narrow(ids) if wide => {
                    self.file.write(at, &ids.iter().map(|&id| u64::from(id)).collect::<Vec<_>>())?;
                }
                Ids::Narrow(ids) => self.file.write(at, ids)?,
                Ids::Wide(ids) => self.file.write(at, ids)?,
            }
            start += bytes_of_id(wide) * place.num_edges as u64;
        }
        self.file.write(start + T::TYPE.bytes() * first, &chunk.data)?;
        Ok(chunk.ids.each_ref().map(Ids::max))
    }

    /// Puts windows in the ascending order of their keys, one for each; those of equal keys keep theirs.
    pub(super) fn sort_windows(&mut self, keys: &[usize]) {
        let mut order: Vec<usize> = (0..self.windows.len()).collect();
        order.sort_by_key(|&window| keys[window]);
        self.windows = order.into_iter().map(|window| self.windows[window]).collect();
    }

    pub(crate) fn read(&self, at: usize) -> Result<Window<T>, Error> {
        let mut window = Window::default();
        self.read_into(at, &mut window)?;
        Ok(window)
    }

    /// Reads a window in the place, and the memory, of another one.
    pub(crate) fn read_into(&self, at: usize, window: &mut Window<T>) -> Result<(), Error> {
        let place = self.windows[at];
        let mut start = place.start;
        for (ids, wide) in window.ids.iter_mut().zip(place.wide) {
            match ids {
                Ids::Narrow(_) if wide => *ids = Ids::Wide(Vec::new()),
                Ids::Wide(_) if !wide => *ids = Ids::Narrow(Vec::new()),
                _ => {}
            }
            match ids {
                Ids::Narrow(ids) => self.file.read(start, resized(ids, place.num_edges)),
                Ids::Wide(ids) => self.file.read(start, resized(ids, place.num_edges)),
            }
            .map_err(error)?;
            start += bytes_of_id(wide) * place.num_edges as u64;
        }
        self.file.read(start, resized(&mut window.data, place.num_edges)).map_err(error)
    }

    /// Returns where a window begins in the file.
    pub(super) fn start(&self, at: usize) -> u64 {
        self.windows[at].start
    }

    pub(super) fn file(&self) -> &TemporaryFile {
        &self.file
    }

    pub(super) fn into_file(self) -> TemporaryFile {
        self.file
    }
}

fn resized<V: Clone + Default>(values: &mut Vec<V>, len: usize) -> &mut [V] {
    values.resize(len, V::default());
    values
}

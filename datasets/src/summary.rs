//! What one pass over all edges finds.

use std::io;
use std::ops::Range;

use megagrid_partition::{EdgeSource, Side, parallel, windows};
use xxhash_rust::xxh3::xxh3_64;

use crate::cache::EdgeData;
use crate::checksum::hash_all;
use crate::exact_sum::ExactSum;
use crate::readers::misfit;
use crate::{Edges, Readers};

/// The sum, the sum of squares and the range of some value of the edges, and a checksum of their ends and data.
///
/// The sums are exact before they are rounded, and the checksum a sum of hashes, one for each edge. So none depends on where the
/// edges are: in a text or its cache, in one process or several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Sum of the values.
    pub sum: f64,
    /// Sum of their squares.
    pub squares: f64,
    /// The least and the greatest value; nothing without edges.
    pub range: Option<[f64; 2]>,
    /// Checksum of ends and data.
    pub checksum: u64,
}

/// Sum, sum of squares, least and greatest of some values.
struct Values {
    sum: ExactSum,
    squares: ExactSum,
    least: f64,
    greatest: f64,
}

impl Default for Values {
    fn default() -> Self {
        let (sum, squares) = Default::default();
        Self { sum, squares, least: f64::INFINITY, greatest: f64::NEG_INFINITY }
    }
}

impl Values {
    fn of<T>(data: &[T], value: impl Fn(&T) -> f64 + Copy + Sync) -> Self {
        let mut values = Self::default();
        match data {
            // All the same.
            [nothing, ..] if size_of::<T>() == 0 => {
                let value = value(nothing);
                values.add(value);
                (values.sum, values.squares) = Default::default();
                values.sum.add(data.len() as f64 * value);
                values.squares.add(data.len() as f64 * value * value);
            }
            _ => data.iter().for_each(|data| values.add(value(data))),
        }
        values
    }

    fn add(&mut self, value: f64) {
        self.sum.add(value);
        self.squares.add(value * value);
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    fn and(self, more: &Self) -> Self {
        let (least, greatest) = (self.least.min(more.least), self.greatest.max(more.greatest));
        Self { sum: self.sum.and(&more.sum), squares: self.squares.and(&more.squares), least, greatest }
    }
}

/// What was found of the values of some edges, and the sum of the edges' hashes.
#[derive(Default)]
struct Found(Values, u64);

impl Found {
    fn and(self, more: Self) -> Self {
        Self(self.0.and(&more.0), self.1.wrapping_add(more.1))
    }

    /// Adds up what all processes have found.
    fn of_all(self, readers: &dyn Readers) -> io::Result<Self> {
        let Self(Values { sum, squares, least, greatest }, hashes) = self;
        let numbers = [least.to_bits(), greatest.to_bits(), hashes].map(u64::to_ne_bytes);
        let mine = [sum.to_bytes(), squares.to_bytes(), numbers.concat()].concat();
        let theirs = |bytes: &Vec<u8>| -> io::Result<Self> {
            let (sums, numbers) = bytes.split_last_chunk::<24>().ok_or_else(misfit)?;
            let number = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| numbers[8 * at + byte]));
            let (sum, squares) = sums.split_at(sums.len() / 2);
            let [sum, squares] = [sum, squares].map(|sum| ExactSum::from_bytes(sum).ok_or_else(misfit));
            let [least, greatest] = [0, 1].map(|at| f64::from_bits(number(at)));
            Ok(Self(Values { sum: sum?, squares: squares?, least, greatest }, number(2)))
        };
        readers.all_gather(mine)?.iter().map(theirs).try_fold(Self::default(), |all, found| Ok(all.and(found?)))
    }
}

impl<T: EdgeData> Edges<T> {
    /// Passes over all edges. Where several processes have read a part each, every process calls it, before the edges are
    /// distributed.
    ///
    /// # Errors
    /// Edges that cannot be read; a lost process.
    pub fn summarize(&self, value: impl Fn(&T) -> f64 + Copy + Sync) -> io::Result<Summary> {
        let Found(values, hashes) = match self {
            Self::Distributed(edges) => {
                let mut found = Found::default();
                edges.visit_read(|left, right, data| {
                    let hashes = hash_all(left.iter().copied().zip(right.iter().copied()), data);
                    found = std::mem::take(&mut found).and(Found(Values::of(data, value), hashes));
                })?;
                found.of_all(edges.readers())?
            }
            Self::Cached(cache) => match cache.readers() {
                Some(readers) => self.windows(value, readers.process(), readers.processes())?.of_all(readers)?,
                None => self.windows(value, 0, 1)?,
            },
            Self::External(edges) => {
                let values = edges.map_data(|data| Values::of(data, value))?;
                Found(values.iter().fold(Values::default(), |values, more| values.and(more)), edges.hashes())
            }
            Self::Grouped(_) => self.windows(value, 0, 1)?,
        };
        let [left, right] = [Side::Left, Side::Right].map(|side| self.num_vertices(side) as u64);
        let all = [left, right, self.num_edges() as u64, hashes];
        let range = (values.least <= values.greatest).then_some([values.least, values.greatest]);
        let [sum, squares] = [values.sum, values.squares].map(|sum| sum.rounded());
        Ok(Summary { sum, squares, range, checksum: xxh3_64(bytemuck::cast_slice(&all)) })
    }

    /// Adds up some value of the edges of each left vertex. Where several processes have read a part each, every process calls it, before
    /// the edges are distributed, and all get the same.
    ///
    /// # Errors
    /// Edges that cannot be read; a lost process.
    pub fn left_sums(&self, value: impl Fn(&T) -> f64) -> io::Result<Vec<f64>> {
        let mut sums = vec![0.0; self.num_vertices(Side::Left)];
        let mut add = |left: &[u32], data: &[T]| {
            left.iter().zip(data).for_each(|(&left, data)| sums[left as usize] += value(data));
        };
        match self {
            Self::Distributed(edges) => {
                edges.visit_read(|left, _, data| add(left, data))?;
                edges.readers().sum(&mut sums)?;
            }
            _ => {
                let mut windows = EdgeSource::windows(self).into_iter();
                windows.try_for_each(|rows| self.visit_rows(Side::Right, rows, &mut add))?;
            }
        }
        Ok(sums)
    }

    /// Counts the pairs of vertices with an edge that `counts`, however many such edges a pair has. Where several processes have read a part
    /// each, every process calls it, before the edges are distributed, and all get the same.
    ///
    /// # Errors
    /// Edges that cannot be read; a lost process.
    pub fn num_pairs(&self, counts: impl Fn(&T) -> bool + Copy + Sync) -> io::Result<u64> {
        let of_windows = |first, step| -> io::Result<u64> {
            let windows: Vec<_> = windows(self.offsets(Side::Right)).into_iter().skip(first).step_by(step).collect();
            parallel::map(windows.len(), |at| self.pairs(windows[at].clone(), counts)).into_iter().sum()
        };
        match self {
            Self::Distributed(edges) => edges.num_pairs(counts),
            Self::Cached(cache) => match cache.readers() {
                Some(readers) => {
                    let mut number = [of_windows(readers.process(), readers.processes())?];
                    readers.sum(&mut number)?;
                    Ok(number[0])
                }
                None => of_windows(0, 1),
            },
            Self::External(_) | Self::Grouped(_) => of_windows(0, 1),
        }
    }

    /// Counts the pairs of a window.
    fn pairs(&self, rows: Range<usize>, counts: impl Fn(&T) -> bool) -> io::Result<u64> {
        let (mut number, offsets) = (0, &self.offsets(Side::Right)[rows.start..=rows.end]);
        self.visit_rows(Side::Right, rows, &mut |left, data| {
            for ends in offsets.windows(2) {
                let [mut begin, end] = [ends[0], ends[1]].map(|end| (end - offsets[0]) as usize);
                // Edges of a pair follow each other.
                for pair in left[begin..end].chunk_by(|one, next| one == next) {
                    number += u64::from(data[begin..][..pair.len()].iter().any(&counts));
                    begin += pair.len();
                }
            }
        })?;
        Ok(number)
    }

    /// Passes over every `step`th window, from the window `first` on.
    fn windows(&self, value: impl Fn(&T) -> f64 + Copy + Sync, first: usize, step: usize) -> io::Result<Found> {
        let windows: Vec<_> = windows(self.offsets(Side::Right)).into_iter().skip(first).step_by(step).collect();
        let found = parallel::map(windows.len(), |at| self.window(windows[at].clone(), value));
        found.into_iter().try_fold(Found::default(), |all, found| Ok(all.and(found?)))
    }

    fn window(&self, rows: Range<usize>, value: impl Fn(&T) -> f64 + Copy + Sync) -> io::Result<Found> {
        let mut found = Found::default();
        let offsets = &self.offsets(Side::Right)[rows.start..=rows.end];
        self.visit_rows(Side::Right, rows.clone(), &mut |left, data| {
            let mut right = Vec::with_capacity(left.len());
            for (row, ends) in rows.clone().zip(offsets.windows(2)) {
                right.resize((ends[1] - offsets[0]) as usize, row as u32);
            }
            found = Found(Values::of(data, value), hash_all(left.iter().copied().zip(right), data));
        })?;
        Ok(found)
    }
}

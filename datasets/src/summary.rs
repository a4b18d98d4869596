//! What one pass over all edges finds.

use std::io;
use std::ops::Range;

use megagrid_partition::{EdgeSource, Side, parallel, windows};
use xxhash_rust::xxh3::xxh3_64;

use crate::cache::EdgeData;
use crate::checksum::hash_all;
use crate::readers::misfit;
use crate::{Edges, Readers};

/// The sum of some value of the edges, and a checksum of their ends and data.
///
/// The checksum is a sum of hashes, one for each edge, so that it does not depend on where the edges are: in a text or its cache, in
/// one process or several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Sum of the values.
    pub sum: f64,
    /// Checksum of ends and data.
    pub checksum: u64,
}

impl<T: EdgeData> Edges<T> {
    /// Passes over all edges. Where several processes have read a part each, every process calls it, before the edges are
    /// distributed.
    ///
    /// # Errors
    /// Edges that cannot be read; a lost process.
    pub fn summarize(&self, value: fn(&T) -> f64) -> io::Result<Summary> {
        let parts = match self {
            Self::Distributed(edges) => {
                let (mut sum, mut hashes) = (0.0, 0_u64);
                edges.visit_read(|left, right, data| {
                    sum += sum_of(data, value);
                    hashes = hashes.wrapping_add(hash_all(left.iter().copied().zip(right.iter().copied()), data));
                })?;
                let all = edges.readers().gather_numbers([f64::to_bits(sum), hashes])?;
                all.into_iter().map(|[sum, hashes]| (f64::from_bits(sum), hashes)).collect()
            }
            Self::Cached(cache) => match cache.readers() {
                Some(readers) => self.windows_of_all(value, readers)?,
                None => self.windows(value, 0, 1)?,
            },
            Self::External(edges) => {
                let windows = windows(self.offsets(Side::Right));
                let sum = |at: usize| Ok((sum_of(&edges.read_data(windows[at].clone())?, value), 0));
                let mut parts: Vec<(f64, u64)> =
                    parallel::map(windows.len(), sum).into_iter().collect::<io::Result<_>>()?;
                parts.push((0.0, edges.hashes()));
                parts
            }
            Self::Grouped(_) => self.windows(value, 0, 1)?,
        };
        let hashes = parts.iter().fold(0_u64, |sum, (_, part)| sum.wrapping_add(*part));
        let [left, right] = [Side::Left, Side::Right].map(|side| self.num_vertices(side) as u64);
        let all = [left, right, self.num_edges() as u64, hashes];
        Ok(Summary { sum: parts.iter().map(|(sum, _)| sum).sum(), checksum: xxh3_64(bytemuck::cast_slice(&all)) })
    }

    /// Passes over every `step`th window, from the window `first` on.
    fn windows(&self, value: fn(&T) -> f64, first: usize, step: usize) -> io::Result<Vec<(f64, u64)>> {
        let windows: Vec<_> = windows(self.offsets(Side::Right)).into_iter().skip(first).step_by(step).collect();
        parallel::map(windows.len(), |at| self.window(windows[at].clone(), value)).into_iter().collect()
    }

    /// Passes over this process's share of the windows; returns what all found, in the order of the windows.
    fn windows_of_all(&self, value: fn(&T) -> f64, readers: &dyn Readers) -> io::Result<Vec<(f64, u64)>> {
        let mine = self.windows(value, readers.process(), readers.processes())?;
        let mine: Vec<u64> = mine.into_iter().flat_map(|(sum, hashes)| [sum.to_bits(), hashes]).collect();
        let all = readers.all_gather(bytemuck::pod_collect_to_vec(&mine))?;
        let all: Vec<Vec<u64>> = all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect();
        let windows = (0..windows(self.offsets(Side::Right)).len()).map(|at| {
            let (process, place) = (at % readers.processes(), 2 * (at / readers.processes()));
            let found = all[process].get(place..place + 2).ok_or_else(misfit)?;
            Ok((f64::from_bits(found[0]), found[1]))
        });
        windows.collect()
    }

    fn window(&self, rows: Range<usize>, value: fn(&T) -> f64) -> io::Result<(f64, u64)> {
        let (mut sum, mut hashes) = (0.0, 0_u64);
        let offsets = &self.offsets(Side::Right)[rows.start..=rows.end];
        self.visit_rows(Side::Right, rows.clone(), &mut |left, data| {
            sum = sum_of(data, value);
            let mut right = Vec::with_capacity(left.len());
            for (row, ends) in rows.clone().zip(offsets.windows(2)) {
                right.resize((ends[1] - offsets[0]) as usize, row as u32);
            }
            hashes = hash_all(left.iter().copied().zip(right), data);
        })?;
        Ok((sum, hashes))
    }
}

fn sum_of<T>(data: &[T], value: fn(&T) -> f64) -> f64 {
    match data {
        // All the same.
        [nothing, ..] if size_of::<T>() == 0 => data.len() as f64 * value(nothing),
        _ => data.iter().map(value).sum(),
    }
}

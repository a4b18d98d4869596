//! From edges in a temporary file, in the order of the input, to edges grouped by a side.

use std::path::PathBuf;
use std::sync::Arc;

use megagrid_partition::{EdgeList, Side, offsets_of, parallel};

use super::grouping::Grouping;
use super::{DistributedEdges, ExternalEdges, Spill};
use crate::cache::EdgeData;
use crate::ids::{Ids, Window};
use crate::numbering::Numberings;
use crate::prepare::{NamesOfSides, Orders};
use crate::{Dataset, Edges, Error, Readers};

/// Degrees that processes sum at a time.
const SUMMED_AT_A_TIME: usize = 1 << 18;
/// Edges that a process sends to others at a time.
const SENT_AT_A_TIME: usize = 1 << 19;

/// Edges in a temporary file, and how their ids become vertices.
#[derive(Debug)]
pub(crate) struct ExternalList<T> {
    pub(crate) spill: Spill<T>,
    pub(crate) numberings: Numberings,
    /// What the edges were read from.
    pub(crate) path: PathBuf,
    /// The processes that have read the other edges, if these are a part. The vertices are those of all.
    pub(crate) readers: Option<Arc<dyn Readers>>,
}

impl<T: EdgeData> ExternalList<T> {
    /// Reads the vertices that a window's edges join, and the edges' data.
    fn window(&self, at: usize) -> Result<([Vec<u32>; 2], Vec<T>), Error> {
        let window = self.spill.read(at)?;
        let [left, right] = window.ids;
        Ok(([self.numberings.of(0).vertices(left), self.numberings.of(1).vertices(right)], window.data))
    }

    /// Calls `visit` with each window in order; while it runs, the next one is read.
    fn for_each_window(
        &self,
        mut visit: impl FnMut([Vec<u32>; 2], Vec<T>) -> Result<(), Error> + Send,
    ) -> Result<(), Error> {
        let read = |at| (at < self.spill.num_windows()).then(|| self.window(at)).transpose();
        let (mut window, mut at) = (read(0)?, 0);
        while let Some((ids, data)) = window {
            at += 1;
            let (visited, next) = parallel::join(|| visit(ids, data), || read(at));
            visited?;
            window = next?;
        }
        Ok(())
    }

    /// Reads all edges into memory.
    pub(crate) fn into_dataset(self) -> Result<Dataset<T>, Error> {
        let num_edges = self.spill.num_edges();
        let [num_left, num_right] = [0, 1].map(|side| self.numberings.of(side).len());
        let square = self.numberings.is_square();
        let mut edges = EdgeList { num_left, num_right, square, ..EdgeList::with_capacity(num_edges) };
        for at in 0..self.spill.num_windows() {
            let ([mut left, mut right], mut data) = self.window(at)?;
            edges.left.append(&mut left);
            edges.right.append(&mut right);
            edges.data.append(&mut data);
        }
        let (left_names, right_names) = self.numberings.into_dictionaries(&self.path)?;
        Ok(Dataset { edges, left_names, right_names })
    }

    /// Groups the edges by the vertices of `side`, in descending order of degree if `degree_order`.
    pub(crate) fn group(self, side: Side, degree_order: bool) -> Result<(Edges<T>, NamesOfSides), Error> {
        let degrees = self.degrees()?;
        let is_square = self.numberings.is_square();
        let orders = Orders::new(&degrees, is_square, degree_order);
        let offsets = [0, 1].map(|side| {
            let old = orders.of(side).old_of_new();
            offsets_of(&old.iter().map(|&old| degrees[side][old as usize]).collect::<Vec<_>>())
        });
        drop(degrees);
        let relabel =
            |ids: &mut [Vec<u32>; 2]| ids.iter_mut().enumerate().for_each(|(side, ids)| orders.of(side).apply(ids));
        let edges = if let Some(readers) = &self.readers {
            let mut relabeled = Spill::new()?;
            self.for_each_window(|mut ids, data| {
                relabel(&mut ids);
                (0..data.len()).step_by(SENT_AT_A_TIME).try_for_each(|start| {
                    let piece = start..data.len().min(start + SENT_AT_A_TIME);
                    let ids = ids.each_ref().map(|ids| Ids::Narrow(ids[piece.clone()].to_vec()));
                    relabeled.push(&Window { ids, data: data[piece].to_vec() })
                })
            })?;
            Edges::Distributed(DistributedEdges::new(relabeled, Arc::clone(readers), is_square, side, offsets))
        } else {
            let mut grouping = Grouping::new::<T>(self.spill.num_edges(), &offsets[side as usize])?;
            self.for_each_window(|mut ids, data| {
                relabel(&mut ids);
                grouping.add(&ids[side as usize], &ids[1 - side as usize], &data)
            })?;
            let (file, places) = grouping.finish::<T>()?;
            Edges::External(ExternalEdges::new(file, places, is_square, side, offsets))
        };
        drop(self.spill);
        let (left, right) = self.numberings.into_dictionaries(&self.path)?;
        Ok((edges, orders.reorder(left, right)))
    }

    /// Returns the degrees of the vertices of each side.
    fn degrees(&self) -> Result<[Vec<u32>; 2], Error> {
        let mut degrees = [0, 1].map(|side| vec![0_u32; self.numberings.of(side).len()]);
        let count = |degrees: &mut [u32], ids: &[u32]| ids.iter().for_each(|&id| degrees[id as usize] += 1);
        self.for_each_window(|ids, _| {
            let [left, right] = &mut degrees;
            parallel::join(|| count(left, &ids[0]), || count(right, &ids[1]));
            Ok(())
        })?;
        if let Some(readers) = &self.readers {
            // A part at a time: those of all processes are in memory at once.
            for degrees in degrees.iter_mut().flat_map(|degrees| degrees.chunks_mut(SUMMED_AT_A_TIME)) {
                let all = readers.all_gather(bytemuck::pod_collect_to_vec(degrees)).map_err(Error::io(&self.path))?;
                degrees.fill(0);
                for bytes in all {
                    let theirs: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
                    degrees.iter_mut().zip(theirs).for_each(|(degree, more)| *degree += more);
                }
            }
        }
        Ok(degrees)
    }
}

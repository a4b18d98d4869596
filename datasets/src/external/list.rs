//! From edges in a temporary file, in the order of the input, to edges grouped by a side.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use megagrid_partition::{EdgeList, Relabeling, Side, offsets_of, parallel};

use super::grouping::Grouping;
use super::{DistributedEdges, ExternalEdges, Spill};
use crate::cache::EdgeData;
use crate::ids::{Ids, Window};
use crate::numbering::Numberings;
use crate::{Dataset, Dictionary, Error, Readers};

/// Degrees that processes sum at a time.
const SUMMED_AT_A_TIME: usize = 1 << 18;
/// Edges that a process sends to others at a time.
const SENT_AT_A_TIME: usize = 1 << 19;

/// Edges in a temporary file, and how their ids become vertices.
#[derive(Debug)]
pub(crate) struct ExternalList<T> {
    spill: Spill<T>,
    numberings: Numberings,
    /// What the edges were read from.
    path: PathBuf,
    /// The processes that have read the other edges, if these are a part.
    readers: Option<Arc<dyn Readers>>,
}

/// Edges grouped by a side.
pub(crate) enum Grouped<T> {
    All(ExternalEdges<T>),
    Part(DistributedEdges<T>),
}

/// The names of the left and of the right side; the latter `None` where the graph is square.
type NamesOfSides = (Dictionary, Option<Dictionary>);

impl<T: EdgeData> ExternalList<T> {
    pub(crate) fn new(spill: Spill<T>, numberings: Numberings, path: &Path) -> Self {
        Self { spill, numberings, path: path.to_path_buf(), readers: None }
    }

    /// Says that these are a part of the edges, and who has read the others. The vertices are those of all.
    pub(crate) fn of_part(self, readers: Arc<dyn Readers>) -> Self {
        Self { readers: Some(readers), ..self }
    }

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
        let mut edges = EdgeList {
            num_left,
            num_right,
            square: self.numberings.is_square(),
            left: Vec::with_capacity(num_edges),
            right: Vec::with_capacity(num_edges),
            data: Vec::with_capacity(num_edges),
        };
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
    pub(crate) fn group(self, side: Side, degree_order: bool) -> Result<(Grouped<T>, NamesOfSides), Error> {
        let degrees = self.degrees()?;
        let is_square = self.numberings.is_square();
        let orders = orders(&degrees, is_square, degree_order);
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
            Grouped::Part(DistributedEdges::new(relabeled, Arc::clone(readers), is_square, side, offsets))
        } else {
            let mut grouping = Grouping::new::<T>(self.spill.num_edges(), &offsets[side as usize])?;
            self.for_each_window(|mut ids, data| {
                relabel(&mut ids);
                grouping.add(&ids[side as usize], &ids[1 - side as usize], &data)
            })?;
            let (file, places) = grouping.finish::<T>()?;
            Grouped::All(ExternalEdges::new(file, places, is_square, side, offsets))
        };
        drop(self.spill);
        let (left, right) = self.numberings.into_dictionaries(&self.path)?;
        let names =
            (left.reorder(orders.of(0).old_of_new()), right.map(|right| right.reorder(orders.of(1).old_of_new())));
        Ok((edges, names))
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

/// The new order of each side; of both in one where the graph is square.
struct Orders {
    left: Relabeling,
    right: Option<Relabeling>,
}

impl Orders {
    fn of(&self, side: usize) -> &Relabeling {
        self.right.as_ref().filter(|_| side == 1).unwrap_or(&self.left)
    }
}

/// Orders the vertices as [`Dataset::in_degree_order`] does, or leaves them as they are.
fn orders([left, right]: &[Vec<u32>; 2], is_square: bool, degree_order: bool) -> Orders {
    match (degree_order, is_square) {
        (true, true) => Orders { left: Relabeling::by_degrees(left, right), right: None },
        (true, false) => Orders { left: Relabeling::by_degree(left), right: Some(Relabeling::by_degree(right)) },
        (false, true) => Orders { left: Relabeling::identity(left.len()), right: None },
        (false, false) => {
            Orders { left: Relabeling::identity(left.len()), right: Some(Relabeling::identity(right.len())) }
        }
    }
}

//! From edges in a temporary file, in the order of the input, to edges grouped by a side.

use std::path::PathBuf;
use std::sync::Arc;

use megagrid_partition::{EdgeList, Side, offsets_of, parallel};

use super::{DistributedEdges, ExternalEdges, Spill};
use crate::cache::EdgeData;
use crate::ids::{Ids, Window};
use crate::numbering::Numberings;
use crate::prepare::{NamesOfSides, Orders};
use crate::{Dataset, Edges, Error, Readers};

/// Edges that a process sends to others at a time.
const SENT_AT_A_TIME: usize = 1 << 19;

/// Edges in a temporary file, and how their ids become vertices.
#[derive(Debug)]
pub(crate) struct ExternalList<T> {
    pub(crate) spill: Spill<T>,
    pub(crate) numberings: Numberings,
    /// The degrees of the vertices of each side, if they are known.
    pub(crate) degrees: Option<[Vec<u32>; 2]>,
    /// What the edges were read from.
    pub(crate) path: PathBuf,
    /// The processes that have read the other edges, if these are a part. The vertices are those of all.
    pub(crate) readers: Option<Arc<dyn Readers>>,
}

impl<T: EdgeData> ExternalList<T> {
    /// Calls `visit` with each window in order: the vertices that its edges join, as `vertices` numbers those of a side, and
    /// the edges' data. While it runs, the next window is read.
    fn for_each_window(
        &self,
        vertices: impl Fn(usize, Ids) -> Vec<u32> + Sync,
        mut visit: impl FnMut([&[u32]; 2], &[T]) -> Result<(), Error> + Send,
    ) -> Result<(), Error> {
        let read = |at: usize, mut window: Window<T>| -> Result<Window<T>, Error> {
            if at < self.spill.num_windows() {
                self.spill.read_into(at, &mut window)?;
                let [left, right] = window.ids;
                window.ids = [Ids::Narrow(vertices(0, left)), Ids::Narrow(vertices(1, right))];
            }
            Ok(window)
        };
        let (mut window, mut spare) = (read(0, Window::default())?, Window::default());
        for at in 0..self.spill.num_windows() {
            let (visited, next) = parallel::join(
                || visit(window.ids.each_ref().map(Ids::entries), &window.data),
                || read(at + 1, std::mem::take(&mut spare)),
            );
            visited?;
            (window, spare) = (next?, window);
        }
        Ok(())
    }

    fn vertices(&self, side: usize, ids: Ids) -> Vec<u32> {
        self.numberings.of(side).vertices(ids)
    }

    /// Reads all edges into memory, those of other processes as well.
    pub(crate) fn into_dataset(self) -> Result<Dataset<T>, Error> {
        let num_vertices = [0, 1].map(|side| self.numberings.of(side).len());
        let ([num_left, num_right], square) = (num_vertices, self.numberings.is_square());
        let mut edges = EdgeList { num_left, num_right, square, ..EdgeList::with_capacity(self.spill.num_edges()) };
        let mut push = |[left, right]: [&[u32]; 2], data: &[T]| {
            edges.left.extend_from_slice(left);
            edges.right.extend_from_slice(right);
            edges.data.extend_from_slice(data);
        };
        if let Some(readers) = &self.readers {
            let mut windows = 0..self.spill.num_windows();
            let next = || -> Result<_, Error> {
                let Some(at) = windows.next() else { return Ok(None) };
                let Window { ids: [left, right], data } = self.spill.read(at)?;
                let [left, right] = [self.vertices(0, left), self.vertices(1, right)];
                Ok(Some(Window::pack([&left, &right], &data, &(0..data.len()).collect::<Vec<_>>())))
            };
            let take = |piece: &[u8]| {
                let window = Window::unpack(piece, num_vertices).map_err(Error::io(&self.path))?;
                push(window.ids.each_ref().map(Ids::entries), &window.data);
                Ok(())
            };
            readers.in_turn(next, take, |error| Error::io(&self.path)(error))?;
        } else {
            self.for_each_window(
                |side, ids| self.vertices(side, ids),
                |ids, data| {
                    push(ids, data);
                    Ok(())
                },
            )?;
        }
        let (left_names, right_names) = self.numberings.into_dictionaries(&self.path)?;
        Ok(Dataset { edges, left_names, right_names })
    }

    /// Groups the edges by the vertices of `side`, in descending order of degree if `degree_order`.
    pub(crate) fn group(mut self, side: Side, degree_order: bool) -> Result<(Edges<T>, NamesOfSides), Error> {
        let degrees = self.degrees.take().map_or_else(|| self.count(), Ok)?;
        let is_square = self.numberings.is_square();
        let orders = Orders::new(&degrees, is_square, degree_order);
        let offsets = [0, 1].map(|side| {
            let old = orders.of(side).old_of_new();
            offsets_of(&old.iter().map(|&old| degrees[side][old as usize]).collect::<Vec<_>>())
        });
        drop(degrees);
        let numbers = [0, 1].map(|side| self.numberings.of(side).then(orders.of(side).new_of_old()));
        let vertices = |side: usize, ids| numbers[side].vertices(ids);
        let edges = if let Some(readers) = &self.readers {
            let mut relabeled = Spill::new()?;
            self.for_each_window(vertices, |ids, data| {
                (0..data.len()).step_by(SENT_AT_A_TIME).try_for_each(|start| {
                    let piece = start..data.len().min(start + SENT_AT_A_TIME);
                    let ids = ids.map(|ids| Ids::Narrow(ids[piece.clone()].to_vec()));
                    relabeled.push(&[Window { ids, data: data[piece].to_vec() }])
                })
            })?;
            Edges::Distributed(DistributedEdges::new(relabeled, Arc::clone(readers), is_square, side, offsets))
        } else {
            Edges::External(ExternalEdges::new(self.spill, vertices, is_square, side, offsets)?)
        };
        drop(numbers);
        let (left, right) = self.numberings.into_dictionaries(&self.path)?;
        Ok((edges, orders.reorder(left, right)))
    }

    /// Counts the degrees of the vertices of each side.
    fn count(&self) -> Result<[Vec<u32>; 2], Error> {
        let mut degrees = [0, 1].map(|side| vec![0_u32; self.numberings.of(side).len()]);
        let count = |degrees: &mut [u32], ids: &[u32]| ids.iter().for_each(|&id| degrees[id as usize] += 1);
        self.for_each_window(
            |side, ids| self.vertices(side, ids),
            |ids, _| {
                let [left, right] = &mut degrees;
                parallel::join(|| count(left, ids[0]), || count(right, ids[1]));
                Ok(())
            },
        )?;
        if let Some(readers) = &self.readers {
            degrees.iter_mut().try_for_each(|degrees| readers.sum(degrees)).map_err(Error::io(&self.path))?;
        }
        Ok(degrees)
    }
}

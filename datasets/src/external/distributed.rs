//! Edges of which several processes have read a part each, until they are with those that hold them.

use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use megagrid_partition::{EdgeSource, Holders, Side, offsets_of, parallel};

use super::{ExternalEdges, Spill};
use crate::Readers;
use crate::cache::EdgeData;
use crate::checksum::hash;
use crate::ids::{Ids, Window};

/// Edges of a text that several processes have read together. [`EdgeSource::distribute`] sends them where they are needed;
/// from then on each process can visit those that it holds, grouped by one side, in a temporary file.
#[derive(Debug)]
pub struct DistributedEdges<T> {
    /// What this process has read, under final ids.
    read: Spill<T>,
    /// What it holds, and a checksum of who holds what it has read.
    held: OnceLock<(ExternalEdges<T>, u64)>,
    readers: Arc<dyn Readers>,
    is_square: bool,
    side: Side,
    /// Of all edges, of the left and of the right side.
    offsets: [Vec<u64>; 2],
}

impl<T: EdgeData> DistributedEdges<T> {
    pub(super) fn new(
        read: Spill<T>,
        readers: Arc<dyn Readers>,
        is_square: bool,
        side: Side,
        offsets: [Vec<u64>; 2],
    ) -> Self {
        Self { read, held: OnceLock::new(), readers, is_square, side, offsets }
    }

    /// Returns the processes that have read the edges.
    pub(crate) fn readers(&self) -> &dyn Readers {
        &*self.readers
    }

    /// Calls `visit` with the left ends, the right ends and the data of the edges that this process has read.
    pub(crate) fn visit_read(&self, mut visit: impl FnMut(&[u32], &[u32], &[T])) -> io::Result<()> {
        for at in 0..self.read.num_windows() {
            let Window { ids: [left, right], data } = self.read.read(at).map_err(io::Error::other)?;
            visit(&left.into_entries(), &right.into_entries(), &data);
        }
        Ok(())
    }

    /// Returns the rounds in which all send what they have read, window by window.
    fn rounds(&self) -> io::Result<usize> {
        let windows = self.readers.gather_numbers([self.read.num_windows() as u64])?;
        Ok(windows.into_iter().map(|[windows]| windows as usize).max().unwrap_or(0))
    }

    /// Counts the pairs of vertices with an edge that `counts`. Each process counts those of some right vertices.
    pub(crate) fn num_pairs(&self, counts: impl Fn(&T) -> bool) -> io::Result<u64> {
        let processes = self.readers.processes();
        let (mut mine, mut settled) = (Vec::<u64>::new(), 0);
        for at in 0..self.rounds()? {
            let mut parts = vec![Vec::<u64>::new(); processes];
            if at < self.read.num_windows() {
                let Window { ids: [left, right], data } = self.read.read(at).map_err(io::Error::other)?;
                for ((left, right), data) in left.into_entries().into_iter().zip(right.into_entries()).zip(&data) {
                    if counts(data) {
                        parts[right as usize % processes].push(u64::from(left) << 32 | u64::from(right));
                    }
                }
            }
            let parts = parts.iter().map(|part| bytemuck::cast_slice(part).to_vec()).collect();
            for bytes in self.readers.exchange(parts)? {
                mine.extend(bytemuck::pod_collect_to_vec::<u8, u64>(&bytes));
            }
            if mine.len() > 2 * settled {
                mine.sort_unstable();
                mine.dedup();
                settled = mine.len();
            }
        }
        mine.sort_unstable();
        mine.dedup();
        let mut number = [mine.len() as u64];
        self.readers.sum(&mut number)?;
        Ok(number[0])
    }

    /// Sends what was read to its holders, window by window; returns what came, in the order of the input.
    fn exchange(&self, holders: Holders<'_>) -> io::Result<Spill<T>> {
        let read = &self.read;
        let num_vertices = self.offsets.each_ref().map(|offsets| offsets.len() - 1);
        let (mut held, mut senders) = (Spill::new().map_err(io::Error::other)?, Vec::new());
        for at in 0..self.rounds()? {
            let is_there = at < read.num_windows();
            let window = if is_there { read.read(at).map_err(io::Error::other)? } else { Window::default() };
            let arrived = self.readers.exchange(deal(window, holders, self.readers.processes()))?;
            for (sender, bytes) in arrived.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
                held.push(&[Window::unpack(bytes, num_vertices)?]).map_err(io::Error::other)?;
                senders.push(sender);
            }
        }
        held.sort_windows(&senders);
        Ok(held)
    }

    fn held(&self) -> io::Result<&ExternalEdges<T>> {
        let early = || io::Error::other("the edges are with the processes that read them");
        self.held.get().map(|(held, _)| held).ok_or_else(early)
    }

    fn group(&self, held: Spill<T>) -> Result<ExternalEdges<T>, crate::Error> {
        let side = self.side as usize;
        let mut degrees = vec![0_u32; self.offsets[side].len() - 1];
        for at in 0..held.num_windows() {
            held.read(at)?.ids[side].entries().iter().for_each(|&id| degrees[id as usize] += 1);
        }
        let mut offsets = [Vec::new(), Vec::new()];
        offsets[side] = offsets_of(&degrees);
        ExternalEdges::new(held, |_, ids| ids.replace(|id| id as u32), self.is_square, self.side, offsets)
    }
}

impl<T: EdgeData> EdgeSource<T> for DistributedEdges<T> {
    fn is_square(&self) -> bool {
        self.is_square
    }

    fn offsets(&self, side: Side) -> &[u64] {
        &self.offsets[side as usize]
    }

    fn held_offsets(&self) -> &[u64] {
        self.held.get().map_or(&[0], |(held, _)| held.offsets(Side::Right))
    }

    fn distribute(&self, holders: Holders<'_>) -> io::Result<()> {
        let mut checksum = 0_u64;
        self.visit_read(|left, right, _| {
            let of_edge = |edge: usize| {
                let (left, right) = (left[edge], right[edge]);
                let [first, second] =
                    holders(left, right).map(|holder| holder.map_or(0, |holder| 1 + u32::from(holder)));
                hash(left, right, first << 16 ^ second)
            };
            checksum = parallel::fill(left.len(), of_edge).into_iter().fold(checksum, u64::wrapping_add);
        })?;
        if let Some((_, before)) = self.held.get() {
            let same = self.readers.gather_numbers([u64::from(*before == checksum)])?;
            let elsewhere = || io::Error::other("the edges are with other processes already; read the input again");
            return if same.into_iter().all(|[same]| same == 1) { Ok(()) } else { Err(elsewhere()) };
        }
        let grouped = self.group(self.exchange(holders)?).map_err(io::Error::other)?;
        let _ = self.held.set((grouped, checksum));
        Ok(())
    }

    fn windows(&self) -> Vec<Range<usize>> {
        self.held.get().map_or(Vec::new(), |(held, _)| held.windows())
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[T])) -> io::Result<()> {
        self.held()?.visit_rows(side, rows, visit)
    }

    fn visit_ends(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[u64])) -> io::Result<()> {
        self.held()?.visit_ends(rows, visit)
    }
}

/// Deals edges to their holders: for each process the left ends, the right ends and the data, as bytes.
fn deal<T: EdgeData>(window: Window<T>, holders: Holders<'_>, processes: usize) -> Vec<Vec<u8>> {
    let Window { ids, data } = window;
    let [left, right] = ids.map(Ids::into_entries);
    let to: Vec<[Option<u16>; 2]> = parallel::fill(left.len(), |edge| holders(left[edge], right[edge]));
    let part = |process: usize| {
        let mine: Vec<usize> = (0..to.len()).filter(|&edge| to[edge].contains(&Some(process as u16))).collect();
        Window::pack([&left, &right], &data, &mine)
    };
    parallel::map(processes, part)
}

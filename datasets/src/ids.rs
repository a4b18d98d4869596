//! Ids as they stand in a text, before they become vertices.

use std::io;

use megagrid_partition::parallel;

use crate::cache::EdgeData;
use crate::readers::misfit;

/// Integer ids, or entries of a name table.
#[derive(Clone, Debug)]
pub(crate) enum Ids {
    Narrow(Vec<u32>),
    /// From the first id on that needs more than 32 bits.
    Wide(Vec<u64>),
}

impl Default for Ids {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

/// Ids that one thread goes through at a time.
const AT_A_TIME: usize = 1 << 16;

fn max<T: Copy + Ord + Send + Sync>(ids: &[T]) -> Option<T> {
    let chunks: Vec<_> = ids.chunks(AT_A_TIME).collect();
    parallel::map(chunks.len(), |at| chunks[at].iter().copied().max()).into_iter().max().flatten()
}

impl Ids {
    #[inline]
    pub(crate) fn push(&mut self, id: u64) {
        if let Self::Narrow(ids) = self {
            match u32::try_from(id) {
                Ok(id) => return ids.push(id),
                Err(_) => self.widen(),
            }
        }
        if let Self::Wide(ids) = self {
            ids.push(id);
        }
    }

    pub(crate) fn get(&self, at: usize) -> u64 {
        match self {
            Self::Narrow(ids) => u64::from(ids[at]),
            Self::Wide(ids) => ids[at],
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(ids) => ids.len(),
            Self::Wide(ids) => ids.len(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Narrow(ids) => size_of_val(&ids[..]),
            Self::Wide(ids) => size_of_val(&ids[..]),
        }
    }

    /// Returns the largest id, 0 if there is none.
    pub(crate) fn max(&self) -> u64 {
        match self {
            Self::Narrow(ids) => max(ids).map_or(0, u64::from),
            Self::Wide(ids) => max(ids).unwrap_or(0),
        }
    }

    fn widen(&mut self) {
        if let Self::Narrow(ids) = self {
            *self = Self::Wide(ids.iter().map(|&id| u64::from(id)).collect());
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        if self.len() == 0 {
            *self = other;
            return;
        }
        if matches!(other, Self::Wide(_)) {
            self.widen();
        }
        match (self, other) {
            (Self::Narrow(ids), Self::Narrow(more)) => ids.extend_from_slice(&more),
            (Self::Wide(ids), Self::Narrow(more)) => ids.extend(more.into_iter().map(u64::from)),
            (Self::Wide(ids), Self::Wide(more)) => ids.extend_from_slice(&more),
            (Self::Narrow(_), Self::Wide(_)) => unreachable!("widened above"),
        }
    }

    /// Replaces entries of one name table by those of another; nothing to do for integers, which have none.
    pub(crate) fn rename(&mut self, entries: &[u32]) {
        if let (Self::Narrow(ids), false) = (self, entries.is_empty()) {
            ids.iter_mut().for_each(|id| *id = entries[*id as usize]);
        }
    }

    /// Replaces ids by what `vertex` returns for them, on all threads.
    pub(crate) fn map(self, vertex: impl Fn(u64) -> u32 + Sync) -> Vec<u32> {
        match self {
            Self::Narrow(mut ids) => {
                parallel::each_chunk(&mut ids, AT_A_TIME, |_, ids| {
                    ids.iter_mut().for_each(|id| *id = vertex(u64::from(*id)))
                });
                ids
            }
            Self::Wide(ids) => parallel::fill(ids.len(), |at| vertex(ids[at])),
        }
    }

    /// Replaces ids by what `vertex` returns for them, on this thread.
    pub(crate) fn replace(self, vertex: impl Fn(u64) -> u32) -> Vec<u32> {
        match self {
            Self::Narrow(mut ids) => {
                ids.iter_mut().for_each(|id| *id = vertex(u64::from(*id)));
                ids
            }
            Self::Wide(ids) => ids.into_iter().map(vertex).collect(),
        }
    }

    /// Returns the ids where they are vertices.
    pub(crate) fn entries(&self) -> &[u32] {
        match self {
            Self::Narrow(entries) => entries,
            Self::Wide(_) => unreachable!("vertices have 32 bits"),
        }
    }

    /// Returns the entries of a name table.
    pub(crate) fn into_entries(self) -> Vec<u32> {
        match self {
            Self::Narrow(mut entries) => {
                entries.shrink_to_fit();
                entries
            }
            Self::Wide(_) => unreachable!("entries have 32 bits"),
        }
    }
}

/// Edges whose ends are integers of the text or codes of names, for each column.
#[derive(Debug, Default)]
pub(crate) struct Window<T> {
    pub(crate) ids: [Ids; 2],
    pub(crate) data: Vec<T>,
}

impl<T> Window<T> {
    pub(crate) fn append(&mut self, [left, right]: [Ids; 2], data: Vec<T>) {
        self.ids[0].append(left);
        self.ids[1].append(right);
        self.data.extend(data);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ids[0].bytes() + self.ids[1].bytes() + size_of_val(&self.data[..])
    }
}

impl<T: Copy> Window<T> {
    /// Has each edge be followed by the same one the other way, unless it is from a vertex to itself.
    pub(crate) fn both_ways(self) -> Self {
        let [left, right] = self.ids;
        let mut both = Self { ids: Default::default(), data: Vec::with_capacity(2 * self.data.len()) };
        for (at, data) in self.data.into_iter().enumerate() {
            let ends = [left.get(at), right.get(at)];
            both.push(ends, data);
            if ends[0] != ends[1] {
                both.push([ends[1], ends[0]], data);
            }
        }
        both
    }

    fn push(&mut self, ends: [u64; 2], data: T) {
        self.ids.iter_mut().zip(ends).for_each(|(ids, end)| ids.push(end));
        self.data.push(data);
    }
}

/// Edges between vertices as bytes, to be sent to another process.
impl<T: EdgeData> Window<T> {
    /// Returns the left ends, the right ends and the data of the edges at some places.
    pub(crate) fn pack(ends: [&[u32]; 2], data: &[T], edges: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(edges.len() * Self::BYTES_OF_EDGE);
        for ends in ends {
            edges.iter().for_each(|&edge| bytes.extend_from_slice(&ends[edge].to_ne_bytes()));
        }
        let data: Vec<T> = edges.iter().map(|&edge| data[edge]).collect();
        bytes.extend_from_slice(T::to_bytes(&data));
        bytes
    }

    /// Reads what was packed; no end is at or above the number of vertices of its side.
    pub(crate) fn unpack(bytes: &[u8], num_vertices: [usize; 2]) -> io::Result<Self> {
        let num_edges = bytes.len() / Self::BYTES_OF_EDGE;
        let mut left: Vec<u32> = bytemuck::pod_collect_to_vec(bytes);
        if left.len() * size_of::<u32>() != num_edges * Self::BYTES_OF_EDGE {
            return Err(misfit());
        }
        let data = left.split_off(2 * num_edges);
        let right = left.split_off(num_edges);
        let are_ids = |ids: &[u32], side: usize| ids.iter().all(|&id| (id as usize) < num_vertices[side]);
        if !are_ids(&left, 0) || !are_ids(&right, 1) {
            return Err(misfit());
        }
        let data = T::from_bytes(bytemuck::cast_slice(&data), num_edges)?.into_owned();
        Ok(Self { ids: [Ids::Narrow(left), Ids::Narrow(right)], data })
    }

    const BYTES_OF_EDGE: usize = 2 * size_of::<u32>() + T::TYPE.bytes() as usize;
}

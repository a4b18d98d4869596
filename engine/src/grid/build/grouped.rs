//! Columns in grouped form.

use std::borrow::Cow;
use std::ops::Range;

use megagrid_partition::Side;
use megagrid_stages::Store;

use super::bring::{Built, Take};
use super::values::Values;
use super::{Build, Id, Listed, RowOrder, position};
use crate::Error;

impl<T: Copy + Send + Sync, S: Store + ?Sized> Build<'_, T, S> {
    /// Builds the columns of some shards.
    pub(super) fn grouped<I: Id>(&self, shards: &[usize], take: Take<'_, I, S::Item>) -> Result<(), Error> {
        let (right, windows) = (&self.plan.right, self.source.windows());
        let offsets = self.source.held_offsets();
        let begin = |shard: usize| {
            let ids = right.rows(shard).map(|row| self.orders[1].id(row));
            let edges: u64 = ids.map(|id| offsets[id + 1] - offsets[id]).sum();
            Gathered::new(right.rows(shard).len(), if self.plan.is_distributed() { 0 } else { edges as usize })
        };
        if let RowOrder::Natural(_) = self.orders[1] {
            for &shard in shards {
                let mut gathered = [begin(shard)];
                if self.plan.placement.uses(self.plan.processes.this, Side::Right, shard) {
                    let rows = right.rows(shard);
                    for window in &windows {
                        let rows = rows.start.max(window.start)..rows.end.min(window.end);
                        if !rows.is_empty() {
                            self.gather(rows, &mut gathered, |_| Some(0))?;
                        }
                    }
                }
                let [gathered] = gathered;
                take(shard, self.column(shard, &gathered)?)?;
            }
            return Ok(());
        }
        // Vertices of a shard lie anywhere among the source's rows.
        let mut place = vec![None; right.num_shards()];
        shards.iter().enumerate().for_each(|(n, &shard)| place[shard] = Some(n));
        let mut gathered: Vec<_> = shards.iter().map(|&shard| begin(shard)).collect();
        let shard_of = |id| right.bounds.partition_point(|&bound| bound <= self.orders[1].row(id)) - 1;
        for rows in windows {
            self.gather(rows, &mut gathered, |id| place[shard_of(id)])?;
        }
        for (&shard, gathered) in shards.iter().zip(gathered) {
            take(shard, self.column(shard, &gathered)?)?;
        }
        Ok(())
    }

    /// Appends the edges of the source's vertices `ids` to what `into` names.
    fn gather(
        &self,
        ids: Range<usize>,
        gathered: &mut [Gathered<T>],
        into: impl Fn(usize) -> Option<usize>,
    ) -> Result<(), Error> {
        let offsets = self.source.held_offsets();
        let first = offsets[ids.start];
        self.source.visit_rows(Side::Right, ids.clone(), &mut |targets, data| {
            for id in ids.clone() {
                let Some(n) = into(id) else { continue };
                let span = (offsets[id] - first) as usize..(offsets[id + 1] - first) as usize;
                let row = self.orders[1].row(id);
                gathered[n].push(row, &targets[span.clone()], &data[span], &self.orders[0]);
                if self.plan.is_distributed() {
                    gathered[n].keep_held(|left| self.holds(left, row));
                }
            }
        })?;
        Ok(())
    }

    fn column<I: Id>(&self, shard: usize, gathered: &Gathered<T>) -> Result<Built<I, S::Item>, Error> {
        let (rows, left_bounds) = (self.plan.right.rows(shard), self.plan.block_bounds());
        // No row is beyond the last one, and no vertex's edges end beyond the last ones.
        position("right rows", rows.end)?;
        position("edges", gathered.left.len())?;
        let mut edges = Listed::new(rows.len(), true);
        let (mut values, mut spare) = (Values::<T, S>::new(self.fill, &gathered.data)?, Vec::new());
        edges.reserve(gathered.left.len());
        for layer in 0..self.plan.layers {
            let layer = gathered.layer(self.plan.layers, |left, right| self.layer_of(left, right) == layer);
            let mut blocks = layer.segments(&left_bounds, rows.start);
            for (left, segments) in blocks.iter_mut().enumerate() {
                by_degree(segments, &mut spare);
                let vertices = segments.iter().map(|s| (s.right as usize, &layer.left[s.edges()]));
                edges.push_grouped(left_bounds[left]..left_bounds[left + 1], vertices);
                segments.iter().for_each(|segment| values.extend(&layer.data[segment.edges()]));
                values.end_block();
            }
        }
        Ok(values.of(edges))
    }
}

/// The edges of a right shard, grouped by right vertex, left rows ascending.
#[derive(Clone)]
struct Gathered<T> {
    left: Vec<u32>,
    data: Vec<T>,
    vertices: Vec<Vertex>,
}

/// A right vertex of a shard.
#[derive(Clone)]
struct Vertex {
    row: u32,
    end: u32,
}

/// The edges of one right vertex in one block.
#[derive(Clone)]
struct Segment {
    right: u32,
    /// Where they are: as 32 bits each, since vertices of small degree make nearly as many segments as edges.
    ends: Range<u32>,
}

impl Segment {
    fn edges(&self) -> Range<usize> {
        self.ends.start as usize..self.ends.end as usize
    }
}

/// Returns how many of ascending ends are below a bound.
fn ends_before(ends: &[u32], bound: usize) -> usize {
    /// With fewer, a search takes longer than looking at each.
    const FEW: usize = 16;
    if ends.len() < FEW {
        return ends.iter().position(|&end| end as usize >= bound).unwrap_or(ends.len());
    }
    ends.partition_point(|&end| (end as usize) < bound)
}

/// Puts vertices with equally many edges side by side, in descending order of how many, those with equally many in their order:
/// the walk's inner loops then have predictable lengths. `spare` is overwritten.
fn by_degree(segments: &mut Vec<Segment>, spare: &mut Vec<Segment>) {
    /// Degrees that are told apart by counting; larger ones are rare.
    const DEGREES: usize = 256;
    let class = |segment: &Segment| DEGREES - segment.ends.len().min(DEGREES);
    let mut next = [0; DEGREES];
    segments.iter().for_each(|segment| next[class(segment)] += 1);
    let large = next[0];
    let mut start = 0;
    next.iter_mut().for_each(|next| start += std::mem::replace(next, start));
    spare.clone_from(segments);
    for segment in spare.iter() {
        let next = &mut next[class(segment)];
        segments[*next] = segment.clone();
        *next += 1;
    }
    segments[..large].sort_by_key(|segment| std::cmp::Reverse(segment.ends.len()));
}

/// Returns the rows of targets in ascending order, each with its place among the targets, which orders equal ones.
fn by_row(targets: &[u32], row_of: &[u32]) -> Vec<(u32, u32)> {
    let mut rows: Vec<_> = targets.iter().zip(0..).map(|(&id, place)| (row_of[id as usize], place)).collect();
    rows.sort_unstable();
    rows
}

impl<T: Copy> Gathered<T> {
    /// Makes room for vertices, and for edges.
    fn new(rows: usize, edges: usize) -> Self {
        let (left, data) = (Vec::with_capacity(edges), Vec::with_capacity(edges));
        Self { left, data, vertices: Vec::with_capacity(rows) }
    }

    /// Drops those edges of the last vertex that are not held, by their left rows.
    fn keep_held(&mut self, is_held: impl Fn(usize) -> bool) {
        let begin = self.vertices.iter().nth_back(1).map_or(0, |vertex| vertex.end as usize);
        let mut end = begin;
        for edge in begin..self.left.len() {
            if is_held(self.left[edge] as usize) {
                self.left[end] = self.left[edge];
                self.data[end] = self.data[edge];
                end += 1;
            }
        }
        self.left.truncate(end);
        self.data.truncate(end);
        if let Some(vertex) = self.vertices.last_mut() {
            vertex.end = end as u32;
        }
    }

    fn push(&mut self, row: usize, targets: &[u32], data: &[T], left: &RowOrder) {
        match left {
            RowOrder::Natural(_) => {
                self.left.extend_from_slice(targets);
                self.data.extend_from_slice(data);
            }
            RowOrder::Shuffled(order) => {
                let rows = by_row(targets, order.new_of_old());
                self.left.extend(rows.iter().map(|&(row, _)| row));
                self.data.extend(rows.iter().map(|&(_, place)| data[place as usize]));
            }
        }
        self.vertices.push(Vertex { row: row as u32, end: self.left.len() as u32 });
    }

    /// Returns the edges that `is_in` one layer of several.
    fn layer(&self, layers: usize, is_in: impl Fn(usize, usize) -> bool) -> Cow<'_, Self> {
        if layers == 1 {
            return Cow::Borrowed(self);
        }
        let mut part = Self::new(self.vertices.len(), 0);
        let mut begin = 0;
        for vertex in &self.vertices {
            for edge in begin..vertex.end as usize {
                if is_in(self.left[edge] as usize, vertex.row as usize) {
                    part.left.push(self.left[edge]);
                    part.data.push(self.data[edge]);
                }
            }
            part.vertices.push(Vertex { end: part.left.len() as u32, ..vertex.clone() });
            begin = vertex.end as usize;
        }
        Cow::Owned(part)
    }

    /// Cuts each vertex's edges at the left shards' boundaries.
    fn segments(&self, left_bounds: &[usize], first_row: usize) -> Vec<Vec<Segment>> {
        let mut blocks: Vec<Vec<Segment>> = (1..left_bounds.len()).map(|_| Vec::new()).collect();
        let mut begin = 0;
        for vertex in &self.vertices {
            let end = vertex.end as usize;
            let mut shard = 0;
            while begin < end {
                while self.left[begin] as usize >= left_bounds[shard + 1] {
                    shard += 1;
                }
                let next = begin + ends_before(&self.left[begin..end], left_bounds[shard + 1]);
                blocks[shard].push(Segment { right: vertex.row - first_row as u32, ends: begin as u32..next as u32 });
                begin = next;
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use megagrid_partition::SplitMix;

    use super::*;

    #[test]
    fn degrees_descend_and_equal_ones_keep_their_order() {
        let mut random = SplitMix::new(1, 0);
        for largest in [1, 3, 200, 255, 256, 257, 1000] {
            let segment = |right| Segment { right, ends: right..right + 1 + random.below(largest) as u32 };
            let mut segments: Vec<Segment> = (0..500).map(segment).collect();
            let mut expected = segments.clone();
            expected.sort_by_key(|segment| std::cmp::Reverse(segment.ends.len()));
            by_degree(&mut segments, &mut Vec::new());
            assert!(segments.iter().zip(&expected).all(|(found, expected)| found.right == expected.right), "{largest}");
        }
    }
}

//! Columns in pair form: workers count the edges of each block, deal windows of edges to columns in turn, place those of their
//! own columns where they stay, and shuffle blocks.

use std::ops::Range;
use std::sync::Mutex;

use megagrid_partition::parallel::lock;
use megagrid_partition::{Side, SplitMix};
use megagrid_stages::Store;

use super::bring::{Built, Group, groups_of};
use super::values::Values;
use super::{Build, Edges, Id, Listed, LocalEdges, on_workers};
use crate::Error;
use crate::machine::os::AlignedBuffer;

/// The shard and the local id of each vertex by its id, left and right.
type Places = [Vec<(u32, u32)>; 2];

/// Edges of a column from a window of the source, in its order.
struct Part<I, T> {
    /// Ids of the left ends.
    left: Vec<u32>,
    /// Local ids of the right ends.
    right: Vec<I>,
    values: Vec<T>,
}

/// A column that is being filled.
struct Filling<I, T, S: Store + ?Sized> {
    /// Where each block begins, and the number of edges.
    bounds: Vec<usize>,
    /// Where the next edge of each block goes.
    next: Vec<usize>,
    left: Vec<I>,
    right: Vec<I>,
    /// Data in slices: the source's values, until all edges are placed.
    values: Vec<T>,
    /// Data of one item.
    items: AlignedBuffer<S::Item>,
}

impl<T: Copy + Send + Sync, S: Store + ?Sized> Build<'_, T, S> {
    pub(super) fn pairs<I: Id>(&self) -> Result<Vec<Group<S::Item>>, Error>
    where
        Edges: From<LocalEdges<I>>,
    {
        let places = self.places();
        let (windows, workers) = (self.source.windows(), self.plan.local_workers());
        let counted = on_workers(self.plan, |worker| {
            self.count(windows.iter().skip(worker - workers.start).step_by(workers.len()), &places)
        });
        let mut bounds = vec![vec![0; self.num_blocks() + 1]; self.plan.right.num_shards()];
        for counts in counted {
            let all = bounds.iter_mut().flat_map(|bounds| &mut bounds[1..]);
            all.zip(counts?).for_each(|(bound, count)| *bound += count as usize);
        }
        let begin = |bounds| Filling::new(bounds).map(|filling| Mutex::new(Some(filling)));
        let columns: Vec<Mutex<Option<Filling<I, T, S>>>> = bounds.into_iter().map(begin).collect::<Result<_, _>>()?;
        for windows in windows.chunks(workers.len()) {
            let dealt = on_workers(self.plan, |worker| match windows.get(worker - workers.start) {
                Some(window) => self.deal::<I>(window, &places),
                None => Ok(Vec::new()),
            });
            let dealt = dealt.into_iter().collect::<Result<Vec<_>, Error>>()?;
            on_workers(self.plan, |worker| {
                for shard in self.shards(worker) {
                    if let Some(filling) = &mut *lock(&columns[shard]) {
                        dealt.iter().filter_map(|parts| parts.get(shard)).for_each(|part| {
                            self.place(shard, filling, part, &places);
                        });
                    }
                }
            });
        }
        groups_of(self.plan, &|worker, take| {
            for shard in self.shards(worker) {
                let filling = lock(&columns[shard]).take();
                filling.map_or(Ok(()), |filling| take(shard, self.finish(shard, filling)?))?;
            }
            Ok(())
        })
    }

    fn places(&self) -> Places {
        let (left, right) = (&self.plan.left, &self.plan.right);
        [(left, &self.orders[0]), (right, &self.orders[1])].map(|(shape, order)| {
            let mut places = vec![(0, 0); order.len()];
            for shard in 0..shape.num_shards() {
                let ids = shape.rows(shard).map(|row| order.id(row));
                ids.zip(0..).for_each(|(id, local)| places[id] = (shard as u32, local));
            }
            places
        })
    }

    /// Returns the rows of the ends of an edge, given their places.
    fn rows(&self, left: (u32, u32), right: (u32, u32)) -> [usize; 2] {
        let rows = [(&self.plan.left, left), (&self.plan.right, right)];
        rows.map(|(shape, (shard, local))| shape.bounds[shard as usize] + local as usize)
    }

    fn is_held(&self, left: (u32, u32), right: (u32, u32)) -> bool {
        let [left, right] = self.rows(left, right);
        self.holds(left, right)
    }

    /// Returns the number of blocks of a column.
    fn num_blocks(&self) -> usize {
        self.plan.layers * self.plan.left.num_shards()
    }

    /// Returns the block of an edge in its column, given the places of its ends.
    fn block(&self, left: (u32, u32), right: (u32, u32)) -> usize {
        let [left_row, right_row] = self.rows(left, right);
        self.layer_of(left_row, right_row) * self.plan.left.num_shards() + left.0 as usize
    }

    /// Counts the edges of each block of each column in some windows.
    fn count<'w>(&self, windows: impl Iterator<Item = &'w Range<usize>>, places: &Places) -> Result<Vec<u32>, Error> {
        let mut counts = vec![0; self.plan.right.num_shards() * self.num_blocks()];
        for window in windows {
            self.source.visit_ends(window.clone(), &mut |ends| {
                for &ends in ends {
                    let [left, right] = [places[0][ends as u32 as usize], places[1][(ends >> 32) as usize]];
                    let block = right.0 as usize * self.num_blocks() + self.block(left, right);
                    counts[block] += u32::from(self.is_held(left, right));
                }
            })?;
        }
        Ok(counts)
    }

    /// Deals the edges of a window to columns.
    fn deal<I: Id>(&self, window: &Range<usize>, places: &Places) -> Result<Vec<Part<I, T>>, Error> {
        let part = |_| Part { left: Vec::new(), right: Vec::new(), values: Vec::new() };
        let mut parts: Vec<Part<I, T>> = (0..self.plan.right.num_shards()).map(part).collect();
        let offsets = self.source.held_offsets();
        self.source.visit_rows(Side::Right, window.clone(), &mut |lefts, data| {
            for id in window.clone() {
                let span = [id, id + 1].map(|at| (offsets[at] - offsets[window.start]) as usize);
                let (lefts, data) = (&lefts[span[0]..span[1]], &data[span[0]..span[1]]);
                let right = places[1][id];
                let part = &mut parts[right.0 as usize];
                if !self.plan.is_distributed() {
                    part.left.extend_from_slice(lefts);
                    part.values.extend_from_slice(data);
                } else {
                    let is_held = |left: u32| self.is_held(places[0][left as usize], right);
                    for (&left, &value) in lefts.iter().zip(data).filter(|(left, _)| is_held(**left)) {
                        part.left.push(left);
                        part.values.push(value);
                    }
                }
                part.right.resize(part.left.len(), local(right.1 as usize));
            }
        })?;
        Ok(parts)
    }

    /// Places the next edges of a column.
    fn place<I: Id>(&self, shard: usize, filling: &mut Filling<I, T, S>, part: &Part<I, T>, places: &Places) {
        let Filling { next, left: into_left, right: into_right, values, items, .. } = filling;
        let mut at = Vec::with_capacity(part.left.len());
        for (&id, &right) in part.left.iter().zip(&part.right) {
            let left = places[0][id as usize];
            let next = &mut next[self.block(left, (shard as u32, right.index() as u32))];
            (into_left[*next], into_right[*next]) = (local(left.1 as usize), right);
            at.push(*next);
            *next += 1;
        }
        if !S::SHAPE.is_slice() {
            return at.iter().zip(self.fill.items(&part.values)).for_each(|(&at, item)| items[at] = item);
        }
        if let (true, Some(&any)) = (values.is_empty(), part.values.first()) {
            *values = vec![any; into_left.len()];
        }
        at.iter().zip(&part.values).for_each(|(&at, value)| values[at] = *value);
    }

    /// Shuffles the blocks of a column whose edges have been placed.
    fn finish<I: Id>(&self, shard: usize, filling: Filling<I, T, S>) -> Result<Built<I, S::Item>, Error> {
        let Filling { bounds, mut left, mut right, mut values, mut items, .. } = filling;
        let (in_slices, random) = (S::SHAPE.is_slice(), random_of(self.seed, shard));
        if in_slices {
            shuffle(&bounds, &mut left, &mut right, &mut values, random);
        } else {
            shuffle(&bounds, &mut left, &mut right, &mut items, random);
        }
        let left_rows = |block| self.plan.left.rows(block % self.plan.left.num_shards()).len();
        let left_rows: Vec<usize> = (0..bounds.len() - 1).map(left_rows).collect();
        let edges = Listed::from_pairs(&left_rows, self.plan.right.rows(shard).len(), &bounds, left, right);
        if !in_slices {
            return Ok(Built { edges, items, bounds });
        }
        let mut filled = Values::<T, S>::new(self.fill, &values)?;
        for block in bounds.windows(2) {
            filled.extend(&values[block[0]..block[1]]);
            filled.end_block();
        }
        Ok(filled.of(edges))
    }
}

impl<I: Id, T, S: Store + ?Sized> Filling<I, T, S> {
    /// Makes room for blocks of these numbers of edges, which come after a 0.
    fn new(mut bounds: Vec<usize>) -> Result<Self, Error> {
        (1..bounds.len()).for_each(|block| bounds[block] += bounds[block - 1]);
        let edges = bounds[bounds.len() - 1];
        let items = AlignedBuffer::zeroed(if S::SHAPE.is_slice() { 0 } else { edges })?;
        let (left, right) = (vec![local(0); edges], vec![local(0); edges]);
        Ok(Self { next: bounds[..bounds.len() - 1].to_vec(), bounds, left, right, values: Vec::new(), items })
    }
}

/// Returns what blocks of a column are shuffled by.
fn random_of(seed: u64, shard: usize) -> SplitMix {
    SplitMix::new(seed, shard as u64)
}

/// Returns where, among the edges of a column whose blocks have these numbers of edges, each edge is, in the order in which they were
/// placed.
pub fn places_of_pairs(blocks: impl Iterator<Item = usize>, seed: u64, shard: usize) -> Vec<usize> {
    let mut bounds = vec![0];
    bounds.extend(blocks.scan(0, |end, len| {
        *end += len;
        Some(*end)
    }));
    let edges = bounds[bounds.len() - 1];
    let mut placed: Vec<usize> = (0..edges).collect();
    shuffle(&bounds, &mut vec![(); edges], &mut vec![(); edges], &mut placed, random_of(seed, shard));
    let mut places = vec![0; edges];
    placed.iter().enumerate().for_each(|(place, &edge)| places[edge] = place);
    places
}

/// Shuffles each block, so that edges of a vertex do not wait for each other's updates.
fn shuffle<I, X>(bounds: &[usize], left: &mut [I], right: &mut [I], values: &mut [X], mut random: SplitMix) {
    for block in bounds.windows(2) {
        for last in (block[0] + 1..block[1]).rev() {
            let other = block[0] + random.below((last - block[0] + 1) as u64) as usize;
            left.swap(last, other);
            right.swap(last, other);
            values.swap(last, other);
        }
    }
}

fn local<I: Id>(row: usize) -> I {
    let Ok(id) = I::try_from(row) else { unreachable!("a shard's rows fit its ids") };
    id
}

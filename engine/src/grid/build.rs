//! Building columns: from edges grouped by right vertex to blocks, without a second copy of the edges.

use std::ops::Range;
use std::sync::Mutex;

use bytemuck::Zeroable;
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{EdgeData, Program};

use super::block::{Id, LocalEdges};
use super::disjoint::Disjoint;
use super::order::RowOrder;
use super::{Column, Edges};
use crate::Error;
use crate::plan::{Plan, Shuffle};

/// How an edge of the source becomes edge data of the program: how many items it has, and what they are at first.
pub struct EdgeInput<'f, T, P: Program> {
    /// Items of an edge; asked for data in slices alone.
    pub len: &'f (dyn Fn(&T) -> usize + Sync),
    /// Writes an edge's items.
    pub fill: &'f (dyn Fn(&T, &mut [<P::Edge as EdgeData>::Item]) + Sync),
}

/// What a build needs to know.
struct Build<'b, T, P: Program> {
    plan: &'b Plan,
    orders: &'b [RowOrder; 2],
    source: &'b dyn EdgeSource<T>,
    input: &'b EdgeInput<'b, T, P>,
    seed: u64,
}

/// Rows of the source are looked at in windows of about this many edges.
const WINDOW_EDGES: u64 = 1 << 20;

/// Builds the columns of all right shards, each worker its share.
pub(crate) fn build_columns<T: Copy + Sync, P: Program>(
    plan: &Plan,
    orders: &[RowOrder; 2],
    source: &dyn EdgeSource<T>,
    input: &EdgeInput<'_, T, P>,
    seed: u64,
) -> Result<Vec<Column<P>>, Error> {
    let build = Build { plan, orders, source, input, seed };
    let columns = Mutex::new(Vec::new());
    let failed = Mutex::new(None);
    std::thread::scope(|threads| {
        for worker in 0..plan.workers {
            let (build, columns, failed) = (&build, &columns, &failed);
            threads.spawn(move || {
                let done = |shard, column| lock(columns).push((shard, column));
                if let Err(error) = build.share(worker, &done) {
                    lock(failed).get_or_insert(error);
                }
            });
        }
    });
    if let Some(error) = lock(&failed).take() {
        return Err(error);
    }
    let mut columns = std::mem::take(&mut *lock(&columns));
    columns.sort_by_key(|(shard, _)| *shard);
    Ok(columns.into_iter().map(|(_, column)| column).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl<T: Copy + Sync, P: Program> Build<'_, T, P> {
    fn share(&self, worker: usize, done: &dyn Fn(usize, Column<P>)) -> Result<(), Error> {
        let right = &self.plan.right;
        let mine = |shard: &usize| {
            if self.plan.grouped { right.owners[*shard] == worker } else { shard % self.plan.workers == worker }
        };
        let shards: Vec<usize> = (0..right.num_shards()).filter(mine).collect();
        if !self.plan.grouped {
            return if self.plan.wide { self.pairs::<u32>(&shards, done) } else { self.pairs::<u16>(&shards, done) };
        }
        if let RowOrder::Natural(_) = self.orders[1] {
            for shard in shards {
                let mut gathered = Gathered::new(right.rows(shard).len());
                self.gather(right.rows(shard), &mut gathered)?;
                done(shard, self.grouped(shard, gathered)?);
            }
            return Ok(());
        }
        self.scattered(&shards, done)
    }

    /// Gathers the edges of shards whose vertices lie anywhere among the source's rows, then builds them.
    fn scattered(&self, shards: &[usize], done: &dyn Fn(usize, Column<P>)) -> Result<(), Error> {
        let right = &self.plan.right;
        let mut place = vec![None; right.num_shards()];
        let mut gathered: Vec<_> = shards.iter().map(|&shard| Gathered::new(right.rows(shard).len())).collect();
        for (n, &shard) in shards.iter().enumerate() {
            place[shard] = Some(n);
        }
        for rows in self.windows() {
            let shard_of = |id| right.bounds.partition_point(|&bound| bound <= self.orders[1].row(id)) - 1;
            for id in rows {
                if let Some(n) = place[shard_of(id)] {
                    self.gather(id..id + 1, &mut gathered[n])?;
                }
            }
        }
        for (&shard, gathered) in shards.iter().zip(gathered) {
            done(shard, self.grouped(shard, gathered)?);
        }
        Ok(())
    }

    /// Cuts the source's right vertices into windows.
    fn windows(&self) -> Vec<Range<usize>> {
        let offsets = self.source.offsets(Side::Right);
        let rows = offsets.len() - 1;
        let mut windows = Vec::new();
        let mut begin = 0;
        while begin < rows {
            let goal = offsets[begin] + WINDOW_EDGES;
            let end = offsets.partition_point(|&offset| offset <= goal).saturating_sub(1).clamp(begin + 1, rows);
            windows.push(begin..end);
            begin = end;
        }
        windows
    }

    /// Appends the edges of source vertices.
    fn gather(&self, ids: Range<usize>, gathered: &mut Gathered<T>) -> Result<(), Error> {
        let offsets = self.source.offsets(Side::Right);
        let (first, left_order) = (offsets[ids.start], &self.orders[0]);
        self.source.visit_rows(Side::Right, ids.clone(), &mut |targets, data| {
            for id in ids.clone() {
                let span = (offsets[id] - first) as usize..(offsets[id + 1] - first) as usize;
                let row = self.orders[1].row(id) as u32;
                let begin = gathered.left.len();
                match left_order {
                    RowOrder::Natural(_) => gathered.left.extend_from_slice(&targets[span.clone()]),
                    RowOrder::Shuffled { row_of, .. } => {
                        gathered.left.extend(targets[span.clone()].iter().map(|&id| row_of[id as usize]));
                    }
                }
                if size_of::<T>() > 0 {
                    gathered.data.extend_from_slice(&data[span]);
                }
                if let RowOrder::Shuffled { .. } = left_order {
                    gathered.sort_from(begin);
                }
                gathered.ends.push((row, gathered.left.len() as u32));
            }
        })?;
        Ok(())
    }

    /// Builds a grouped column.
    fn grouped(&self, shard: usize, gathered: Gathered<T>) -> Result<Column<P>, Error> {
        if self.plan.wide {
            let (edges, data) = self.grouped_blocks::<u32>(shard, gathered)?;
            return Ok(Column { edges: Edges::Wide(edges), data });
        }
        let (edges, data) = self.grouped_blocks::<u16>(shard, gathered)?;
        Ok(Column { edges: Edges::Narrow(edges), data })
    }

    fn grouped_blocks<I: Id>(
        &self,
        shard: usize,
        gathered: Gathered<T>,
    ) -> Result<(LocalEdges<I>, Disjoint<<P::Edge as EdgeData>::Item>), Error> {
        let rows = self.plan.right.rows(shard);
        let mut edges = LocalEdges::new(rows.len(), true);
        edges.reserve(gathered.left.len());
        let mut values = Values::new(self.input);
        for layer in 0..self.plan.layers {
            let layer = gathered.layer(layer, self.plan.layers, self.seed ^ shard as u64);
            let mut blocks = layer.segments(&self.plan.left.bounds, rows.start);
            for (left, segments) in blocks.iter_mut().enumerate() {
                // Vertices with equally many edges side by side: the walk's inner loops then have predictable lengths.
                segments.sort_by_key(|segment| std::cmp::Reverse(segment.ends.len()));
                let vertices = segments.iter().map(|s| (s.right as usize, &layer.left[s.ends.clone()]));
                edges.push_grouped(self.plan.left.rows(left), vertices);
                for segment in segments {
                    values.extend(layer.data.get(segment.ends.clone()).unwrap_or_default());
                }
                values.end_block(edges.blocks().last().map_or(0, |block| block.edges.end));
            }
        }
        edges.shrink();
        let (data, offsets) = values.finish()?;
        if P::Edge::SLICE {
            edges.set_slice_offsets(offsets);
        }
        Ok((edges, data))
    }

    /// Builds columns of shuffled pairs: counts, then places each edge where it stays.
    fn pairs<I: Id>(&self, shards: &[usize], done: &dyn Fn(usize, Column<P>)) -> Result<(), Error>
    where
        Edges: From<LocalEdges<I>>,
    {
        let left_shards = self.plan.left.num_shards();
        let places = self.left_places();
        let mut counts = vec![vec![0_usize; self.plan.layers * left_shards + 1]; self.plan.right.num_shards()];
        let block = |layer: usize, left: usize| layer * left_shards + left;
        self.each_edge(shards, |shard, _, left, layer, _| counts[shard][block(layer, places[left].0 as usize) + 1] += 1)?;
        let mut columns = Vec::new();
        for &shard in shards {
            for i in 1..counts[shard].len() {
                counts[shard][i] += counts[shard][i - 1];
            }
            columns.push(Pairs::<I, T, P>::new(&counts[shard], self.input)?);
        }
        let mut number = vec![0; self.plan.right.num_shards()];
        shards.iter().enumerate().for_each(|(n, &shard)| number[shard] = n);
        self.each_edge(shards, |shard, right, left, layer, value| {
            let (left_shard, local) = places[left];
            columns[number[shard]].place(block(layer, left_shard as usize), local as usize, right, value);
        })?;
        for (&shard, column) in shards.iter().zip(columns) {
            let left_rows: Vec<usize> =
                (0..self.plan.layers * left_shards).map(|i| self.plan.left.rows(i % left_shards).len()).collect();
            let seed = Shuffle(self.seed ^ (shard as u64) << 32).next();
            let (edges, data) = column.finish(&left_rows, self.plan.right.rows(shard).len(), &counts[shard], seed)?;
            done(shard, Column { edges: Edges::from(edges), data });
        }
        Ok(())
    }

    /// Returns the shard and the local id of each left vertex.
    fn left_places(&self) -> Vec<(u32, u32)> {
        let order = &self.orders[0];
        let mut places = vec![(0, 0); order.len()];
        for shard in 0..self.plan.left.num_shards() {
            for (local, row) in self.plan.left.rows(shard).enumerate() {
                places[order.id(row)] = (shard as u32, local as u32);
            }
        }
        places
    }

    /// Calls `visit` with shard, local right id, left vertex, layer and value of every edge of the shards.
    fn each_edge(&self, shards: &[usize], mut visit: impl FnMut(usize, usize, usize, usize, &T)) -> Result<(), Error> {
        let bounds = &self.plan.right.bounds;
        let mut mine = vec![false; self.plan.right.num_shards()];
        shards.iter().for_each(|&shard| mine[shard] = true);
        let offsets = self.source.offsets(Side::Right);
        for ids in self.windows() {
            let first = offsets[ids.start];
            self.source.visit_rows(Side::Right, ids.clone(), &mut |targets, data| {
                for id in ids.clone() {
                    let row = self.orders[1].row(id);
                    let shard = bounds.partition_point(|&bound| bound <= row) - 1;
                    if !mine[shard] {
                        continue;
                    }
                    for edge in (offsets[id] - first) as usize..(offsets[id + 1] - first) as usize {
                        let layer = layer_of(self.seed, first + edge as u64, self.plan.layers);
                        visit(shard, row - bounds[shard], targets[edge] as usize, layer, &data[edge]);
                    }
                }
            })?;
        }
        Ok(())
    }
}

/// Draws an edge's layer.
fn layer_of(seed: u64, edge: u64, layers: usize) -> usize {
    if layers == 1 { 0 } else { (u128::from(Shuffle(seed ^ edge.rotate_left(20)).next()) * layers as u128 >> 64) as usize }
}

impl From<LocalEdges<u16>> for Edges {
    fn from(edges: LocalEdges<u16>) -> Self {
        Self::Narrow(edges)
    }
}

impl From<LocalEdges<u32>> for Edges {
    fn from(edges: LocalEdges<u32>) -> Self {
        Self::Wide(edges)
    }
}

/// The edges of a right shard, grouped by right vertex, left rows ascending.
struct Gathered<T> {
    left: Vec<u32>,
    data: Vec<T>,
    /// Row of each vertex, and where its edges end.
    ends: Vec<(u32, u32)>,
}

/// The edges of one right vertex in one block.
struct Segment {
    right: u32,
    ends: Range<usize>,
}

impl<T: Copy> Gathered<T> {
    fn new(rows: usize) -> Self {
        Self { left: Vec::new(), data: Vec::new(), ends: Vec::with_capacity(rows) }
    }

    fn sort_from(&mut self, begin: usize) {
        let mut order: Vec<usize> = (begin..self.left.len()).collect();
        order.sort_by_key(|&i| self.left[i]);
        let left: Vec<u32> = order.iter().map(|&i| self.left[i]).collect();
        self.left[begin..].copy_from_slice(&left);
        if !self.data.is_empty() {
            let data: Vec<T> = order.iter().map(|&i| self.data[i]).collect();
            self.data[begin..].copy_from_slice(&data);
        }
    }

    /// Returns the edges of one layer.
    fn layer(&self, layer: usize, layers: usize, seed: u64) -> std::borrow::Cow<'_, Self> {
        if layers == 1 {
            return std::borrow::Cow::Borrowed(self);
        }
        let mut part = Self::new(self.ends.len());
        let mut begin = 0;
        for &(row, end) in &self.ends {
            for i in begin..end as usize {
                if layer_of(seed, i as u64, layers) == layer {
                    part.left.push(self.left[i]);
                    part.data.extend(self.data.get(i));
                }
            }
            part.ends.push((row, part.left.len() as u32));
            begin = end as usize;
        }
        std::borrow::Cow::Owned(part)
    }

    /// Cuts each vertex's edges at the left shards' boundaries.
    fn segments(&self, left_bounds: &[usize], first_row: usize) -> Vec<Vec<Segment>> {
        let mut blocks: Vec<Vec<Segment>> = (1..left_bounds.len()).map(|_| Vec::new()).collect();
        let mut begin = 0;
        for &(row, end) in &self.ends {
            let end = end as usize;
            let mut shard = 0;
            while begin < end {
                let left = self.left[begin] as usize;
                while left >= left_bounds[shard + 1] {
                    shard += 1;
                }
                let next = begin + self.left[begin..end].partition_point(|&l| (l as usize) < left_bounds[shard + 1]);
                blocks[shard].push(Segment { right: row - first_row as u32, ends: begin..next });
                begin = next;
            }
        }
        blocks
    }
}

impl<T: Copy> Clone for Gathered<T> {
    fn clone(&self) -> Self {
        Self { left: self.left.clone(), data: self.data.clone(), ends: self.ends.clone() }
    }
}

/// Edge data in the order of a column's edges.
struct Values<'v, T, P: Program> {
    input: &'v EdgeInput<'v, T, P>,
    items: Vec<<P::Edge as EdgeData>::Item>,
    offsets: Vec<u32>,
    bounds: Vec<usize>,
}

impl<'v, T, P: Program> Values<'v, T, P> {
    fn new(input: &'v EdgeInput<'v, T, P>) -> Self {
        Self { input, items: Vec::new(), offsets: vec![0], bounds: vec![0] }
    }

    fn extend(&mut self, values: &[T]) {
        for value in values {
            let len = if P::Edge::SLICE { (self.input.len)(value) } else { 1 };
            let begin = self.items.len();
            self.items.resize(begin + len, Zeroable::zeroed());
            (self.input.fill)(value, &mut self.items[begin..]);
            if P::Edge::SLICE {
                self.offsets.push(self.items.len() as u32);
            }
        }
    }

    /// Ends a block, after which there are `edges` edges.
    fn end_block(&mut self, edges: usize) {
        let no_bytes = size_of::<<P::Edge as EdgeData>::Item>() == 0;
        self.bounds.push(if no_bytes { edges } else { self.items.len() });
    }

    fn finish(self) -> Result<(Disjoint<<P::Edge as EdgeData>::Item>, Vec<u32>), Error> {
        let blocks = self.bounds.len() - 1;
        let data = Disjoint::new(self.bounds)?;
        if !self.items.is_empty()
            && let Some(mut all) = data.try_own(0..blocks)
        {
            let len = self.items.len();
            all[..len].copy_from_slice(&self.items);
        }
        Ok((data, self.offsets))
    }
}

/// A column of pairs that is being filled.
struct Pairs<'p, I, T, P: Program> {
    left: Vec<I>,
    right: Vec<I>,
    values: Vec<T>,
    items: Vec<<P::Edge as EdgeData>::Item>,
    next: Vec<usize>,
    input: &'p EdgeInput<'p, T, P>,
}

impl<'p, I: Id, T: Copy, P: Program> Pairs<'p, I, T, P> {
    fn new(bounds: &[usize], input: &'p EdgeInput<'p, T, P>) -> Result<Self, Error> {
        let edges = bounds[bounds.len() - 1];
        let zero = id(0);
        Ok(Self {
            left: vec![zero; edges],
            right: vec![zero; edges],
            values: Vec::new(),
            items: vec![Zeroable::zeroed(); if P::Edge::SLICE { 0 } else { edges }],
            next: bounds[..bounds.len() - 1].to_vec(),
            input,
        })
    }

    fn place(&mut self, block: usize, left: usize, right: usize, value: &T) {
        let at = self.next[block];
        self.next[block] += 1;
        (self.left[at], self.right[at]) = (id(left), id(right));
        if P::Edge::SLICE {
            if self.values.is_empty() {
                self.values = vec![*value; self.left.len()];
            }
            self.values[at] = *value;
        } else {
            (self.input.fill)(value, &mut self.items[at..=at]);
        }
    }

    fn finish(
        mut self,
        left_rows: &[usize],
        right_rows: usize,
        bounds: &[usize],
        seed: u64,
    ) -> Result<(LocalEdges<I>, Disjoint<<P::Edge as EdgeData>::Item>), Error> {
        for (block, span) in bounds.windows(2).enumerate() {
            self.shuffle(span[0]..span[1], seed ^ block as u64);
        }
        let mut values = Values::new(self.input);
        if P::Edge::SLICE {
            for span in bounds.windows(2) {
                values.extend(&self.values[span[0]..span[1]]);
                values.end_block(span[1]);
            }
        } else {
            values.items = self.items;
            values.bounds = bounds.to_vec();
        }
        let (data, offsets) = values.finish()?;
        let mut edges = LocalEdges::from_pairs(left_rows, right_rows, bounds, self.left, self.right);
        if P::Edge::SLICE {
            edges.set_slice_offsets(offsets);
        }
        Ok((edges, data))
    }

    /// Shuffles a block, so that edges of a vertex do not wait for each other's updates.
    fn shuffle(&mut self, span: Range<usize>, seed: u64) {
        let mut random = Shuffle(seed);
        for i in (span.start + 1..span.end).rev() {
            let below = (i - span.start + 1) as u128;
            let j = span.start + (u128::from(random.next()) * below >> 64) as usize;
            self.left.swap(i, j);
            self.right.swap(i, j);
            if P::Edge::SLICE {
                self.values.swap(i, j);
            } else {
                self.items.swap(i, j);
            }
        }
    }
}

fn id<I: Id>(row: usize) -> I {
    let Ok(id) = I::try_from(row) else { unreachable!("a shard's rows fit its ids") };
    id
}

//! Mirrors: which rows of each shard each process uses, found from its edges before the first iteration.

use std::io;

use megagrid_partition::{EdgeSource, ProcessId, ShardId, Side, balance};
use megagrid_stages::mode::Mode;
use roaring::RoaringBitmap;

use super::pick::Pick;
use crate::Error;
use crate::grid::{Column, Edges, Id, LocalEdges, RowOrder};
use crate::plan::{Plan, Quality, SideShape};

/// Gives each process what all others gave, in their order.
type AllGather<'a> = &'a dyn Fn(Vec<u8>) -> Result<Vec<Vec<u8>>, Error>;

#[derive(Debug)]
pub struct Mirrors {
    /// `[side][process][shard]`: the rows that a process uses; empty for sides that are not cut. On a square graph the left side's place
    /// has those rows that it adds to, by right shards.
    picks: [Vec<Vec<Pick>>; 2],
    /// By worker.
    edges: Vec<u64>,
}

impl Mirrors {
    /// Tells the other processes which rows this one uses, and hears which they use. Every process calls it.
    pub fn agree(plan: &Plan, columns: &[Column], all_gather: AllGather<'_>) -> Result<Self, Error> {
        let mut used = [Side::Left, Side::Right].map(|side| Used::none(plan, side));
        let mut mine = vec![0; plan.threads()];
        for (shard, column) in columns.iter().enumerate() {
            match &column.edges {
                Edges::Narrow(edges) => mark(plan, shard, edges, &mut used),
                Edges::Wide(edges) => mark(plan, shard, edges, &mut used),
            }
            for (at, block) in column.edges.blocks().iter().enumerate() {
                let (this, left) = (ProcessId(plan.processes.this), ShardId(at % plan.left.num_shards()));
                mine[plan.runner(this, left, ShardId(shard)).0 % plan.threads()] += block.edges.len() as u64;
            }
        }
        let mine = message(&used.map(Used::rows), &mine).map_err(|_| Error::Message(plan.processes.this))?;
        let (mut all, mut edges) = (Vec::new(), Vec::new());
        for (process, bytes) in all_gather(mine)?.into_iter().enumerate() {
            let (used, counts) = told(&bytes, plan.threads()).map_err(|_| Error::Message(process))?;
            all.push(used);
            edges.extend(counts);
        }
        Ok(Self::of_used(plan, &all, edges))
    }

    /// Finds what [`Self::agree`] would, from all edges and without the other processes.
    ///
    /// # Complexity
    /// O(m).
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn predict<T>(plan: &Plan, source: &dyn EdgeSource<T>, orders: &[RowOrder; 2]) -> Result<Self, Error> {
        let none = || [Side::Left, Side::Right].map(|side| Used::none(plan, side));
        let mut used: Vec<_> = (0..plan.processes.count).map(|_| none()).collect();
        let mut edges = vec![0; plan.workers];
        let shards = [Side::Left, Side::Right].map(|side| shards_of_rows(plan.side(side)));
        let (uses, offsets) = (Uses::of(plan), source.offsets(Side::Right));
        for rights in source.windows() {
            let first = offsets[rights.start];
            source.visit_rows(Side::Right, rights.clone(), &mut |lefts, _| {
                for id in rights.clone() {
                    let right = orders[1].row(id);
                    let of_right = ShardId(shards[1][right]);
                    for &left in &lefts[(offsets[id] - first) as usize..(offsets[id + 1] - first) as usize] {
                        let left = orders[0].row(left as usize);
                        for process in plan.placement.holders((left, right)).into_iter().flatten() {
                            let process = usize::from(process);
                            let of_left = ShardId(shards[0][left]);
                            edges[plan.runner(ProcessId(process), of_left, of_right).0] += 1;
                            uses.mark(Side::Left, left, &mut used[process]);
                            uses.mark(Side::Right, right, &mut used[process]);
                        }
                    }
                }
            })?;
        }
        let used: Vec<_> = used.into_iter().map(|both| both.map(Used::rows)).collect();
        Ok(Self::of_used(plan, &used, edges))
    }

    fn of_used(plan: &Plan, used: &[[RoaringBitmap; 2]], edges: Vec<u64>) -> Self {
        let of = |side: Side| {
            used.iter().map(|both| picks(&both[side as usize], plan.side(plan.side_of_masters(side)))).collect()
        };
        Self { picks: [of(Side::Left), of(Side::Right)], edges }
    }

    /// Returns how good the placement is.
    pub fn quality(&self, plan: &Plan) -> Quality {
        let (mut replicas, mut vertices) = (0, 0);
        let mut masters_of = vec![0; plan.processes.count];
        // On a square graph the right side stands for both.
        for side in if plan.square { &[Side::Right][..] } else { &[Side::Left, Side::Right] } {
            let masters = plan.side(*side).bounds.last().copied().unwrap_or(0);
            let mirrors = |process: usize| {
                let shards = self.picks[*side as usize][process].iter().enumerate();
                let elsewhere = shards.filter(move |(shard, _)| plan.keeper(*side, *shard) != process);
                elsewhere.map(|(_, pick)| pick.len()).sum::<usize>()
            };
            let shape = plan.side(*side);
            (0..shape.num_shards())
                .for_each(|shard| masters_of[plan.keeper(*side, shard)] += shape.rows(shard).len() as u64);
            vertices += masters;
            replicas += masters + (0..plan.processes.count).map(mirrors).sum::<usize>();
        }
        Quality {
            replication_factor: if vertices == 0 { 1.0 } else { replicas as f64 / vertices as f64 },
            edge_balance: balance(&self.edges.chunks(plan.threads()).map(|of| of.iter().sum()).collect::<Vec<u64>>()),
            worker_balance: balance(&self.edges),
            master_balance: balance(&masters_of),
        }
    }

    /// Returns the rows of a shard that a process adds to.
    pub fn added(&self, plan: &Plan, side: Side, process: ProcessId, shard: ShardId) -> &Pick {
        self.of(if plan.square { Side::Left } else { side }, process, shard)
    }

    /// Returns the rows of a shard that a process uses.
    pub fn of(&self, side: Side, process: ProcessId, shard: ShardId) -> &Pick {
        &self.picks[side as usize][process.0][shard.0]
    }
}

/// What ends of edges are marked as, on a square graph: used, and perhaps added to.
struct Uses {
    square: bool,
    /// Whether some stage adds to the left, and to the right ends, and others keep the masters.
    added: [bool; 2],
}

impl Uses {
    fn of(plan: &Plan) -> Self {
        let adds = |side: Side| plan.stages.iter().any(|stage| stage.kind.mode(side) == Some(Mode::Add));
        Self { square: plan.square, added: [Side::Left, Side::Right].map(|side| adds(side) && plan.delivers(side)) }
    }

    fn mark(&self, side: Side, row: usize, used: &mut [Used; 2]) {
        used[usize::from(self.square || side == Side::Right)].set(row);
        if self.square && self.added[side as usize] {
            used[0].set(row);
        }
    }
}

/// A bit for each row of a side while its edges are read; no bits for a side that is not cut. On a square graph the right
/// side's bits stand for both, and the left side's for what is added to.
struct Used(Vec<u8>);

impl Used {
    fn none(plan: &Plan, side: Side) -> Self {
        let cut = plan.is_cut(side) && (!plan.square || side == Side::Right || plan.delivers(side));
        let rows = plan.side(side).bounds.last().copied().unwrap_or(0);
        Self(if cut { vec![0; rows.div_ceil(8)] } else { Vec::new() })
    }

    fn set(&mut self, row: usize) {
        if let Some(bits) = self.0.get_mut(row / 8) {
            *bits |= 1 << (row % 8);
        }
    }

    /// Returns the rows that are set, as sets of rows are told to other processes.
    fn rows(self) -> RoaringBitmap {
        let mut rows = RoaringBitmap::from_lsb0_bytes(0, &self.0);
        rows.optimize();
        rows
    }
}

/// What a process tells: the rows of both sides that it uses, and the numbers of its workers' edges.
fn message(used: &[RoaringBitmap; 2], edges: &[u64]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(8 * edges.len() + used.iter().map(RoaringBitmap::serialized_size).sum::<usize>());
    edges.iter().for_each(|count| out.extend_from_slice(&count.to_le_bytes()));
    used.iter().try_for_each(|rows| rows.serialize_into(&mut out))?;
    Ok(out)
}

/// Reads a [`message`].
fn told(mut from: &[u8], workers: usize) -> io::Result<([RoaringBitmap; 2], Vec<u64>)> {
    let edges = from.split_off(..8 * workers).ok_or(io::ErrorKind::UnexpectedEof)?;
    let edges = edges.as_chunks().0.iter().map(|count| u64::from_le_bytes(*count)).collect();
    let used = [RoaringBitmap::deserialize_from(&mut from)?, RoaringBitmap::deserialize_from(&mut from)?];
    if from.is_empty() { Ok((used, edges)) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Lists the shard of each row.
fn shards_of_rows(shape: &SideShape) -> Vec<usize> {
    (0..shape.num_shards()).flat_map(|shard| shape.rows(shard).map(move |_| shard)).collect()
}

/// Splits the rows that a process uses by shard.
fn picks(used: &RoaringBitmap, shape: &SideShape) -> Vec<Pick> {
    let pick = |shard: usize| {
        let rows = shape.rows(shard);
        let first = rows.start as u32;
        let some: Box<[u32]> = used.range(first..rows.end as u32).map(|row| row - first).collect();
        if some.len() == rows.len() { Pick::All(rows.len()) } else { Pick::Some(some) }
    };
    (0..shape.num_shards()).map(pick).collect()
}

fn mark<I: Id>(plan: &Plan, shard: usize, edges: &LocalEdges<I>, used: &mut [Used; 2]) {
    let first_right = plan.right.rows(shard).start;
    let uses = Uses::of(plan);
    for (at, block) in edges.blocks().iter().enumerate() {
        let first_left = plan.left.rows(at % plan.left.num_shards()).start;
        edges.left(block).iter().for_each(|id| uses.mark(Side::Left, first_left + id.index(), used));
        edges.right(block).iter().for_each(|id| uses.mark(Side::Right, first_right + id.index(), used));
    }
}

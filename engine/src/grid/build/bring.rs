//! Where columns stay: as their builder made them where all workers are on one node of memory. Where they are not, columns go to those
//! who run their blocks: each writes its own, so that ids and data are on its node. Some go together: what one worker runs of them lies
//! side by side, and few pages are shared.

use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;
use megagrid_partition::{ShardId, Side, WorkerId};
use megagrid_stages::{EdgeItem, Program};

use super::{Build, Edges, Id, Listed, LocalEdges, on_workers};
use crate::Error;
use crate::grid::block::{Order, Room};
use crate::grid::disjoint::Disjoint;
use crate::grid::hold::hold;
use crate::machine::os::AlignedBuffer;

/// As many edges, and items of their data, as columns that go together have at most: pages that two nodes share are then one in a
/// hundred, and little is in memory twice.
const TOGETHER: usize = 1 << 18;

/// A column as it was built.
pub(super) struct Built<I, P: Program> {
    pub edges: Listed<I>,
    pub items: AlignedBuffer<EdgeItem<P>>,
    /// Where each block's items begin, and their number.
    pub bounds: Vec<usize>,
}

/// Columns in one piece of memory, with the numbers of their shards.
pub(super) struct Group<P: Program> {
    pub columns: Vec<(usize, Edges)>,
    pub data: Disjoint<EdgeItem<P>>,
}

/// The memory in which columns stay.
struct Place<I, P: Program> {
    shards: Vec<usize>,
    edges: Room<I>,
    data: Disjoint<EdgeItem<P>>,
}

/// Columns on their way.
struct Moving<I, P: Program> {
    from: Vec<Built<I, P>>,
    into: Arc<Place<I, P>>,
    /// Who runs which block of which column, in the order in which they lie.
    blocks: Vec<(WorkerId, (usize, usize))>,
}

/// What workers of the process have to write, by worker.
type Inboxes<I, P> = Vec<Mutex<Vec<Arc<Moving<I, P>>>>>;

/// Takes a right shard's column.
pub(super) type Take<'t, I, P> = &'t mut dyn FnMut(usize, Built<I, P>) -> Result<(), Error>;

impl<T: Copy + Send + Sync, P: Program> Build<'_, T, P> {
    /// Lets each worker of this process build columns, one after the other.
    pub(super) fn groups_of<I: Id>(
        &self,
        build: impl Fn(usize, Take<'_, I, P>) -> Result<(), Error> + Sync,
    ) -> Result<Vec<Group<P>>, Error>
    where
        Edges: From<LocalEdges<I>>,
    {
        if !self.plan.is_on_one_node() {
            return self.groups_brought_home(build);
        }
        let built = on_workers(self.plan, |worker| {
            let mut groups = Vec::new();
            build(worker, &mut |shard, built| {
                groups.push(built.group(shard));
                Ok(())
            })?;
            Ok(groups)
        });
        Ok(built.into_iter().collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
    }

    /// Lets those who run the blocks of the columns that are built write them where they stay.
    fn groups_brought_home<I: Id>(
        &self,
        build: impl Fn(usize, Take<'_, I, P>) -> Result<(), Error> + Sync,
    ) -> Result<Vec<Group<P>>, Error>
    where
        Edges: From<LocalEdges<I>>,
    {
        let first = self.plan.local_workers().start;
        let inboxes: Inboxes<I, P> = self.plan.local_workers().map(|_| Mutex::default()).collect();
        let write = |worker: usize| {
            let arrived = std::mem::take(&mut *lock(&inboxes[worker - first]));
            arrived.into_iter().for_each(|columns| columns.write_blocks_of(WorkerId(worker)));
        };
        // Stages on right vertices with all their edges have a column's data as one slice.
        let together = if self.plan.stages.iter().any(|stage| stage.indexes(Side::Right)) { 0 } else { TOGETHER };
        let built = on_workers(self.plan, |worker| {
            let (mut waiting, mut items, mut places) = (Vec::new(), 0, Vec::new());
            build(worker, &mut |shard, built| {
                let more = built.edges.num_edges().max(built.items.len());
                if !waiting.is_empty() && items + more > together {
                    places.push(self.send(std::mem::take(&mut waiting), &inboxes)?);
                    items = 0;
                    write(worker);
                }
                items += more;
                waiting.push((shard, built));
                Ok(())
            })?;
            if !waiting.is_empty() {
                places.push(self.send(waiting, &inboxes)?);
            }
            write(worker);
            Ok(places)
        });
        let places = built.into_iter().collect::<Result<Vec<_>, Error>>()?;
        on_workers(self.plan, write);
        Ok(places.into_iter().flatten().filter_map(|place| Some(Arc::into_inner(place)?.group())).collect())
    }

    /// Makes room for columns and tells those who run their blocks.
    fn send<I: Id>(
        &self,
        columns: Vec<(usize, Built<I, P>)>,
        inboxes: &Inboxes<I, P>,
    ) -> Result<Arc<Place<I, P>>, Error> {
        let (shards, from): (Vec<usize>, Vec<Built<I, P>>) = columns.into_iter().unzip();
        let mut blocks = Vec::new();
        for (column, (&shard, built)) in shards.iter().zip(&from).enumerate() {
            let runner = |block| self.plan.writer_of_block(block, ShardId(shard));
            blocks.extend((0..built.edges.blocks().len()).map(|block| (runner(block), (column, block))));
        }
        blocks.sort_by_key(|&(WorkerId(runner), _)| runner);
        let joints = self.plan.joints(blocks.iter().map(|&(runner, _)| Some(runner)));
        let order = Order { blocks: blocks.iter().map(|&(_, block)| block).collect(), joints };
        let edges = Room::new(&from.iter().map(|built| &built.edges).collect::<Vec<_>>(), &order)?;
        let data = order.room(|column, block| from[column].bounds[block + 1] - from[column].bounds[block])?;
        let into = Arc::new(Place { shards, edges, data });
        let moving = Arc::new(Moving { from, into: Arc::clone(&into), blocks });
        for (worker, inbox) in self.plan.local_workers().zip(inboxes) {
            if moving.blocks.iter().any(|(runner, _)| runner.0 == worker) {
                lock(inbox).push(Arc::clone(&moving));
            }
        }
        Ok(into)
    }
}

impl<I: Id, P: Program> Built<I, P> {
    /// Returns the column of a shard, which stays where it was built.
    fn group(self, shard: usize) -> Group<P>
    where
        Edges: From<LocalEdges<I>>,
    {
        Group { columns: vec![(shard, self.edges.end().into())], data: Disjoint::of(self.items, self.bounds) }
    }
}

impl<I: Id, P: Program> Moving<I, P> {
    /// Writes the blocks that a worker runs, as they lie.
    fn write_blocks_of(&self, worker: WorkerId) {
        for &(_, (column, block)) in self.blocks.iter().filter(|(runner, _)| *runner == worker) {
            self.into.write(column, &self.from[column], block);
        }
    }
}

impl<I: Id, P: Program> Place<I, P> {
    fn write(&self, column: usize, from: &Built<I, P>, block: usize) {
        let piece = self.edges.piece(column, block);
        self.edges.copy(column, &from.edges, block, self.data.bounds()[piece]);
        let items = &from.items[from.bounds[block]..from.bounds[block + 1]];
        hold(|| self.data.try_own(piece..piece + 1)).copy_from_slice(items);
    }

    /// Returns the columns, which have been written.
    fn group(self) -> Group<P>
    where
        Edges: From<LocalEdges<I>>,
    {
        let edges = self.edges.end().into_iter().map(Edges::from);
        Group { columns: self.shards.into_iter().zip(edges).collect(), data: self.data }
    }
}

//! Where columns stay: as their builder made them where all workers are on one node of memory. Where they are not, columns go to those
//! who run their blocks: each writes its own, so that ids and data are on its node. Some go together: what one worker runs of them lies
//! side by side, and few pages are shared.

use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;
use megagrid_partition::{ShardId, Side, WorkerId};
use megagrid_stages::Item;

use super::{Edges, Id, Listed, LocalEdges, on_workers};
use crate::Error;
use crate::grid::block::{Order, Room};
use crate::grid::disjoint::Disjoint;
use crate::grid::hold::hold;
use crate::machine::os::AlignedBuffer;
use crate::plan::Plan;

/// As many edges, and items of their data, as columns that go together have at most: pages that two nodes share are then one in a
/// hundred, and little is in memory twice.
const TOGETHER: usize = 1 << 20;

/// A column as it was built, with data of items `D`.
pub(super) struct Built<I, D> {
    pub edges: Listed<I>,
    pub items: AlignedBuffer<D>,
    /// Where each block's items begin, and their number.
    pub bounds: Vec<usize>,
}

/// Columns in one piece of memory, with the numbers of their shards.
pub(super) struct Group<D> {
    pub columns: Vec<(usize, Edges)>,
    pub data: Disjoint<D>,
}

/// The memory in which columns stay.
struct Place<I, D> {
    shards: Vec<usize>,
    edges: Room<I>,
    data: Disjoint<D>,
}

/// Columns on their way.
struct Moving<I, D> {
    from: Vec<Built<I, D>>,
    into: Arc<Place<I, D>>,
    /// Who runs which block of which column, in the order in which they lie.
    blocks: Vec<(WorkerId, (usize, usize))>,
}

/// What workers of the process have to write, by worker.
type Inboxes<I, D> = Vec<Mutex<Vec<Arc<Moving<I, D>>>>>;

/// Takes a right shard's column.
pub(super) type Take<'t, I, D> = &'t mut dyn FnMut(usize, Built<I, D>) -> Result<(), Error>;

/// Builds the columns of a worker, one after the other. Of no program's type, so that what follows is compiled once for each type of data.
pub(super) type BuildColumns<'b, I, D> = &'b (dyn Fn(usize, Take<'_, I, D>) -> Result<(), Error> + Sync);

/// Lets each worker of this process build columns.
pub(super) fn groups_of<I: Id, D: Item>(plan: &Plan, build: BuildColumns<'_, I, D>) -> Result<Vec<Group<D>>, Error>
where
    Edges: From<LocalEdges<I>>,
{
    if !plan.is_on_one_node() {
        return brought_home(plan, build);
    }
    let built = on_workers(plan, |worker| {
        let mut groups = Vec::new();
        build(worker, &mut |shard, Built { edges, items, bounds }| {
            groups.push(Group { columns: vec![(shard, edges.end().into())], data: Disjoint::of(items, bounds) });
            Ok(())
        })?;
        Ok(groups)
    });
    Ok(built.into_iter().collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
}

/// Lets each worker of this process build columns, and those who run their blocks write them where they stay.
fn brought_home<I: Id, D: Item>(plan: &Plan, build: BuildColumns<'_, I, D>) -> Result<Vec<Group<D>>, Error>
where
    Edges: From<LocalEdges<I>>,
{
    let first = plan.local_workers().start;
    let inboxes: Inboxes<I, D> = plan.local_workers().map(|_| Mutex::default()).collect();
    let write = |worker: usize| {
        let arrived = std::mem::take(&mut *lock(&inboxes[worker - first]));
        arrived.into_iter().for_each(|columns| columns.write_blocks_of(WorkerId(worker)));
    };
    // Stages on right vertices with all their edges have a column's data as one slice.
    let together = if plan.stages.iter().any(|stage| stage.indexes(Side::Right)) { 0 } else { TOGETHER };
    let built = on_workers(plan, |worker| {
        let (mut waiting, mut items, mut places) = (Vec::new(), 0, Vec::new());
        build(worker, &mut |shard, built| {
            let more = built.edges.num_edges().max(built.items.len());
            if !waiting.is_empty() && items + more > together {
                places.push(send(plan, std::mem::take(&mut waiting), &inboxes)?);
                items = 0;
                write(worker);
            }
            items += more;
            waiting.push((shard, built));
            Ok(())
        })?;
        if !waiting.is_empty() {
            places.push(send(plan, waiting, &inboxes)?);
        }
        write(worker);
        Ok(places)
    });
    let places = built.into_iter().collect::<Result<Vec<_>, Error>>()?;
    on_workers(plan, write);
    Ok(places.into_iter().flatten().filter_map(|place| Some(Arc::into_inner(place)?.group())).collect())
}

/// Makes room for columns and tells those who run their blocks.
fn send<I: Id, D: Item>(
    plan: &Plan,
    columns: Vec<(usize, Built<I, D>)>,
    inboxes: &Inboxes<I, D>,
) -> Result<Arc<Place<I, D>>, Error> {
    let (shards, from): (Vec<usize>, Vec<Built<I, D>>) = columns.into_iter().unzip();
    let mut blocks = Vec::new();
    for (column, (&shard, built)) in shards.iter().zip(&from).enumerate() {
        let runner = |block| plan.writer_of_block(block, ShardId(shard));
        blocks.extend((0..built.edges.blocks().len()).map(|block| (runner(block), (column, block))));
    }
    blocks.sort_by_key(|&(WorkerId(runner), _)| runner);
    let joints = plan.joints(blocks.iter().map(|&(runner, _)| Some(runner)));
    let order = Order { blocks: blocks.iter().map(|&(_, block)| block).collect(), joints };
    let edges = Room::new(&from.iter().map(|built| &built.edges).collect::<Vec<_>>(), &order)?;
    let data = order.room(|column, block| from[column].bounds[block + 1] - from[column].bounds[block])?;
    let into = Arc::new(Place { shards, edges, data });
    let moving = Arc::new(Moving { from, into: Arc::clone(&into), blocks });
    for (worker, inbox) in plan.local_workers().zip(inboxes) {
        if moving.blocks.iter().any(|(runner, _)| runner.0 == worker) {
            lock(inbox).push(Arc::clone(&moving));
        }
    }
    Ok(into)
}

impl<I: Id, D: Item> Moving<I, D> {
    /// Writes the blocks that a worker runs, as they lie.
    fn write_blocks_of(&self, worker: WorkerId) {
        for &(_, (column, block)) in self.blocks.iter().filter(|(runner, _)| *runner == worker) {
            self.into.write(column, &self.from[column], block);
        }
    }
}

impl<I: Id, D: Item> Place<I, D> {
    fn write(&self, column: usize, from: &Built<I, D>, block: usize) {
        let piece = self.edges.piece(column, block);
        self.edges.copy(column, &from.edges, block, self.data.bounds()[piece]);
        let items = &from.items[from.bounds[block]..from.bounds[block + 1]];
        hold(|| self.data.try_own(piece..piece + 1)).copy_from_slice(items);
    }

    /// Returns the columns, which have been written.
    fn group(self) -> Group<D>
    where
        Edges: From<LocalEdges<I>>,
    {
        let edges = self.edges.end().into_iter().map(Edges::from);
        Group { columns: self.shards.into_iter().zip(edges).collect(), data: self.data }
    }
}

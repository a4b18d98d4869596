//! Building columns: from edges grouped by right vertex to blocks, without a second copy of the edges, or from the blocks of another grid.

mod bring;
mod grouped;
mod merged;
mod pairs;
mod source;
mod values;

use megagrid_partition::{EdgeSource, Side, SplitMix};
use megagrid_stages::{EdgeItem, Program};

use super::block::{Id, Listed, LocalEdges};
use super::column::{Column, Edges};
use super::disjoint::Disjoint;
use super::on_workers::on_workers;
use super::order::RowOrder;
use crate::Error;
use crate::plan::{Plan, Schedule};
use bring::{Group, groups_of};
pub use merged::Change;
pub(super) use pairs::places_of_pairs;
pub use source::{Fill, Source};

/// What a build needs to know.
struct Build<'b, T, P: Program> {
    plan: &'b Plan,
    orders: &'b [RowOrder; 2],
    source: &'b dyn EdgeSource<T>,
    fill: &'b Fill<'b, T, EdgeItem<P>>,
    seed: u64,
}

/// Columns, and the data of their edges.
type Columns<P> = (Vec<Column>, Vec<Disjoint<EdgeItem<P>>>);

/// Builds the columns of all right shards, each worker its share. Where edges of another grid are in the same blocks here, the
/// `change` says how its columns become these, without the source.
pub(crate) fn build_columns<T: Copy + Send + Sync, P: Program>(
    plan: &Plan,
    orders: &[RowOrder; 2],
    (source, change): (&Source<'_, T, P>, Option<&Change<'_, P>>),
    seed: u64,
) -> Result<Columns<P>, Error> {
    let build: Build<'_, _, P> = Build { plan, orders, source: source.edges, fill: &source.fill, seed };
    let mut columns: Vec<Option<Column>> = (0..plan.right.num_shards()).map(|_| None).collect();
    let mut data = Vec::new();
    let groups = match change.filter(|change| change.keeps_blocks(plan, orders)) {
        Some(change) => change.groups(plan, orders, (seed, source.edges.offsets(Side::Right)))?,
        None => build.groups()?,
    };
    for group in groups {
        for (shard, edges) in group.columns {
            columns[shard] = Some(Column { edges, data: data.len() });
        }
        data.push(group.data);
    }
    Ok((columns.into_iter().flatten().collect(), data))
}

/// Returns a position among the edges or the items of a column, which are stored in 32 bits.
fn position(of: &'static str, at: usize) -> Result<u32, Error> {
    u32::try_from(at).map_err(|_| Error::ShardTooLarge { of, found: at })
}

impl<T: Copy + Send + Sync, P: Program> Build<'_, T, P> {
    /// Builds the columns of this process.
    fn groups(&self) -> Result<Vec<Group<EdgeItem<P>>>, Error> {
        match (self.plan.grouped, self.plan.wide) {
            (true, false) => groups_of::<u16, _>(self.plan, &|worker, take| self.grouped(&self.shards(worker), take)),
            (true, true) => groups_of::<u32, _>(self.plan, &|worker, take| self.grouped(&self.shards(worker), take)),
            (false, false) => self.pairs::<u16>(),
            (false, true) => self.pairs::<u32>(),
        }
    }

    fn shards(&self, worker: usize) -> Vec<usize> {
        shards_of(self.plan, worker)
    }

    /// Tells whether this process holds the edges between two rows.
    fn holds(&self, left: usize, right: usize) -> bool {
        self.plan.placement.holds(self.plan.processes.this, (left, right))
    }

    fn layer_of(&self, left: usize, right: usize) -> usize {
        layer_of(self.plan.layers, self.seed, left, right)
    }
}

/// Returns the right shards of the columns that a worker builds: its own, or, where these rotate, at regular distances.
fn shards_of(plan: &Plan, worker: usize) -> Vec<usize> {
    let (right, threads) = (&plan.right, plan.threads());
    let deal = plan.is_distributed() || plan.schedules.contains(&Some(Schedule::Rotation));
    let mine = |shard: &usize| if deal { shard % threads == worker % threads } else { right.owners[*shard] == worker };
    (0..right.num_shards()).filter(mine).collect()
}

/// Draws the layer of the edges between two rows.
fn layer_of(layers: usize, seed: u64, left: usize, right: usize) -> usize {
    let (layers, edge) = (layers as u64, (left as u64) << 32 | right as u64);
    if layers == 1 { 0 } else { SplitMix::new(seed, edge).below(layers) as usize }
}

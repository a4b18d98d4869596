//! Building columns: from edges grouped by right vertex to blocks, without a second copy of the edges, or from the blocks of another grid.

mod bring;
mod grouped;
mod merged;
mod pairs;
mod source;
mod values;

use megagrid_partition::{EdgeSource, SplitMix};
use megagrid_stages::Store;

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

/// What a build needs to know. Of a store of edge data and of no program's type, so that it is compiled once for each.
struct Build<'b, T, S: Store + ?Sized> {
    plan: &'b Plan,
    orders: &'b [RowOrder; 2],
    source: &'b dyn EdgeSource<T>,
    fill: &'b Fill<'b, T, S::Item>,
    seed: u64,
}

/// Columns, and the data of their edges.
pub type Columns<D> = (Vec<Column>, Vec<Disjoint<D>>);

/// Builds the columns of all right shards, each worker its share.
pub(crate) fn build_columns<T: Copy + Send + Sync, S: Store + ?Sized>(
    plan: &Plan,
    orders: &[RowOrder; 2],
    (source, fill): (&dyn EdgeSource<T>, &Fill<'_, T, S::Item>),
    seed: u64,
) -> Result<Columns<S::Item>, Error> {
    let build: Build<'_, _, S> = Build { plan, orders, source, fill, seed };
    Ok(columns_of(build.groups()?, plan))
}

fn columns_of<D>(groups: Vec<Group<D>>, plan: &Plan) -> Columns<D> {
    let mut columns: Vec<Option<Column>> = (0..plan.right.num_shards()).map(|_| None).collect();
    let mut data = Vec::new();
    for group in groups {
        for (shard, edges) in group.columns {
            columns[shard] = Some(Column { edges, data: data.len() });
        }
        data.push(group.data);
    }
    (columns.into_iter().flatten().collect(), data)
}

/// Returns a position among the edges or the items of a column, which are stored in 32 bits.
fn position(of: &'static str, at: usize) -> Result<u32, Error> {
    u32::try_from(at).map_err(|_| Error::ShardTooLarge { of, found: at })
}

impl<T: Copy + Send + Sync, S: Store + ?Sized> Build<'_, T, S> {
    /// Builds the columns of this process.
    fn groups(&self) -> Result<Vec<Group<S::Item>>, Error> {
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

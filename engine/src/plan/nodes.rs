//! Nodes of memory: the system puts a page on the node of the thread that writes it first. So whoever works on rows, or runs a block of
//! edges, writes them first: see [`Plan::runner`].

use megagrid_partition::{ProcessId, ShardId, WorkerId};
use megagrid_stages::Side;

use super::{Plan, StageKind};

impl Plan {
    /// Returns the worker of a process that runs the edges between two shards: in the first stage that shares edges out, or, where
    /// stages visit vertices with all their edges only, that of the right vertices if there is one.
    #[must_use]
    pub fn runner(&self, process: ProcessId, left: ShardId, right: ShardId) -> WorkerId {
        let visits_right = || self.stages.iter().any(|stage| stage.kind == StageKind::Incident(Side::Right));
        let home = match self.schedules.iter().flatten().next() {
            Some(schedule) => schedule.home(),
            None if visits_right() => Side::Right,
            None => Side::Left,
        };
        let [has_left, has_right] =
            [self.keeper(Side::Left, left.0), self.keeper(Side::Right, right.0)].map(|keeper| keeper == process.0);
        // Of edges in the processes of both their ends each runs those of its own.
        let of_left = if self.placement.is_doubled() && has_left != has_right { has_left } else { home == Side::Left };
        let owner = if of_left { self.left.owners[left.0] } else { self.right.owners[right.0] };
        WorkerId(process.0 * self.threads() + owner % self.threads())
    }

    /// Returns the worker of this process that writes the ids and the data of a block, by its number in its column: the one that runs it.
    #[must_use]
    pub fn writer_of_block(&self, block: usize, right: ShardId) -> WorkerId {
        let lefts = if self.whole { 1 } else { self.left.num_shards() };
        self.runner(ProcessId(self.processes.this), ShardId(block % lefts), right)
    }

    /// Lists the shards of a side that workers of this process keep, each with the worker, who writes their rows.
    pub fn writers_of_rows(&self, side: Side) -> impl Iterator<Item = (ShardId, WorkerId)> + '_ {
        let of = move |worker| self.shards_at(side, worker).map(move |shard| (ShardId(shard), WorkerId(worker)));
        self.local_workers().flat_map(of)
    }

    /// Tells whether all workers of this process are on one node of memory.
    #[must_use]
    pub fn is_on_one_node(&self) -> bool {
        self.homes[self.local_workers()].windows(2).all(|two| two[0].node == two[1].node)
    }

    /// Returns at which of some pieces in a row memory of another node begins, given the workers of this process that write them, and
    /// both their ends, where others' memory may be; nothing where all workers are on one node. What nobody writes is left out.
    #[must_use]
    pub fn joints(&self, writers: impl Iterator<Item = Option<WorkerId>>) -> Vec<usize> {
        if self.is_on_one_node() {
            return Vec::new();
        }
        let node = |worker: usize| self.homes[worker].node;
        let (mut joints, mut pieces, mut before) = (vec![0], 0, None);
        for writer in writers {
            if let Some(WorkerId(writer)) = writer
                && before.replace(node(writer)).is_some_and(|before| before != node(writer))
            {
                joints.push(pieces);
            }
            pieces += 1;
        }
        joints.push(pieces);
        joints
    }
}

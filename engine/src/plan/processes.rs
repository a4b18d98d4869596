//! How many processes there are, and what belongs to one of them.

use megagrid_stages::mode::Mode;

use super::outline::{StageInfo, StageKind};
use super::rotation::Rotation;
use super::shape::SideShape;

/// How many processes run the workers of a plan, and which this one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Processes {
    /// This process, from 0.
    pub this: usize,
    /// All of them.
    pub count: usize,
}

impl Default for Processes {
    fn default() -> Self {
        Self { this: 0, count: 1 }
    }
}

impl Processes {
    /// Returns the processes other than one of them, the next one first.
    pub(crate) fn others(self, process: usize) -> impl Iterator<Item = usize> {
        (1..self.count).map(move |step| (process + step) % self.count)
    }
}

/// Tells whether left shards, with their edges, belong to one process each, whatever a stage would choose by itself: with
/// several processes, unless right shards are every stage's choice.
pub fn left_stays(stages: &[StageInfo], processes: usize) -> bool {
    let right_alone = |stage: &StageInfo| match stage.kind {
        StageKind::Exchange(left, right) => left == Mode::Read && right != Mode::Read,
        _ => true,
    };
    processes > 1 && !stages.iter().all(right_alone)
}

/// Gives each rotating shard to the worker that visits it first.
pub fn own_by_first_visit(right: &mut SideShape, batch_bounds: &[usize], (processes, threads): (usize, usize)) {
    for interval in batch_bounds.windows(2) {
        let shards = right.shards(&(interval[0]..interval[1]));
        let rotation = Rotation { columns: shards.len(), processes, threads };
        for (at, shard) in shards.enumerate() {
            right.owners[shard] = rotation.first(at);
        }
    }
}

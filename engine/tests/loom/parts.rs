//! Workers that apply their parts of sums, one ahead of the other.

use std::sync::Arc;

use megagrid_engine::plan::{Outline, Part, Schedule, StageKind, Task};
use megagrid_engine::worker::{Outcome, Position, Tasks};
use megagrid_partition::Side;
use megagrid_stages::mode::Mode;

use super::{Cell, Piece, WORKERS, model, plan, run};

/// Adds to parts of sums and applies its own, under holds.
struct Parts {
    id: usize,
    slack: u64,
    /// The last clock that all had ended when this one's began.
    slowest: u64,
    /// For each right shard: what each worker has applied of its own, and its part that is not.
    rows: Arc<Vec<(Piece<[u64; WORKERS]>, [Cell<u64>; WORKERS])>>,
}

impl Tasks for Parts {
    fn begin_clock(&mut self, _: u64, slowest: u64) {
        self.slowest = slowest;
    }

    fn run(&mut self, at: Position, task: &Task) -> Outcome {
        let (sums, parts) = &self.rows[task.right.start];
        let part = &parts[task.copies[1]];
        assert_eq!(task.copies[1], self.id, "each worker adds to, and applies, its own part");
        let id = self.id;
        if at.stage == 1 {
            let applied = sums.try_change(|sums| sums[id] += part.change(std::mem::take));
            return if applied { Outcome::Ran } else { Outcome::Refused };
        }
        let Some(seen) = sums.try_look(|sums| *sums) else { return Outcome::Refused };
        let promised = self.slowest..=at.clock + self.slack;
        assert!(seen.iter().all(|sum| promised.contains(sum)), "clock {}: {seen:?} of {promised:?}", at.clock);
        assert_eq!(seen[id], at.clock - 1, "what it added itself was applied");
        part.change(|part| *part += 1);
        Outcome::Ran
    }
}

#[test]
fn parts_of_sums_of_ended_clocks_are_seen_and_all_are_applied_once() {
    let kinds = [StageKind::Exchange(Mode::Read, Mode::Add), StageKind::Apply(Side::Right)];
    let plan = plan(&kinds, &[Outline::Stage(0), Outline::Stage(1)], [&[50, 50], &[100]], 1);
    assert_eq!(plan.schedules[0], Some(Schedule::Owned { side: Side::Left, partial: true }));
    assert_eq!((plan.parts, plan.flows, plan.right.num_shards()), ([None, Some(Part::Worker)], true, 1));
    model(move || {
        let rows = Arc::new(vec![(Piece::new([0; WORKERS]), [Cell::new(0), Cell::new(0)])]);
        let of_rows = Arc::clone(&rows);
        run(&plan, 2, move |id| Parts { id, slack: 1, slowest: 0, rows: Arc::clone(&of_rows) }, |_| {});
        rows[0].0.rows.look(|sums| assert_eq!(*sums, [2; WORKERS]));
    });
}

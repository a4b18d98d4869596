//! Looking at vertices with all their edges between iterations.

use megagrid_stages::{Context, Incident, Program, Side};

use crate::engine::Engine;
use crate::machine::os;
use crate::run::Run;
use crate::stage::{Scratch, visit_left, visit_right};

impl<P: Program> Engine<P> {
    /// Runs a stage on every left vertex, between iterations: for data that is looked at then alone. Each worker begins with
    /// a new context. With several processes each runs it on the vertices that it keeps.
    ///
    /// # Panics
    /// When no stage of the sequence is an Incident on the left side.
    pub fn visit_left<A: Incident<P, P::Left>>(&self, stage: &A) {
        let Run { plan, grid, .. } = &*self.shared;
        self.visit(Side::Left, |shard, cx, scratch| visit_left(stage, (grid, plan), shard, scratch, cx).is_some());
    }

    /// Runs a stage on every right vertex. See [`visit_left`](Self::visit_left).
    ///
    /// # Panics
    /// When no stage of the sequence is an Incident on the right side.
    pub fn visit_right<A: Incident<P, P::Right>>(&self, stage: &A) {
        let grid = &self.shared.grid;
        self.visit(Side::Right, |shard, cx, scratch| visit_right(stage, grid, shard, scratch, cx).is_some());
    }

    /// Runs `shard` until it is not refused, on the shards of each worker.
    fn visit(&self, side: Side, shard: impl Fn(usize, &mut Context<'_, P>, &mut Scratch<P>) -> bool + Sync) {
        let Run { plan, grid, .. } = &*self.shared;
        let shape = plan.side(side);
        let is_indexed = grid.places[usize::from(side == Side::Right)].len() == shape.num_shards();
        assert!(is_indexed, "a stage of the sequence visits the {side} side's vertices with their edges");
        let global = self.global();
        std::thread::scope(|threads| {
            for worker in plan.local_workers() {
                let (shard, global) = (&shard, &*global);
                threads.spawn(move || {
                    os::keep_current_thread_on(&plan.homes[worker].processors);
                    let (mut context, mut scratch) = (P::Worker::default(), Scratch::default());
                    let mut cx = Context { worker: &mut context, global, iteration: self.iterations(), seed: 0 };
                    for at in (0..shape.num_shards()).filter(|&at| shape.owners[at] == worker) {
                        while !shard(at, &mut cx, &mut scratch) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
    }
}

//! Which vertices are in each batch of an iteration.

use megagrid_partition::Side;
use megagrid_stages::{Program, Sequence, Stages};

use super::planning::make_plan;
use super::settings::Settings;
use crate::Error;
use crate::grid::{RowOrder, Source};
use crate::plan::{Event, Plan};
use crate::stages::Collected;

/// The batches into which a mini-batch stage cuts a side's vertices: what another program takes to visit them in the same order.
pub struct Batches {
    plan: Plan,
    order: RowOrder,
    side: Side,
    seed: u64,
}

impl Batches {
    /// Plans a program, without its memory, whose first stage runs on batches of a side's vertices.
    ///
    /// # Errors
    /// As [`plan`](super::plan()).
    pub fn new<'s, P: Program, S: Stages<P>, T: 's>(
        source: impl Into<Source<'s, T, P>>,
        sequence: &Sequence<P, S>,
        settings: &Settings,
        side: Side,
    ) -> Result<Self, Error> {
        let (plan, [left, right]) = make_plan(&source.into(), &Collected::of(sequence)?, settings)?;
        let order = if side == Side::Left { left } else { right };
        Ok(Self { plan, order, side, seed: settings.seed })
    }

    /// Lists the ids in each batch of an iteration, the first of which is 1, in the order in which batches run.
    #[must_use]
    pub fn of_iteration(&self, iteration: u64) -> Vec<Vec<u32>> {
        let first_stage = self.plan.steps.first().map(|step| step.stage);
        let ids = |event: &Event| {
            let Event::Step { step, .. } = *event else { return None };
            let step = self.plan.steps.get(step).filter(|step| Some(step.stage) == first_stage)?;
            let rows = step.scope.shards(self.side).flat_map(|shard| self.plan.side(self.side).rows(shard));
            Some(rows.map(|row| self.order.id(row) as u32).collect())
        };
        self.plan.events(self.seed, iteration).iter().filter_map(ids).collect()
    }
}

//! GlobalSync at work: sums of contexts, of all workers of all processes.

use std::marker::PhantomData;
use std::sync::Arc;

use megagrid_stages::{Aggregate, Combine, Context, GlobalSync, On, Program, Vertex};

use super::globals::Globals;
use super::site::{RunStage, Site};
use crate::plan::Task;
use crate::sync::{Body, Kind, Malformed, Message};

/// A GlobalSync of worker contexts.
pub struct RunGlobalSync<G>(pub Arc<G>);

/// Sends a worker's sums to all other processes.
///
/// # Panics
/// When a worker context cannot be written as bytes, which ends the run.
fn send_sums<P: Program>(site: &Site<'_, P>, sums: &P::Worker) {
    let body = match bincode::serialize(sums) {
        Ok(body) => body,
        Err(error) => panic!("a worker context cannot be sent to other processes: {error}"),
    };
    for process in site.plan.processes.others(site.plan.processes.this) {
        site.outbox.put(Message {
            kind: Kind::Sums,
            stage: site.stage as u32,
            from: site.worker as u32,
            to: (process * site.plan.threads()) as u32,
            number: site.clock,
            body: Body::Own(body.clone()),
            ..Message::default()
        });
    }
}

impl<P: Program, G: GlobalSync<P>> RunStage<P> for RunGlobalSync<G> {
    fn run(&self, site: &Site<'_, P>, _: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        let key = (site.clock, site.stage as u64);
        let mut sums = P::Worker::default();
        sums.combine(cx.worker);
        if site.sync.is_some() {
            send_sums(site, &sums);
        }
        site.globals.deposit(&*self.0, key, site.worker, sums);
        Some(0)
    }

    fn receive(&self, globals: &Globals<P>, message: &Message) -> Result<(), Malformed> {
        let sums = bincode::deserialize(&message.body.bytes()).map_err(|_| Malformed)?;
        if message.from as usize >= globals.workers() {
            return Err(Malformed);
        }
        globals.deposit(&*self.0, (message.number, u64::from(message.stage)), message.from as usize, sums);
        Ok(())
    }
}

/// A GlobalSync whose tasks with a shard add its vertices to the worker's context.
pub struct RunAggregate<O, G>(pub RunGlobalSync<G>, pub PhantomData<O>);

impl<P: Program, O: On<P>, G: Aggregate<P, O::Vertex>> RunStage<P> for RunAggregate<O, G> {
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        let (grid, shards) = (site.grid, task.shards(O::SIDE));
        if shards.is_empty() {
            return self.0.run(site, task, cx);
        }
        let rows = grid.rows::<O>().try_share(grid.pieces(O::SIDE).of(shards))?;
        let stage = &*self.0.0;
        if !O::Vertex::RESTS || stage.visits_resting(cx) {
            rows.rows.clone().for_each(|row| stage.aggregate(rows.total(row), cx.worker));
            return Some(0);
        }
        for piece in 0..rows.rests.len() {
            let (all, mut awake) = rows.rests.list(piece);
            let mut each = awake.each(rows.rests.wakings_of(piece), all.len());
            while let Some((row, _)) = each.next() {
                let vertex = rows.total(all.start + row);
                let rests = O::Vertex::is_resting(vertex.sync);
                each.pass(row, rests);
                if !rests {
                    stage.aggregate(vertex, cx.worker);
                }
            }
        }
        Some(0)
    }

    fn receive(&self, globals: &Globals<P>, message: &Message) -> Result<(), Malformed> {
        self.0.receive(globals, message)
    }
}

//! The order in which an iteration walks its steps.

use megagrid_partition::SplitMix;
use megagrid_stages::BatchOrder;

use super::Plan;
use super::outline::StageKind;
use super::steps::{Event, Node};

impl Plan {
    /// Lists the steps of an iteration in order. The same on every worker.
    #[must_use]
    pub fn events(&self, seed: u64, iteration: u64) -> Vec<Event> {
        let early = usize::try_from(self.early()).unwrap_or(usize::MAX);
        let mut walk = Walk { early, random: SplitMix::new(seed, iteration), events: Vec::new(), steps: 0 };
        walk.nodes(&self.body);
        walk.events
    }

    /// Lists the steps of an iteration that may be one of several in a clock: rows come before a clock's first one; what workers
    /// changed and gathered goes to others, and the clock ends, after its last.
    #[must_use]
    pub fn pass(&self, seed: u64, iteration: u64, (is_first, is_last): (bool, bool)) -> Vec<Event> {
        let mut events = self.events(seed, iteration);
        events.retain(|event| match event {
            Event::Step { step, .. } => match self.stages[self.steps[*step].stage].kind {
                StageKind::TakeRows => is_first,
                StageKind::SendChanges | StageKind::GlobalSync(_) => is_last,
                _ => true,
            },
            Event::Clock => is_last,
        });
        events
    }

    /// Tells whether every iteration has the same order.
    #[must_use]
    pub fn fixed_order(&self) -> bool {
        fn fixed(nodes: &[Node]) -> bool {
            nodes.iter().all(|node| match node {
                Node::Batches { order, batches, .. } => *order == BatchOrder::Fixed && batches.iter().all(|b| fixed(b)),
                Node::Step(_) | Node::Clock => true,
            })
        }
        fixed(&self.body)
    }

    /// Returns how many batches early a batch's lead runs. One worker is ahead of nobody.
    pub(super) fn early(&self) -> u64 {
        self.slack.filter(|_| self.workers > 1).unwrap_or(0)
    }

    /// Returns the clocks of an iteration.
    #[must_use]
    pub fn clocks(&self) -> u64 {
        self.events(0, 0).iter().filter(|event| **event == Event::Clock).count() as u64
    }
}

/// Lists the steps of an iteration.
struct Walk {
    /// How many batches early a batch's lead runs.
    early: usize,
    random: SplitMix,
    events: Vec<Event>,
    /// Steps among the events.
    steps: u64,
}

impl Walk {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Step(step) => {
                    self.events.push(Event::Step { step: *step, lag: 0 });
                    self.steps += 1;
                }
                Node::Clock => self.events.push(Event::Clock),
                Node::Batches { order, batches, lead } => {
                    let mut batches: Vec<&[Node]> = batches.iter().map(Vec::as_slice).collect();
                    if *order != BatchOrder::Fixed {
                        self.random.shuffle(&mut batches);
                    }
                    self.batches(&batches, *lead);
                }
            }
        }
    }

    /// Lists batches, each after the leads of those that follow it. What uses a lead's deltas waits for all workers to have
    /// ended it, and for nothing that came after.
    fn batches(&mut self, batches: &[&[Node]], lead: usize) {
        let mut leads = batches.iter();
        let mut ends = Vec::with_capacity(batches.len());
        for (n, batch) in batches.iter().enumerate() {
            let wanted = n.saturating_add(self.early).saturating_add(1) - ends.len();
            for batch in leads.by_ref().take(wanted) {
                self.nodes(&batch[..lead]);
                ends.push(self.steps);
            }
            let (first, steps) = (self.events.len(), self.steps);
            self.nodes(&batch[lead..]);
            if let (1.., Some(Event::Step { lag, .. })) = (lead, self.events.get_mut(first)) {
                *lag = steps - ends[n];
            }
        }
    }
}

//! Printing a plan for a person.

use std::fmt;

use megagrid_stages::BatchOrder;
use megagrid_stages::mode::Mode;

use super::{Node, Plan, Processes, Quality, SideShape, StageInfo, StageKind, Traffic};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_workers(f)?;
        fmt_side(f, "left", &self.left)?;
        fmt_side(f, "right", &self.right)?;
        self.fmt_blocks(f)?;
        writeln!(f, "stages")?;
        for (stage, schedule) in self.stages.iter().zip(&self.schedules) {
            let schedule = schedule.map_or_else(String::new, |schedule| format!(": {schedule}"));
            let part = if let StageKind::Apply(side) = stage.kind { self.parts[side as usize] } else { None };
            let schedule = part.map_or(schedule, |part| format!(": {part}"));
            writeln!(f, "  {:<12} {}{schedule}", stage.name, kind(stage))?;
        }
        write!(
            f,
            "iteration     {} steps, {} clocks: ",
            self.events(0, 0).len() as u64 - self.clocks(),
            self.clocks()
        )?;
        self.fmt_nodes(f, &self.body)?;
        writeln!(f)?;
        self.fmt_placement(f)?;
        self.fmt_traffic(f)
    }
}

impl Plan {
    fn fmt_workers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slack = self.slack.map_or_else(|| "any".to_owned(), |slack| slack.to_string());
        let Processes { this, count } = self.processes;
        let of = if count > 1 { format!(" in {count} processes, seen from process {this}") } else { String::new() };
        let flow = match self.look_every {
            _ if !self.flows => String::new(),
            1 => ", all meet after each iteration".to_owned(),
            every => format!(", iterations flow into each other, all meet after every {every}"),
        };
        let passes = self.passes_per_clock;
        let clock = if passes > 1 { format!(", {passes} iterations a clock") } else { String::new() };
        writeln!(f, "workers       {}{of}, slack {slack}{clock}{flow}", self.workers)?;
        for (worker, home) in self.homes.iter().enumerate() {
            let count = |side: &SideShape| side.owners.iter().filter(|&&owner| owner == worker).count();
            let (left, right) = (count(&self.left), count(&self.right));
            writeln!(f, "  worker {worker:<4} {home}: home of {left} left and {right} right shards")?;
        }
        Ok(())
    }

    fn fmt_blocks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = self.left.num_shards() * self.right.num_shards() * self.layers;
        let form = if self.grouped { "grouped by right vertex, equal degrees side by side" } else { "shuffled pairs" };
        let bits = if self.wide { 32 } else { 16 };
        let mean = self.edges as f64 / blocks.max(1) as f64;
        writeln!(f, "blocks        {blocks} of {mean:.0} edges on average, {form}, {bits}-bit ids")?;
        if self.layers > 1 {
            writeln!(f, "layers        {} of random edges", self.layers)?;
        }
        if self.copies != [1, 1] {
            writeln!(f, "deltas        {} arrays left, {} right", self.copies[0], self.copies[1])?;
        }
        Ok(())
    }

    fn fmt_placement(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_distributed() {
            return Ok(());
        }
        let placement = &self.placement;
        let Quality { replication_factor, edge_balance, worker_balance, master_balance } = self.quality;
        writeln!(
            f,
            "placement     {placement}: replication {replication_factor:.3}, edge balance {edge_balance:.3}, \
             of workers {worker_balance:.3}, master balance {master_balance:.3}"
        )
    }

    fn fmt_traffic(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_distributed() {
            return Ok(());
        }
        let Some(traffic) = self.traffic else {
            return writeln!(f, "traffic       depends on the data, or on time");
        };
        let total = traffic.total();
        write!(
            f,
            "traffic       {} bytes in {} messages an iteration, over all processes",
            total.bytes, total.messages
        )?;
        for (name, amount) in Traffic::NAMES.into_iter().zip(traffic.amounts()).filter(|(_, one)| one.messages > 0) {
            write!(f, "\n  {name:<12}{} bytes in {} messages", amount.bytes, amount.messages)?;
        }
        writeln!(f)
    }

    fn fmt_nodes(&self, f: &mut fmt::Formatter<'_>, nodes: &[Node]) -> fmt::Result {
        let mut first = true;
        for node in nodes {
            if matches!(node, Node::Clock) {
                continue;
            }
            if !std::mem::take(&mut first) {
                f.write_str(", ")?;
            }
            match node {
                Node::Step(step) => f.write_str(&self.stages[self.steps[*step].stage].name)?,
                Node::Batches { order, batches, lead } => {
                    let order = match order {
                        BatchOrder::Fixed => "",
                        BatchOrder::RandomBlocks => " of random vertices in random order",
                    };
                    write!(f, "{} batches{order} of [", batches.len())?;
                    if let Some(batch) = batches.first() {
                        self.fmt_nodes(f, batch)?;
                    }
                    f.write_str("]")?;
                    if let (1.., 1..) = (lead, self.early()) {
                        write!(f, ", the first {lead} early")?;
                    }
                }
                Node::Clock => {}
            }
        }
        Ok(())
    }
}

fn kind(stage: &StageInfo) -> String {
    match stage.kind {
        StageKind::Exchange(Mode::Update, _) if stage.gathers => "gather on the left side".to_owned(),
        StageKind::Exchange(..) if stage.gathers => "gather on the right side".to_owned(),
        StageKind::Exchange(left, right) => format!("exchange {left:?} left, {right:?} right"),
        StageKind::Incident(side) => format!("incident on the {side} side, whole vertices"),
        StageKind::Apply(side) => format!("apply on the {side} side"),
        StageKind::GlobalSync(..) => "global sync".to_owned(),
        StageKind::Deliver(side) => format!("deltas of the {side} side to their masters' process"),
        StageKind::TakeRows => "rows from their masters".to_owned(),
        StageKind::SendChanges => "changes to their masters".to_owned(),
        StageKind::SendEdges(side) => format!("edge data to the processes of the {} side's vertices", side.other()),
        StageKind::Publish(side) => format!("synced rows of the {side} side to their mirrors"),
    }
}

fn fmt_side(f: &mut fmt::Formatter<'_>, name: &str, side: &SideShape) -> fmt::Result {
    let rows = side.bounds.last().copied().unwrap_or(0);
    writeln!(f, "{name:<13} {rows} rows in {} shards of at most {}", side.num_shards(), side.max_rows())
}

//! What is pinned and what moves.

use std::fmt::Write;

use megagrid_geeps::memory::{Item, Moves, Plan};
use megagrid_geeps::run::record;
use megagrid_geeps::{Trace, apps};
use serde::Serialize;

use super::application::Application;
use super::options::Options;
use crate::data::write_findings;
use crate::failure::usage;
use crate::progress;

/// What a plan comes to. All of it is of one worker and in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The budget.
    pub budget: u64,
    /// The least with which it would run, and the one with which everything is pinned.
    pub least_budget: u64,
    pub full_budget: u64,
    /// What is taken of the device: the four below.
    pub resident: u64,
    /// Local data that are pinned, and all.
    pub local: [u64; 2],
    /// Tables that are pinned, with the indexes of their accesses, and all.
    pub tables: [u64; 2],
    /// Access buffers.
    pub buffers: u64,
    /// What copies go through.
    pub staging: u64,
    /// What moves at the start: indexes.
    pub start: u64,
    /// What moves in each iteration after the first.
    pub iteration: Moved,
    /// The same by the clocks of tables, in their order.
    pub clocks: Vec<Clock>,
    /// Tables and local data, and which of them are pinned.
    pub items: Vec<Item>,
    /// How many layers there are, and what is held in those with most bytes.
    pub num_layers: usize,
    pub layers: Vec<Layer>,
}

/// What moves until a clock of a table ends.
#[derive(Clone, Debug, Serialize)]
pub struct Clock {
    table: String,
    moved: Moved,
}

/// Bytes that move in an iteration.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Moved {
    /// Parameters to the device, and updates to the host.
    parameters_in: u64,
    updates_out: u64,
    /// Local data.
    local_in: u64,
    local_out: u64,
    /// What the application copies by itself.
    input: u64,
    output: u64,
}

impl Moved {
    fn total(&self) -> u64 {
        let Self { parameters_in, updates_out, local_in, local_out, input, output } = self;
        parameters_in + updates_out + local_in + local_out + input + output
    }
}

impl From<Moves> for Moved {
    fn from(moves: Moves) -> Self {
        Self {
            parameters_in: moves.read,
            updates_out: moves.updates,
            local_in: moves.swapped_in,
            local_out: moves.swapped_out,
            input: moves.input,
            output: moves.output,
        }
    }
}

/// What is held at a time.
#[derive(Clone, Debug, Serialize)]
pub struct Layer {
    /// What it is.
    what: String,
    /// Bytes of all that is held.
    bytes: u64,
}

/// Layers that are shown: those with most bytes.
const SHOWN: usize = 12;

/// Returns the plan of the worker that needs most, and what it comes to. Where no budget is given, everything is pinned on every
/// worker.
pub fn make(trained: &impl apps::Application, options: &Options, workers: usize) -> anyhow::Result<(Plan, Summary)> {
    let mut traces = Vec::new();
    for worker in 0..workers {
        traces.push(record(trained, worker)?.0);
    }
    let most = |of: fn(&Trace) -> u64| traces.iter().map(of).max().unwrap_or(0);
    let (least, full) = (most(Plan::least_budget), most(Plan::full_budget));
    let staging = options.staging_bytes();
    let (least, full) = (least + staging, full + staging);
    let budget = options.budget.unwrap_or(full);
    // Only that of the largest is looked at: the others have as much of what they need, or more.
    let largest = (0..traces.len()).max_by_key(|&worker| (Plan::full_budget(&traces[worker]), traces.len() - worker));
    let trace = traces.swap_remove(largest.unwrap_or(0));
    let bytes = |layer: usize| trace.layer_len(layer) as u64 * megagrid_geeps::device::VALUE_BYTES;
    let num_layers = trace.layers().len();
    let mut order: Vec<usize> = (0..num_layers).collect();
    order.sort_by_key(|&layer| std::cmp::Reverse(bytes(layer)));
    order.truncate(SHOWN);
    let layer = |layer: usize| Layer { what: trace.describe_layer(layer), bytes: bytes(layer) };
    let layers = order.into_iter().map(layer).collect();
    let plan = Plan::new(trace, budget, staging)?;
    let name = |table| plan.trace().tables().get(table).name.clone();
    let clock = |(table, moves): (_, Moves)| Clock { table: name(table), moved: moves.into() };
    let clocks = plan.clock_moves(1).into_iter().map(clock).collect();
    let summary = Summary {
        budget,
        least_budget: least,
        full_budget: full,
        resident: plan.resident_bytes(),
        local: plan.local_bytes(),
        tables: plan.table_bytes(),
        buffers: plan.ring_bytes(),
        staging,
        start: plan.start_bytes(),
        iteration: plan.moves(1).into(),
        clocks,
        items: plan.items(),
        num_layers,
        layers,
    };
    Ok((plan, summary))
}

/// Runs the command.
pub fn run<A: Application>(application: &A, options: &Options) -> anyhow::Result<()> {
    if options.report.is_some() {
        return Err(usage("--report is not for plan, which trains nothing"));
    }
    if options.checkpoints.any() {
        return Err(usage("--checkpoint and --resume are not for plan, which trains nothing"));
    }
    options.check()?;
    let trained = application.prepare(options, options.workers)?.trained;
    let (_, summary) = make(&trained, options, options.workers)?;
    write_findings(options.json.as_deref(), &summary, &summary.text(A::NAME))
}

impl Summary {
    fn text(&self, name: &str) -> String {
        let mut text = format!("{name}: device memory of a worker\n");
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {name:<34}{value}");
        };
        let bytes = |count: u64| format!("{count:>14} ({})", progress::bytes(count));
        let part = |[pinned, all]: [u64; 2]| format!("{pinned:>14} of {all}");
        line("budget", bytes(self.budget));
        line("least, and all pinned", format!("{:>14} and {}", self.least_budget, self.full_budget));
        line("taken", bytes(self.resident));
        line("  local data, pinned", part(self.local));
        line("  parameters and indexes, pinned", part(self.tables));
        line("  access buffers", bytes(self.buffers));
        line("  copies under way", bytes(self.staging));
        line("moves at the start: indexes", bytes(self.start));
        line("moves in an iteration", String::new());
        let Moved { parameters_in, updates_out, local_in, local_out, input, output } = self.iteration;
        line("  parameters to the device", bytes(parameters_in));
        line("  updates to the host", bytes(updates_out));
        line("  local data to the device", bytes(local_in));
        line("  local data to the host", bytes(local_out));
        line("  input to the device", bytes(input));
        line("  losses to the host", bytes(output));
        line(
            "  of clocks of tables, at most",
            bytes(self.clocks.iter().map(|clock| clock.moved.total()).max().unwrap_or(0)),
        );
        line("held at a time, the most first", format!("{} of {}", self.layers.len(), self.num_layers));
        for layer in &self.layers {
            let _ = writeln!(text, "    {:>14}  {}", layer.bytes, layer.what);
        }
        for (is_pinned, title) in [(true, "pinned, the most first"), (false, "comes and goes, the most first")] {
            text.push_str(&self.items_text(is_pinned, title));
        }
        text
    }

    /// Lists the largest of what is pinned, or is not.
    fn items_text(&self, is_pinned: bool, title: &str) -> String {
        let mut items: Vec<&Item> = self.items.iter().filter(|item| item.is_pinned == is_pinned).collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.bytes));
        let mut text = format!("  {title:<34}{} of {}\n", items.len().min(SHOWN), items.len());
        for item in items.into_iter().take(SHOWN) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    {:>14}  {}", item.bytes, item.name);
        }
        text
    }
}

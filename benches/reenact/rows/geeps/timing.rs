//! Plans of shapes, and the modelled time of their iterations.

use megagrid_geeps::Consistency;
use megagrid_geeps::apps::Shapes;
use megagrid_geeps::memory::Plan;
use megagrid_geeps::modelled::{Machine, Setting, Time, iterations};
use megagrid_geeps::run::record;

/// As in the thesis: images of a mini-batch, and machines.
pub const IMAGES: usize = 200;
pub const WORKERS: usize = 8;
/// A device that computes at a quarter of its peak: four machines trained as many connections a second as Project Adam, 570 billion
/// (section 4.4.2), of six operations each. With the peak, the network would decide.
pub const MACHINE: Machine = Machine { operations: 0.9e12, ..Machine::DEFAULT };
pub const BSP: Setting = Setting { workers: WORKERS, consistency: Consistency::Bsp, prefetch: true, on_hosts: false };

/// With a parameter server in the hosts' memory, whose data the application copies itself.
pub const ON_HOSTS: Setting = Setting { prefetch: false, on_hosts: true, ..BSP };

/// Iterations that are modelled, and those of them that are counted: the first ones begin with empty lanes.
const ITERATIONS: u64 = 16;
const COUNTED: usize = 8;

/// Plans a network for a budget, or for all that it holds.
pub fn plan(network: &Shapes, budget: Option<u64>) -> Plan {
    let (trace, _) = record(network, 0).expect("shapes are in order");
    let budget = budget.unwrap_or_else(|| Plan::full_budget(&trace));
    Plan::new(trace, budget, 0).expect("the budget is enough")
}

/// Returns the mean time of an iteration.
pub fn time(plan: &Plan, machine: &Machine, setting: &Setting) -> Time {
    let times = iterations(plan, machine, setting, ITERATIONS);
    let counted = &times[times.len() - COUNTED..];
    let mean = |of: fn(&Time) -> f64| counted.iter().map(of).sum::<f64>() / COUNTED as f64;
    Time { seconds: mean(|time| time.seconds), stalled: mean(|time| time.stalled) }
}

//! What Slurm tells the tasks of a step.

use std::ops::Range;

use megagrid_partition::SplitMix;

use super::ClusterError;
use super::membership::{Result, number, wrong};

/// The first port of the tasks on a node.
pub(super) const PORT_BASE: &str = "MEGAGRID_PORT_BASE";
/// From where it is drawn otherwise: below what systems give to those who connect.
const PORTS: Range<u16> = 7100..27_100;

/// More nodes than any machine has: a longer list is a mistake.
const MAX_NODES: usize = 1 << 20;

/// Returns the tasks of a step as processes; `None` outside of Slurm. Tasks are numbered node by node, as Slurm does unless
/// told otherwise.
pub(super) fn membership(variable: &impl Fn(&str) -> Option<String>) -> Result<Option<(usize, Vec<String>)>> {
    let Some(process) = variable("SLURM_PROCID") else { return Ok(None) };
    let process = number("SLURM_PROCID", &process)?;
    // A step may have less nodes than its job.
    let either = |step: &'static str, job: &'static str| {
        let found = [step, job].into_iter().find_map(|name| Some((name, variable(name)?)));
        found.ok_or_else(|| wrong(job, "is not set, though SLURM_PROCID is; start the processes with srun"))
    };
    let (name, tasks) = either("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")?;
    let tasks = number(name, &tasks)?;
    if tasks < 2 {
        return Ok(None);
    }
    let (list_name, list) = either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")?;
    let nodes = expand_nodes(&list).map_err(|problem| wrong(list_name, problem))?;
    let (name, per_node) = either("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")?;
    let per_node = expand_counts(&per_node, tasks).map_err(|problem| wrong(name, problem))?;
    if per_node.len() != nodes.len() || per_node.iter().sum::<usize>() != tasks {
        let problem =
            format!("gives tasks to {} nodes, and there are {tasks} tasks on {} nodes", per_node.len(), nodes.len());
        return Err(wrong(name, problem));
    }
    let places = nodes.iter().zip(&per_node).flat_map(|(node, &count)| (0..count).map(move |local| (node, local)));
    let places: Vec<_> = places.collect();
    check_order(variable, process, places.get(process).map(|&(_, local)| local))?;
    let port_base = port_base(variable)?;
    let address = |(node, local): (&String, usize)| match u16::try_from(usize::from(port_base) + local) {
        Ok(port) => Ok(format!("{node}:{port}")),
        Err(_) => Err(wrong(name, format!("{local} tasks on a node are more than there are ports"))),
    };
    let addresses = places.into_iter().map(address).collect::<Result<_>>()?;
    Ok(Some((process, addresses)))
}

/// Returns the first port of the tasks on a node: the same in all tasks of a step, and hardly ever that of another one on the node.
fn port_base(variable: &impl Fn(&str) -> Option<String>) -> Result<u16> {
    if let Some(value) = variable(PORT_BASE) {
        let port = value.trim().parse().ok().filter(|port| *port > 0);
        return port.ok_or_else(|| wrong(PORT_BASE, format!("\"{value}\" is no port from 1 to 65535")));
    }
    let id = |name: &str| variable(name).and_then(|id| id.trim().parse().ok()).unwrap_or_default();
    let mut random = SplitMix::new(id("SLURM_JOB_ID"), id("SLURM_STEP_ID"));
    Ok(PORTS.start + random.below(PORTS.len() as u64) as u16)
}

/// Refuses tasks that are not numbered node by node, as far as this one can tell.
fn check_order(variable: &impl Fn(&str) -> Option<String>, process: usize, expected: Option<usize>) -> Result<()> {
    let Some(local) = variable("SLURM_LOCALID") else { return Ok(()) };
    let local = number("SLURM_LOCALID", &local)?;
    if expected.is_some_and(|expected| expected != local) {
        let problem = format!("task {process} is number {local} on its node; start with srun --distribution=block");
        return Err::<(), ClusterError>(wrong("SLURM_LOCALID", problem));
    }
    Ok(())
}

/// Expands `node[01-03,7],gpu5` to the names of nodes.
fn expand_nodes(list: &str) -> std::result::Result<Vec<String>, String> {
    let mut nodes = Vec::new();
    for pattern in split_outside_brackets(list) {
        expand_pattern("", pattern.trim(), &mut nodes).map_err(|problem| format!("\"{list}\": {problem}"))?;
    }
    Ok(nodes)
}

/// Splits at commas that are not within brackets.
fn split_outside_brackets(list: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    list.split(|letter| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    })
    .collect()
}

/// Adds the names that begin with `prefix` and go on as `pattern` says.
fn expand_pattern(prefix: &str, pattern: &str, nodes: &mut Vec<String>) -> std::result::Result<(), String> {
    let Some((before, rest)) = pattern.split_once('[') else {
        if prefix.is_empty() && pattern.is_empty() || pattern.contains(']') {
            return Err(format!("\"{pattern}\" is no name of a node"));
        }
        if nodes.len() >= MAX_NODES {
            return Err(format!("more than {MAX_NODES} nodes"));
        }
        nodes.push(format!("{prefix}{pattern}"));
        return Ok(());
    };
    let (ranges, after) = rest.split_once(']').ok_or("a bracket is not closed")?;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let parse = |digits: &str| digits.parse::<u64>().map_err(|_| format!("\"{range}\" is no range of numbers"));
        let (begin, end) = (parse(first)?, parse(last)?);
        if end < begin {
            return Err(format!("\"{range}\" is no range of numbers"));
        }
        for number in begin..=end {
            // Numbers keep the zeros that they begin with.
            expand_pattern(&format!("{prefix}{before}{number:0width$}", width = first.len()), after, nodes)?;
        }
    }
    Ok(())
}

/// Expands `2(x3),1` to 2, 2, 2, 1; no longer than `tasks` nodes.
fn expand_counts(counts: &str, tasks: usize) -> std::result::Result<Vec<usize>, String> {
    let bad = || format!("\"{counts}\" is no list of counts such as 2(x3),1");
    let mut expanded = Vec::new();
    for part in counts.split(',') {
        let (count, times) = match part.trim().split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')').ok_or_else(bad)?),
            None => (part.trim(), "1"),
        };
        let (count, times): (usize, usize) = (count.parse().map_err(|_| bad())?, times.parse().map_err(|_| bad())?);
        if count > tasks || times > tasks || expanded.len() + times > tasks {
            return Err(format!("\"{counts}\" is more than {tasks} tasks"));
        }
        expanded.extend(std::iter::repeat_n(count, times));
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::super::environment::tests::environment;
    use super::*;

    #[test]
    fn lists_of_nodes_are_expanded() {
        let expand = |list| expand_nodes(list).unwrap();
        assert_eq!(expand("node[01-03,7]"), ["node01", "node02", "node03", "node7"]);
        assert_eq!(expand("a,b[8-10].x"), ["a", "b8.x", "b9.x", "b10.x"]);
        assert_eq!(expand("r[1-2]n[0,3]"), ["r1n0", "r1n3", "r2n0", "r2n3"]);
        for bad in ["", "a,,b", "a[1", "a[]", "a[3-1]", "a[x]", "a]", "a[0-99999999]"] {
            assert!(expand_nodes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_are_expanded() {
        assert_eq!(expand_counts("2(x3),1", 7).unwrap(), [2, 2, 2, 1]);
        for bad in ["", "2(x", "2(x3", "x", "2,,1", "1(x99999999999)", "9"] {
            assert!(expand_counts(bad, 7).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_step_names_its_tasks() {
        let mut variables = vec![
            ("SLURM_PROCID", "2"),
            ("SLURM_NTASKS", "3"),
            ("SLURM_JOB_NODELIST", "n[1-2]"),
            ("SLURM_TASKS_PER_NODE", "2,1"),
        ];
        let found =
            |variables: &[(&str, &str)]| membership(&environment(&[variables, &[(PORT_BASE, "7100")]].concat()));
        let addresses = ["n1:7100", "n1:7101", "n2:7100"].map(str::to_owned).to_vec();
        assert_eq!(found(&variables).unwrap(), Some((2, addresses)));
        variables.push(("SLURM_LOCALID", "1"));
        assert!(found(&variables).unwrap_err().to_string().contains("--distribution=block"));
        variables.pop();
        // A step on one node of the job.
        let step = [("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_STEP_NODELIST", "n2"), ("SLURM_STEP_TASKS_PER_NODE", "2")];
        let addresses = ["n2:7100", "n2:7101"].map(str::to_owned).to_vec();
        let both = [&variables[1..], &step, &[("SLURM_PROCID", "1")]].concat();
        assert_eq!(found(&both).unwrap(), Some((1, addresses)));
        variables[3].1 = "1(x3)";
        assert!(found(&variables).unwrap_err().to_string().contains("on 2 nodes"));
        variables.pop();
        assert!(found(&variables).unwrap_err().to_string().contains("SLURM_TASKS_PER_NODE"));
    }

    #[test]
    fn steps_on_a_node_have_ports_of_their_own() {
        let base = |variables: &[(&str, &str)]| port_base(&environment(variables)).map_err(|error| error.to_string());
        let of = |job: u64, step: u64| {
            base(&[("SLURM_JOB_ID", &job.to_string()), ("SLURM_STEP_ID", &step.to_string())]).unwrap()
        };
        let mut all: Vec<u16> = (0..20).flat_map(|job| (0..2).map(move |step| of(8_123_456 + job, step))).collect();
        assert_eq!(all[0], of(8_123_456, 0), "the same in each task");
        assert!(all.iter().all(|port| PORTS.contains(port)), "{all:?}");
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] > 2), "{all:?}");
        assert_eq!(base(&[(PORT_BASE, "9000"), ("SLURM_JOB_ID", "7")]), Ok(9000));
        for bad in ["0", "65536", "x"] {
            assert!(base(&[(PORT_BASE, bad)]).unwrap_err().contains(PORT_BASE), "{bad}");
        }
    }
}

//! Network namespaces for processes, with a link of a given rate each: what several machines on a slow network have.
//!
//! Each process has a namespace with one end of a pair of interfaces. The other ends are joined by a bridge, in a namespace too,
//! so that nothing is left where all namespaces are deleted. Token buckets limit both ways of a link.

use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, bail};
use megagrid_engine::virtual_cluster::Link;
use serde::{Serialize, Serializer};

/// Where the first process listens in its namespace; others have the same port.
const PORT: u16 = 7100;
/// The interface of a process, and the bridge.
const END: &str = "data";
const BRIDGE: &str = "bridge";

/// What a link carries, each way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    bits_per_second: u64,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let link = format!("{text},0s").parse::<Link>().ok().filter(|_| !text.contains(','));
        let bits = link.map(|link| link.bytes_per_second * 8.0).filter(|bits| (1e4..=1e11).contains(bits));
        let expected = "expected a rate such as 100Mbit, between 10kbit and 100Gbit a second";
        bits.map(|bits| Self { bits_per_second: bits as u64 }).ok_or_else(|| expected.to_owned())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits_per_second as f64;
        match self.bits_per_second {
            1_000_000_000.. => write!(f, "{} Gbit/s", bits / 1e9),
            1_000_000.. => write!(f, "{} Mbit/s", bits / 1e6),
            _ => write!(f, "{} kbit/s", bits / 1e3),
        }
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The namespaces of some processes, which are deleted with it.
pub struct Network {
    processes: usize,
}

impl Network {
    /// Makes as many namespaces, whose links have this rate.
    ///
    /// # Errors
    /// A machine on which it is not allowed, or that has no `ip` and `tc`.
    pub fn new(processes: usize, rate: Rate) -> anyhow::Result<Self> {
        // Deletes what there is already where something goes wrong.
        let network = Self { processes };
        let advice = "--link makes network namespaces, which takes root, and ip and tc of iproute2; leave it out to use loopback";
        network.make(rate).context(advice)?;
        Ok(network)
    }

    fn make(&self, rate: Rate) -> anyhow::Result<()> {
        let switch = &name("switch");
        say("ip", &["netns", "add", switch])?;
        say("ip", &["-n", switch, "link", "add", BRIDGE, "type", "bridge"])?;
        say("ip", &["-n", switch, "link", "set", BRIDGE, "up"])?;
        for process in 0..self.processes {
            let (space, port) = (&namespace(process), &format!("port{process}"));
            say("ip", &["netns", "add", space])?;
            say("ip", &["-n", switch, "link", "add", port, "type", "veth", "peer", "name", END, "netns", space])?;
            say("ip", &["-n", switch, "link", "set", port, "master", BRIDGE, "up"])?;
            say("ip", &["-n", space, "address", "add", &format!("{}/24", host(process)), "dev", END])?;
            say("ip", &["-n", space, "link", "set", "lo", "up"])?;
            say("ip", &["-n", space, "link", "set", END, "up"])?;
            limit(space, END, rate)?;
            limit(switch, port, rate)?;
        }
        Ok(())
    }

    /// Returns where each process listens.
    pub fn addresses(&self) -> Vec<String> {
        (0..self.processes).map(|process| format!("{}:{PORT}", host(process))).collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for space in (0..self.processes).map(namespace).chain([name("switch")]) {
            // One that could not be made is not there.
            let _ = say("ip", &["netns", "delete", &space]);
        }
    }
}

/// Returns a command that runs a program in the namespace of a process, as the very process that is started.
pub fn inside(process: usize, program: &OsStr) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &namespace(process)]).arg(program);
    command
}

/// Returns a name that no other command on this machine uses.
fn name(what: &str) -> String {
    format!("megagrid-{}-{what}", std::process::id())
}

fn namespace(process: usize) -> String {
    name(&process.to_string())
}

/// Returns the address of a process, of which there are fewer than 255.
fn host(process: usize) -> String {
    format!("10.77.0.{}", process + 1)
}

/// Limits what leaves an interface. The bucket holds what segmentation offload hands over at once.
fn limit(space: &str, interface: &str, rate: Rate) -> anyhow::Result<()> {
    let rate = format!("{}bit", rate.bits_per_second);
    let bucket = ["root", "tbf", "rate", &rate, "burst", "256kb", "latency", "50ms"];
    say("tc", &[&["-n", space, "qdisc", "add", "dev", interface], &bucket[..]].concat())
}

/// Runs a command that says nothing but what is wrong.
fn say(program: &str, args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    // Ctrl-C in a terminal is for this process only, which deletes what there is.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let output = command.output().with_context(|| program.to_owned())?;
    if !output.status.success() {
        bail!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for (text, written) in [("100Mbit", "100 Mbit/s"), ("1gbit", "1 Gbit/s"), ("1.5 Gbit", "1.5 Gbit/s")] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), written);
        }
        for wrong in ["", "100", "1Gbit,100us", "0bit", "-1Gbit", "1Tbit", "nanMbit", "1e9Gbit"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }
}

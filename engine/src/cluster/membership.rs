//! Who the processes of a job are, and what is wrong with lists of them.

use std::collections::HashSet;

use super::ClusterError;
use super::secret::Secret;

/// The processes of a job, as one of them knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The number of this process.
    pub process: usize,
    /// `host:port` of every process, at least two, the same list in all. This process listens at its own: where the list says
    /// a loopback address, only this machine can reach it.
    pub addresses: Vec<String>,
    /// What all processes know and nobody else does. Who does not is turned away.
    pub secret: Secret,
}

/// The addresses of all processes, separated by commas.
pub const HOSTS: &str = "MEGAGRID_HOSTS";

pub(super) type Result<T> = std::result::Result<T, ClusterError>;

impl Membership {
    /// Refuses lists of less than two addresses, malformed ones, and numbers without an address.
    pub(super) fn check(&self) -> Result<()> {
        self.check_as("the list of processes")?;
        parse_hosts(&self.addresses.join(",")).map(drop)
    }

    pub(super) fn check_as(&self, place: &str) -> Result<()> {
        let processes = self.addresses.len();
        if processes < 2 {
            return Err(wrong(place, format!("names {processes} processes; expected at least 2")));
        }
        if self.process >= processes {
            let last = processes - 1;
            let problem =
                format!("has {processes} processes, numbered 0 to {last}, and this one is number {}", self.process);
            return Err(wrong(place, problem));
        }
        Ok(())
    }
}

pub(super) fn wrong(place: impl Into<String>, problem: impl Into<String>) -> ClusterError {
    ClusterError::Membership { place: place.into(), problem: problem.into() }
}

/// Reads addresses separated by commas.
pub(super) fn parse_hosts(hosts: &str) -> Result<Vec<String>> {
    parse_addresses(hosts.split(',').map(|address| (HOSTS.to_owned(), address.trim())))
}

pub(super) fn parse_addresses<'a>(addresses: impl Iterator<Item = (String, &'a str)>) -> Result<Vec<String>> {
    let mut seen = HashSet::new();
    let mut checked = Vec::new();
    for (place, address) in addresses {
        check_address(address).map_err(|problem| wrong(place.clone(), format!("\"{address}\" {problem}")))?;
        if !seen.insert(address) {
            return Err(wrong(place, format!("\"{address}\" stands there twice; give each process a port of its own")));
        }
        checked.push(address.to_owned());
    }
    Ok(checked)
}

fn check_address(address: &str) -> std::result::Result<(), &'static str> {
    let Some((host, port)) = address.rsplit_once(':') else {
        return Err("has no port; expected host:port");
    };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || host.contains(char::is_whitespace) || (host.contains(':') && !is_bracketed) {
        return Err("is no address; expected host:port, or [address]:port for IPv6");
    }
    match port.parse::<u16>() {
        Ok(1..) => Ok(()),
        _ => Err("has no port from 1 to 65535; expected host:port"),
    }
}

pub(super) fn number(name: &str, value: &str) -> Result<usize> {
    value.trim().parse().map_err(|_| wrong(name, format!("\"{value}\" is no number of a process, counted from 0")))
}

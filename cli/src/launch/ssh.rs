//! Processes on other machines, started by the system's ssh.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use megagrid_engine::cluster::{ClusterError, HOSTS, Membership, PROCESS, SECRET, SECRET_FILE};

use crate::cluster::{LAUNCHED, PATIENCE_VARIABLE};
use crate::failure::usage;

/// The port of a host's first process; those after it listen at the ports behind it.
const FIRST_PORT: u16 = 7100;

/// Other machines, as options name them.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "machines")]
pub struct Hosts {
    /// Machines, a process on each: [user@]host[:port], separated by commas.
    #[arg(long, value_name = "HOSTS", value_delimiter = ',', requires = "ssh", conflicts_with = "processes")]
    pub hosts: Vec<String>,
    /// Start the processes by ssh, or by another program that takes a host and a command as it does.
    #[arg(long, value_name = "PROGRAM", requires = "hosts", conflicts_with = "processes", num_args = 0..=1, require_equals = true,
          default_missing_value = "ssh -o BatchMode=yes")]
    pub ssh: Option<String>,
    /// Where this program is on the hosts [default: where it is here].
    #[arg(long, value_name = "PATH", requires = "hosts", conflicts_with = "processes")]
    pub program: Option<PathBuf>,
}

impl Hosts {
    /// Returns how the hosts are reached, and the addresses of their processes; nothing if there are none.
    pub fn reached(&self, port_base: Option<u16>) -> anyhow::Result<Option<(Ssh, Vec<String>)>> {
        let Some(words) = &self.ssh else { return Ok(None) };
        let (ssh, addresses) = Ssh::new(words, &self.hosts, port_base)?;
        check_addresses(&addresses)?;
        Ok(Some((ssh, addresses)))
    }

    /// Returns the program that processes run.
    pub fn program(&self) -> anyhow::Result<PathBuf> {
        self.program.clone().map_or_else(|| std::env::current_exe().context("finding the program that runs"), Ok)
    }
}

/// Hosts, and how they are reached.
pub struct Ssh {
    /// The program and its options.
    words: Vec<String>,
    /// What ssh calls the host of each process, a name of a user before it included.
    hosts: Vec<String>,
}

impl Ssh {
    /// Reads a list of hosts, `[user@]host[:port]` each; several processes run on a host that is there several times. Returns the
    /// addresses of the processes, too.
    pub fn new(words: &str, hosts: &[String], port_base: Option<u16>) -> anyhow::Result<(Self, Vec<String>)> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            return Err(usage("--ssh is empty; expected a program and its options, or nothing for ssh".to_owned()));
        }
        let (mut next, mut names, mut addresses) = (HashMap::new(), Vec::new(), Vec::new());
        for host in hosts {
            let (name, port) = match host.rsplit_once(':') {
                Some((name, port)) if !name.ends_with(':') && !port.ends_with(']') => (name, Some(port)),
                _ => (host.as_str(), None),
            };
            let machine = name.rsplit_once('@').map_or(name, |(_, machine)| machine);
            if machine.is_empty() || machine.starts_with('-') {
                return Err(usage(format!("--hosts has \"{host}\"; expected [user@]host[:port]")));
            }
            let next = next.entry(machine).or_insert_with(|| u32::from(port_base.unwrap_or(FIRST_PORT)));
            let port = port.map_or_else(|| next.to_string(), str::to_owned);
            *next += 1;
            // An address of IPv6 has brackets before a port only.
            let bare = machine.trim_start_matches('[').trim_end_matches(']');
            names.push(format!("{}{bare}", name.strip_suffix(machine).unwrap_or_default()));
            addresses.push(format!("{machine}:{port}"));
        }
        Ok((Self { words, hosts: names }, addresses))
    }

    /// Returns what starts a process and forwards what it says. Its standard input takes the job's secret as the first line; when it
    /// ends, so does the process.
    pub fn command(
        &self,
        program: &Path,
        command: &[OsString],
        addresses: &[String],
        number: usize,
    ) -> anyhow::Result<Command> {
        let directory = std::env::current_dir().context("finding the current directory")?;
        let mut variables =
            vec![(HOSTS, addresses.join(",")), (PROCESS, number.to_string()), (LAUNCHED, "ssh".to_owned())];
        variables.extend(std::env::var(PATIENCE_VARIABLE).map(|seconds| (PATIENCE_VARIABLE, seconds)));
        let mut run = String::new();
        for (name, value) in variables {
            run += &format!("{name}={} ", quoted(&value));
        }
        for word in std::iter::once(program.as_os_str()).chain(command.iter().map(OsString::as_os_str)) {
            run += &quoted(as_text(word)?);
            run.push(' ');
        }
        let directory = quoted(as_text(directory.as_os_str())?);
        // Who watches the input must keep nothing open that ssh waits for. A secret of the machine's own is none of this job's.
        let script = format!(
            "IFS= read -r {SECRET} || exit 1; export {SECRET}; unset {SECRET_FILE}; cd {directory} || exit 1; exec 3<&0 </dev/null; \
             {run}3<&- & process=$!; {{ cat <&3; kill -TERM $process; }} >/dev/null 2>&1 & watcher=$!; \
             exec 3<&-; wait $process; code=$?; kill $watcher; exit $code"
        );
        let mut ssh = Command::new(&self.words[0]);
        ssh.args(&self.words[1..]).arg(&self.hosts[number]).arg(script).stdin(Stdio::piped());
        Ok(ssh)
    }
}

/// Refuses addresses that the processes would refuse, each for itself, and in other words.
fn check_addresses(addresses: &[String]) -> anyhow::Result<()> {
    let of_first = |name: &str| match name {
        HOSTS => Some(addresses.join(",")),
        PROCESS => Some("0".to_owned()),
        _ => None,
    };
    match Membership::from_environment(of_first) {
        Err(ClusterError::Membership { problem, .. }) => Err(usage(format!("--hosts: {problem}"))),
        checked => checked.map(drop).map_err(Into::into),
    }
}

fn as_text(word: &std::ffi::OsStr) -> anyhow::Result<&str> {
    let text = word.to_str();
    text.ok_or_else(|| usage(format!("{} is not UTF-8, and cannot be said by ssh", word.display())))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(hosts: &[&str], port_base: Option<u16>) -> (Vec<String>, Vec<String>) {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let (ssh, addresses) = Ssh::new("ssh", &hosts, port_base).unwrap();
        (ssh.hosts, addresses)
    }

    #[test]
    fn processes_of_a_host_have_ports_of_their_own() {
        let (hosts, found) =
            addresses(&["a", "me@b", "a", "c:99", "[::1]", "[::1]:98", "me@[::1]", "me@[fe80::1]:7"], None);
        assert_eq!(hosts, ["a", "me@b", "a", "c", "::1", "::1", "me@::1", "me@fe80::1"]);
        let of_names = ["a:7100", "b:7100", "a:7101", "c:99"];
        assert_eq!(found, [&of_names[..], &["[::1]:7100", "[::1]:98", "[::1]:7102", "[fe80::1]:7"]].concat());
        assert_eq!(addresses(&["a", "a"], Some(9)).1, ["a:9", "a:10"]);
    }

    #[test]
    fn hosts_that_are_none_are_refused() {
        for bad in ["", ":7", "me@", "-oProxyCommand=x"] {
            assert!(Ssh::new("ssh", &[bad.to_owned()], None).is_err(), "{bad}");
        }
        assert!(Ssh::new(" ", &["a".to_owned()], None).is_err());
    }

    #[test]
    fn words_stay_what_they_are() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
        let out = Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted("a 'b' $c \\ \n"))).output().unwrap();
        assert_eq!(out.stdout, b"a 'b' $c \\ \n");
    }
}

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
/// What a token bucket must hold for any frame to leave: one of Ethernet, with its header. The kernel cuts what segmentation offload
/// hands over at once to such frames, and drops a frame that is larger than the bucket.
const FRAME_BYTES: u64 = 1600;
/// What waits at a slow link, at least: four times what segmentation offload hands over at once.
const QUEUE_BYTES: u64 = 256 << 10;

/// What a link carries, each way.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate {
    bits_per_second: u64,
}

/// The fastest rate that a link keeps.
pub const KEPT: Rate = Rate { bits_per_second: 1_000_000_000 };
/// The slowest. What waits at such a link holds a heartbeat back for 2 s; at a fourth of the rate it would be the 8 s after which a process counts as
/// lost.
const SLOWEST: Rate = Rate { bits_per_second: 1_000_000 };

impl Rate {
    /// Returns what goes at once after a silence: what the link carries in a millisecond. Smaller buckets run dry while the kernel wakes up to
    /// refill them. With this one a connection reaches [`KEPT`] to 3 %, and less of faster links: 0.72 of 10 Gbit/s.
    fn bucket_bytes(self) -> u64 {
        (self.bits_per_second / 8 / 1000).max(FRAME_BYTES)
    }

    /// Returns what may wait for a bucket: what the link carries in 50 ms.
    fn queue_bytes(self) -> u64 {
        (self.bits_per_second / 8 / 20).max(QUEUE_BYTES)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let link = format!("{text},0s").parse::<Link>().ok().filter(|_| !text.contains(','));
        let bits = link.map(|link| link.bytes_per_second * 8.0).filter(|bits| *bits <= 1e11);
        let rate = bits.map(|bits| Self { bits_per_second: bits as u64 }).filter(|rate| *rate >= SLOWEST);
        rate.ok_or_else(|| "expected a rate such as 100Mbit, between 1Mbit and 100Gbit a second".to_owned())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits_per_second as f64;
        match self.bits_per_second {
            1_000_000_000.. => write!(f, "{} Gbit/s", bits / 1e9),
            _ => write!(f, "{} Mbit/s", bits / 1e6),
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

/// Limits what leaves an interface.
fn limit(space: &str, interface: &str, rate: Rate) -> anyhow::Result<()> {
    let [bits, bucket, queue] = [rate.bits_per_second, rate.bucket_bytes(), rate.queue_bytes()];
    let [rate, burst, limit] = [format!("{bits}bit"), format!("{bucket}b"), format!("{queue}b")];
    let bucket = ["root", "tbf", "rate", &rate, "burst", &burst, "limit", &limit];
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
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    const ROLE: &str = "MEGAGRID_TEST_ROLE";
    /// Less than what a bucket of a fixed size would let through at once.
    const SENT_BYTES: usize = 200_000;

    #[test]
    fn buckets_hold_a_millisecond_and_a_frame_at_least() {
        let sizes =
            [("1Mbit", 1600), ("10Mbit", 1600), ("100Mbit", 12_500), ("1Gbit", 125_000), ("100Gbit", 12_500_000)];
        for (text, bytes) in sizes {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.bucket_bytes(), bytes, "{text}");
            assert!(rate.queue_bytes() >= 4 * 65_536, "{text}: what segmentation offload hands over at once can wait");
        }
    }

    /// One end of a transfer; a test only where the variable says so.
    #[test]
    fn transfer() {
        let address = format!("{}:{PORT}", host(1));
        match std::env::var(ROLE).as_deref() {
            Ok("receive") => {
                let mut all = Vec::new();
                TcpListener::bind(address).unwrap().accept().unwrap().0.read_to_end(&mut all).unwrap();
                assert_eq!(all.len(), SENT_BYTES);
            }
            Ok("send") => {
                let first = Instant::now();
                let mut connection = loop {
                    match TcpStream::connect(&address) {
                        Ok(connection) => break connection,
                        Err(error) => assert!(first.elapsed() < Duration::from_secs(60), "{address}: {error}"),
                    }
                    std::thread::sleep(Duration::from_millis(10));
                };
                let begin = Instant::now();
                connection.write_all(&[7; SENT_BYTES]).unwrap();
                connection.shutdown(Shutdown::Write).unwrap();
                // The other end closes when it has all.
                connection.read_to_end(&mut Vec::new()).unwrap();
                println!("seconds: {}", begin.elapsed().as_secs_f64());
            }
            _ => {}
        }
    }

    /// No machine is so fast that a link carries more than its rate. How near it comes depends on what else runs, but a link that loses most of
    /// what is sent comes nowhere near it.
    #[test]
    fn a_link_has_its_rate() {
        let probe = name("probe");
        if let Err(error) = say("ip", &["netns", "add", &probe]) {
            return eprintln!("skipped: {error:#}");
        }
        say("ip", &["netns", "delete", &probe]).unwrap();
        let rate: Rate = "20Mbit".parse().unwrap();
        let network = Network::new(2, rate).unwrap();
        let start = |process: usize, role: &str| {
            let mut command = inside(process, std::env::current_exe().unwrap().as_os_str());
            command.args(["--exact", "compare::network::tests::transfer", "--nocapture"]).env(ROLE, role);
            command.stdout(Stdio::piped()).spawn().unwrap()
        };
        let [mut receives, sends] = [(1, "receive"), (0, "send")].map(|(process, role)| start(process, role));
        let sent = sends.wait_with_output().unwrap();
        if !sent.status.success() {
            // Nothing will come.
            receives.kill().unwrap();
        }
        assert!(receives.wait_with_output().unwrap().status.success());
        drop(network);
        let text = String::from_utf8(sent.stdout).unwrap();
        let (_, seconds) = text.split_once("seconds: ").unwrap_or_else(|| panic!("no time in {text}"));
        let seconds: f64 = seconds.split_whitespace().next().unwrap().parse().unwrap();
        let beyond_bucket = 8.0 * (SENT_BYTES as u64 - rate.bucket_bytes()) as f64;
        let share = beyond_bucket / seconds / rate.bits_per_second as f64;
        assert!((0.05..=1.0).contains(&share), "{SENT_BYTES} bytes in {seconds} s are {share} of {rate}");
    }

    #[test]
    fn rates_are_read_and_written() {
        for (text, written) in [("100Mbit", "100 Mbit/s"), ("1gbit", "1 Gbit/s"), ("1.5 Gbit", "1.5 Gbit/s")] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), written);
        }
        for wrong in ["", "100", "1Gbit,100us", "0bit", "999kbit", "-1Gbit", "1Tbit", "nanMbit", "1e9Gbit"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }
}

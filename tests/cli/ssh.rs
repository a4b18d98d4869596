//! `megagrid launch --hosts --ssh`, with a script in place of ssh, and with a real server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::launched::{self, end, send};
use crate::members::addresses;
use crate::{Place, done, fails, json};

/// What ssh does but for the way: joins words, and has a shell run them. It keeps what it was told.
const SCRIPT: &str = "#!/bin/sh\nprintf '%s\\n' \"$*\" >> \"$0.told\"\nshift\nexec sh -c \"$*\"\n";

/// Two processes of this machine, as a list of hosts.
fn hosts() -> String {
    addresses(2).join(",")
}

fn script(place: &Place, text: &str) -> String {
    let path = place.file("ssh", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

/// Trains on the hosts and compares with processes that are started here.
fn agrees(place: &Place, options: &[&str]) {
    let (here, there) = (place.name("here.json"), place.name("it's there.json"));
    let ratings = place.ratings();
    let train = |record: &str, options: &[&str]| {
        let command = ["--", "mf", &ratings, "-w", "1", "-q", "--iterations", "3", "--json", record];
        done(&[&["launch"], options, &command].concat());
        json(record)["result"]["objective"].as_f64().unwrap()
    };
    assert_eq!(train(&there, options), train(&here, &["-n", "2"]));
}

#[test]
fn processes_on_hosts_train_as_those_here() {
    let place = Place::new();
    let ssh = script(&place, SCRIPT);
    agrees(&place, &["--hosts", &hosts(), &format!("--ssh={ssh}")]);
    let told = fs::read_to_string(format!("{ssh}.told")).unwrap();
    assert!(told.contains("MEGAGRID_PROCESS='1'") && told.starts_with("127.0.0.1 "), "{told}");
    // What stands in a command all users of a machine can read.
    assert!(!told.contains("MEGAGRID_SECRET="), "{told}");
}

/// A host where a file with a secret is named for all jobs.
#[test]
fn a_secret_of_a_host_is_none_of_the_job() {
    let place = Place::new();
    let (secret, ratings) = (place.file("secret", "of this host"), place.ratings());
    let text = SCRIPT.replace("shift\n", &format!("shift\nexport MEGAGRID_SECRET_FILE='{secret}'\n"));
    let ssh = script(&place, &text);
    let command = ["--", "mf", &ratings, "-w", "1", "-q", "--iterations", "1"];
    done(&[&["launch", "--hosts", &hosts(), &format!("--ssh={ssh}")], &command[..]].concat());
}

/// Systems on hosts have the objectives of those in processes here; what was measured comes by the output of the first.
#[cfg(feature = "baselines")]
#[test]
fn a_comparison_runs_on_hosts() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("compare.json"));
    let systems = ["--systems", "megagrid,lazytable", "--repeat", "1", "--iterations", "3", "-w", "1"];
    let compare = |where_: &[&str]| {
        done(&[&["compare", "mf", &ratings, "--json", &record], &systems[..], where_].concat());
        json(&record)
    };
    let hosts = hosts();
    let there = compare(&["--hosts", &hosts, &format!("--ssh={}", script(&place, SCRIPT))]);
    let here = compare(&["--processes", "2"]);
    assert_eq!(there["hosts"].as_array().unwrap().len(), 2);
    assert_eq!((&there["processes"], here.get("hosts")), (&here["processes"], None));
    for at in [0, 1] {
        let objective = |of: &serde_json::Value| of["systems"][at]["objective"]["median"].as_f64().unwrap();
        assert!((objective(&there) / objective(&here) - 1.0).abs() < 1e-6);
    }
    let none = script(&place, "#!/bin/sh\nexit 255\n");
    let args = ["compare", "mf", &ratings, "--systems", "megagrid", "--hosts", "a,b"];
    fails(&[&args[..], &[&format!("--ssh={none}")]].concat(), 1, &["megagrid: process 0 was not reached by ssh"]);
    fails(&[&args[..], &["--ssh", "--processes", "2"]].concat(), 2, &["cannot be used"]);
}

#[test]
fn hosts_that_cannot_be_reached_end_all() {
    let place = Place::new();
    let ssh = script(&place, "#!/bin/sh\nexit 255\n");
    let command = ["--", "mf", &place.ratings()];
    let on = |options: &[&str], code, parts: &[&str]| fails(&[&["launch"], options, &command].concat(), code, parts);
    on(&["--hosts", "a,b", &format!("--ssh={ssh}")], 1, &["was not reached by ssh"]);
    on(&["--hosts", "a,b", "--ssh=/none/ssh"], 1, &["starting process 0", "/none/ssh"]);
    on(&["--hosts", "a,-x", "--ssh"], 2, &["\"-x\"", "[user@]host[:port]"]);
    on(&["--hosts", "a:99999,b", "--ssh"], 2, &["--hosts: \"a:99999\" has no port from 1 to 65535"]);
    on(&["--hosts", "a:99,a:99", "--ssh"], 2, &["--hosts: \"a:99\" stands there twice"]);
    on(&["--hosts", "a,b"], 2, &["--ssh"]);
    on(&["-n", "2", "--ssh"], 2, &["cannot be used"]);
}

fn endless(options: &[&str], place: &Place) -> Child {
    launched::mf(options, &[&place.ratings(), "--iterations", "1000000000"])
}

/// Interrupts a job once it trains, and sees all its processes end.
fn is_interrupted(launched: Child, place: &Place) {
    let input = place.ratings();
    let running = || processes_with(&input).into_iter().filter(|id| *id != launched.id()).collect::<Vec<_>>();
    launched::wait(|| running().len() >= 2);
    send("-INT", launched.id());
    let (code, messages) = end(launched);
    assert_eq!(code, Some(130), "{messages}");
    launched::wait(|| processes_with(&input).is_empty());
}

/// Lists the processes that run `megagrid mf` with an input.
fn processes_with(input: &str) -> Vec<u32> {
    let of = |entry: fs::DirEntry| {
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let mut words = words.split(|&byte| byte == 0);
        let is_it = words.next()?.ends_with(b"megagrid") && words.any(|word| word == input.as_bytes());
        is_it.then(|| entry.file_name().to_string_lossy().parse().ok()).flatten()
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect()
}

#[test]
fn an_interrupt_ends_processes_on_hosts() {
    let place = Place::new();
    let ssh = script(&place, SCRIPT);
    is_interrupted(endless(&["--hosts", &hosts(), &format!("--ssh={ssh}")], &place), &place);
}

/// A server of this user only, at a free port.
struct Server(Child);

impl Server {
    /// Starts it, and returns the program and options that reach it.
    fn start(place: &Place) -> (Self, String) {
        let key = place.name("key");
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]).status().unwrap();
        assert!(made.success());
        let address = addresses(1).remove(0);
        let (_, port) = address.rsplit_once(':').unwrap();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {key}\nAuthorizedKeysFile {key}.pub\nStrictModes no\n\
             UsePAM no\nPidFile none\nPasswordAuthentication no\n"
        );
        let config = place.file("sshd_config", &config);
        let _ = fs::create_dir_all("/run/sshd");
        let server = Command::new("/usr/sbin/sshd").args(["-D", "-f", &config]).stderr(Stdio::null()).spawn().unwrap();
        launched::wait(|| std::net::TcpStream::connect(&address).is_ok());
        let known = format!("-o UserKnownHostsFile={key}.known -o StrictHostKeyChecking=no -o LogLevel=ERROR");
        (Self(server), format!("--ssh=ssh -p {port} -i {key} -o BatchMode=yes {known}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs /usr/sbin/sshd and ssh-keygen"]
fn a_real_server_of_ssh_starts_and_ends_processes() {
    assert!(Path::new("/usr/sbin/sshd").exists(), "sshd is not there");
    let place = Place::new();
    let (_server, ssh) = Server::start(&place);
    agrees(&place, &["--hosts", &hosts(), &ssh]);
    is_interrupted(endless(&["--hosts", &hosts(), &ssh], &place), &place);
}

//! Processes that run together and end together, on this machine or on others.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use megagrid_engine::cluster::{HOSTS, PROCESS, SECRET, SECRET_FILE, Secret};
use megagrid_partition::parallel::lock;

use crate::cluster::{ENDED_BY_ANOTHER, LAUNCHED};
use crate::failure::usage;
use crate::interrupt;

use super::ssh::Ssh;

/// How often processes are looked at.
const POLL: Duration = Duration::from_millis(20);
/// When one has failed, the others end by themselves within this time, are then asked to, and killed after as long again.
const BY_THEMSELVES: Duration = Duration::from_secs(1);
/// The same where all have been asked to end, and may be writing checkpoints.
const INTERRUPTED: Duration = Duration::from_secs(30);

/// The exit code of an ssh that has none of the process to tell.
const LOST_BY_SSH: i32 = 255;

/// The exit code of a process that panicked.
const PANICKED: i32 = 101;

/// A shell tells of a process that a signal killed by an exit code that is the signal's number above this one.
const BY_SIGNAL: i32 = 128;

/// What processes are started as.
pub struct Job<'j> {
    pub program: &'j Path,
    pub command: &'j [OsString],
    /// Where each listens; empty: there is one process, which is no part of a cluster.
    pub addresses: &'j [String],
    /// How their hosts are reached; `None`: they run on this machine.
    pub ssh: Option<&'j Ssh>,
    /// What runs the program of a process, by its number, on this machine; `None`: it runs as it is.
    pub inside: Option<Inside>,
    /// Where what they say is kept, line by line; `None`: it is shown.
    pub kept: Option<Kept>,
    /// Where process 0 writes; `None`: to this process's output, or nowhere where what it says is kept.
    pub output: Option<File>,
}

/// Returns a command that runs a program as the process of a number.
pub type Inside = fn(usize, &OsStr) -> Command;

/// Lines that processes have said, in the order in which they came.
pub type Kept = Arc<Mutex<Vec<String>>>;

/// How a job ended.
pub enum Ended {
    /// All processes are done.
    Done,
    /// It was asked to end.
    Interrupted,
    /// A process failed, and all have ended.
    Failed {
        /// The first.
        process: usize,
        /// How it ended.
        how: How,
        /// Whether the same command may do better when it is started again: a process died, and none said what is wrong.
        is_death: bool,
    },
}

/// How a process ended.
pub struct How {
    status: ExitStatus,
    /// It did not end when it should have.
    was_stuck: bool,
}

impl How {
    /// Returns the exit code to end with.
    pub fn code(&self) -> u8 {
        match self.status.code().filter(|_| !self.was_stuck) {
            None | Some(ENDED_BY_ANOTHER | LOST_BY_SSH) => 1,
            Some(code) => u8::try_from(code).unwrap_or(1),
        }
    }

    /// Tells whether the process died: by a signal, here or behind ssh, by a panic that nothing caught, or with the connection to its host.
    fn is_death(&self) -> bool {
        !self.was_stuck && self.status.code().is_none_or(|code| code == PANICKED || code > BY_SIGNAL)
    }

    /// Tells whether the process said itself what is wrong, which it would say again.
    fn is_stated(&self) -> bool {
        !self.was_stuck && !self.is_death() && self.status.code() != Some(ENDED_BY_ANOTHER)
    }

    /// Of processes that failed at about the same time the smallest was the first: a process may end because of another,
    /// but is not killed by it.
    fn order(&self) -> u8 {
        match self.status.code() {
            _ if self.was_stuck => 2,
            None => 0,
            Some(ENDED_BY_ANOTHER) => 3,
            Some(_) => 1,
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.was_stuck {
            return write!(formatter, "did not end with the others");
        }
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&self.status) {
            return write!(formatter, "was killed by signal {signal}");
        }
        match self.status.code() {
            Some(ENDED_BY_ANOTHER) => write!(formatter, "ended because another was lost"),
            Some(LOST_BY_SSH) => write!(formatter, "was not reached by ssh, or its connection broke"),
            Some(code) => write!(formatter, "ended with exit code {code}"),
            None => write!(formatter, "was killed"),
        }
    }
}

/// Returns where the processes listen on this machine, at ports from `base` on.
pub fn addresses(processes: usize, base: u16) -> anyhow::Result<Vec<String>> {
    let ports = usize::from(base)..usize::from(base) + processes;
    if ports.end > 1 << 16 {
        return Err(usage(format!("{processes} ports from --port-base {base} on are more than there are")));
    }
    Ok(ports.map(|port| format!("127.0.0.1:{port}")).collect())
}

/// A process under way.
struct Process {
    child: Child,
    /// The end of it asks a process on another machine to end.
    input: Option<ChildStdin>,
    status: Option<ExitStatus>,
    was_stuck: bool,
    messages: Option<JoinHandle<()>>,
}

/// Runs a process for each address, or one for none, until all have ended.
pub fn run(job: &Job<'_>) -> anyhow::Result<Ended> {
    let mut processes = Vec::new();
    let secret = secret(job.ssh.is_some())?;
    for number in 0..job.addresses.len().max(1) {
        match job.start(secret.as_deref(), number) {
            Ok(process) => processes.push(process),
            Err(error) => {
                processes.iter_mut().for_each(Process::kill);
                return Err(error).with_context(|| format!("starting process {number}"));
            }
        }
    }
    let interrupts = watch(&mut processes)?;
    for process in &mut processes {
        process.messages.take().map(JoinHandle::join);
    }
    let failed = processes.into_iter().enumerate().filter_map(|(number, process)| {
        let status = process.status.filter(|status| !status.success())?;
        Some((number, How { status, was_stuck: process.was_stuck }))
    });
    let failed: Vec<(usize, How)> = failed.collect();
    // Whoever survives another may say something that follows from its death.
    let is_death = failed.iter().any(|(_, how)| how.is_death()) || !failed.iter().any(|(_, how)| how.is_stated());
    Ok(match failed.into_iter().min_by_key(|(_, how)| how.order()) {
        None => Ended::Done,
        Some(_) if interrupts > 0 => Ended::Interrupted,
        Some((process, how)) => Ended::Failed { process, how, is_death },
    })
}

/// Returns the secret of the job, drawn if none is given, so that others cannot take part; `None` if there is one that processes inherit.
fn secret(is_sent: bool) -> anyhow::Result<Option<String>> {
    let given = |name| std::env::var_os(name).is_some();
    if !given(SECRET) && !given(SECRET_FILE) {
        return Secret::draw().map(Some).context("drawing a secret for the job");
    }
    if !is_sent {
        return Ok(None);
    }
    let text = match std::env::var_os(SECRET_FILE).filter(|_| !given(SECRET)) {
        Some(file) => std::fs::read_to_string(&file).with_context(|| file.display().to_string())?,
        None => std::env::var(SECRET)?,
    };
    let text = text.trim_ascii_end();
    if text.is_empty() || text.contains('\n') {
        return Err(usage("the secret of the job is empty, or has several lines; expected one".to_owned()));
    }
    Ok(Some(text.to_owned()))
}

impl Job<'_> {
    fn start(&self, secret: Option<&str>, number: usize) -> anyhow::Result<Process> {
        let mut of_process = match self.ssh {
            Some(ssh) => ssh.command(self.program, self.command, self.addresses, number)?,
            None => self.here(secret, number),
        };
        if number > 0 || self.kept.is_some() {
            of_process.stdout(Stdio::null()).stderr(Stdio::piped());
        }
        if let Some(output) = self.output.as_ref().filter(|_| number == 0) {
            of_process.stdout(output.try_clone().context("a file for a process's output")?);
        }
        // Ctrl-C in a terminal goes only to this process, which forwards it: else it would count as two.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut of_process, 0);
        let mut child = of_process.spawn().with_context(|| of_process.get_program().display().to_string())?;
        let mut input = child.stdin.take();
        if let (Some(input), Some(secret)) = (&mut input, secret) {
            // A process that has ended already says why by its exit code.
            let _ = writeln!(input, "{secret}");
        }
        let kept = self.kept.clone();
        let messages =
            child.stderr.take().map(|stderr| std::thread::spawn(move || hear(number, stderr, kept.as_ref())));
        Ok(Process { child, input, status: None, was_stuck: false, messages })
    }

    fn here(&self, secret: Option<&str>, number: usize) -> Command {
        let program = self.program.as_os_str();
        let mut of_process = self.inside.map_or_else(|| Command::new(program), |inside| inside(number, program));
        of_process.args(self.command).stdin(Stdio::null());
        if !self.addresses.is_empty() {
            of_process.env(HOSTS, self.addresses.join(",")).env(PROCESS, number.to_string());
            of_process.envs(secret.map(|secret| (SECRET, secret)));
        }
        of_process.env(LAUNCHED, std::process::id().to_string());
        of_process
    }
}

/// Shows the messages of a process, or keeps them.
fn hear(number: usize, stderr: impl Read, kept: Option<&Kept>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while stderr.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        let said = String::from_utf8_lossy(&line).trim_end().to_owned();
        match kept {
            None => eprintln!("[process {number}] {said}"),
            Some(kept) => lock(kept).push(said),
        }
        line.clear();
    }
}

/// Waits until all processes have ended, and forwards interrupts to them. Returns how many there were.
fn watch(processes: &mut [Process]) -> anyhow::Result<u32> {
    let mut forwarded = 0;
    let mut failed_at = None;
    let mut asked = false;
    loop {
        for process in processes.iter_mut().filter(|process| process.status.is_none()) {
            process.status = process.child.try_wait().context("waiting for a process")?;
        }
        if processes.iter().all(|process| process.status.is_some()) {
            return Ok(interrupt::count());
        }
        let is_failed = |process: &Process| process.status.is_some_and(|status| !status.success());
        if failed_at.is_none() && processes.iter().any(is_failed) {
            failed_at = Some(Instant::now());
        }
        let since = failed_at.map_or(Duration::ZERO, |at| at.elapsed());
        let patience = if interrupt::count() > 0 { INTERRUPTED } else { BY_THEMSELVES };
        let running = processes.iter_mut().filter(|process| process.status.is_none());
        if since > 2 * patience {
            running.for_each(|process| {
                process.was_stuck = true;
                process.kill();
            });
        } else if interrupt::count() > forwarded || (since > patience && !asked) {
            forwarded = interrupt::count();
            asked = since > patience;
            running.for_each(|process| {
                process.was_stuck = asked;
                process.ask();
            });
        }
        std::thread::sleep(POLL);
    }
}

impl Process {
    /// Asks the process to end.
    fn ask(&mut self) {
        if self.input.take().is_some() {
            return;
        }
        #[cfg(unix)]
        {
            use nix::sys::signal::{Signal, kill};
            // It has not been waited for, so the id is still its own.
            if let Ok(id) = i32::try_from(self.child.id()) {
                let _ = kill(nix::unistd::Pid::from_raw(id), Signal::SIGTERM);
            }
        }
        #[cfg(not(unix))]
        self.kill();
    }

    fn kill(&mut self) {
        // It may have ended just now.
        let _ = self.child.kill();
    }
}

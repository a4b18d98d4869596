//! Launched processes as tests handle them.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// After this long something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts `megagrid launch` of a quiet factorization with one worker in each process.
pub fn mf(options: &[&str], command: &[&str]) -> Child {
    launch(options, &[&["mf", "-w", "1", "-q"], command].concat())
}

/// The same of one that tunes itself.
pub fn tune_mf(options: &[&str], command: &[&str]) -> Child {
    launch(options, &[&["tune", "mf", "-w", "1", "-q"], command].concat())
}

/// Starts `megagrid launch` of a command.
pub fn launch(options: &[&str], command: &[&str]) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args([&["launch"], options, &["--"], command].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for something that will come.
pub fn wait(mut is_there: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_there() {
        assert!(begin.elapsed() < PATIENCE, "nothing came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for a process of a launched command, other than `known`, and returns its id.
pub fn process(launch: &Child, number: usize, known: Option<u32>) -> u32 {
    let variable = format!("MEGAGRID_PROCESS={number}");
    let is_it = |id: &u32| {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        Some(*id) != known && environment.split(|&byte| byte == 0).any(|one| one == variable.as_bytes())
    };
    let mut found = None;
    wait(|| {
        found = children(launch).into_iter().find(is_it);
        found.is_some()
    });
    found.unwrap()
}

/// Returns the ids of the processes that a command's first thread has started.
pub fn children(of: &Child) -> Vec<u32> {
    let id = of.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

/// Waits until the first two processes have connections of data, which is when iterations begin.
pub fn is_training(launch: &Child) {
    let has_connections = |id: u32| {
        let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
        let mut names = threads.map(|thread| fs::read_to_string(thread.path().join("comm")).unwrap_or_default());
        names.any(|name| name.starts_with("timely:recv"))
    };
    let processes = [0, 1].map(|number| process(launch, number, None));
    // Tuning connects anew for each iteration.
    processes.iter().for_each(|&id| wait(|| has_connections(id)));
    std::thread::sleep(Duration::from_millis(50));
}

/// Returns the iteration of the newest checkpoint that is listed.
pub fn newest(directory: impl AsRef<Path>) -> Option<u64> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("iteration-")?.parse().ok()).max()
}

pub fn send(signal: &str, id: u32) {
    assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
}

/// Waits for the end; returns the exit code and the messages.
pub fn end(mut launch: Child) -> (Option<i32>, String) {
    let mut messages = String::new();
    launch.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
    (launch.wait().unwrap().code(), messages)
}

//! A training command as one of several processes.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

#[cfg(feature = "baselines")]
use megagrid_baselines::Error as Server;
use megagrid_engine::cluster::{Cluster, ClusterError, Membership, PATIENCE};
use megagrid_partition::parallel::lock;

use crate::failure::{error_of_cluster, usage};

/// How many seconds processes wait for each other at the start.
pub const PATIENCE_VARIABLE: &str = "MEGAGRID_PATIENCE";
/// Set by `megagrid launch`, which shows what its processes say and tells how they end.
pub const LAUNCHED: &str = "MEGAGRID_LAUNCHED";
/// The exit code, seen only by `megagrid launch`, of a process that ended because of another.
pub const ENDED_BY_ANOTHER: i32 = 3;

/// Longer than it takes to hear why another process ends.
const PROMPT: Duration = Duration::from_secs(3);

/// How far apart processes are that fail at a time.
const AT_A_TIME: Duration = Duration::from_millis(500);

/// The cluster of this process.
static CLUSTER: OnceLock<Arc<Cluster>> = OnceLock::new();

/// Joins the other processes, if the environment names some: see [`Membership::from_environment`]. If one of them is lost
/// or fails, this process then ends with one line and exit code 1. Call it once.
pub fn join() -> anyhow::Result<Option<Arc<Cluster>>> {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(membership) = Membership::from_environment(variable)? else { return Ok(None) };
    let patience = match variable(PATIENCE_VARIABLE).map(|seconds| (seconds.parse::<u32>(), seconds)) {
        None => PATIENCE,
        Some((Ok(seconds), _)) => Duration::from_secs(seconds.into()),
        Some((Err(_), found)) => {
            return Err(usage(format!("{PATIENCE_VARIABLE} is \"{found}\"; expected a number of seconds")));
        }
    };
    watch_launcher();
    let cluster = match Cluster::join(&membership, patience) {
        // One that was there before has failed, and says so itself.
        Err(ClusterError::Ended(reason)) => end(membership.process, &reason),
        joined => joined?,
    };
    let process = cluster.process();
    cluster.on_loss(move |reason| end(process, reason));
    Ok(Some(CLUSTER.get_or_init(|| cluster).clone()))
}

/// Parts from the other processes as the command ends: they are told why it failed, or that it did not.
pub fn part(outcome: &anyhow::Result<()>) {
    let Some(cluster) = CLUSTER.get() else { return };
    let Err(error) = outcome else { return cluster.leave() };
    for cause in error.chain() {
        match (error_of_cluster(cause), cause.downcast_ref()) {
            // They know, and so does the handler, which is about to say it.
            (Some(ClusterError::Ended(reason)), _) => end(cluster.process(), reason),
            _ if may_follow(cause) => {
                // The reason is on its way. If it comes to nothing, this one is as good.
                if let Some(reason) = cluster.reason(PROMPT) {
                    end(cluster.process(), &reason);
                }
            }
            // The same message everywhere.
            (Some(ClusterError::Differs(_)), _) => return cluster.leave(),
            // All are asked to end, and end after the same iteration.
            (_, Some(megagrid_training::Error::Interrupted { .. })) => {
                cluster.leave();
                if is_launched() && cluster.process() > 0 {
                    // The first one says it.
                    std::process::exit(crate::interrupt::EXIT_CODE);
                }
                return;
            }
            _ => {}
        }
    }
    let message = crate::failure::message(error);
    // What fails in all processes at a time is shown once.
    if is_launched()
        && cluster.process() > 0
        && let Some(reason) = cluster.reason(AT_A_TIME).filter(|reason| reason.ends_with(&message))
    {
        end(cluster.process(), &reason);
    }
    cluster.fail(&message);
    // The caller shows the message, unless the handler is about to show another's.
    std::mem::forget(last_word());
}

/// Ends the process with the reason for which the job ends, if there is one by and by.
pub fn end_if_lost(cluster: &Cluster) {
    if let Some(reason) = cluster.reason(PROMPT) {
        end(cluster.process(), &reason);
    }
}

/// Returns the id of the process that started this one by `launch`, on the same machine.
pub fn launcher() -> Option<u32> {
    std::env::var(LAUNCHED).ok().and_then(|id| id.parse().ok())
}

fn is_launched() -> bool {
    std::env::var_os(LAUNCHED).is_some()
}

/// Tells whether an error may follow from one of another process, which is about to say so, or from its loss.
fn may_follow(cause: &(dyn std::error::Error + 'static)) -> bool {
    use megagrid_engine::Error;
    #[cfg(feature = "baselines")]
    {
        use Server::{ClientLost, Io, Refused, ServerLost};
        let of_server =
            matches!(cause.downcast_ref(), Some(ClientLost { .. } | ServerLost { .. } | Refused(_) | Io { .. }));
        if of_server || matches!(cause.downcast_ref(), Some(megagrid_geeps::Error::Process { .. })) {
            return true;
        }
    }
    matches!(cause.downcast_ref(), Some(Error::Elsewhere { .. } | Error::EnginePanicked { .. }))
}

/// Keeps threads of runs from printing panics. Those of workers are caught and told as errors; with one process
/// `RUST_BACKTRACE` shows them all the same. Those of connections of data follow from the loss of a process, which has a
/// line of its own.
pub fn quiet_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default();
        let cluster = CLUSTER.get();
        // Whoever ends a run joins the threads of its connections, and panics where one of them did.
        let is_join =
            cluster.is_some() && panic.location().is_some_and(|at| at.file().contains("timely_communication"));
        let is_of_run = name.starts_with("timely:") || name.starts_with("worker ") || is_join;
        if !is_of_run || cluster.is_none() && std::env::var_os("RUST_BACKTRACE").is_some() {
            usual(panic);
        }
        let is_connection = name.starts_with("timely:recv") || name.starts_with("timely:send") || is_join;
        let Some(cluster) = cluster.filter(|_| is_connection) else { return };
        if cluster.reason(PROMPT).is_none() {
            let why = panic.payload().downcast_ref::<String>().map_or("no message", String::as_str);
            let reason = format!("a connection of data broke: {why}");
            cluster.fail(&reason);
            let _last = last_word();
            eprintln!("megagrid: {reason}");
            std::process::exit(lost());
        }
        if is_join && !name.starts_with("timely:") {
            // The thread that has the reason ends the process; here nothing can go on.
            std::thread::sleep(PROMPT);
            std::process::exit(lost());
        }
    }));
}

/// Ends the process because of another. Timely's threads cannot be made to give up, so the process exits; what is on the
/// disk is whole or absent at any moment.
fn end(process: usize, reason: &str) -> ! {
    let _last = last_word();
    let launched = is_launched();
    // Whoever stopped has said why. Of a loss all have the same line to say: where they say it in one place, one does.
    let is_told = reason.contains(" stopped: ") || (process > 1 || process == 1 && !reason.starts_with("process 0 "));
    if !launched || !is_told {
        eprintln!("megagrid: {reason}");
    }
    std::process::exit(lost())
}

/// Returns the exit code of a process that ends because of another, or of a connection to it: whoever launched them may start them again.
fn lost() -> i32 {
    if is_launched() { ENDED_BY_ANOTHER } else { 1 }
}

/// Lets only one thread say why the process ends: whoever comes second waits here for the exit.
fn last_word() -> MutexGuard<'static, ()> {
    static LAST_WORD: Mutex<()> = Mutex::new(());
    lock(&LAST_WORD)
}

/// Ends the process when the one that launched it is gone, and nobody would end it with the others.
fn watch_launcher() {
    #[cfg(unix)]
    if let Some(launcher) = launcher() {
        std::thread::spawn(move || {
            while std::os::unix::process::parent_id() == launcher {
                std::thread::sleep(Duration::from_secs(1));
            }
            std::process::exit(1);
        });
    }
}

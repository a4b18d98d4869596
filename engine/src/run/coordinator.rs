//! The coordinator of a process: approves iterations up to the next look, and shows their reports there.

use std::any::Any;
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::Receiver;

use megagrid_stages::Program;

use super::board::Board;
use super::peers::Peers;
use super::report::{IterationReport, WorkerReport};
use super::state::Run;
use crate::Error;

/// What is done at a look, given the reports of the iterations since the last one: called by pointer, so that runs are compiled
/// once for each program.
pub type Look<'l> = &'l mut dyn FnMut(Vec<IterationReport>) -> ControlFlow<()>;

/// What a worker tells the coordinator.
pub enum Notice {
    Ended(WorkerReport),
    Failed(Error),
}

/// Returns what a panic says.
pub fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no message")
}

/// Approves iterations up to the next look each time, and then reports them.
pub fn coordinate<P: Program>(
    run: &Run<P>,
    board: &Board,
    messages: &Receiver<Notice>,
    iterations: Range<u64>,
    look: Look<'_>,
) -> Result<u64, Error> {
    let (mut done, last) = (iterations.start, iterations.end);
    let peers = run.peers.as_deref();
    while done < last {
        let next = run.plan.next_look(done).min(last);
        board.approve(next);
        let mut reports = IterationReport::join(&gather(messages, done..next, run.plan.threads())?);
        let unacknowledged = run.replicas.as_ref().map_or(0, |replicas| replicas.most_unacknowledged_bytes());
        reports.iter_mut().for_each(|report| report.unacknowledged_bytes = unacknowledged);
        if let Some(peers) = peers {
            reports = IterationReport::join_processes(reports, peers)?;
        }
        done = next;
        if agree_to_stop(peers, look(reports))?.is_break() {
            break;
        }
    }
    Ok(done)
}

/// Gathers all workers' parts of iterations, by iteration. No worker goes on beyond these.
fn gather(
    messages: &Receiver<Notice>,
    iterations: Range<u64>,
    workers: usize,
) -> Result<Vec<Vec<WorkerReport>>, Error> {
    let mut parts = vec![Vec::with_capacity(workers); (iterations.end - iterations.start) as usize];
    for _ in 0..parts.len() * workers {
        match messages.recv() {
            Ok(Notice::Ended(part)) => parts[(part.iteration - iterations.start - 1) as usize].push(part),
            Ok(Notice::Failed(error)) => return Err(error),
            Err(_) => return Err(Error::Start("all workers ended without a word".to_owned())),
        }
    }
    Ok(parts)
}

/// Stops all processes where one wants to.
fn agree_to_stop(peers: Option<&dyn Peers>, flow: ControlFlow<()>) -> Result<ControlFlow<()>, Error> {
    let Some(peers) = peers else { return Ok(flow) };
    let all = peers.all_gather(vec![u8::from(flow.is_break())])?;
    Ok(if all.iter().any(|flow| *flow != [0]) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}

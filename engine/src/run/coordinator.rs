//! The coordinator of a process: approves iterations, and shows each report between them.

use std::any::Any;
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::Receiver;

use megagrid_stages::Program;

use super::board::Board;
use super::peers::Peers;
use super::report::{IterationReport, WorkerReport};
use super::state::Run;
use crate::Error;
use crate::plan::Traffic;

/// What is done between iterations: called by pointer, so that runs are compiled once for each program.
pub type Look<'l> = &'l mut dyn FnMut(&IterationReport) -> ControlFlow<()>;

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

/// Approves iterations and reports them; `sent` is what was sent before the first worker began.
pub fn coordinate<P: Program>(
    run: &Run<P>,
    (board, mut sent): (&Board, Traffic),
    messages: &Receiver<Notice>,
    iterations: Range<u64>,
    look: Look<'_>,
) -> Result<u64, Error> {
    let (workers, last) = (run.plan.threads(), iterations.end);
    for iteration in iterations.start + 1..=last {
        let mut parts = Vec::with_capacity(workers);
        while parts.len() < workers {
            match messages.recv() {
                Ok(Notice::Ended(part)) => parts.push(part),
                Ok(Notice::Failed(error)) => return Err(error),
                Err(_) => return Err(Error::Start("all workers ended without a word".to_owned())),
            }
        }
        let mut report = IterationReport::join(iteration, &parts);
        if let Some(sync) = &run.sync {
            let before = std::mem::replace(&mut sent, sync.sent());
            report.sent = sent - before;
        }
        report.unacknowledged_bytes = run.replicas.as_ref().map_or(0, |replicas| replicas.most_unacknowledged_bytes());
        let peers = run.peers.as_deref();
        let report = peers.map_or(Ok(report.clone()), |peers| report.join_processes(peers))?;
        let flow = look(&report);
        if agree_to_stop(peers, flow)?.is_break() {
            return Ok(iteration);
        }
        if iteration < last {
            board.approve(iteration + 1);
        }
    }
    Ok(last)
}

/// Stops all processes where one wants to.
fn agree_to_stop(peers: Option<&dyn Peers>, flow: ControlFlow<()>) -> Result<ControlFlow<()>, Error> {
    let Some(peers) = peers else { return Ok(flow) };
    let all = peers.all_gather(vec![u8::from(flow.is_break())])?;
    Ok(if all.iter().any(|flow| *flow != [0]) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}

//! What moves the workers of a run on: threads of this process, timely's where there are other processes, or a conductor in
//! modelled time.

use std::sync::Arc;

use megagrid_stages::Program;

use super::begun::Begun;
use super::coordinator::{Look, coordinate};
use super::state::Run;
use super::{between, threads, timely_driver, virtual_driver};
use crate::Error;

/// Runs iterations `done + 1..=last`, and shows reports at each look, when no worker runs.
pub fn run<P: Program>(run: &Arc<Run<P>>, done: u64, last: u64, look: Look<'_>) -> Result<u64, Error> {
    if done >= last {
        return Ok(done);
    }
    let (begun, notices) = Begun::new(&run.plan, done);
    let board = Arc::clone(&begun.board);
    between::begin(run, done);
    let coordinate = || coordinate(run, &board, &notices, done..last, look);
    let done = match run.peers.as_deref() {
        None => threads::run(run, &begun, coordinate)?,
        Some(peers) => match peers.modelled() {
            None => timely_driver::run(run, peers, begun, coordinate)?,
            Some(modelled) => virtual_driver::run(run, modelled, begun, coordinate)?,
        },
    };
    between::end(run, done)?;
    Ok(done)
}

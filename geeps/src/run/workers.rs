//! The workers of this process: each is a thread, with device memory and two more threads of its own.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use super::messages::Part;
use crate::Error;
use crate::apps::{Application, Place};
use crate::client::Client;
use crate::memory::Moves;
use crate::servers::Servers;

/// A worker, between epochs.
pub(super) struct Member<W> {
    pub client: Client,
    pub own: W,
}

/// Returns what workers have moved since the beginning, when they began to fetch ahead.
pub(super) fn moves<W>(crew: &[Member<W>]) -> Moves {
    let mut moves = Moves::default();
    crew.iter().for_each(|member| moves += member.client.moves());
    moves
}

/// Runs an epoch on all workers of this process, the first of which has the number `first`, until all servers know what they
/// did.
pub(super) fn step<A: Application>(
    application: &A,
    crew: &mut [Member<A::Worker>],
    servers: &Servers,
    [first, epoch]: [u64; 2],
) -> Result<Vec<Part>, Error> {
    let parts: Vec<Result<Part, Error>> = std::thread::scope(|scope| {
        let one = |(worker, member)| scope.spawn(move || watched(application, member, servers, [worker, epoch]));
        let threads: Vec<_> = (first..).zip(crew).map(one).collect();
        let lost = |worker| Error::ThreadPanicked { worker };
        threads
            .into_iter()
            .enumerate()
            .map(|(at, thread)| thread.join().unwrap_or(Err(lost(first as usize + at))))
            .collect()
    });
    if let Some(error) = servers.failure() {
        return Err(error);
    }
    servers.flush()?;
    parts.into_iter().collect()
}

/// Runs an epoch of a worker. Whatever ends it early ends all workers, a panic too.
fn watched<A: Application>(
    application: &A,
    member: &mut Member<A::Worker>,
    servers: &Servers,
    [worker, epoch]: [u64; 2],
) -> Result<Part, Error> {
    let worker = worker as usize;
    // After a panic the member is of no use but to say where it was.
    let run = AssertUnwindSafe(|| epoch_of(application, member, worker, epoch));
    let part = std::panic::catch_unwind(run).unwrap_or_else(|_| {
        let iteration = member.client.iterations() + 1;
        Err(Error::WorkerLost { worker, iteration })
    });
    if let Err(error) = &part {
        servers.fail(error.clone());
    }
    part
}

fn epoch_of<A: Application>(
    application: &A,
    member: &mut Member<A::Worker>,
    worker: usize,
    epoch: u64,
) -> Result<Part, Error> {
    let (begin, stalled) = (Instant::now(), member.client.stalled());
    let mut sum = 0.0;
    for iteration in 0..application.iterations() {
        let done = member.client.iterations();
        let loss = application.iterate(&mut member.own, Place { epoch, iteration }, &mut member.client)?;
        member.client.check_end(done + 1)?;
        if !loss.is_finite() {
            return Err(Error::Diverged { loss, worker, epoch: epoch + 1, iteration: iteration + 1 });
        }
        sum += loss;
    }
    member.client.settle()?;
    let stalled = (member.client.stalled() - stalled).as_secs_f64();
    Ok(Part { loss: sum, seconds: begin.elapsed().as_secs_f64(), stalled })
}

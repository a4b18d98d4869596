//! What all processes do together between iterations: show each other rows, and bring results to the first process.

use megagrid_partition::{ProcessId, ShardId, Side};
use megagrid_stages::{Left, On, Program, Right, Vertex};

use super::peers::Peers;
use super::state::Run;
use crate::Error;
use crate::grid::{Pieces, VertexArrays, hold};
use crate::plan::Plan;
use crate::sync::{Malformed, Mirrors, Slice, pack_sync, pack_whole, unpack_sync, unpack_whole};

/// One side's rows and where they are kept.
struct Rows<'r, V: Vertex> {
    plan: &'r Plan,
    side: Side,
    arrays: &'r VertexArrays<V>,
    pieces: &'r Pieces,
    dims: usize,
    done: u64,
}

impl<V: Vertex> Rows<'_, V> {
    fn shards_of(&self, process: usize) -> impl Iterator<Item = usize> + '_ {
        let shards = 0..self.plan.side(self.side).num_shards();
        shards.filter(move |&shard| self.plan.holder(self.side, shard, self.done) == process)
    }

    fn all(&self, shard: usize) -> Slice<'static> {
        Slice::Range(0..self.plan.side(self.side).rows(shard).len())
    }

    /// Writes all of the shards that this process has.
    fn pack(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for shard in self.shards_of(self.plan.processes.this) {
            let rows = hold(|| self.arrays.try_share(self.pieces.of(shard..shard + 1)));
            put(&mut out, &pack_whole(&rows, &self.all(shard), self.dims, true));
        }
        out
    }

    /// Reads all of the shards that another process has.
    fn unpack(&self, process: usize, from: &mut &[u8]) -> Result<(), Malformed> {
        for shard in self.shards_of(process) {
            let mut rows = hold(|| self.arrays.try_own(self.pieces.of(shard..shard + 1)));
            unpack_whole(&mut rows, &self.all(shard), self.dims, true, take(from)?)?;
        }
        Ok(())
    }

    /// Returns the rows of a shard that a process is shown: those that it uses, and all where it may have to hand on the shard after
    /// another iteration, or under another slack.
    fn shown<'m>(&self, process: usize, mirrors: &'m Mirrors, shard: usize) -> Slice<'m> {
        match self.plan.may_hold(self.side, shard, process) {
            true => self.all(shard),
            false => mirrors.of(self.side, ProcessId(process), ShardId(shard)).whole(),
        }
    }

    /// Shows every process the synced data of the rows that it uses.
    fn show(&self, peers: &dyn Peers, mirrors: &Mirrors) -> Result<(), Error> {
        let this = peers.process();
        let for_process = |process: usize| {
            let mut out = Vec::new();
            for shard in self.shards_of(this).filter(|_| process != this) {
                let rows = hold(|| self.arrays.try_share(self.pieces.of(shard..shard + 1)));
                let used = self.shown(process, mirrors, shard);
                put(&mut out, &pack_sync(&rows, &used, self.dims));
            }
            out
        };
        let arrived = peers.exchange((0..peers.processes()).map(for_process).collect())?;
        for (process, bytes) in arrived.iter().enumerate().filter(|(process, _)| *process != this) {
            self.take_shown(process, mirrors, bytes).map_err(|Malformed| Error::Message(process))?;
        }
        Ok(())
    }

    /// Reads the rows that another process has and this one uses.
    fn take_shown(&self, process: usize, mirrors: &Mirrors, mut from: &[u8]) -> Result<(), Malformed> {
        for shard in self.shards_of(process) {
            let used = self.shown(self.plan.processes.this, mirrors, shard);
            let mut rows = hold(|| self.arrays.try_own(self.pieces.of(shard..shard + 1)));
            unpack_sync(&mut rows, &used, self.dims, take(&mut from)?)?;
        }
        Ok(())
    }
}

/// Writes bytes with their length before them.
pub fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Takes off what [`put`] wrote.
pub fn take<'b>(from: &mut &'b [u8]) -> Result<&'b [u8], Malformed> {
    let len = from.split_off(..8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()).ok_or(Malformed)?;
    from.split_off(..u64::from_le_bytes(len) as usize).ok_or(Malformed)
}

fn rows<P: Program, O: On<P>>(run: &Run<P>, done: u64) -> Rows<'_, O::Vertex> {
    let (arrays, pieces) = (run.grid.rows::<O>(), run.grid.pieces(O::SIDE));
    Rows { plan: &run.plan, side: O::SIDE, arrays, pieces, dims: run.dims, done }
}

/// Begins a run with slack after `done` iterations: all processes have the same rows, as far as they use them.
pub fn begin<P: Program>(run: &Run<P>, done: u64) {
    if let (Some(replicas), Some(sync)) = (&run.replicas, &run.sync) {
        replicas.begin(&run.plan, &sync.mirrors, &run.grid.right, &run.grid.right_pieces);
    }
    if let (Some(served), Some(sync)) = (&run.served, &run.sync) {
        served.begin(&run.plan, &sync.mirrors, done);
    }
}

/// Brings rows that are changed in place, or served, up to date in every process that uses them, after this many iterations. They go
/// straight from those that have them. No message of a run that others wait for is under way.
pub fn refresh<P: Program>(run: &Run<P>, done: u64) -> Result<(), Error> {
    let plan = &run.plan;
    let (Some(peers), Some(sync)) = (run.peers.as_deref(), &run.sync) else { return Ok(()) };
    if run.served.is_some() {
        drop_late_rows(run, done);
        if plan.serves(Side::Left) {
            rows::<P, Left>(run, done).show(peers, &sync.mirrors)?;
        }
        if plan.serves(Side::Right) {
            rows::<P, Right>(run, done).show(peers, &sync.mirrors)?;
        }
    }
    if !plan.travels() && !plan.mirrored {
        return Ok(());
    }
    let rows = rows::<P, Right>(run, done);
    // Outside of a run what was set last is in the rows, not with the masters.
    let replicas = run.replicas.as_ref().filter(|replicas| replicas.runs());
    if let Some(replicas) = replicas {
        for shard in rows.shards_of(plan.processes.this) {
            replicas.show_masters(plan, shard, rows.arrays, rows.pieces);
        }
    }
    rows.show(peers, &sync.mirrors)?;
    if let Some(replicas) = replicas {
        replicas.settle(plan, &sync.mirrors, &run.grid.right, &run.grid.right_pieces);
    }
    Ok(())
}

/// Ends a run after this many iterations: every process has the present rows, as far as it uses them.
pub fn end<P: Program>(run: &Run<P>, done: u64) -> Result<(), Error> {
    refresh(run, done)?;
    run.replicas.iter().for_each(|replicas| replicas.end());
    Ok(())
}

/// Has this process drop rows that masters sent before these iterations ended and that are still on their way: newer ones come next.
fn drop_late_rows<P: Program>(run: &Run<P>, done: u64) {
    if let Some(served) = &run.served {
        served.settle(&run.plan, done);
    }
}

/// Has every process hold the present rows of those shards that it has between iterations, after this many.
pub fn settle<P: Program>(run: &Run<P>, done: u64) -> Result<(), Error> {
    if run.replicas.is_some() { refresh(run, done) } else { Ok(()) }
}

/// Brings every vertex's data to the first process, after this many iterations.
pub fn collect<P: Program>(run: &Run<P>, done: u64) -> Result<(), Error> {
    let Some(peers) = run.peers.as_deref() else { return Ok(()) };
    match peers.gather(pack(run, done)?)? {
        Some(all) => unpack(run, done, &all),
        None => Ok(()),
    }
}

/// Brings every vertex's data to every process, after this many iterations.
pub fn spread<P: Program>(run: &Run<P>, done: u64) -> Result<(), Error> {
    let Some(peers) = run.peers.as_deref() else { return Ok(()) };
    unpack(run, done, &peers.all_gather(pack(run, done)?)?)
}

/// Writes all of the rows that this process has.
fn pack<P: Program>(run: &Run<P>, done: u64) -> Result<Vec<u8>, Error> {
    settle(run, done)?;
    let mut mine = rows::<P, Right>(run, done).pack();
    if !run.plan.square {
        mine.extend(rows::<P, Left>(run, done).pack());
    }
    Ok(mine)
}

/// Reads the rows that other processes have.
fn unpack<P: Program>(run: &Run<P>, done: u64, all: &[Vec<u8>]) -> Result<(), Error> {
    drop_late_rows(run, done);
    let (left, right) = (rows::<P, Left>(run, done), rows::<P, Right>(run, done));
    for (process, bytes) in all.iter().enumerate().filter(|(process, _)| *process != run.plan.processes.this) {
        let mut from = &bytes[..];
        let mut taken = right.unpack(process, &mut from);
        if !run.plan.square {
            taken = taken.and_then(|()| left.unpack(process, &mut from));
        }
        taken.map_err(|Malformed| Error::Message(process))?;
    }
    Ok(())
}

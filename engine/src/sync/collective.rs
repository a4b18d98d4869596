//! What all processes do together between iterations: show each other rows, and bring results to the first process.

use std::fmt::Display;

use megagrid_partition::Side;
use megagrid_stages::{Program, Vertex};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::rows::{pack_sync, pack_whole, unpack_sync, unpack_whole};
use super::slices::Slice;
use super::{Malformed, Peers};
use crate::Error;
use crate::engine::Shared;
use crate::grid::{Pieces, VertexArrays};
use crate::plan::Plan;
use crate::stage::hold;

/// One side's rows and where they are kept.
struct Rows<'r, V: Vertex> {
    plan: &'r Plan,
    side: Side,
    arrays: &'r VertexArrays<V>,
    pieces: &'r Pieces,
    dims: usize,
    /// Iterations done.
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

    /// Writes the shards that this process has, one after the other, each with its length before it.
    fn pack(&self, whole: bool) -> Vec<u8> {
        let mut out = Vec::new();
        for shard in self.shards_of(self.plan.processes.this) {
            let rows = hold(|| self.arrays.try_share(self.pieces.of(shard..shard + 1)));
            let all = self.all(shard);
            let bytes =
                if whole { pack_whole(&rows, &all, self.dims, true) } else { pack_sync(&rows, &all, self.dims) };
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend(bytes);
        }
        out
    }

    /// Reads the shards that another process has.
    fn unpack(&self, process: usize, whole: bool, from: &mut &[u8]) -> Result<(), Malformed> {
        for shard in self.shards_of(process) {
            let len = from.split_off(..8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()).ok_or(Malformed)?;
            let bytes = from.split_off(..u64::from_le_bytes(len) as usize).ok_or(Malformed)?;
            let mut rows = hold(|| self.arrays.try_own(self.pieces.of(shard..shard + 1)));
            if whole {
                unpack_whole(&mut rows, &self.all(shard), self.dims, true, bytes)?;
            } else {
                unpack_sync(&mut rows, &self.all(shard), self.dims, bytes)?;
            }
        }
        Ok(())
    }

    /// Shows every process the synced data of all rows.
    fn show(&self, peers: &dyn Peers) -> Result<(), Error> {
        let all = peers.all_gather(self.pack(false))?;
        for (process, bytes) in all.iter().enumerate().filter(|(process, _)| *process != peers.process()) {
            self.unpack(process, false, &mut &bytes[..]).map_err(|Malformed| Error::Message { process })?;
        }
        Ok(())
    }
}

fn left<P: Program>(shared: &Shared<P>, done: u64) -> Rows<'_, P::Left> {
    let (grid, dims) = (&shared.grid, shared.dims);
    Rows { plan: &shared.plan, side: Side::Left, arrays: &grid.left, pieces: &grid.left_pieces, dims, done }
}

fn right<P: Program>(shared: &Shared<P>, done: u64) -> Rows<'_, P::Right> {
    let (grid, dims) = (&shared.grid, shared.dims);
    Rows { plan: &shared.plan, side: Side::Right, arrays: &grid.right, pieces: &grid.right_pieces, dims, done }
}

/// Begins a run with slack: all processes have the same right rows.
pub fn begin<P: Program>(shared: &Shared<P>) {
    if let (Some(replicas), Some(sync)) = (&shared.replicas, &shared.sync) {
        replicas.begin(&shared.plan, &sync.mirrors, &shared.grid.right, &shared.grid.right_pieces);
    }
}

/// Brings rows that are changed in place up to date in every process, after so many iterations. No message of a run is under
/// way.
pub fn refresh<P: Program>(shared: &Shared<P>, done: u64) -> Result<(), Error> {
    let plan = &shared.plan;
    let Some(peers) = shared.peers.as_deref().filter(|_| plan.travels() || plan.mirrors_updates()) else {
        return Ok(());
    };
    let rows = right(shared, done);
    if let Some(replicas) = &shared.replicas {
        for shard in rows.shards_of(plan.processes.this) {
            replicas.show_masters(plan, shard, rows.arrays, rows.pieces);
        }
    }
    rows.show(peers)?;
    if let (Some(replicas), Some(sync)) = (&shared.replicas, &shared.sync) {
        replicas.settle(plan, &sync.mirrors, &shared.grid.right, &shared.grid.right_pieces);
    }
    Ok(())
}

/// Brings every vertex's data to the first process, after so many iterations.
pub fn collect<P: Program>(shared: &Shared<P>, done: u64) -> Result<(), Error> {
    let Some(peers) = shared.peers.as_deref() else { return Ok(()) };
    if shared.replicas.is_some() {
        refresh(shared, done)?;
    }
    let (left, right) = (left(shared, done), right(shared, done));
    let mut mine = right.pack(true);
    if !shared.plan.square {
        mine.extend(left.pack(true));
    }
    let Some(all) = peers.gather(mine)? else { return Ok(()) };
    for (process, bytes) in all.iter().enumerate().skip(1) {
        let mut from = &bytes[..];
        let mut taken = right.unpack(process, true, &mut from);
        if !shared.plan.square {
            taken = taken.and_then(|()| left.unpack(process, true, &mut from));
        }
        taken.map_err(|Malformed| Error::Message { process })?;
    }
    Ok(())
}

/// Finds whether something succeeded in every process. Where it did not, the first process that failed keeps its error, and
/// the others are told of it.
pub fn agree<T, E: Display + From<Error>>(peers: Option<&dyn Peers>, here: Result<T, E>) -> Result<T, E> {
    let Some(peers) = peers else { return here };
    let problem = here.as_ref().err().map(|error| format!("{error:#}"));
    let all = all_gather(Some(peers), vec![problem])?;
    let failed = all.into_iter().enumerate().find_map(|(process, problem)| Some((process, problem?)));
    match failed {
        Some((process, message)) if process != peers.process() => Err(Error::Elsewhere { process, message }.into()),
        _ => here,
    }
}

/// Gives every process what each has, in the order of processes.
pub fn all_gather<T: Serialize + DeserializeOwned>(peers: Option<&dyn Peers>, mine: Vec<T>) -> Result<Vec<T>, Error> {
    let Some(peers) = peers else { return Ok(mine) };
    let mut all = Vec::new();
    for bytes in peers.all_gather(bincode::serialize(&mine)?)? {
        all.extend(bincode::deserialize::<Vec<T>>(&bytes)?);
    }
    Ok(all)
}

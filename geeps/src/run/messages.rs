//! What the processes of a run tell each other after an epoch and at the end, as bytes.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::memory::Moves;
use crate::processes::Processes;

/// Arrays of one process that belong together.
pub(super) type Arrays = Vec<Vec<f32>>;

/// What a worker did in an epoch.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Part {
    pub loss: f64,
    pub seconds: f64,
    pub stalled: f64,
}

/// What a process did in an epoch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Told {
    pub parts: Vec<Part>,
    pub seconds: f64,
    pub moves: Moves,
    pub served_bytes: u64,
}

/// What a process has counted in all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counted {
    pub staleness: BTreeMap<i64, u64>,
    pub resident_bytes: Vec<u64>,
    pub device_moves: Vec<[u64; 2]>,
    /// Bytes to each process.
    pub sent_bytes: Vec<u64>,
}

/// What the first process has the others do after an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Next {
    /// Tell local data, and ask again.
    TellLocals,
    /// The next epoch.
    GoOn,
    /// It was the last one.
    End,
}

/// Gives the first process what each has; the others `None`.
pub(super) fn gather<T: Serialize + DeserializeOwned>(
    processes: &dyn Processes,
    mine: &T,
) -> Result<Option<Vec<T>>, Error> {
    let all = processes.gather(bincode::serialize(mine).map_err(|_| unreadable(processes.process()))?)?;
    let one = |(process, bytes): (usize, Vec<u8>)| bincode::deserialize(&bytes).map_err(|_| unreadable(process));
    all.map(|all| all.into_iter().enumerate().map(one).collect()).transpose()
}

/// Gives every process what the first one has.
pub(super) fn broadcast(processes: &dyn Processes, mine: Next) -> Result<Next, Error> {
    let bytes = processes.broadcast(bincode::serialize(&mine).map_err(|_| unreadable(processes.process()))?)?;
    bincode::deserialize(&bytes).map_err(|_| unreadable(0))
}

/// Waits until all processes have come as far.
pub(super) fn meet(processes: &dyn Processes) -> Result<(), Error> {
    processes.gather(Vec::new())?;
    processes.broadcast(Vec::new()).map(drop)
}

/// Gives the first process the arrays of all, in the order of processes; the others `None`. Each process has some groups of
/// arrays. They go as they lie in memory, after their lengths.
pub(super) fn gather_arrays(processes: &dyn Processes, mine: Vec<Arrays>) -> Result<Option<Vec<Vec<Arrays>>>, Error> {
    let is_first = processes.process() == 0;
    // The first process has its own.
    let all = processes.gather(if is_first { Vec::new() } else { pack(&mine) })?;
    let Some(others) = all else { return Ok(None) };
    let others = others.iter().enumerate().skip(1);
    let others = others.map(|(process, bytes)| unpack(bytes).ok_or_else(|| unreadable(process)));
    std::iter::once(Ok(mine)).chain(others).collect::<Result<_, _>>().map(Some)
}

fn pack(groups: &[Arrays]) -> Vec<u8> {
    let mut lens = vec![groups.len() as u64];
    for group in groups {
        lens.push(group.len() as u64);
        lens.extend(group.iter().map(|array| array.len() as u64));
    }
    let mut bytes: Vec<u8> = bytemuck::cast_slice(&lens).to_vec();
    groups.iter().flatten().for_each(|array| bytes.extend_from_slice(bytemuck::cast_slice(array)));
    bytes
}

fn unpack(bytes: &[u8]) -> Option<Vec<Arrays>> {
    let mut rest = bytes;
    let mut len = || {
        let (first, after) = rest.split_first_chunk::<8>()?;
        rest = after;
        usize::try_from(u64::from_ne_bytes(*first)).ok()
    };
    let mut lens = Vec::new();
    for _ in 0..len()? {
        let mut group = Vec::new();
        for _ in 0..len()? {
            group.push(len()?);
        }
        lens.push(group);
    }
    let mut array = |len: usize| {
        let (first, after) = rest.split_at_checked(len.checked_mul(size_of::<f32>())?)?;
        rest = after;
        Some(bytemuck::pod_collect_to_vec(first))
    };
    let groups = lens.into_iter().map(|group| group.into_iter().map(&mut array).collect()).collect::<Option<_>>()?;
    rest.is_empty().then_some(groups)
}

fn unreadable(process: usize) -> Error {
    Error::Process { process, problem: "what it told cannot be read".to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arrays_come_back_as_they_were_packed(groups in vec(vec(vec(-1e30_f32..1e30, 0..5), 0..4), 0..4)) {
            let bytes = pack(&groups);
            prop_assert_eq!(unpack(&bytes), Some(groups));
            for end in 0..bytes.len() {
                prop_assert_eq!(unpack(&bytes[..end]), None);
            }
        }

        #[test]
        fn whatever_comes_is_unpacked_or_refused(bytes in vec(any::<u8>(), 0..60)) {
            let _ = unpack(&bytes);
        }
    }
}

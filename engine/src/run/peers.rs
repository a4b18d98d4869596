//! The other processes, as far as the engine needs them beside the messages of a run.

use std::fmt::Display;
use std::net::TcpStream;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::modelled::Modelled;
use crate::Error;
use crate::cluster::Cluster;

/// Processes that do the same things in the same order. Every method is collective: all processes call it, in the same
/// order, and each returns when it has what it needs.
pub trait Peers: std::fmt::Debug + Send + Sync {
    /// Returns this process's number, from 0.
    fn process(&self) -> usize;

    /// Returns the number of processes.
    fn processes(&self) -> usize;

    /// Gives everybody what each has, in the order of processes.
    ///
    /// # Errors
    /// A lost process.
    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, Error>;

    /// Gives the first process what each has, in the order of processes; the others `None`.
    ///
    /// # Errors
    /// A lost process.
    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error>;

    /// Sends each process its part; returns what each sent to this one, in the order of processes. Without a shorter way, all parts
    /// go to everybody.
    ///
    /// # Errors
    /// A lost process.
    fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
        let all = self.all_gather(pack_parts(&parts))?;
        parts_for(self.process(), &all)
    }

    /// Returns new connections to all other processes, `None` at this one's place.
    ///
    /// # Errors
    /// A lost process.
    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error>;

    /// Returns what moves these processes on, if they are virtual.
    fn modelled(&self) -> Option<&dyn Modelled> {
        None
    }
}

impl Peers for Cluster {
    fn process(&self) -> usize {
        self.process()
    }

    fn processes(&self) -> usize {
        self.processes()
    }

    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.all_gather(mine)?)
    }

    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        Ok(self.gather(mine)?)
    }

    fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.exchange(parts)?)
    }

    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error> {
        Ok(self.sockets()?)
    }
}

/// Writes the parts for all processes: their lengths, then the parts.
pub fn pack_parts(parts: &[Vec<u8>]) -> Vec<u8> {
    let lens: Vec<u64> = parts.iter().map(|part| part.len() as u64).collect();
    let mut bytes = bytemuck::pod_collect_to_vec(&lens);
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// Returns a process's part of what each has packed.
pub fn parts_for(process: usize, all: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Error> {
    let part = |bytes: &Vec<u8>| {
        let (lens, parts) = bytes.split_at_checked(size_of::<u64>() * all.len())?;
        let lens: Vec<u64> = bytemuck::pod_collect_to_vec(lens);
        let start = lens[..process].iter().sum::<u64>() as usize;
        Some(parts.get(start..)?.get(..lens[process] as usize)?.to_vec())
    };
    all.iter().enumerate().map(|(from, bytes)| part(bytes).ok_or(Error::Message(from))).collect()
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

//! How processes divide a checkpoint: each writes a range of every file, and gets what lies there from those that have it.

use std::ops::Range;

use megagrid_partition::Side;
use megagrid_stages::Program;

use crate::run::Peers;
use crate::{Engine, Error};

pub struct Division<'e> {
    peers: Option<&'e dyn Peers>,
}

impl<'e> Division<'e> {
    pub fn of<P: Program>(engine: &'e Engine<P>) -> Self {
        Self { peers: engine.run.peers.as_deref() }
    }

    pub fn process(&self) -> usize {
        self.peers.map_or(0, Peers::process)
    }

    pub fn processes(&self) -> usize {
        self.peers.map_or(1, Peers::processes)
    }

    /// Returns which of `number` things a process writes.
    pub fn range(&self, number: usize, process: usize) -> Range<usize> {
        let begin = |process: usize| (number as u128 * process as u128 / self.processes() as u128) as usize;
        begin(process)..begin(process + 1)
    }

    /// Returns the most things that a process writes.
    pub fn most(&self, number: usize) -> usize {
        (0..self.processes()).map(|process| self.range(number, process).len()).max().unwrap_or(0)
    }

    /// Names this process's range of a file. In the order of these names the ranges are what one process would write.
    pub fn name(&self, file: &str) -> String {
        if self.processes() == 1 { file.to_owned() } else { format!("{file}.{:05}", self.process()) }
    }

    /// Gives each process what it writes, and returns what each has of what this one does.
    pub fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
        match self.peers {
            Some(peers) => peers.exchange(parts),
            None => Ok(parts),
        }
    }
}

/// Returns, for each row of a side, the process that has it between iterations.
pub fn holders<P: Program>(engine: &Engine<P>, side: Side) -> Vec<u16> {
    let (plan, done) = (engine.plan(), engine.iterations());
    let shape = plan.side(side);
    let of_shard = |shard: usize| shape.rows(shard).map(move |_| plan.holder(side, shard, done) as u16);
    (0..shape.num_shards()).flat_map(of_shard).collect()
}

//! What all processes do together, over the control connections: every part goes to process 0, and from there to the others.
//!
//! For facts, metrics and models. What a run moves in each clock goes over timely's connections.

use std::io;

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::link::{Link, describe_io};
use super::{Cluster, ClusterError, Turn};
use megagrid_partition::parallel::lock;

type Result<T> = std::result::Result<T, ClusterError>;

impl Cluster {
    /// Compares facts, by their names. One that a process does not have is unset there.
    ///
    /// # Errors
    /// The first fact that differs, the same message in all processes; or the end of the job.
    pub fn agree(&self, facts: &[(&str, String)]) -> Result<()> {
        let mut turn = lock(&self.turn);
        let all = self.gather_now(&mut turn, encode(&facts))?;
        let verdict = all.map(|all| compare(&all));
        let verdict = self.broadcast_now(&mut turn, encode(&verdict.flatten()))?;
        match decode::<Option<String>>(&verdict, 0)? {
            None => Ok(()),
            Some(difference) => Err(ClusterError::Differs(difference)),
        }
    }

    /// Gives every process the bytes of all, in the order of their numbers.
    ///
    /// # Complexity
    /// Process 0 holds and sends the bytes of all to each.
    ///
    /// # Errors
    /// The end of the job.
    pub fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let mut turn = lock(&self.turn);
        let own = self.process();
        if own == 0 {
            let all = self.collect(turn.next(), mine)?;
            self.scatter(turn.next(), &all)?;
            return Ok(all);
        }
        self.send(turn.next(), &mine)?;
        let collective = turn.next();
        let others = (0..self.processes()).filter(|&from| from != own);
        let mut all = others.map(|from| self.shared.part(collective, from)).collect::<Result<Vec<_>>>()?;
        all.insert(own, mine);
        Ok(all)
    }

    /// Gives process 0 the bytes of all, in the order of their numbers, and the others `None`.
    ///
    /// # Errors
    /// The end of the job.
    pub fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>> {
        self.gather_now(&mut lock(&self.turn), mine)
    }

    /// Gives every process the bytes of process 0; those of the others are not looked at.
    ///
    /// # Errors
    /// The end of the job.
    pub fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>> {
        self.broadcast_now(&mut lock(&self.turn), mine)
    }

    fn gather_now(&self, turn: &mut Turn, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>> {
        if self.process() == 0 {
            return self.collect(turn.next(), mine).map(Some);
        }
        self.send(turn.next(), &mine)?;
        Ok(None)
    }

    fn broadcast_now(&self, turn: &mut Turn, mine: Vec<u8>) -> Result<Vec<u8>> {
        if self.process() > 0 {
            return self.shared.part(turn.next(), 0);
        }
        let all = [mine];
        self.scatter(turn.next(), &all)?;
        let [mine] = all;
        Ok(mine)
    }

    /// Process 0: waits for the parts of all others.
    fn collect(&self, collective: u64, mine: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let mut all = vec![mine];
        for from in 1..self.processes() {
            all.push(self.shared.part(collective, from)?);
        }
        Ok(all)
    }

    /// The others: sends a part to process 0.
    fn send(&self, collective: u64, mine: &[u8]) -> Result<()> {
        self.with_link(0, |link| link.send_part(collective, self.process(), mine))
    }

    /// Process 0: sends parts to all others at a time, to each but its own.
    fn scatter(&self, collective: u64, parts: &[Vec<u8>]) -> Result<()> {
        let send_to = |to: usize| {
            self.with_link(to, |link| {
                let mut others = parts.iter().enumerate().filter(|&(from, _)| from != to);
                others.try_for_each(|(from, part)| link.send_part(collective, from, part))
            })
        };
        std::thread::scope(|scope| {
            let senders: Vec<_> = (1..self.processes()).map(|to| scope.spawn(move || send_to(to))).collect();
            let gone = |_| Err(ClusterError::Ended("a thread that sends panicked".to_owned()));
            senders.into_iter().map(|sender| sender.join().unwrap_or_else(gone)).fold(Ok(()), Result::and)
        })
    }

    fn with_link(&self, to: usize, send: impl FnOnce(&Link) -> io::Result<()>) -> Result<()> {
        let link = lock(&self.shared.state).links[to].clone();
        let sent = link.map_or(Err(io::ErrorKind::BrokenPipe.into()), |link| send(&link));
        sent.map_err(|error| self.shared.unsent(to, &describe_io(&error)))
    }
}

impl Turn {
    fn next(&mut self) -> u64 {
        self.collectives += 1;
        self.collectives
    }
}

/// Finds the first fact that a process has otherwise than process 0.
fn compare(all: &[Vec<u8>]) -> Option<String> {
    type Facts = Vec<(String, String)>;
    let facts = |process: usize| decode::<Facts>(&all[process], process);
    let value = |facts: &Facts, name: &str| {
        let found = facts.iter().find(|(known, _)| known == name);
        found.map_or_else(|| "unset".to_owned(), |(_, value)| value.clone())
    };
    let difference = |process: usize| -> Result<Option<String>> {
        let (first, other) = (facts(0)?, facts(process)?);
        let differs = first.iter().chain(&other).find_map(|(name, _)| {
            let (expected, found) = (value(&first, name), value(&other, name));
            (expected != found)
                .then(|| format!("process {process} has {name} {found}, process 0 has {name} {expected}"))
        });
        Ok(differs)
    };
    (1..all.len()).find_map(|process| difference(process).unwrap_or_else(|error| Some(error.to_string())))
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    // Writing strings to memory cannot fail; if it ever did, the receiver says that it got nonsense.
    options().serialize(value).unwrap_or_default()
}

fn decode<T: DeserializeOwned>(bytes: &[u8], from: usize) -> Result<T> {
    options().deserialize(bytes).map_err(|error| ClusterError::Ended(format!("process {from} sent nonsense: {error}")))
}

fn options() -> impl Options {
    bincode::options().with_fixint_encoding()
}

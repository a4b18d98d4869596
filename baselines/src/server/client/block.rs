//! Consecutive rows of the static process cache, which share a lock: values, versions, and the updates of each clock.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::dynamic::Wanted;
use super::requests::Requests;
use crate::server::element::{Kind, zeroed_words};

/// Rows of one server, which share a lock.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) server: u32,
    pub(super) rows: Mutex<BlockRows>,
}

/// What is under the lock.
#[derive(Debug)]
pub(super) struct BlockRows {
    /// What the server sent last and this process's updates after it.
    values: Vec<u64>,
    /// 0: nothing arrived yet, otherwise 1 + the version.
    versions: Vec<u32>,
    /// What is on its way.
    requests: Vec<Requests>,
    /// The updates of this process by clock, ascending, which the server may not have applied.
    logs: VecDeque<Log>,
}

/// The updates of one clock.
#[derive(Debug)]
struct Log {
    clock: u32,
    deltas: Vec<u64>,
    states: Vec<State>,
    unsent: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The delta is the identity.
    Untouched,
    Unsent,
    Sent,
}

impl BlockRows {
    pub(super) fn new(rows: usize, kind: &Kind) -> Self {
        Self {
            values: zeroed_words(rows * kind.row_bytes),
            versions: vec![0; rows],
            requests: vec![Requests::default(); rows],
            logs: VecDeque::new(),
        }
    }

    /// Returns the version of a row, if it arrived; rows that are pushed are of version `pushed` at least.
    #[inline]
    pub(super) fn version(&self, offset: usize, pushed: u32) -> Option<u32> {
        Some(self.versions[offset].checked_sub(1)?.max(pushed))
    }

    #[inline]
    pub(super) fn row(&self, offset: usize, kind: &Kind) -> &[u8] {
        bytes(&self.values, offset, 1, kind)
    }

    /// Whether to request a row, which is not on its way.
    pub(super) fn request(&mut self, offset: usize, wanted: Wanted) -> bool {
        let request = !self.requests[offset].cover(wanted.needed, wanted.clock);
        if request {
            self.requests[offset].add(wanted.needed);
        }
        request
    }

    /// Whether to request a run of rows: one of them is too old and not on its way. Then all count as requested.
    pub(super) fn request_run(&mut self, offset: usize, count: usize, wanted: Wanted) -> bool {
        let rows = offset..offset + count;
        let on_its_way = |row: usize| self.requests[row].cover(wanted.needed, wanted.clock);
        let old = rows.clone().any(|row| self.versions[row] <= wanted.target && !on_its_way(row));
        if old {
            self.requests[rows].iter_mut().for_each(|requests| requests.add(wanted.needed));
        }
        old
    }

    /// Applies an update of a clock and logs it. `confirmed`: the clock before which the server has all updates.
    #[inline]
    pub(super) fn update(
        &mut self,
        offset: usize,
        clock: u32,
        kind: &Kind,
        delta: &[u8],
        confirmed: impl FnOnce() -> u32,
    ) {
        if self.versions[offset] != 0 {
            kind.merge(bytes_mut(&mut self.values, offset, 1, kind), delta);
        }
        let log = match self.logs.iter().rposition(|log| log.clock == clock) {
            Some(index) => &mut self.logs[index],
            None => self.add_log(clock, kind, confirmed()),
        };
        kind.merge(bytes_mut(&mut log.deltas, offset, 1, kind), delta);
        if log.states[offset] != State::Unsent {
            log.states[offset] = State::Unsent;
            log.unsent += 1;
        }
    }

    fn add_log(&mut self, clock: u32, kind: &Kind, confirmed: u32) -> &mut Log {
        let rows = self.versions.len();
        let done = self.logs.front().is_some_and(|log| log.clock < confirmed && log.unsent == 0);
        let recycled = if done { self.logs.pop_front() } else { None };
        let mut log = recycled.unwrap_or_else(|| Log::new(clock, rows, kind));
        log.recycle(clock, kind);
        let index = self.logs.partition_point(|log| log.clock < clock);
        self.logs.insert(index, log);
        &mut self.logs[index]
    }

    /// Takes in consecutive rows that a server sent; they contain this process's updates of clocks before `clock`.
    pub(super) fn receive(&mut self, offset: usize, kind: &Kind, values: &[u8], version: u32, clock: u32) {
        let count = values.len() / kind.row_bytes;
        bytes_mut(&mut self.values, offset, count, kind).copy_from_slice(values);
        for log in self.logs.iter().filter(|log| log.clock >= clock) {
            for row in (offset..offset + count).filter(|&row| log.states[row] != State::Untouched) {
                kind.merge(bytes_mut(&mut self.values, row, 1, kind), bytes(&log.deltas, row, 1, kind));
            }
        }
        self.versions[offset..offset + count].fill(version.saturating_add(1));
        self.requests[offset..offset + count].iter_mut().for_each(|requests| requests.arrived(version));
    }

    /// Returns how many of consecutive rows have updates of a clock that are not sent.
    pub(super) fn num_updated(&self, offset: usize, count: usize, clock: u32) -> usize {
        let log = self.logs.iter().find(|log| log.clock == clock);
        log.map_or(0, |log| log.states[offset..offset + count].iter().filter(|&&state| state == State::Unsent).count())
    }

    /// Copies the updates of a clock, to be sent; rows without any get the identity.
    pub(super) fn copy_updates(&mut self, offset: usize, clock: u32, kind: &Kind, out: &mut [u8]) {
        let count = out.len() / kind.row_bytes;
        let Some(log) = self.logs.iter_mut().find(|log| log.clock == clock) else {
            return out.chunks_exact_mut(kind.row_bytes).for_each(|row| row.copy_from_slice(kind.identity()));
        };
        out.copy_from_slice(bytes(&log.deltas, offset, count, kind));
        for row in offset..offset + count {
            if log.states[row] == State::Unsent {
                log.states[row] = State::Sent;
                log.unsent -= 1;
            }
        }
    }

    /// Calls `send` with each row that has updates of clocks up to `clock` which are not sent.
    pub(super) fn take_unsent(&mut self, clock: u32, kind: &Kind, mut send: impl FnMut(usize, &[u8])) {
        for log in self.logs.iter_mut().filter(|log| log.clock <= clock && log.unsent > 0) {
            for (row, state) in log.states.iter_mut().enumerate().filter(|(_, state)| **state == State::Unsent) {
                *state = State::Sent;
                send(row, bytes(&log.deltas, row, 1, kind));
            }
            log.unsent = 0;
        }
    }
}

impl Log {
    fn new(clock: u32, rows: usize, kind: &Kind) -> Self {
        let mut deltas = zeroed_words(rows * kind.row_bytes);
        (0..rows).for_each(|row| bytes_mut(&mut deltas, row, 1, kind).copy_from_slice(kind.identity()));
        Self { clock, deltas, states: vec![State::Untouched; rows], unsent: 0 }
    }

    /// Makes the log of a past clock that of a new one.
    fn recycle(&mut self, clock: u32, kind: &Kind) {
        self.clock = clock;
        for row in 0..self.states.len() {
            if self.states[row] != State::Untouched {
                self.states[row] = State::Untouched;
                bytes_mut(&mut self.deltas, row, 1, kind).copy_from_slice(kind.identity());
            }
        }
    }
}

#[inline]
fn bytes<'a>(words: &'a [u64], row: usize, count: usize, kind: &Kind) -> &'a [u8] {
    &bytemuck::cast_slice(words)[row * kind.row_bytes..(row + count) * kind.row_bytes]
}

#[inline]
fn bytes_mut<'a>(words: &'a mut [u64], row: usize, count: usize, kind: &Kind) -> &'a mut [u8] {
    &mut bytemuck::cast_slice_mut(words)[row * kind.row_bytes..(row + count) * kind.row_bytes]
}

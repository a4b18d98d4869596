//! Modelled time: how long iterations of a plan take on a machine whose rates are given, without running them.
//!
//! All workers are alike and begin together. Each has lanes that work side by side, each of them on one thing at a
//! time and in order: the device computes, copies come and go, and the network carries. Each machine has a part of the
//! server, and machines are alike: while a worker sends updates, or rows come to it, its machine takes in as much for its
//! part of the server, or sends as much from it; so both directions are one lane. The allocator and the
//! reclaimer do one thing after the other, as they really do; updates go to the server behind them. The application
//! waits for what it copies by itself, which does not hold up the lanes. What is *not* in it: the time of indexed
//! copies within the device, of the server, and of starting a command; and any difference between workers.

use std::collections::VecDeque;

use crate::device::{Cost, padded};
use crate::memory::{Freshness, Plan, Ring};
use crate::servers::Consistency;
use crate::table::TableId;
use crate::trace::{Event, Home, What};

/// A machine: bytes and operations a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Multiplications and additions of a device.
    pub operations: f64,
    /// Bytes of a device's memory.
    pub memory: f64,
    /// Bytes between host and device, each way.
    pub copy: f64,
    /// Bytes to and from a machine, each way.
    pub network: f64,
    /// Seconds of a message.
    pub latency: f64,
}

impl Machine {
    /// Round numbers of the machines in section 4.4.1: 3.5 TFLOP/s and 200 GB/s of a device, 6 GB/s between host and
    /// device, 12 Gbit/s and 50 µs between machines.
    pub const DEFAULT: Self = Self { operations: 3.5e12, memory: 200e9, copy: 6e9, network: 1.5e9, latency: 50e-6 };

    fn compute(&self, cost: Cost) -> f64 {
        (cost.operations as f64 / self.operations).max(cost.bytes as f64 / self.memory)
    }
}

/// How a plan is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// How many workers there are.
    pub workers: usize,
    /// How fresh parameters are.
    pub consistency: Consistency,
    /// Whether data are fetched before they are asked for.
    pub prefetch: bool,
    /// Whether the worker's cache is in the host's memory, as that of a parameter server for processors: the application copies all that
    /// it reads to the device, each time, and waits until all that it posts was copied back.
    pub on_hosts: bool,
}

/// What some iterations take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Time {
    /// All of it, in seconds.
    pub seconds: f64,
    /// Seconds in which the device did not compute.
    pub stalled: f64,
}

/// Returns the time of each of some iterations.
#[must_use]
pub fn iterations(plan: &Plan, machine: &Machine, setting: &Setting, count: u64) -> Vec<Time> {
    let mut worker = Worker::new(plan, *machine, *setting);
    let mut times = Vec::new();
    for iteration in 0..count {
        let (begin, computed) = (worker.now, worker.computed);
        worker.iterate(iteration);
        let seconds = worker.now - begin;
        times.push(Time { seconds, stalled: seconds - (worker.computed - computed) });
    }
    times
}

/// One of the workers, which stands for all.
struct Worker<'p> {
    plan: &'p Plan,
    machine: Machine,
    setting: Setting,
    ring: Ring,
    /// Buffers that are taken, the oldest first, and when each is given back.
    taken: VecDeque<(u64, f64)>,
    cache: Freshness,
    next: u64,
    /// When the application is where it is, and how long the device has computed.
    now: f64,
    computed: f64,
    /// When threads and lanes are free.
    allocator: f64,
    reclaimer: f64,
    to_device: f64,
    to_host: f64,
    network: f64,
    /// When the last post to each home was written: tables and local data.
    written: [Vec<f64>; 2],
    /// Updates that wait for a table's clock, in bytes.
    logs: Vec<u64>,
    /// When each clock of a table was complete at the server.
    clocks: Vec<Vec<f64>>,
}

/// Works on something from `ready` on, as soon as a lane is free; returns when it is done.
fn work(lane: &mut f64, ready: f64, seconds: f64) -> f64 {
    *lane = lane.max(ready) + seconds;
    *lane
}

impl<'p> Worker<'p> {
    fn new(plan: &'p Plan, machine: Machine, setting: Setting) -> Self {
        let (tables, locals) = (plan.trace.tables.len(), plan.trace.locals.len());
        Self {
            plan,
            machine,
            setting,
            ring: Ring::new(plan.placement.ring),
            taken: VecDeque::new(),
            cache: Freshness::new(&plan.trace),
            next: 0,
            now: 0.0,
            computed: 0.0,
            allocator: 0.0,
            reclaimer: 0.0,
            to_device: 0.0,
            to_host: 0.0,
            network: 0.0,
            written: [vec![0.0; tables], vec![0.0; locals]],
            logs: vec![0; tables],
            clocks: vec![vec![0.0]; tables],
        }
    }

    fn iterate(&mut self, iteration: u64) {
        let first = self.next;
        for (event, moves) in self.plan.trace.events.iter().zip(self.plan.event_moves(iteration)) {
            let copied = |bytes: u64| bytes as f64 / self.machine.copy;
            match *event {
                Event::Access(what) => self.access(what, moves.read, moves.swapped_in),
                Event::Post { access, .. } => {
                    self.post(first + access as u64, access, moves.updates, moves.swapped_out);
                }
                Event::Clock(table) => self.clock(table.0),
                Event::Upload(_) | Event::Download(_) => self.now += copied(moves.input + moves.output),
                Event::Compute(cost) => {
                    let seconds = self.machine.compute(cost);
                    (self.now, self.computed) = (self.now + seconds, self.computed + seconds);
                }
            }
            if let Event::Clock(table) = *event {
                self.cache.clock(table);
            }
        }
    }

    fn home(&self, what: What) -> Home {
        self.plan.trace.home(what)
    }

    fn written(&mut self, home: Home) -> &mut f64 {
        match home {
            Home::Table(table) => &mut self.written[0][table],
            Home::Local(local) => &mut self.written[1][local],
        }
    }

    /// Returns when a table is fresh enough for the clock that the worker is in.
    fn fresh(&self, table: usize) -> f64 {
        let clocks = &self.clocks[table];
        let clock = clocks.len() - 1;
        match self.setting.consistency {
            Consistency::Bsp => clocks[clock],
            Consistency::Ssp { slack } => clocks[clock.saturating_sub(slack as usize)],
            Consistency::Async => 0.0,
        }
    }

    fn access(&mut self, what: What, read: u64, swapped_in: u64) {
        let is_pinned = matches!(what, What::Local { local, .. } if self.plan.placement.locals[local.0]);
        let ticket = self.next;
        self.next += 1;
        if is_pinned {
            return;
        }
        let mut ready = self.allocator;
        if !self.setting.prefetch {
            ready = ready.max(self.now);
        }
        while self.ring.take(ticket, padded(self.plan.trace.len_of(what))).is_none() {
            let Some((oldest, given_back)) = self.taken.pop_front() else { break };
            ready = ready.max(given_back);
            self.ring.give_back(oldest);
        }
        self.taken.push_back((ticket, f64::INFINITY));
        let home = self.home(what);
        if swapped_in > 0 || matches!(what, What::Read(_)) {
            ready = ready.max(*self.written(home));
        }
        if let (What::Read(rows), Home::Table(table)) = (what, home)
            && !self.cache.read(rows, TableId(table))
            && read > 0
        {
            // A row that is in the list several times is sent once.
            let list = &self.plan.trace.lists[rows.0];
            let sent = crate::table::bytes(list.distinct * list.width);
            let (begin, seconds) = (ready.max(self.fresh(table)), self.sent(sent));
            ready = work(&mut self.network, begin, seconds);
        }
        let copied = match what {
            What::Read(_) if self.setting.on_hosts => crate::table::bytes(self.plan.trace.len_of(what)),
            _ => read + swapped_in,
        };
        let seconds = copied as f64 / self.machine.copy;
        if seconds > 0.0 {
            ready = work(&mut self.to_device, ready, seconds);
        }
        self.allocator = ready;
        self.now = self.now.max(ready);
    }

    /// Returns the seconds of bytes on the network: those for the part of the server on the worker's own machine take none.
    fn sent(&self, bytes: u64) -> f64 {
        let others = (self.setting.workers - 1) as f64 / self.setting.workers as f64;
        if self.setting.workers == 1 {
            0.0
        } else {
            self.machine.latency + bytes as f64 * others / self.machine.network
        }
    }

    fn post(&mut self, ticket: u64, access: usize, updates: u64, swapped_out: u64) {
        let what = self.plan.trace.access(access);
        let begin = self.reclaimer.max(self.now);
        let moved = updates + swapped_out;
        let done = if moved == 0 { begin } else { work(&mut self.to_host, begin, moved as f64 / self.machine.copy) };
        self.reclaimer = done;
        if moved > 0 {
            let home = self.home(what);
            *self.written(home) = done;
            if let (What::PreUpdate(rows), Home::Table(table)) = (what, home) {
                // Updates of a row that is in the list several times are summed.
                let list = &self.plan.trace.lists[rows.0];
                self.logs[table] += crate::table::bytes(list.distinct * list.width);
            }
        }
        // Where there is room for many, they stay until it is needed. Tickets ascend.
        if let Ok(at) = self.taken.binary_search_by_key(&ticket, |taken| taken.0) {
            self.taken[at].1 = done;
        }
        if self.setting.on_hosts {
            self.now = self.now.max(done);
        }
    }

    fn clock(&mut self, table: usize) {
        let ready = self.reclaimer.max(self.now);
        let updates = std::mem::take(&mut self.logs[table]);
        let seconds = self.sent(updates);
        let done = work(&mut self.network, ready, seconds);
        self.clocks[table].push(done);
    }
}

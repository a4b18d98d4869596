//! A parameter server on several machines in modelled time: what crosses between them, and for how long workers wait for it.
//!
//! Each machine has a worker, a server that stores a part of the rows, and a link. Messages are those of `megagrid_baselines::server` with
//! static structures and slack 0: at the end of a clock a worker sends each server its updates and that the clock has ended, and requests
//! the rows of the next one, first reads first; a server answers in the order of requests once all clocks have ended. Connections that have
//! something to send take turns on a sender's link; what comes from several senders queues at the receiver's. A worker goes on as far as
//! its rows have arrived. Servers and copying cost nothing, and a machine reaches its own server at once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use megagrid_engine::virtual_cluster::Link;
use megagrid_partition::SplitMix;

/// Bytes of a message without rows.
const HEADER_BYTES: u64 = 40;
/// Rows travel in messages of about this size.
const CHUNK_BYTES: usize = 256 << 10;
/// What a connection sends before the next one's turn.
const TURN_BYTES: u64 = 64 << 10;
/// Lists of rows that a worker requests of each server: first reads, other reads.
const LISTS: usize = 2;

/// What a worker does in each clock.
pub struct Work {
    /// Rows in the order in which they are read.
    pub reads: Vec<u32>,
    /// Rows that it updates, each once.
    pub updates: Vec<u32>,
    /// Seconds of computing.
    pub seconds: f64,
}

/// What is modelled.
#[derive(Clone, Copy)]
pub struct Setting {
    pub row_bytes: usize,
    /// The share of reads whose rows are requested first.
    pub early_ratio: f64,
    pub link: Link,
    /// Standard deviation of a clock's computing, as a part of it.
    pub jitter: f64,
    pub clocks: usize,
    pub seed: u64,
}

/// What came of it, by clock from the second and machine.
#[derive(Default)]
pub struct Ran {
    /// Seconds that a worker waited for rows.
    pub waits: Vec<f64>,
    /// Seconds from one clock's beginning to the next one's.
    pub seconds: Vec<f64>,
    /// Bytes that crossed a link, a clock and machine, sent.
    pub bytes: f64,
}

/// Rows that come in one message.
type Part = usize;

/// What a machine requests and sends, made from its work.
struct Plan {
    /// Bytes of the answers to each server and list, by part.
    answers: Vec<[Vec<(Part, u64)>; LISTS]>,
    /// Bytes of updates for each server.
    updates: Vec<Vec<u64>>,
    /// The first reads of parts: the share of the clock's computing before it, in ascending order.
    needs: Vec<(f64, Part)>,
    parts: usize,
    seconds: f64,
}

impl Plan {
    fn new(work: &Work, machines: usize, setting: &Setting) -> Self {
        let rows_of_chunk = (CHUNK_BYTES / setting.row_bytes).max(1);
        let bytes = |rows: usize| HEADER_BYTES + (rows * setting.row_bytes) as u64;
        let most = work.reads.iter().chain(&work.updates).max().map_or(0, |&row| row as usize + 1);
        let mut first_read = vec![None; most];
        let mut lists = vec![[const { Vec::new() }; LISTS]; machines];
        for (at, &row) in work.reads.iter().enumerate() {
            if first_read[row as usize].is_none() {
                first_read[row as usize] = Some(at);
                let is_late = at as f64 >= setting.early_ratio * work.reads.len() as f64;
                lists[row as usize % machines][usize::from(is_late)].push(at);
            }
        }
        let (mut needs, mut parts) = (Vec::new(), 0);
        let mut answer = |list: Vec<usize>| {
            let of_part = |reads: &[usize]| {
                needs.push((reads[0] as f64 / work.reads.len() as f64, parts));
                parts += 1;
                (parts - 1, bytes(reads.len()))
            };
            list.chunks(rows_of_chunk).map(of_part).collect()
        };
        let answers = lists.into_iter().map(|lists| lists.map(&mut answer)).collect();
        needs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut updated = vec![0; machines];
        work.updates.iter().for_each(|&row| updated[row as usize % machines] += 1);
        let chunks = |rows: usize| {
            (0..rows).step_by(rows_of_chunk).map(|first| bytes(rows_of_chunk.min(rows - first))).collect()
        };
        let updates = updated.into_iter().map(chunks).collect();
        Self { answers, updates, needs, parts, seconds: work.seconds }
    }
}

#[derive(Clone, Copy)]
enum What {
    Updates,
    Clock,
    Request { list: usize },
    Rows { part: Part },
    Advanced,
}

#[derive(Clone, Copy)]
struct Message {
    from: usize,
    to: usize,
    what: What,
    /// Bytes that are not on the link yet.
    left: u64,
}

#[derive(Clone, Copy)]
enum Event {
    Sent {
        from: usize,
    },
    Delivered(Message),
    /// A worker has computed up to its next need.
    Reached {
        machine: usize,
    },
}

/// A machine's link: connections to other machines' workers and servers, and when it is free to receive.
#[derive(Default)]
struct Lane {
    connections: Vec<VecDeque<Message>>,
    turn: usize,
    is_sending: bool,
    receives_until: u64,
}

#[derive(Default)]
struct Server {
    /// Workers that have ended their clock, and clocks that all have ended.
    ended: usize,
    global: usize,
    /// Requests that wait for it to end: worker and list.
    waiting: Vec<(usize, usize)>,
}

#[derive(Default)]
struct Worker {
    clock: usize,
    at: usize,
    /// The last clock of which each part has arrived, counted from 1.
    arrived: Vec<usize>,
    blocked_since: Option<u64>,
    began: u64,
    waited: u64,
    /// What this clock's computing is multiplied with.
    pace: f64,
}

/// Several machines under way.
struct Fabric<'f> {
    setting: &'f Setting,
    plans: Vec<Plan>,
    lanes: Vec<Lane>,
    servers: Vec<Server>,
    workers: Vec<Worker>,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    /// Events by their number.
    made: Vec<Event>,
    now: u64,
    sent_bytes: u64,
    ran: Ran,
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Runs all machines for some clocks.
pub fn run(works: &[Work], setting: &Setting) -> Ran {
    let machines = works.len();
    let plans: Vec<Plan> = works.iter().map(|work| Plan::new(work, machines, setting)).collect();
    let worker = |plan: &Plan| Worker { arrived: vec![0; plan.parts], ..Worker::default() };
    let lane = || Lane { connections: vec![VecDeque::new(); 2 * machines], ..Lane::default() };
    let mut fabric = Fabric {
        setting,
        workers: plans.iter().map(worker).collect(),
        lanes: (0..machines).map(|_| lane()).collect(),
        servers: (0..machines).map(|_| Server::default()).collect(),
        plans,
        events: BinaryHeap::new(),
        made: Vec::new(),
        now: 0,
        sent_bytes: 0,
        ran: Ran::default(),
    };
    (0..machines).for_each(|machine| fabric.begin_clock(machine));
    while let Some(Reverse((time, number))) = fabric.events.pop() {
        fabric.now = time;
        match fabric.made[number as usize] {
            Event::Sent { from } => fabric.send_on(from),
            Event::Delivered(message) => fabric.deliver(message),
            Event::Reached { machine } => fabric.read(machine),
        }
    }
    fabric.ran.bytes = fabric.sent_bytes as f64 / (setting.clocks * machines) as f64;
    fabric.ran
}

impl Fabric<'_> {
    fn schedule(&mut self, time: u64, event: Event) {
        self.events.push(Reverse((time, self.made.len() as u64)));
        self.made.push(event);
    }

    /// A worker requests what it will read, and begins to compute.
    fn begin_clock(&mut self, machine: usize) {
        for list in 0..LISTS {
            for server in 0..self.plans.len() {
                if !self.plans[machine].answers[server][list].is_empty() {
                    self.send(machine, server, What::Request { list }, HEADER_BYTES);
                }
            }
        }
        let worker = &mut self.workers[machine];
        let mut random = SplitMix::new(self.setting.seed ^ (machine as u64) << 32, worker.clock as u64);
        // Box and Muller.
        let (radius, angle) = ((-2.0 * (1.0 - random.unit()).ln()).sqrt(), std::f64::consts::TAU * random.unit());
        worker.pace = (1.0 + self.setting.jitter * radius * angle.cos()).max(0.1);
        (worker.at, worker.began, worker.waited) = (0, self.now, 0);
        self.compute(machine, 0.0);
    }

    /// A worker computes from a share of its clock to its next need, or to the end.
    fn compute(&mut self, machine: usize, from: f64) {
        let (plan, worker) = (&self.plans[machine], &self.workers[machine]);
        let to = plan.needs.get(worker.at).map_or(1.0, |need| need.0);
        let time = self.now + nanos((to - from) * plan.seconds * worker.pace);
        self.schedule(time, Event::Reached { machine });
    }

    /// A worker is at its next need, or at the end of its clock.
    fn read(&mut self, machine: usize) {
        let (plan, worker) = (&self.plans[machine], &mut self.workers[machine]);
        let Some(&(share, part)) = plan.needs.get(worker.at) else { return self.end_clock(machine) };
        if worker.arrived[part] <= worker.clock {
            worker.blocked_since.get_or_insert(self.now);
            return;
        }
        if let Some(since) = worker.blocked_since.take() {
            worker.waited += self.now - since;
        }
        worker.at += 1;
        self.compute(machine, share);
    }

    fn end_clock(&mut self, machine: usize) {
        let worker = &mut self.workers[machine];
        if worker.clock > 0 {
            self.ran.waits.push(worker.waited as f64 * 1e-9);
            self.ran.seconds.push((self.now - worker.began) as f64 * 1e-9);
        }
        worker.clock += 1;
        let is_last = worker.clock == self.setting.clocks;
        for server in 0..self.plans.len() {
            for at in 0..self.plans[machine].updates[server].len() {
                self.send(machine, server, What::Updates, self.plans[machine].updates[server][at]);
            }
        }
        for server in 0..self.plans.len() {
            self.send(machine, server, What::Clock, HEADER_BYTES);
        }
        if !is_last {
            self.begin_clock(machine);
        }
    }

    fn send(&mut self, from: usize, to: usize, what: What, bytes: u64) {
        let message = Message { from, to, what, left: bytes };
        if from == to {
            return self.schedule(self.now, Event::Delivered(message));
        }
        self.sent_bytes += bytes;
        let is_answer = matches!(what, What::Rows { .. } | What::Advanced);
        let lane = &mut self.lanes[from];
        lane.connections[2 * to + usize::from(is_answer)].push_back(message);
        if !lane.is_sending {
            self.send_on(from);
        }
    }

    /// Sends of the connection whose turn it is.
    fn send_on(&mut self, from: usize) {
        let count = self.lanes[from].connections.len();
        let lane = &mut self.lanes[from];
        let next = (0..count).map(|ahead| (lane.turn + ahead) % count).find(|&at| !lane.connections[at].is_empty());
        lane.is_sending = next.is_some();
        let Some((at, message)) = next.and_then(|at| Some((at, lane.connections[at].front_mut()?))) else { return };
        let bytes = message.left.min(TURN_BYTES);
        message.left -= bytes;
        let (is_whole, message) = (message.left == 0, *message);
        if is_whole {
            lane.connections[at].pop_front();
        }
        lane.turn = at + 1;
        let Link { bytes_per_second, latency_seconds, message_seconds } = self.setting.link;
        let takes = nanos(bytes as f64 / bytes_per_second);
        let receiver = &mut self.lanes[message.to];
        receiver.receives_until = receiver.receives_until.max(self.now + nanos(latency_seconds)) + takes;
        let there = receiver.receives_until + nanos(message_seconds);
        self.schedule(self.now + takes, Event::Sent { from });
        if is_whole {
            self.schedule(there, Event::Delivered(message));
        }
    }

    fn deliver(&mut self, Message { from, to, what, .. }: Message) {
        match what {
            What::Updates | What::Advanced => {}
            What::Clock => {
                self.servers[to].ended += 1;
                if self.servers[to].ended.is_multiple_of(self.plans.len()) {
                    self.advance(to);
                }
            }
            What::Request { list } => {
                // On one connection nothing overtakes: it follows the sender's clocks.
                let clock = self.workers[from].clock;
                if clock <= self.servers[to].global {
                    self.answer(to, from, list);
                } else {
                    self.servers[to].waiting.push((from, list));
                }
            }
            What::Rows { part } => {
                let worker = &mut self.workers[to];
                worker.arrived[part] = worker.clock + 1;
                if worker.blocked_since.is_some() {
                    self.read(to);
                }
            }
        }
    }

    /// All workers have ended a clock: a server answers what waits for it, in the order in which it came.
    fn advance(&mut self, server: usize) {
        self.servers[server].global += 1;
        let waiting = std::mem::take(&mut self.servers[server].waiting);
        for (worker, list) in waiting {
            self.answer(server, worker, list);
        }
        for worker in 0..self.plans.len() {
            self.send(server, worker, What::Advanced, HEADER_BYTES);
        }
    }

    fn answer(&mut self, server: usize, worker: usize, list: usize) {
        for at in 0..self.plans[worker].answers[server][list].len() {
            let (part, bytes) = self.plans[worker].answers[server][list][at];
            self.send(server, worker, What::Rows { part }, bytes);
        }
    }
}

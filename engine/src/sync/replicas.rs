//! Mirrored updates: with slack, or clocks of several iterations, right rows that edge functions change in place have a replica in
//! every process.
//!
//! At the end of clock c a process sends what it changed in a shard since it sent last to the shard's master, and keeps a
//! copy until the master says that it is in. The master's rows are the sum of all changes that arrived; their *age* is the
//! last clock of which every process's changes are in. Rows go back with their age and with the last clock of the
//! receiver's own changes that they hold:
//!
//! | model | when rows go to a process |
//! |---|---|
//! | SSP | when it ends a clock after which what it has would be too old: as soon as the age allows (LazyTable §3) |
//! | ESSP | whenever the age grows (ESSPTable: the server pushes when its clock advances) |
//! | async | in answer to every change |
//! | VAP, on a virtual cluster | after every change, to all: changes are *in transit* until all have them ([`InTransit`]) |
//!
//! A process takes rows in between two clocks: its replica becomes the master's rows and its own changes that these do not
//! hold yet (read-my-updates). A worker at clock t has rows of age t − 1 − s at least.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;
use megagrid_partition::{ProcessId, ShardId, Side};
use megagrid_stages::{Shape, Store, Vertex};

use super::arithmetic::Arithmetic;
use super::form::Form;
use super::in_transit::InTransit;
use super::ledger::{Freshness, Ledger, Push};
use super::message::{Body, Kind, Malformed, Message};
use super::mirrors::Mirrors;
use super::outbox::Outbox;
use super::pick::Pick;
use super::table::{RowChanges, Table};
use crate::Error;
use crate::grid::{Pieces, SyncItem, VertexArrays, hold};
use crate::plan::Plan;

/// What a master sends to a process.
#[derive(Clone, Debug)]
pub struct Fresh<I> {
    /// The last clock of which every process's changes are in.
    pub age: u64,
    /// The last clock of the receiver's own changes that are in.
    pub included: u64,
    /// The rows that the receiver uses.
    pub rows: Table<I>,
}

/// Rows that are due to processes, by their numbers.
type Due<V> = Vec<(usize, Fresh<SyncItem<V>>)>;

/// A shard as this process works on it.
struct Replica<I> {
    /// The rows after the last clock that was sent.
    base: Table<I>,
    /// Changes that no rows that arrived hold yet, with their clocks.
    pending: VecDeque<(u64, RowChanges<I>)>,
    /// The latest rows that arrived and are to be taken in.
    arrived: Option<Fresh<I>>,
}

/// A shard whose masters this process keeps.
struct Master<I> {
    rows: Table<I>,
    /// Changes of a clock that not all processes have sent yet, where they are added in the order of processes.
    waiting: Vec<(usize, RowChanges<I>)>,
    ledger: Ledger,
}

/// The right shards of a process in a run with slack.
pub struct Replicas<V: Vertex> {
    arithmetic: Arithmetic<SyncItem<V>>,
    form: Form,
    push: Push,
    /// This process.
    this: usize,
    /// What is under way between all processes, where that is known and bounded.
    in_transit: Option<Arc<InTransit>>,
    /// Whether changes of a clock are added in the order of processes, so that sums are the same bit for bit: with slack 0, where
    /// each waits for all others anyway.
    in_order: bool,
    shards: Vec<Mutex<Replica<SyncItem<V>>>>,
    masters: Vec<Option<Mutex<Master<SyncItem<V>>>>>,
    fresh: Freshness,
    /// Whether masters' rows count: between two runs rows are only where edge functions see them, and may be set there.
    runs: AtomicBool,
    /// Bytes of pending changes, now and at most.
    unacknowledged: AtomicU64,
    most_unacknowledged: AtomicU64,
}

impl<V: Vertex> Replicas<V> {
    /// Makes room; [`Self::begin`] fills it.
    ///
    /// # Errors
    /// A store whose replicas' changes cannot be summed.
    pub fn new(
        plan: &Plan,
        mirrors: &Mirrors,
        dims: usize,
        (push, in_transit): (Push, Option<Arc<InTransit>>),
    ) -> Result<Self, Error> {
        let shards = plan.right.num_shards();
        let used = |shard: usize| !mirrors.of(Side::Right, ProcessId(plan.processes.this), ShardId(shard)).is_empty();
        let empty = || Mutex::new(Replica { base: Table::default(), pending: VecDeque::new(), arrived: None });
        let master = |shard: usize| {
            let ledger = ledger(plan, mirrors, shard);
            let master = || Master { rows: Table::default(), waiting: Vec::new(), ledger };
            (plan.keeper(Side::Right, shard) == plan.processes.this).then(|| Mutex::new(master()))
        };
        Ok(Self {
            arithmetic: Arithmetic::of::<V::Sync>(dims).ok_or(Error::NotAdditive)?,
            form: Form::of::<V, V::Sync>(dims),
            push,
            this: plan.processes.this,
            in_transit,
            in_order: plan.slack == Some(0),
            shards: (0..shards).map(|_| empty()).collect(),
            masters: (0..shards).map(master).collect(),
            fresh: Freshness::new((0..shards).map(used)),
            runs: AtomicBool::new(false),
            unacknowledged: AtomicU64::new(0),
            most_unacknowledged: AtomicU64::new(0),
        })
    }

    /// Begins a run: all processes have the same rows.
    pub fn begin(&self, plan: &Plan, mirrors: &Mirrors, arrays: &VertexArrays<V>, pieces: &Pieces) {
        self.runs.store(true, Ordering::Relaxed);
        self.unacknowledged.store(0, Ordering::Relaxed);
        self.in_transit.iter().for_each(|in_transit| in_transit.begin());
        for shard in 0..self.shards.len() {
            let pick = mirrors.of(Side::Right, ProcessId(plan.processes.this), ShardId(shard));
            let all = Pick::All(plan.right.rows(shard).len());
            *lock(&self.shards[shard]) =
                Replica { base: self.read(arrays, pieces, shard, pick), pending: VecDeque::new(), arrived: None };
            if let Some(master) = &self.masters[shard] {
                let mut master = lock(master);
                master.rows = self.read(arrays, pieces, shard, &all);
                master.waiting.clear();
                master.ledger = ledger(plan, mirrors, shard);
            }
            if !pick.is_empty() {
                self.fresh.begin(shard);
            }
        }
    }

    /// Ends a run, whose rows are where edge functions see them.
    pub fn end(&self) {
        self.runs.store(false, Ordering::Relaxed);
    }

    /// Tells whether a run has begun and not ended.
    pub fn runs(&self) -> bool {
        self.runs.load(Ordering::Relaxed)
    }

    fn read(&self, arrays: &VertexArrays<V>, pieces: &Pieces, shard: usize, pick: &Pick) -> Table<SyncItem<V>> {
        let rows = hold(|| arrays.try_share(pieces.of(shard..shard + 1)));
        let mut table = Table::default();
        for row in pick.rows(rows.rows.start) {
            let items = rows.sync.items(row);
            table.push(&items[..self.form.width().unwrap_or(items.len())]);
        }
        table
    }

    /// Writes rows of a shard where edge functions see them, and refreshes the mirror data.
    fn write(arrays: &VertexArrays<V>, pieces: &Pieces, (shard, pick): (usize, &Pick), table: &Table<SyncItem<V>>) {
        let mut rows = hold(|| arrays.try_own(pieces.of(shard..shard + 1)));
        let first = rows.rows.start;
        let (mut old, keeps_mirror) = (Vec::new(), V::Mirror::SHAPE != Shape::Nothing);
        for (at, row) in pick.rows(first).enumerate() {
            let (row, items) = (rows.row(row), table.row(at));
            if keeps_mirror {
                old.clear();
                old.extend_from_slice(row.sync);
            }
            row.sync[..items.len()].copy_from_slice(items);
            if keeps_mirror {
                V::refresh(V::Mirror::view_mut(row.mirror), V::Sync::view(&old), V::Sync::view(row.sync));
            }
        }
    }

    /// Returns the least age of the rows that this process uses, taken in or about to be, and the last clock of its own changes that
    /// all masters are known to have.
    pub fn age(&self) -> (u64, u64) {
        (self.fresh.age(), self.fresh.included())
    }

    /// Returns what is under way, where that bounds who may go on.
    pub fn in_transit(&self) -> Option<&InTransit> {
        self.in_transit.as_deref()
    }

    /// Takes in the rows of a shard that arrived last, if any did. Between two clocks.
    pub fn take_in(
        &self,
        pick: &Pick,
        shard: usize,
        arrays: &VertexArrays<V>,
        pieces: &Pieces,
    ) -> Result<(), Malformed> {
        let mut replica = lock(&self.shards[shard]);
        let Some(fresh) = replica.arrived.take() else { return Ok(()) };
        let still = replica.pending.partition_point(|(clock, _)| *clock <= fresh.included);
        for (_, change) in replica.pending.drain(..still) {
            self.unacknowledged.fetch_sub(change.bytes(), Ordering::Relaxed);
        }
        let mut now = fresh.rows;
        for (_, change) in &replica.pending {
            for (row, change) in change.each() {
                self.arithmetic.add(now.row_mut(row), change)?;
            }
        }
        Self::write(arrays, pieces, (shard, pick), &now);
        replica.base = now;
        Ok(())
    }

    /// Returns what this process changed in a shard since the last clock that it sent.
    pub fn change(
        &self,
        pick: &Pick,
        shard: usize,
        clock: u64,
        arrays: &VertexArrays<V>,
        pieces: &Pieces,
    ) -> RowChanges<SyncItem<V>> {
        let now = self.read(arrays, pieces, shard, pick);
        let mut replica = lock(&self.shards[shard]);
        let append = |row: usize, out: &mut Vec<SyncItem<V>>| {
            self.arithmetic.append_change(now.row(row), replica.base.row(row), out)
        };
        let change = RowChanges::of(now.len(), append);
        replica.base = now;
        replica.pending.push_back((clock, change.clone()));
        self.in_transit.iter().for_each(|in_transit| in_transit.send(self.this, shard, clock, &change));
        self.keep(change.bytes());
        change
    }

    /// Adds a process's changes of a clock to the master's rows, and returns the processes that rows go to now.
    pub fn add(
        &self,
        mirrors: &Mirrors,
        shard: ShardId,
        ProcessId(process): ProcessId,
        clock: u64,
        change: RowChanges<SyncItem<V>>,
    ) -> Result<Due<V>, Malformed> {
        let mut master = lock(self.masters[shard.0].as_ref().ok_or(Malformed)?);
        let has_grown = master.ledger.enter(process, clock)?;
        master.waiting.push((process, change));
        if !self.in_order || has_grown {
            let mut waiting = std::mem::take(&mut master.waiting);
            waiting.sort_by_key(|(process, _)| *process);
            for (process, change) in &waiting {
                let pick = mirrors.of(Side::Right, ProcessId(*process), shard);
                for (at, change) in change.each() {
                    let row = pick.number(at).ok_or(Malformed)?;
                    self.arithmetic.add(master.rows.row_mut(row), change)?;
                }
            }
        }
        let (age, due) = (master.ledger.age(), master.ledger.due(process, has_grown, self.push));
        let fresh = |receiver: usize| {
            let clocks = || master.ledger.clocks().to_vec();
            self.in_transit.iter().for_each(|in_transit| in_transit.show(receiver, shard.0, clocks()));
            let pick = mirrors.of(Side::Right, ProcessId(receiver), shard);
            (receiver, Fresh { age, included: master.ledger.included(receiver), rows: master.rows.only(pick.rows(0)) })
        };
        Ok(due.into_iter().map(fresh).collect())
    }

    /// Sends rows of a shard from their masters to those that they are due to, this process among them.
    pub fn send(&self, plan: &Plan, outbox: &Outbox, shard: usize, fresh: Due<V>) {
        for (process, fresh) in fresh {
            if process == plan.processes.this {
                self.arrive(shard, fresh);
            } else {
                let (thread, threads) = (shard % plan.threads(), plan.threads());
                outbox.put(Message {
                    kind: Kind::Fresh,
                    side: Side::Right,
                    shard: shard as u32,
                    stage: 0,
                    from: (plan.processes.this * threads + thread) as u32,
                    to: (process * threads + thread) as u32,
                    number: fresh.age,
                    body: Body::Own(self.pack_fresh(&fresh)),
                    ..Message::default()
                });
            }
        }
    }

    /// Keeps rows that arrived until they can be taken in. Rows that are older than those known are of no use.
    pub fn arrive(&self, shard: usize, fresh: Fresh<SyncItem<V>>) {
        self.in_transit.iter().for_each(|in_transit| in_transit.arrive(self.this, shard));
        let mut replica = lock(&self.shards[shard]);
        if self.fresh.is_news(shard, fresh.age, fresh.included) {
            self.fresh.raise(shard, fresh.age, fresh.included);
            replica.arrived = Some(fresh);
        }
    }

    /// Takes all rows as they are for the masters' own, now that these hold all changes and were shown to all processes.
    pub fn settle(&self, plan: &Plan, mirrors: &Mirrors, arrays: &VertexArrays<V>, pieces: &Pieces) {
        self.unacknowledged.store(0, Ordering::Relaxed);
        for (shard, replica) in self.shards.iter().enumerate() {
            let pick = mirrors.of(Side::Right, ProcessId(plan.processes.this), ShardId(shard));
            let base = self.read(arrays, pieces, shard, pick);
            let mut replica = lock(replica);
            let included = self.fresh.included_in(shard);
            let clock = replica.pending.back().map_or(included, |(clock, _)| *clock);
            *replica = Replica { base, pending: VecDeque::new(), arrived: None };
            self.fresh.raise(shard, clock, clock);
        }
    }

    /// Shows the masters' rows of a shard to edge functions, where this process keeps them.
    pub fn show_masters(&self, plan: &Plan, shard: usize, arrays: &VertexArrays<V>, pieces: &Pieces) {
        if let Some(master) = &self.masters[shard] {
            let all = Pick::All(plan.right.rows(shard).len());
            Self::write(arrays, pieces, (shard, &all), &lock(master).rows);
        }
    }

    /// Writes the body of a message of changes: of only the rows that changed.
    pub fn pack_change(&self, change: &RowChanges<SyncItem<V>>, all: usize) -> Vec<u8> {
        change.to_bytes(all, self.form)
    }

    /// Reads the changes of some of `all` rows from the body of a message.
    pub fn unpack_change(&self, from: &[u8], all: usize) -> Result<RowChanges<SyncItem<V>>, Malformed> {
        RowChanges::from_bytes(from, all, self.form)
    }

    /// Writes the body of a message of a master's rows; the age goes in its header.
    fn pack_fresh(&self, fresh: &Fresh<SyncItem<V>>) -> Vec<u8> {
        let mut bytes = fresh.included.to_le_bytes().to_vec();
        fresh.rows.put(self.form, &mut bytes);
        bytes
    }

    /// Reads the rows of a shard that this process uses from the body of a message.
    pub fn unpack_fresh(&self, shard: usize, age: u64, bytes: &[u8]) -> Result<Fresh<SyncItem<V>>, Malformed> {
        let (included, mut rest) = bytes.split_first_chunk::<8>().ok_or(Malformed)?;
        let replica = lock(&self.shards[shard]);
        let rows = Table::take(replica.base.len(), self.form, &mut rest)?.padded_as(&replica.base)?;
        let fresh = Fresh { age, included: u64::from_le_bytes(*included), rows };
        if rest.is_empty() { Ok(fresh) } else { Err(Malformed) }
    }

    /// Returns the most bytes of changes since the run began that masters were not known to have.
    pub fn most_unacknowledged_bytes(&self) -> u64 {
        self.most_unacknowledged.load(Ordering::Relaxed)
    }

    /// Counts changes that are kept until their masters have them.
    fn keep(&self, bytes: u64) {
        let before = self.unacknowledged.fetch_add(bytes, Ordering::Relaxed);
        self.most_unacknowledged.fetch_max(before + bytes, Ordering::Relaxed);
    }
}

/// Begins the ledger of a shard. A process that uses no row sends no change.
fn ledger(plan: &Plan, mirrors: &Mirrors, shard: usize) -> Ledger {
    let uses = |process: usize| !mirrors.of(Side::Right, ProcessId(process), ShardId(shard)).is_empty();
    Ledger::new((0..plan.processes.count).map(uses))
}

//! Takes in what other processes send to a worker.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use megagrid_partition::{ProcessId, ShardId, Side};
use megagrid_stages::{Left, On, Program, Right};

use super::board::Board;
use super::coordinator::Notice;
use super::runner::AtWork;
use super::state::Run;
use super::transport::Transport;
use super::worker::{Progress, Worker};
use crate::Error;
use crate::grid::hold;
use crate::stages::take_edges;
use crate::sync::{
    Kind, Malformed, Message, Outbox, Pick, Replicas, Replication, Served, slice_of, unpack_sync, unpack_whole,
};

pub struct Arrivals<P: Program> {
    run: Arc<Run<P>>,
    board: Arc<Board>,
    /// The worker's number in its process.
    thread: usize,
    /// What it answers, and what the worker sends.
    pub outbox: Outbox,
    /// What is yet to be taken in, with the steps that its senders had ended: rows that came before this process ended what still reads
    /// the old ones, and parts of sums and rows with an age, which a hold may keep waiting.
    early: RefCell<Vec<(u64, Message)>>,
    coordinator: Sender<Notice>,
}

impl<P: Program> Arrivals<P> {
    pub fn new(worker: usize, run: &Arc<Run<P>>, board: &Arc<Board>, coordinator: Sender<Notice>) -> Self {
        Self {
            run: Arc::clone(run),
            board: Arc::clone(board),
            thread: worker % run.plan.threads(),
            outbox: Outbox::new(!run.plan.early),
            early: RefCell::default(),
            coordinator,
        }
    }

    /// Takes a message in, or keeps it until its time has come.
    pub fn receive(&self, step: u64, message: Message) {
        if message.waits() || self.is_served(&message) {
            self.early.borrow_mut().push((step, message));
            self.keep_early();
        } else {
            self.take(&message);
        }
    }

    fn take(&self, message: &Message) {
        if let Err(Malformed) = receive(&self.run, &self.board, &self.outbox, message) {
            self.refuse(message);
        }
    }

    /// Says on the board which rows are still to be taken in.
    fn keep_early(&self) {
        let first = self.early.borrow().iter().map(|(step, _)| *step).min();
        self.board.keep_early(self.thread, first.unwrap_or(u64::MAX));
    }

    /// Tells whether a message is of a side whose Apply is given parts of sums.
    fn is_served(&self, message: &Message) -> bool {
        matches!(message.kind, Kind::Deltas | Kind::Fresh) && self.run.plan.serves(message.side)
    }

    /// Sends what a task put out, tells how far the worker is, and looks how far all are.
    pub fn pass_messages(
        &self,
        worker: &Worker,
        mut at_work: AtWork<'_, P>,
        transport: &mut impl Transport,
        progress: Progress,
    ) {
        let served = self.take_in(&mut at_work);
        let in_step = progress == Progress::Ran && worker.steps() == transport.steps();
        if !in_step || served || self.outbox.is_due() {
            transport.send(&self.outbox);
        }
        transport.advance(worker.steps());
        if progress == Progress::Waiting || worker.is_at_barrier() || self.run.plan.slack != Some(0) {
            transport.announce();
        }
        if in_step {
            transport.step();
        }
        self.take_in(&mut at_work);
        self.board.arrive(transport.arrived());
        let ages = [self.run.replicas.as_ref().map(Replicas::age), self.run.served.as_ref().map(Served::age)];
        if let Some((age, included)) = ages.into_iter().flatten().reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))) {
            self.board.freshen(age, included);
        }
    }

    /// Takes in rows that came early, once the workers of this process have ended what their sender had, and what is served, in the
    /// order in which it came. Tells whether anything was served.
    fn take_in(&self, at_work: &mut AtWork<'_, P>) -> bool {
        let mut early = self.early.take();
        let (waiting, mut served, mut refused) = (early.len(), false, false);
        early.retain(|(step, message)| {
            if self.is_served(message) {
                refused = refused || !self.serve(at_work, message);
                served |= !refused;
                refused
            } else {
                let is_due = self.board.all_ended_steps(*step);
                if is_due {
                    self.take(message);
                }
                !is_due
            }
        });
        let left = early.len();
        self.early.replace(early);
        if left < waiting {
            self.keep_early();
        }
        served
    }

    /// Applies a part of a sum, or takes rows in; `false`: a hold was refused.
    fn serve(&self, at_work: &mut AtWork<'_, P>, message: &Message) -> bool {
        let taken = match (message.kind, message.side) {
            _ if message.shard as usize >= self.run.plan.side(message.side).num_shards() => Some(Err(Malformed)),
            (Kind::Deltas, _) => at_work.serve(message),
            (_, Side::Left) => take_fresh::<P, Left>(&self.run, message),
            (_, Side::Right) => take_fresh::<P, Right>(&self.run, message),
        };
        if let Some(Err(Malformed)) = taken {
            self.refuse(message);
        }
        taken.is_some()
    }

    /// Ends the run because of a message that no process of this version sends.
    fn refuse(&self, message: &Message) {
        let process = self.run.plan.process_of(message.from as usize);
        let _ = self.coordinator.send(Notice::Failed(Error::Message(process)));
        self.board.stop();
    }
}

/// Takes in what another process sent.
fn receive<P: Program>(run: &Run<P>, board: &Board, outbox: &Outbox, message: &Message) -> Result<(), Malformed> {
    let Some(sync) = &run.sync else { return Ok(()) };
    let (plan, grid, shard) = (&*run.plan, &run.grid, message.shard as usize);
    let known = match message.kind {
        Kind::Empty => return Ok(()),
        Kind::Sums => (message.stage as usize) < run.stages.len(),
        Kind::Edges => shard < plan.right.num_shards(),
        _ => shard < plan.side(message.side).num_shards(),
    };
    let taken = if !known {
        Err(Malformed)
    } else if message.kind == Kind::Deltas {
        sync.keep(message);
        Ok(())
    } else if message.kind == Kind::Sums {
        run.stages[message.stage as usize].receive(&run.globals, message)
    } else if let Kind::Changes | Kind::Fresh = message.kind {
        take_changes(run, outbox, message)
    } else if message.kind == Kind::Edges {
        take_edges(grid, message)
    } else if message.side == Side::Left {
        take_rows::<P, Left>(sync, run, message)
    } else {
        take_rows::<P, Right>(sync, run, message)
    };
    taken?;
    if message.kind == Kind::Shard && message.places().end == plan.side(message.side).rows(shard).len() {
        board.receive(shard, message.number);
    }
    Ok(())
}

fn take_rows<P: Program, O: On<P>>(sync: &Replication, run: &Run<P>, message: &Message) -> Result<(), Malformed> {
    let Run { plan, grid, dims, .. } = run;
    let (shard, bytes) = (message.shard as usize, &*message.body.bytes());
    let mut rows = hold(|| grid.rows::<O>().try_own(grid.pieces(O::SIDE).of(shard..shard + 1)));
    if message.kind == Kind::Shard {
        let all = Pick::All(rows.rows.len());
        return unpack_whole(&mut rows, &slice_of(&all, message)?, *dims, false, bytes);
    }
    let pick = sync.mirrors.of(O::SIDE, ProcessId(plan.processes.this), ShardId(shard));
    unpack_sync(&mut rows, &slice_of(pick, message)?, *dims, bytes)
}

/// Takes changes into a master's rows, or keeps rows that a master sent.
fn take_changes<P: Program>(run: &Run<P>, outbox: &Outbox, message: &Message) -> Result<(), Malformed> {
    let (Some(sync), Some(replicas)) = (&run.sync, &run.replicas) else { return Err(Malformed) };
    let (plan, shard, bytes) = (&run.plan, message.shard as usize, &*message.body.bytes());
    if message.kind == Kind::Fresh {
        replicas.arrive(shard, replicas.unpack_fresh(shard, message.number, bytes)?);
        return Ok(());
    }
    let process = ProcessId(plan.process_of(message.from as usize));
    let rows = sync.mirrors.of(Side::Right, process, ShardId(shard)).len();
    let change = replicas.unpack_change(bytes, rows)?;
    let fresh = replicas.add(&sync.mirrors, ShardId(shard), process, message.number, change)?;
    replicas.send(plan, outbox, shard, fresh);
    Ok(())
}

/// Takes in rows that a master sent with their age; `None`: a hold was refused.
fn take_fresh<P: Program, O: On<P>>(run: &Run<P>, message: &Message) -> Option<Result<(), Malformed>> {
    let (sync, served) = (run.sync.as_ref()?, run.served.as_ref()?);
    let shard = message.shard as usize;
    let mut rows = run.grid.rows::<O>().try_own(run.grid.pieces(O::SIDE).of(shard..shard + 1))?;
    let mut take = || {
        let pick = sync.mirrors.of(O::SIDE, ProcessId(run.plan.processes.this), ShardId(shard));
        let bytes = message.body.bytes();
        let (included, bytes) = bytes.split_first_chunk::<8>().ok_or(Malformed)?;
        let (age, included) = (message.number, u64::from_le_bytes(*included));
        if served.is_news(O::SIDE, shard, age, included)? {
            unpack_sync(&mut rows, &slice_of(pick, message)?, run.dims, bytes)?;
            if message.places().end == pick.len() {
                served.arrive(O::SIDE, shard, age, included)?;
            }
        }
        Ok(())
    };
    Some(take())
}

//! Takes in what other processes send to a worker.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use megagrid_partition::{ProcessId, ShardId, Side};
use megagrid_stages::{Left, On, Program, Right};

use super::board::Board;
use super::coordinator::Notice;
use super::state::Run;
use super::transport::Transport;
use super::worker::{Progress, Worker};
use crate::Error;
use crate::grid::hold;
use crate::stages::take_edges;
use crate::sync::{Kind, Malformed, Message, Outbox, Pick, Replication, slice_of, unpack_sync, unpack_whole};

pub struct Arrivals<P: Program> {
    run: Arc<Run<P>>,
    board: Arc<Board>,
    /// The worker's number in its process.
    thread: usize,
    /// What it answers, and what the worker sends.
    pub outbox: Outbox,
    /// Rows that came before this process ended what still reads the old ones, with the steps that their senders had ended.
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
        if message.waits() {
            self.early.borrow_mut().push((step, message));
            self.keep_early();
        } else {
            self.take(&message);
        }
    }

    fn take(&self, message: &Message) {
        if let Err(error) = receive(&self.run, &self.board, &self.outbox, message) {
            let _ = self.coordinator.send(Notice::Failed(error));
            self.board.stop();
        }
    }

    /// Says on the board which rows are still to be taken in.
    fn keep_early(&self) {
        let first = self.early.borrow().iter().map(|(step, _)| *step).min();
        self.board.keep_early(self.thread, first.unwrap_or(u64::MAX));
    }

    /// Sends what a task put out, tells how far the worker is, and looks how far all are.
    pub fn pass_messages(&self, worker: &Worker, transport: &mut impl Transport, progress: Progress) {
        let in_step = progress == Progress::Ran && worker.steps() == transport.steps();
        if !in_step || self.outbox.is_due() {
            transport.send(&self.outbox);
        }
        transport.advance(worker.steps());
        if progress == Progress::Waiting || worker.is_at_barrier() || self.run.plan.slack != Some(0) {
            transport.announce();
        }
        if in_step {
            transport.step();
        }
        self.take_in();
        self.board.arrive(transport.arrived());
        if let Some(replicas) = &self.run.replicas {
            self.board.freshen(replicas.age(), replicas.included());
        }
    }

    /// Takes in rows that came early, once the workers of this process have ended what their sender had.
    fn take_in(&self) {
        let due = |(step, _): &mut (u64, _)| self.board.all_ended_steps(*step);
        let due: Vec<_> = self.early.borrow_mut().extract_if(.., due).collect();
        due.iter().for_each(|(_, message)| self.take(message));
        if !due.is_empty() {
            self.keep_early();
        }
    }
}

/// Takes in what another process sent.
fn receive<P: Program>(run: &Run<P>, board: &Board, outbox: &Outbox, message: &Message) -> Result<(), Error> {
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
    taken.map_err(|Malformed| Error::Message(plan.process_of(message.from as usize)))?;
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

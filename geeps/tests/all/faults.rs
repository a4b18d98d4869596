//! Workers that die, and applications that do something else than they said.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use megagrid_geeps::apps::{Application, Measured, Place};
use megagrid_geeps::device::{Command, Cpu, Device, DeviceRange};
use megagrid_geeps::run::Run;
use megagrid_geeps::{Consistency, Error, LocalId, RowsId, Session, TableId, Tables, VirtualIteration};
use megagrid_partition::SplitMix;

use crate::data::{RUN, try_train, try_train_on};
use crate::together::together;

/// What a worker does at some iteration that is not in the virtual one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Panic,
    Error,
    HoldsWhilePanicking,
    OtherOrder,
    NotPosted,
    EndsEarly,
}

/// The reference device, of which a call, counted from 0, is not as others.
#[derive(Debug)]
pub struct Failing {
    cpu: Cpu,
    calls: AtomicU64,
    at: u64,
    /// Whether the call panics, or finds the device lost.
    panics: bool,
}

impl Failing {
    /// Makes one that is lost from a call on.
    pub fn lost_at(at: u64) -> Self {
        Self { cpu: Cpu::new(), calls: AtomicU64::new(0), at, panics: false }
    }

    fn call(&self) -> Result<(), Error> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics || number != self.at, "this device panics on purpose");
        if !self.panics && number >= self.at {
            return Err(Error::DeviceLost { reason: "on purpose".to_owned() });
        }
        Ok(())
    }
}

impl Device for Failing {
    fn alloc(&self, len: usize) -> Result<DeviceRange, Error> {
        self.cpu.alloc(len)
    }

    fn upload(&self, to: DeviceRange, values: &[f32]) -> Result<(), Error> {
        self.call().and_then(|()| self.cpu.upload(to, values))
    }

    fn download(&self, from: DeviceRange) -> Result<Vec<f32>, Error> {
        self.call().and_then(|()| self.cpu.download(from))
    }

    fn submit(&self, commands: &[Command]) -> Result<(), Error> {
        self.call().and_then(|()| self.cpu.submit(commands))
    }

    fn wait(&self) -> Result<(), Error> {
        self.cpu.wait()
    }
}

/// Whatever thread of a worker it is that fails, its application, its allocator or its reclaimer, and wherever: the run ends.
#[test]
fn fifty_devices_that_fail_at_any_call_end_the_run_of_all_workers() {
    let mut by_thread = [0; 2];
    for seed in 0..50 {
        let mut random = SplitMix::new(seed, 3);
        let workers = 2 + random.below(3) as usize;
        let (worker, at, panics) = (random.below(workers as u64) as usize, random.below(250), random.below(2) == 0);
        let consistency =
            [Consistency::Bsp, Consistency::Ssp { slack: 2 }, Consistency::Async][random.below(3) as usize];
        let budget = [LEAST, 1 << 20][random.below(2) as usize];
        let run = Run { workers, epochs: 2, consistency, budget, prefetch: random.below(2) == 0 };
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            let device = |number| -> Result<Arc<dyn Device>, Error> {
                let at = if number == worker { at } else { u64::MAX };
                Ok(Arc::new(Failing { panics, ..Failing::lost_at(at) }))
            };
            let faultless = Faulty::new(usize::MAX, 0, Fault::Error);
            let found = std::panic::catch_unwind(AssertUnwindSafe(|| try_train_on(&faultless, run, device)));
            // The test may have given up.
            let _ = send.send(found);
        });
        let found = receive.recv_timeout(Duration::from_secs(10)).expect("all workers end within ten seconds");
        let error = found.expect("a panic is an error").expect_err("a device has failed");
        match error {
            Error::ThreadPanicked { worker: lost } if panics && lost == worker => by_thread[0] += 1,
            Error::WorkerLost { worker: lost, .. } if panics && lost == worker => by_thread[1] += 1,
            Error::DeviceLost { .. } if !panics => {}
            other => panic!("seed {seed}: {other} under {run:?}, panics: {panics}"),
        }
    }
    assert!(by_thread.iter().all(|&count| count > 0), "both kinds of threads: {by_thread:?}");
}

/// What [`Fault::Error`] is.
fn full() -> Error {
    Error::DeviceMemory { bytes: 7, most: "on purpose".to_owned() }
}

/// The least budget of [`Faulty`] in bytes.
const LEAST: u64 = 1280;

/// Two tables and local data, and a fault on one worker.
struct Faulty {
    worker: usize,
    at: u64,
    fault: Fault,
    has_happened: AtomicBool,
}

struct Worker {
    number: usize,
    rows: [RowsId; 2],
    local: LocalId,
    calls: u64,
}

impl Faulty {
    fn new(worker: usize, at: u64, fault: Fault) -> Self {
        Self { worker, at, fault, has_happened: AtomicBool::new(false) }
    }

    fn ids(&self) -> Vec<TableId> {
        self.tables().iter().map(|(id, _)| id).collect()
    }
}

impl Application for Faulty {
    type Worker = Worker;

    fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        tables.add("first", 2, 64);
        tables.add("second", 1, 64);
        tables
    }

    fn first_values(&self) -> Result<Vec<Vec<f32>>, Error> {
        Ok(vec![vec![0.0; 128], vec![0.0; 64]])
    }

    fn iterations(&self) -> u64 {
        20
    }

    fn declare(&self, worker: usize, session: &mut VirtualIteration) -> Result<Worker, Error> {
        let ids = self.ids();
        let rows = [session.all_rows(ids[0]), session.all_rows(ids[1])];
        Ok(Worker { number: worker, rows, local: session.local("state", 64), calls: 0 })
    }

    fn iterate(&self, worker: &mut Worker, _: Place, session: &mut impl Session) -> Result<f64, Error> {
        worker.calls += 1;
        // The first call is the virtual iteration.
        let faults = worker.number == self.worker && worker.calls == self.at + 2;
        if faults {
            self.has_happened.store(true, Ordering::Relaxed);
        }
        let does = |fault| faults && self.fault == fault;
        assert!(!does(Fault::Panic), "this worker panics on purpose");
        if does(Fault::Error) {
            return Err(full());
        }
        let first = session.read(worker.rows[if does(Fault::OtherOrder) { 1 } else { 0 }])?;
        let local = session.local_access(worker.local)?;
        assert!(!does(Fault::HoldsWhilePanicking), "this worker panics on purpose");
        session.submit(&[Command::Axpy { alpha: 1.0, x: first.range().part(0, 64), y: local.range() }])?;
        if !does(Fault::NotPosted) {
            session.post_read(first)?;
        }
        session.post_local_access(local)?;
        for (rows, id) in worker.rows.into_iter().zip(self.ids()) {
            let update = session.pre_update(rows)?;
            session.submit(&[Command::Fill { to: update.range(), value: 1.0 }])?;
            session.update(update)?;
            session.table_clock(id)?;
        }
        if does(Fault::EndsEarly) {
            return Ok(0.0);
        }
        let second = session.read(worker.rows[1])?;
        session.post_read(second)?;
        Ok(0.0)
    }

    fn samples(&self, _: usize) -> u64 {
        1
    }

    fn measure(&self, _: &[Vec<f32>]) -> Measured {
        Measured::default()
    }
}

/// Runs with a fault, and fails where the run does not end.
fn outcome(faulty: Faulty, run: Run) -> Error {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let found = std::panic::catch_unwind(AssertUnwindSafe(|| try_train(&faulty, run)));
        assert!(faulty.has_happened.load(Ordering::Relaxed), "the fault was not reached");
        // The test may have given up.
        let _ = send.send(found);
    });
    let found = receive.recv_timeout(Duration::from_secs(10)).expect("all workers end within ten seconds");
    found.expect("a panic of a worker is an error").expect_err("a worker has failed")
}

#[test]
fn fifty_workers_that_die_end_the_others_with_one_error() {
    for seed in 0..50 {
        let mut random = SplitMix::new(seed, 0);
        let workers = 2 + random.below(3) as usize;
        let (worker, at) = (random.below(workers as u64) as usize, random.below(40));
        let fault = [Fault::Panic, Fault::HoldsWhilePanicking, Fault::Error][random.below(3) as usize];
        let consistency =
            [Consistency::Bsp, Consistency::Ssp { slack: 2 }, Consistency::Async][random.below(3) as usize];
        // The least budget, or all.
        let (budget, prefetch) = ([LEAST, 1 << 20][random.below(2) as usize], random.below(2) == 0);
        let run = Run { workers, epochs: 2, consistency, budget, prefetch };
        let error = outcome(Faulty::new(worker, at, fault), run);
        let expected = match fault {
            Fault::Error => full(),
            _ => Error::WorkerLost { worker, iteration: at + 1 },
        };
        assert_eq!(error, expected, "seed {seed}: {fault:?} under {run:?}");
    }
}

#[test]
fn fifty_processes_whose_worker_dies_end_the_others() {
    for seed in 0..50 {
        let mut random = SplitMix::new(seed, 1);
        let workers = 2 + random.below(3) as usize;
        let (worker, at) = (random.below(workers as u64) as usize, random.below(40));
        let fault = [Fault::Panic, Fault::HoldsWhilePanicking, Fault::Error][random.below(3) as usize];
        let consistency =
            [Consistency::Bsp, Consistency::Ssp { slack: 2 }, Consistency::Async][random.below(3) as usize];
        let run = Run { workers, epochs: 2, consistency, budget: LEAST, prefetch: random.below(2) == 0 };
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            let faulty = Faulty::new(worker, at, fault);
            // The test may have given up.
            let _ = send.send(together(workers, &faulty, run, None));
        });
        let outcomes = receive.recv_timeout(Duration::from_secs(10)).expect("all processes end within ten seconds");
        for (process, outcome) in outcomes.into_iter().enumerate() {
            let error = outcome.expect_err("a worker has died");
            let says_it = match &error {
                Error::DeviceMemory { bytes: 7, .. } => fault == Fault::Error && process == worker,
                Error::WorkerLost { .. } => fault != Fault::Error && process == worker,
                error => process != worker && matches!(error, Error::Process { .. }),
            };
            assert!(says_it, "seed {seed}, process {process}: {fault:?} of {worker} under {run:?}: {error}");
        }
    }
}

#[test]
fn an_order_that_changes_is_named_with_its_call_and_iteration() {
    let run = Run { workers: 2, epochs: 1, ..RUN };
    let error = outcome(Faulty::new(1, 6, Fault::OtherOrder), run);
    assert_eq!(
        error.to_string(),
        "worker 1: call 1 of iteration 7 is the read of second; in the virtual iteration it was the read of first, and indexes \
         and buffers were made for that"
    );
    let error = outcome(Faulty::new(0, 3, Fault::NotPosted), run);
    let Error::OtherOrder { worker, number, iteration, found, expected } = error else { panic!("{error}") };
    assert_eq!((worker, number, iteration), (0, 3, 4));
    assert_eq!((found.as_str(), expected.as_str()), ("post of the state", "post of the read of first"));
}

#[test]
fn an_iteration_that_ends_early_is_an_error_also_at_the_end() {
    for at in [19, 39] {
        let error = outcome(Faulty::new(1, at, Fault::EndsEarly), Run { workers: 2, epochs: 2, ..RUN });
        let Error::OtherOrder { iteration, found, expected, .. } = error else { panic!("{error}") };
        assert_eq!((iteration, found.as_str()), (at + 1, "end of the iteration"));
        assert_eq!(expected, "read of second");
    }
}

#[test]
fn the_least_budget_is_the_least() {
    let never = || Faulty::new(0, 1 << 20, Fault::Panic);
    let run = Run { workers: 2, epochs: 1, budget: LEAST, ..RUN };
    try_train(&never(), run).expect("it is enough");
    let error = try_train(&never(), Run { budget: LEAST - 1, ..run }).expect_err("it is not enough");
    assert!(matches!(error, Error::Budget { lacking: 1, .. }), "{error}");
}

#[test]
fn a_virtual_iteration_has_to_be_in_order() {
    let mut tables = Tables::default();
    let table = tables.add("numbers", 4, 8);
    let new = || VirtualIteration::new(tables.clone());

    let mut session = new();
    let error = session.rows(table, vec![0, 4]).expect_err("there is no row 4");
    assert_eq!(error.to_string(), "table numbers has rows 0..4, and no row 4");

    let mut session = new();
    let rows = session.all_rows(table);
    let _held = session.read(rows).expect("recorded");
    let error = session.finish().expect_err("it is held");
    assert_eq!(error.to_string(), "the virtual iteration ends while the read of numbers is held; post it");

    let mut session = new();
    let local = session.local("sums", 8);
    let _held = session.local_access(local).expect("recorded");
    let error = session.local_access(local).expect_err("it is held");
    assert_eq!(error.to_string(), "sums is accessed while it is held; post it first");

    // What one iteration gives up at its end, the next one fetches at its beginning.
    let mut session = new();
    let local = session.local("sums", 8);
    let first = session.local_access(local).expect("recorded");
    session.post_local_access(first).expect("recorded");
    let second = session.local_access_no_fetch(local).expect("recorded");
    session.post_local_access_no_save(second).expect("recorded");
    let error = session.finish().expect_err("given up");
    let text = "sums is fetched after a post without saving; save it, or access it without fetching";
    assert_eq!(error.to_string(), text);

    // Pinned data keep what is written to them, others do not: an order that would show the difference is refused.
    let mut session = new();
    let local = session.local("sums", 8);
    let first = session.local_access(local).expect("recorded");
    session.submit(&[Command::Fill { to: first.range(), value: 1.0 }]).expect("recorded");
    session.post_local_access_no_save(first).expect("recorded");
    assert_eq!(session.finish().expect_err("given up").to_string(), text);
}

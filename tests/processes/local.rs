//! Processes that are threads of the test: the same messages cross the same kind of sockets.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use megagrid_engine::cluster::prepare;
use megagrid_engine::{Error, Peers};

/// A barrier at which nobody waits for a process that has panicked: the test fails then, and does not hang.
#[derive(Debug)]
struct Barrier {
    processes: usize,
    waiting: Mutex<Waiting>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    processes: usize,
    /// How often all have met.
    meetings: u64,
    one_is_gone: bool,
}

impl Barrier {
    fn new(processes: usize) -> Self {
        Self { processes, waiting: Mutex::default(), moved: Condvar::new() }
    }

    fn wait(&self) {
        let mut waiting = self.waiting.lock().unwrap();
        let meetings = waiting.meetings;
        waiting.processes += 1;
        if waiting.processes == self.processes {
            (waiting.processes, waiting.meetings) = (0, meetings + 1);
            self.moved.notify_all();
        }
        let waiting = self.moved.wait_while(waiting, |now| now.meetings == meetings && !now.one_is_gone).unwrap();
        let gone = waiting.meetings == meetings;
        drop(waiting);
        assert!(!gone, "another process of the test has panicked");
    }
}

/// Lets the others know when its thread panics.
struct Attendance<'b>(&'b Barrier);

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.waiting.lock().unwrap().one_is_gone = true;
            self.0.moved.notify_all();
        }
    }
}

/// What the processes of a run share.
#[derive(Debug)]
struct Meeting {
    barrier: Barrier,
    slots: Mutex<Vec<Vec<u8>>>,
    sockets: Mutex<Vec<Vec<Option<TcpStream>>>>,
    /// What each sends to each.
    parts: Mutex<Vec<Vec<Vec<u8>>>>,
    /// Bytes of collectives that the first process has sent or got, where it is the hub of a star.
    through_first: AtomicU64,
}

impl Meeting {
    fn count(&self, bytes: usize) {
        self.through_first.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// One process's view of the others.
#[derive(Debug)]
pub struct Local {
    process: usize,
    processes: usize,
    meeting: Arc<Meeting>,
}

impl Peers for Local {
    fn process(&self) -> usize {
        self.process
    }

    fn processes(&self) -> usize {
        self.processes
    }

    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        self.meeting.slots.lock().unwrap()[self.process] = mine;
        self.meeting.barrier.wait();
        let all = self.meeting.slots.lock().unwrap().clone();
        self.meeting.barrier.wait();
        if self.process > 0 {
            self.meeting.count(all.iter().map(Vec::len).sum());
        }
        Ok(all)
    }

    fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
        let first = if self.process == 0 { &parts[1..] } else { &parts[..1] };
        self.meeting.count(first.iter().map(Vec::len).sum());
        self.meeting.parts.lock().unwrap()[self.process] = parts;
        self.meeting.barrier.wait();
        let take = |parts: &mut Vec<Vec<u8>>| std::mem::take(&mut parts[self.process]);
        let arrived = self.meeting.parts.lock().unwrap().iter_mut().map(take).collect();
        self.meeting.barrier.wait();
        Ok(arrived)
    }

    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let all = self.all_gather(mine)?;
        Ok((self.process == 0).then_some(all))
    }

    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error> {
        if self.process == 0 {
            *self.meeting.sockets.lock().unwrap() = connected(self.processes);
        }
        self.meeting.barrier.wait();
        let mine = std::mem::take(&mut self.meeting.sockets.lock().unwrap()[self.process]);
        self.meeting.barrier.wait();
        Ok(mine)
    }
}

/// Connects each process with every other.
fn connected(processes: usize) -> Vec<Vec<Option<TcpStream>>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut all: Vec<Vec<Option<TcpStream>>> = (0..processes).map(|_| (0..processes).map(|_| None).collect()).collect();
    let pairs = (0..processes).flat_map(|a| (0..a).map(move |b| (a, b)));
    for (a, b) in pairs {
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        [&one, &other].into_iter().for_each(|stream| prepare(stream).unwrap());
        (all[a][b], all[b][a]) = (Some(one), Some(other));
    }
    all
}

/// Runs the same function in every process and returns what the first one's returned.
pub fn run<T: Send>(processes: usize, work: impl Fn(Option<Arc<dyn Peers>>) -> T + Sync) -> T {
    counted(processes, work).0
}

/// Does the same, and counts the bytes of collectives that go through the first process.
pub fn counted<T: Send>(processes: usize, work: impl Fn(Option<Arc<dyn Peers>>) -> T + Sync) -> (T, u64) {
    if processes == 1 {
        return (work(None), 0);
    }
    let meeting = Arc::new(Meeting {
        barrier: Barrier::new(processes),
        slots: Mutex::new(vec![Vec::new(); processes]),
        sockets: Mutex::default(),
        parts: Mutex::new(vec![Vec::new(); processes]),
        through_first: AtomicU64::new(0),
    });
    std::thread::scope(|threads| {
        let running: Vec<_> = (0..processes)
            .map(|process| {
                let (meeting, work) = (Arc::clone(&meeting), &work);
                threads.spawn(move || {
                    let shared = Arc::clone(&meeting);
                    let _attendance = Attendance(&shared.barrier);
                    work(Some(Arc::new(Local { process, processes, meeting })))
                })
            })
            .collect();
        let mut results: Vec<T> = running.into_iter().map(|thread| thread.join().unwrap()).collect();
        (results.swap_remove(0), meeting.through_first.load(Ordering::Relaxed))
    })
}

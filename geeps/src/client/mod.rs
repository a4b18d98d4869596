//! A worker's client: it hands out buffers of device memory, and moves data in the background (section 4.3.2).

mod allocator;
mod hub;
mod log;
mod reclaimer;
mod shared;

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;
use crate::device::{Command, Device, DeviceRange};
use crate::memory::{Moves, Plan};
use crate::servers::Servers;
use crate::session::{LocalBuffer, ReadBuffer, Session, UpdateBuffer};
use crate::table::{LocalId, RowsId, TableId};
use crate::trace::{Event, What};
#[cfg(loom)]
pub use hub::{Ended, Hub};
use reclaimer::Task;
pub use shared::Options;
use shared::Shared;

/// A worker's session.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    iteration: u64,
    /// The next event of the iteration.
    at: usize,
    accesses: u64,
    tasks: Option<mpsc::Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
    stalled: Duration,
    /// What the application has copied by itself.
    own_moves: Moves,
}

impl Client {
    /// Begins the real iterations of a worker: takes the device's memory, and starts the threads that move data.
    /// Local data that last begin as zeros, or as what [`Client::lasting`] has returned.
    ///
    /// # Errors
    /// Memory that the device does not have; tables other than the servers'; other local data.
    pub fn start(
        plan: Plan,
        device: Arc<dyn Device>,
        servers: Arc<Servers>,
        options: Options,
        lasting: Option<&[Vec<f32>]>,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared::new(plan, device, servers, options)?);
        if let Some(lasting) = lasting {
            shared.set_lasting(lasting)?;
        }
        // Tasks can be sent as long as anybody has the other end: until the reclaimer has said why it ended.
        let (tasks, received) = mpsc::channel();
        let mut client = Self {
            shared,
            iteration: 0,
            at: 0,
            accesses: 0,
            tasks: Some(tasks),
            threads: Vec::new(),
            stalled: Duration::ZERO,
            own_moves: Moves::default(),
        };
        client.start_thread("allocator", |shared| shared.watch(allocator::run))?;
        client.start_thread("reclaimer", move |shared| shared.watch(|shared| reclaimer::run(shared, &received)))?;
        Ok(client)
    }

    fn start_thread(&mut self, name: &str, run: impl FnOnce(&Shared) + Send + 'static) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let name = format!("geeps-{name}-{}", shared.options.worker);
        let thread = std::thread::Builder::new().name(name).spawn(move || run(&shared));
        self.threads.push(thread.map_err(|error| Error::Thread { reason: error.to_string() })?);
        Ok(())
    }

    /// Waits until all that was posted has been done, clocks included.
    ///
    /// # Errors
    /// A run that has failed.
    pub fn settle(&self) -> Result<(), Error> {
        self.shared.hub.settle()
    }

    /// Returns the values of the local data that last from one iteration to the next, between two iterations after
    /// which everything has settled.
    ///
    /// # Errors
    /// A device that is lost.
    pub fn lasting(&self) -> Result<Vec<Vec<f32>>, Error> {
        self.shared.lasting()
    }

    /// Returns the iterations that are done.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.iteration
    }

    /// Checks that `iterations` iterations are done, and no other has begun.
    ///
    /// # Errors
    /// An iteration that ended before its last call.
    pub(crate) fn check_end(&self, iterations: u64) -> Result<(), Error> {
        let trace = &self.shared.plan.trace;
        let rest = trace.events[self.at..].iter().find(|event| event.is_bound());
        match rest {
            Some(expected) if (self.iteration, self.at) != (iterations, 0) => Err(Error::OtherOrder {
                worker: self.shared.options.worker,
                number: trace.events[..self.at].iter().filter(|event| event.is_bound()).count() + 1,
                iteration: self.iteration + 1,
                found: "end of the iteration".to_owned(),
                expected: trace.describe_event(expected),
            }),
            _ => Ok(()),
        }
    }

    /// Returns the bytes that were moved so far, the indexes at the start excepted.
    #[must_use]
    pub fn moves(&self) -> Moves {
        let mut all = self.shared.hub.moves();
        all += self.own_moves;
        all
    }

    /// Returns the bytes that are taken of the device.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.shared.device.resident_bytes()
    }

    /// Returns the bytes that the device was given and gave, the indexes at the start included.
    #[must_use]
    pub fn device_moves(&self) -> [u64; 2] {
        self.shared.device.moved_bytes()
    }

    /// Returns how long the application has waited for data and memory so far.
    #[must_use]
    pub fn stalled(&self) -> Duration {
        self.stalled
    }

    /// Checks that the application does what it did in the virtual iteration, and goes on.
    fn expect(&mut self, found: Event) -> Result<(), Error> {
        let events = &self.shared.plan.trace.events;
        let skipped = events[self.at..].iter().take_while(|event| !event.is_bound()).count();
        let place = self.at + skipped;
        if events.get(place) != Some(&found) {
            let trace = &self.shared.plan.trace;
            let expected =
                events.get(place).map_or("the end of the iteration".to_owned(), |event| trace.describe_event(event));
            let number = events[..place].iter().filter(|event| event.is_bound()).count() + 1;
            let error = Error::OtherOrder {
                worker: self.shared.options.worker,
                number,
                iteration: self.iteration + 1,
                found: trace.describe_event(&found),
                expected,
            };
            return Err(error);
        }
        self.at = place + 1;
        if !events[self.at..].iter().any(Event::is_bound) {
            (self.at, self.iteration) = (0, self.iteration + 1);
        }
        Ok(())
    }

    fn access(&mut self, what: What) -> Result<(DeviceRange, usize), Error> {
        if self.iteration >= self.shared.options.iterations {
            return Err(Error::TooManyIterations { iterations: self.shared.options.iterations });
        }
        self.expect(Event::Access(what))?;
        let number = (self.accesses % self.shared.plan.trace.accesses.len() as u64) as usize;
        self.accesses += 1;
        let begin = Instant::now();
        let range = self.shared.hub.ask()?;
        self.stalled += begin.elapsed();
        Ok((range, number))
    }

    fn post(&mut self, access: usize, range: DeviceRange, save: bool) -> Result<(), Error> {
        // The number that the allocator knows it by: accesses of one iteration are posted in the same.
        let ticket = self.iteration * self.shared.plan.trace.accesses.len() as u64 + access as u64;
        self.expect(Event::Post { access, save })?;
        self.send(Task::Post { ticket, access, range, save })
    }

    fn send(&self, task: Task) -> Result<(), Error> {
        self.shared.hub.posted();
        let sent = self.tasks.as_ref().map(|tasks| tasks.send(task));
        match sent {
            Some(Ok(())) => Ok(()),
            // The reclaimer ends early only when the run has failed.
            _ => Err(self.shared.hub.failure()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if std::thread::panicking() || self.iteration < self.shared.options.iterations {
            let lost = Error::WorkerLost { worker: self.shared.options.worker, iteration: self.iteration + 1 };
            self.shared.servers.fail(lost);
        }
        self.tasks = None;
        self.shared.hub.stop();
        self.shared.servers.wake();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so, and has ended the run.
            let _ = thread.join();
        }
    }
}

impl Session for Client {
    fn read(&mut self, rows: RowsId) -> Result<ReadBuffer, Error> {
        self.access(What::Read(rows)).map(|(range, access)| ReadBuffer { range, access })
    }

    fn post_read(&mut self, buffer: ReadBuffer) -> Result<(), Error> {
        self.post(buffer.access, buffer.range, false)
    }

    fn pre_update(&mut self, rows: RowsId) -> Result<UpdateBuffer, Error> {
        self.access(What::PreUpdate(rows)).map(|(range, access)| UpdateBuffer { range, access })
    }

    fn update(&mut self, buffer: UpdateBuffer) -> Result<(), Error> {
        self.post(buffer.access, buffer.range, true)
    }

    fn local_access(&mut self, local: LocalId) -> Result<LocalBuffer, Error> {
        self.access(What::Local { local, fetch: true }).map(|(range, access)| LocalBuffer { range, access })
    }

    fn local_access_no_fetch(&mut self, local: LocalId) -> Result<LocalBuffer, Error> {
        self.access(What::Local { local, fetch: false }).map(|(range, access)| LocalBuffer { range, access })
    }

    fn post_local_access(&mut self, buffer: LocalBuffer) -> Result<(), Error> {
        self.post(buffer.access, buffer.range, true)
    }

    fn post_local_access_no_save(&mut self, buffer: LocalBuffer) -> Result<(), Error> {
        self.post(buffer.access, buffer.range, false)
    }

    fn table_clock(&mut self, table: TableId) -> Result<(), Error> {
        self.expect(Event::Clock(table))?;
        self.send(Task::Clock(table))
    }

    fn upload(&mut self, to: DeviceRange, values: &[f32]) -> Result<(), Error> {
        self.own_moves.input += crate::table::bytes(values.len());
        self.shared.device.upload(to, values)
    }

    fn download(&mut self, from: DeviceRange) -> Result<Vec<f32>, Error> {
        self.own_moves.output += crate::table::bytes(from.len);
        self.shared.device.download(from)
    }

    fn submit(&mut self, commands: &[Command]) -> Result<(), Error> {
        self.shared.device.submit(commands)
    }
}

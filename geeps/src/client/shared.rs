//! What a worker's threads share.

use std::sync::{Arc, Mutex, MutexGuard};

use megagrid_partition::parallel::lock;

use super::hub::Hub;
use super::log::Log;
use crate::Error;
use crate::device::{Device, DeviceRange};
use crate::memory::{Meter, Plan};
use crate::servers::{Division, Servers};
use crate::table::{LocalId, RowsId, TableId};
use crate::trace::{Local, What};

/// How a worker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its number, from 0.
    pub worker: usize,
    /// The iterations that it will run: nothing is fetched ahead of the last one.
    pub iterations: u64,
    /// Whether data are fetched before they are asked for.
    pub prefetch: bool,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub plan: Plan,
    pub options: Options,
    pub device: Meter,
    pub servers: Arc<Servers>,
    /// Of each list, what the servers have.
    pub divisions: Vec<Division>,
    pub hub: Hub,
    pool: DeviceRange,
    /// Pinned tables and local data, where they are.
    pub tables: Vec<Option<DeviceRange>>,
    pub locals: Vec<Option<DeviceRange>>,
    /// Indexes of lists of pinned tables.
    pub indexes: Vec<Option<DeviceRange>>,
    /// Local data that are not pinned.
    swapped: Vec<Mutex<Vec<f32>>>,
    /// Of each table, the worker's updates that the servers may not have.
    logs: Vec<Mutex<Log>>,
}

impl Shared {
    pub fn new(plan: Plan, device: Arc<dyn Device>, servers: Arc<Servers>, options: Options) -> Result<Self, Error> {
        let trace = &plan.trace;
        if trace.tables != *servers.tables() || options.worker >= servers.workers() {
            return Err(Error::OtherTables { worker: options.worker, workers: servers.workers() });
        }
        let device = Meter::new(device, plan.budget);
        let pin = |is_pinned: bool, len: usize| if is_pinned { device.alloc(len).map(Some) } else { Ok(None) };
        let tables = trace.tables.iter().zip(&plan.placement.tables).map(|((_, table), &is)| pin(is, table.len()));
        let tables: Vec<_> = tables.collect::<Result<_, _>>()?;
        let locals = trace.locals.iter().zip(&plan.placement.locals).map(|(local, &is)| pin(is, local.len));
        let locals: Vec<_> = locals.collect::<Result<_, _>>()?;
        let mut indexes = Vec::new();
        for list in &trace.lists {
            let index = list.index().filter(|_| tables[list.table.0].is_some());
            let range = index.map(|index| -> Result<_, Error> {
                let range = device.alloc(index.len())?;
                device.upload(range, &index.values())?;
                Ok(range)
            });
            indexes.push(range.transpose()?);
        }
        let pool = device.alloc(plan.placement.ring)?;
        let swapped = trace.locals.iter().zip(&locals);
        let swapped =
            swapped.map(|(local, pinned)| Mutex::new(vec![0.0; if pinned.is_some() { 0 } else { local.len }]));
        let swapped = swapped.collect();
        let hub = Hub::new(plan.placement.ring, trace.tables.len(), trace.locals.len());
        let divisions = servers.declare(options.worker, &trace.lists)?;
        let log = |table: TableId| {
            let is_read = |list: usize| {
                let reads = |&(what, _): &(What, bool)| what == What::Read(RowsId(list));
                trace.lists[list].table == table && trace.accesses.iter().any(reads)
            };
            let read = divisions.iter().enumerate().filter(|(list, _)| is_read(*list)).map(|(_, division)| division);
            Mutex::new(Log::new(read, servers.processes(), servers.consistency()))
        };
        let logs = trace.tables.iter().map(|(id, _)| log(id)).collect();
        Ok(Self { options, device, servers, divisions, hub, pool, tables, locals, indexes, swapped, logs, plan })
    }

    /// Returns the values of local data that last.
    pub fn lasting(&self) -> Result<Vec<Vec<f32>>, Error> {
        let value = |local: LocalId| match self.locals[local.0] {
            Some(pinned) => self.device.download(pinned),
            None => Ok(self.swapped(local.0).clone()),
        };
        self.plan.trace.lasting().into_iter().map(value).collect()
    }

    /// Sets the values of local data that last, before the first iteration.
    pub fn set_lasting(&self, values: &[Vec<f32>]) -> Result<(), Error> {
        let lasting = self.plan.trace.lasting();
        let refused = |problem: String| Err(Error::State { problem });
        if lasting.len() != values.len() {
            return refused(format!("it has {} local data of a worker instead of {}", values.len(), lasting.len()));
        }
        for (local, values) in lasting.into_iter().zip(values) {
            let Local { name, len } = &self.plan.trace.locals[local.0];
            if values.len() != *len {
                return refused(format!("{name} has {} values instead of {len}", values.len()));
            }
            match self.locals[local.0] {
                Some(pinned) => self.device.upload(pinned, values)?,
                None => self.swapped(local.0).clone_from(values),
            }
        }
        Ok(())
    }

    /// Runs a thread of the worker: what goes wrong in it ends the run of all workers.
    pub fn watch(&self, run: impl FnOnce(&Self) -> Result<(), Error>) {
        /// Tells of a panic, which is a bug of ours.
        struct Alarm<'s>(&'s Shared);
        impl Drop for Alarm<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.fail(Error::ThreadPanicked { worker: self.0.options.worker });
                }
            }
        }
        let alarm = Alarm(self);
        if let Err(error) = run(self) {
            self.fail(error);
        }
        drop(alarm);
    }

    fn fail(&self, error: Error) {
        self.servers.fail(error);
        if let Some(first) = self.servers.failure() {
            self.hub.fail(first);
        }
    }

    /// Returns a buffer of the pool.
    pub fn buffer(&self, start: usize, len: usize) -> DeviceRange {
        self.pool.part(start, len)
    }

    pub fn swapped(&self, local: usize) -> MutexGuard<'_, Vec<f32>> {
        lock(&self.swapped[local])
    }

    pub fn log(&self, table: TableId) -> MutexGuard<'_, Log> {
        lock(&self.logs[table.0])
    }
}

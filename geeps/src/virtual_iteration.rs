//! The virtual iteration (section 4.3.1): the application goes through an iteration without data, and tells what it
//! accesses.

use std::collections::BTreeMap;

use crate::Error;
use crate::device::{Command, Cost, DeviceRange};
use crate::session::{LocalBuffer, ReadBuffer, Session, UpdateBuffer};
use crate::table::{LocalId, RowList, RowsId, TableId, Tables};
use crate::trace::{Event, Layer, Local, Trace, What};

/// A session that records.
#[derive(Debug)]
pub struct VirtualIteration {
    trace: Trace,
    /// Accesses that are not posted.
    held: Vec<usize>,
    /// Whether something is written to each access's buffer.
    written: Vec<bool>,
}

impl VirtualIteration {
    /// Begins the virtual iteration of a worker.
    #[must_use]
    pub fn new(tables: Tables) -> Self {
        let trace = Trace { tables, lists: vec![], locals: vec![], events: vec![], accesses: vec![], layers: vec![] };
        Self { trace, held: Vec::new(), written: Vec::new() }
    }

    /// Declares accesses to all rows of a table, in their order.
    pub fn all_rows(&mut self, table: TableId) -> RowsId {
        self.add(RowList::all(table, self.trace.tables.get(table)))
    }

    /// Declares accesses to some rows of a table: builds their index. Keys may come several times.
    ///
    /// # Errors
    /// A key that the table does not have.
    pub fn rows(&mut self, table: TableId, keys: Vec<u32>) -> Result<RowsId, Error> {
        let of = self.trace.tables.get(table);
        if let Some(&key) = keys.iter().find(|&&key| key as usize >= of.rows) {
            return Err(Error::Key { table: of.name.clone(), key, rows: of.rows });
        }
        let list = RowList::listed(table, of, keys);
        Ok(self.add(list))
    }

    fn add(&mut self, list: RowList) -> RowsId {
        self.trace.lists.push(list);
        RowsId(self.trace.lists.len() - 1)
    }

    /// Declares local data of `len` values.
    pub fn local(&mut self, name: impl Into<String>, len: usize) -> LocalId {
        self.trace.locals.push(Local { name: name.into(), len });
        LocalId(self.trace.locals.len() - 1)
    }

    /// Ends the virtual iteration.
    ///
    /// # Errors
    /// What is still held, or is fetched after it was given up.
    pub fn finish(self) -> Result<Trace, Error> {
        if let Some(&access) = self.held.first() {
            let what = self.trace.describe(self.trace.access(access));
            return Err(Error::NotPosted { what });
        }
        self.check_locals()?;
        Ok(self.trace)
    }

    /// Checks that nothing is fetched that an earlier post, also of the iteration before, has given up.
    fn check_locals(&self) -> Result<(), Error> {
        let mut is_given_up = BTreeMap::new();
        let accesses = || self.trace.accesses.iter().zip(&self.written);
        for (&(what, save), &is_written) in accesses().chain(accesses()) {
            let What::Local { local, fetch } = what else { continue };
            if fetch && is_given_up.get(&local) == Some(&true) {
                return Err(Error::GivenUp { what: self.trace.locals[local.0].name.clone() });
            }
            // What was fetched, and neither written nor saved, is as it was.
            if save || !fetch || is_written {
                is_given_up.insert(local, !save);
            }
        }
        Ok(())
    }

    fn access(&mut self, what: What) -> Result<(usize, DeviceRange), Error> {
        if let What::Local { local, .. } = what {
            let is_same =
                |&access: &usize| matches!(self.trace.access(access), What::Local { local: held, .. } if held == local);
            if self.held.iter().any(is_same) {
                return Err(Error::HeldTwice { what: self.trace.locals[local.0].name.clone() });
            }
        }
        let number = self.trace.accesses.len();
        if self.held.is_empty() {
            self.trace.layers.push(Layer::default());
        }
        if let Some(layer) = self.trace.layers.last_mut() {
            layer.accesses.push(number);
        }
        self.held.push(number);
        self.written.push(false);
        self.trace.accesses.push((what, true));
        self.trace.events.push(Event::Access(what));
        // No two of these overlap, so that commands over them can be checked.
        Ok((number, DeviceRange { buffer: number as u32, start: 0, len: self.trace.len_of(what) }))
    }

    /// Notes that something is written to a buffer, whose number is that of its access.
    fn write(&mut self, range: DeviceRange) {
        if let Some(written) = self.written.get_mut(range.buffer as usize) {
            *written = true;
        }
    }

    fn post(&mut self, access: usize, save: bool) -> Result<(), Error> {
        self.held.retain(|&held| held != access);
        self.trace.accesses[access].1 = save;
        self.trace.events.push(Event::Post { access, save });
        Ok(())
    }
}

impl Session for VirtualIteration {
    fn read(&mut self, rows: RowsId) -> Result<ReadBuffer, Error> {
        self.access(What::Read(rows)).map(|(access, range)| ReadBuffer { range, access })
    }

    fn post_read(&mut self, buffer: ReadBuffer) -> Result<(), Error> {
        self.post(buffer.access, false)
    }

    fn pre_update(&mut self, rows: RowsId) -> Result<UpdateBuffer, Error> {
        self.access(What::PreUpdate(rows)).map(|(access, range)| UpdateBuffer { range, access })
    }

    fn update(&mut self, buffer: UpdateBuffer) -> Result<(), Error> {
        self.post(buffer.access, true)
    }

    fn local_access(&mut self, local: LocalId) -> Result<LocalBuffer, Error> {
        self.access(What::Local { local, fetch: true }).map(|(access, range)| LocalBuffer { range, access })
    }

    fn local_access_no_fetch(&mut self, local: LocalId) -> Result<LocalBuffer, Error> {
        self.access(What::Local { local, fetch: false }).map(|(access, range)| LocalBuffer { range, access })
    }

    fn post_local_access(&mut self, buffer: LocalBuffer) -> Result<(), Error> {
        self.post(buffer.access, true)
    }

    fn post_local_access_no_save(&mut self, buffer: LocalBuffer) -> Result<(), Error> {
        self.post(buffer.access, false)
    }

    fn table_clock(&mut self, table: TableId) -> Result<(), Error> {
        self.trace.events.push(Event::Clock(table));
        Ok(())
    }

    fn upload(&mut self, to: DeviceRange, _: &[f32]) -> Result<(), Error> {
        self.write(to);
        self.trace.events.push(Event::Upload(to.len));
        Ok(())
    }

    fn download(&mut self, from: DeviceRange) -> Result<Vec<f32>, Error> {
        self.trace.events.push(Event::Download(from.len));
        Ok(vec![0.0; from.len])
    }

    fn submit(&mut self, commands: &[Command]) -> Result<(), Error> {
        let mut cost = Cost::default();
        for command in commands {
            command.check()?;
            cost += command.cost();
            command.written().into_iter().for_each(|range| self.write(range));
        }
        self.trace.events.push(Event::Compute(cost));
        Ok(())
    }
}

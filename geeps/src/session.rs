//! What an application calls: Table 4.1. The same code runs in the virtual iteration, where it tells what it is going
//! to do, and in real ones.

use crate::Error;
use crate::device::{Command, DeviceRange};
use crate::table::{LocalId, RowsId, TableId};

/// Makes a buffer that the application holds between an access and its post, which takes it away.
macro_rules! buffer {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Debug)]
        #[must_use = "what is accessed has to be posted"]
        pub struct $name {
            pub(crate) range: DeviceRange,
            /// The number of the access within an iteration.
            pub(crate) access: usize,
        }

        impl $name {
            /// Returns where it is in the device's memory.
            #[must_use]
            pub fn range(&self) -> DeviceRange {
                self.range
            }
        }
    };
}

buffer! {
    /// Parameters, row after row in the order of the keys.
    ReadBuffer
}
buffer! {
    /// Zeros, to be filled with what is to be added to parameters, row after row in the order of the keys.
    UpdateBuffer
}
buffer! {
    /// Local data.
    LocalBuffer
}

/// A worker's access to parameters, local data and its device. Accesses wait until data and memory are there; all
/// other calls return at once, and what goes wrong in them is told by a later one.
///
/// Whatever an application holds at a time is a *layer*: it begins with an access while nothing is held, and ends
/// when all of it has been posted. The largest layer decides how much device memory is needed at least.
pub trait Session {
    /// Read: gives parameters. A worker that has ended c clocks of the table sees all updates of the first c − slack
    /// clocks of all workers, and all its own.
    ///
    /// # Errors
    /// Another order of accesses than in the virtual iteration; a run that has ended, on this worker or another one.
    fn read(&mut self, rows: RowsId) -> Result<ReadBuffer, Error>;

    /// PostRead: gives the buffer back.
    ///
    /// # Errors
    /// As [`Session::read`].
    fn post_read(&mut self, buffer: ReadBuffer) -> Result<(), Error>;

    /// PreUpdate: gives zeros with the structure of parameters.
    ///
    /// # Errors
    /// As [`Session::read`].
    fn pre_update(&mut self, rows: RowsId) -> Result<UpdateBuffer, Error>;

    /// Update: gives the buffer back; what is in it is added to the parameters.
    ///
    /// # Errors
    /// As [`Session::read`].
    fn update(&mut self, buffer: UpdateBuffer) -> Result<(), Error>;

    /// LocalAccess: gives local data, which are zeros before they were saved first.
    ///
    /// # Errors
    /// As [`Session::read`].
    fn local_access(&mut self, local: LocalId) -> Result<LocalBuffer, Error>;

    /// LocalAccess with the no-fetch flag: whatever the buffer holds, it is to be overwritten.
    ///
    /// # Errors
    /// As [`Session::read`].
    fn local_access_no_fetch(&mut self, local: LocalId) -> Result<LocalBuffer, Error>;

    /// PostLocalAccess: gives the buffer back and keeps what is in it.
    ///
    /// # Errors
    /// As [`Session::read`].
    fn post_local_access(&mut self, buffer: LocalBuffer) -> Result<(), Error>;

    /// PostLocalAccess with the no-save flag: gives up what is in the buffer; of data that were fetched and not
    /// changed, the copy only.
    ///
    /// # Errors
    /// As [`Session::read`].
    fn post_local_access_no_save(&mut self, buffer: LocalBuffer) -> Result<(), Error>;

    /// TableClock: commits the updates of a table.
    ///
    /// # Errors
    /// As [`Session::read`].
    fn table_clock(&mut self, table: TableId) -> Result<(), Error>;

    /// Copies values from the host to a part of what is held.
    ///
    /// # Errors
    /// Those of the device.
    fn upload(&mut self, to: DeviceRange, values: &[f32]) -> Result<(), Error>;

    /// Copies a part of what is held to the host, after all that was submitted; zeros in the virtual iteration.
    ///
    /// # Errors
    /// Those of the device.
    fn download(&mut self, from: DeviceRange) -> Result<Vec<f32>, Error>;

    /// Runs commands over what is held; none in the virtual iteration.
    ///
    /// # Errors
    /// Those of the device.
    fn submit(&mut self, commands: &[Command]) -> Result<(), Error>;
}

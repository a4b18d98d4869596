//! Devices: memory of their own, and one queue of commands over ranges of it.

mod command;
mod cpu;
mod kernels;

use std::fmt::Debug;

pub use command::{Command, Cost, MatMul, Segments};
pub use cpu::Cpu;

use crate::Error;

/// Values that every allocation and every access buffer is a multiple of: 256 bytes, where bindings of a GPU may begin.
pub const ALIGNMENT: usize = 64;

/// Bytes of a value, which is an `f32`, or an index or label as a `u32`.
pub const VALUE_BYTES: u64 = 4;

/// Returns a number of values with padding up to [`ALIGNMENT`].
#[must_use]
pub fn padded(len: usize) -> usize {
    len.next_multiple_of(ALIGNMENT)
}

/// Some values that follow each other in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRange {
    /// Which allocation of the device.
    pub buffer: u32,
    /// The first value in it.
    pub start: usize,
    /// How many values.
    pub len: usize,
}

impl DeviceRange {
    /// Returns a part of the range: `len` values from the `start`-th.
    ///
    /// # Panics
    /// Where the part goes beyond the range.
    #[must_use]
    pub fn part(self, start: usize, len: usize) -> Self {
        assert!(start + len <= self.len, "values {start}..{} of a range of {}", start + len, self.len);
        Self { start: self.start + start, len, ..self }
    }
}

/// An accelerator, or what stands for one. Uploads, commands and downloads take effect in the order in which they are called, also
/// from several threads.
pub trait Device: Send + Sync + Debug {
    /// Takes memory for `len` values, which are zeros; it is never given back.
    ///
    /// # Errors
    /// Memory that the device does not have.
    fn alloc(&self, len: usize) -> Result<DeviceRange, Error>;

    /// Copies values from the host. Indices and labels are bits of `u32`.
    ///
    /// # Errors
    /// Another number of values than the range has; a device that is lost.
    fn upload(&self, to: DeviceRange, values: &[f32]) -> Result<(), Error>;

    /// Copies values to the host, after all that was called before.
    ///
    /// # Errors
    /// A device that is lost.
    fn download(&self, from: DeviceRange) -> Result<Vec<f32>, Error>;

    /// Runs commands in their order.
    ///
    /// # Errors
    /// Ranges that do not fit their command, or overlap; a device that is lost.
    fn submit(&self, commands: &[Command]) -> Result<(), Error>;

    /// Waits until all is done that was called before.
    ///
    /// # Errors
    /// A device that is lost.
    fn wait(&self) -> Result<(), Error>;
}

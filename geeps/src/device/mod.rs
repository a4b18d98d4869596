//! Devices: memory of their own, and one queue of commands over ranges of it.

mod command;
mod cpu;
mod kernels;
mod range;

use std::fmt::Debug;

pub use command::{Command, Cost, MatMul, Segments};
pub use cpu::Cpu;
pub use range::{ALIGNMENT, DeviceRange, VALUE_BYTES, padded};

use crate::Error;

/// An accelerator, or what stands for one. Uploads, commands and downloads take effect in the order in which they are
/// called, also from several threads.
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

    /// Returns the bytes that copies take at most, beside the memory that was taken: they are a part of the budget.
    fn staging_bytes(&self) -> u64 {
        0
    }
}

//! The budget: memory is counted when it is taken, whatever a device would give.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;
use crate::device::{Command, Device, DeviceRange, VALUE_BYTES, padded};

/// A device of which no more bytes may be taken than its budget, and that counts what is moved.
#[derive(Debug)]
pub struct Meter {
    device: Arc<dyn Device>,
    budget: u64,
    resident: AtomicU64,
    uploaded: AtomicU64,
    downloaded: AtomicU64,
}

impl Meter {
    /// Takes a device, and how many bytes of it there are. What copies take is taken from the beginning.
    pub fn new(device: Arc<dyn Device>, budget: u64) -> Self {
        let [resident, uploaded, downloaded] = [device.staging_bytes(), 0, 0].map(AtomicU64::new);
        Self { device, budget, resident, uploaded, downloaded }
    }

    /// Returns the bytes that are taken, padding and what copies take included.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.resident.load(Ordering::Relaxed)
    }

    /// Returns the bytes that were copied to the device and to the host.
    #[must_use]
    pub fn moved_bytes(&self) -> [u64; 2] {
        [&self.uploaded, &self.downloaded].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Device for Meter {
    fn alloc(&self, len: usize) -> Result<DeviceRange, Error> {
        let bytes = padded(len) as u64 * VALUE_BYTES;
        let resident = self.resident.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let range = if resident > self.budget {
            Err(Error::OverBudget { resident, budget: self.budget })
        } else {
            self.device.alloc(len)
        };
        if range.is_err() {
            self.resident.fetch_sub(bytes, Ordering::Relaxed);
        }
        range
    }

    fn upload(&self, to: DeviceRange, values: &[f32]) -> Result<(), Error> {
        self.uploaded.fetch_add(values.len() as u64 * VALUE_BYTES, Ordering::Relaxed);
        self.device.upload(to, values)
    }

    fn download(&self, from: DeviceRange) -> Result<Vec<f32>, Error> {
        self.downloaded.fetch_add(from.len as u64 * VALUE_BYTES, Ordering::Relaxed);
        self.device.download(from)
    }

    fn submit(&self, commands: &[Command]) -> Result<(), Error> {
        self.device.submit(commands)
    }

    fn wait(&self) -> Result<(), Error> {
        self.device.wait()
    }

    fn staging_bytes(&self) -> u64 {
        self.device.staging_bytes()
    }
}

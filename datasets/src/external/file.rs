//! A temporary file without a name: the system frees it when it is closed, however the process ends.

use std::fs::File;
use std::io;

use bytemuck::{AnyBitPattern, NoUninit};

use crate::Error;

/// A temporary file, read and written at given places by any thread.
#[derive(Debug)]
pub(super) struct TemporaryFile(File);

impl TemporaryFile {
    pub(super) fn new() -> Result<Self, Error> {
        tempfile::tempfile().map(Self).map_err(error)
    }

    /// Writes values from the byte `start` on.
    pub(super) fn write<V: NoUninit>(&self, start: u64, values: &[V]) -> Result<(), Error> {
        write_all_at(&self.0, bytemuck::cast_slice(values), start).map_err(error)
    }

    /// Reads values from the byte `start` on.
    pub(super) fn read<V: AnyBitPattern + NoUninit>(&self, start: u64, values: &mut [V]) -> io::Result<()> {
        read_exact_at(&self.0, bytemuck::cast_slice_mut(values), start)
    }
}

/// Says what a user can do about a temporary file that cannot be written or read.
pub(super) fn error(source: io::Error) -> Error {
    let problem = format!("temporary file of edges: {source}; TMPDIR names the directory for it");
    Error::Io { path: std::env::temp_dir(), source: io::Error::new(source.kind(), problem) }
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], start: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, start)
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], start: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, start)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut start: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, start)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
        start += written as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut start: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, start)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        start += read as u64;
    }
    Ok(())
}

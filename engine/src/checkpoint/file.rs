//! The files of a checkpoint: written and read with a checksum over all of each.

use std::fs::File;
use std::io::{self as stdio, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::Error;

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 2;
pub const DAMAGED: &str = "the checkpoint is damaged: remove it, or restore it from a copy";

/// A file, and the checksum of all that was read from it or written to it.
pub struct Hashing {
    file: File,
    hash: Xxh3,
    bytes: u64,
}

impl Hashing {
    pub fn new(file: File) -> Self {
        Self { file, hash: Xxh3::new(), bytes: 0 }
    }

    pub fn len(&self) -> stdio::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    pub fn digest(&self) -> u64 {
        self.hash.digest()
    }

    /// Brings what was written to the disk.
    pub fn finish(self, name: &str) -> stdio::Result<FileEntry> {
        self.file.sync_all()?;
        Ok(FileEntry { name: name.to_owned(), bytes: self.bytes, xxh3: self.hash.digest() })
    }
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> stdio::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

impl Write for Hashing {
    fn write(&mut self, buffer: &[u8]) -> stdio::Result<usize> {
        let written = self.file.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> stdio::Result<()> {
        self.file.flush()
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct FileEntry {
    pub name: String,
    pub bytes: u64,
    /// XXH3 of the whole file.
    pub xxh3: u64,
}

impl FileEntry {
    /// Reads the file and compares it with its size and checksum.
    pub fn verify(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(&self.name);
        let mut file = Hashing::new(File::open(&path).map_err(io(&path))?);
        let bytes = file.len().map_err(io(&path))?;
        let damaged = |problem| Error::Checkpoint { path: path.clone(), problem, advice: DAMAGED };
        if bytes != self.bytes {
            return Err(damaged(format!("{bytes} bytes found, {} expected", self.bytes)));
        }
        std::io::copy(&mut file, &mut std::io::sink()).map_err(io(&path))?;
        let xxh3 = file.digest();
        if xxh3 != self.xxh3 {
            return Err(damaged(format!("checksum {xxh3} found, {} expected", self.xxh3)));
        }
        Ok(())
    }
}

/// Says where an operation on a file failed.
pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |source| Error::CheckpointIo { path: path.to_owned(), source }
}

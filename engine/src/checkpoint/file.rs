//! The files of a checkpoint: written and read with a checksum over all of each, and in ranges that are one file to who reads them.

use std::fs::File;
use std::io::{self as stdio, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::Error;

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 2;
pub const BUFFER_BYTES: usize = 1 << 20;
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

/// A file, or a range of one, as it is written. Where that fails its process goes on with what all do together, and tells the others
/// afterwards.
pub struct RangeFile {
    path: PathBuf,
    name: String,
    file: stdio::Result<BufWriter<Hashing>>,
}

impl RangeFile {
    pub fn create(dir: &Path, name: String) -> Self {
        let path = dir.join(&name);
        let file = File::create(&path).map(|file| BufWriter::with_capacity(BUFFER_BYTES, Hashing::new(file)));
        Self { path, name, file }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        if let Ok(file) = &mut self.file
            && let Err(error) = file.write_all(bytes)
        {
            self.file = Err(error);
        }
    }

    /// Brings it to the disk.
    pub fn finish(self) -> Result<FileEntry, Error> {
        let file = self.file.and_then(|file| file.into_inner().map_err(|error| error.into_error()));
        file.and_then(|file| file.finish(&self.name)).map_err(io(&self.path))
    }
}

/// The ranges of a file, one after the other.
pub struct Ranges {
    /// Where each ends.
    ends: Vec<(u64, PathBuf)>,
    at: u64,
    /// The range that is read, and where it ends.
    open: Option<(u64, BufReader<File>)>,
}

impl Ranges {
    pub fn new(dir: &Path, entries: &[&FileEntry]) -> Self {
        let end = |end: &mut u64, entry: &&FileEntry| {
            *end += entry.bytes;
            Some((*end, dir.join(&entry.name)))
        };
        Self { ends: entries.iter().scan(0, end).collect(), at: 0, open: None }
    }

    pub fn len(&self) -> u64 {
        self.ends.last().map_or(0, |(end, _)| *end)
    }

    /// Goes to a byte.
    pub fn go_to(&mut self, byte: u64) -> stdio::Result<()> {
        match &mut self.open {
            Some((_, file)) if byte >= self.at => file.seek_relative((byte - self.at) as i64)?,
            _ => self.open = None,
        }
        self.at = byte;
        Ok(())
    }
}

impl Read for Ranges {
    fn read(&mut self, buffer: &mut [u8]) -> stdio::Result<usize> {
        if self.open.as_ref().is_some_and(|(end, _)| *end <= self.at) {
            self.open = None;
        }
        let (end, file) = match &mut self.open {
            Some(open) => open,
            none => {
                let range = self.ends.partition_point(|(end, _)| *end <= self.at);
                let Some((end, path)) = self.ends.get(range) else { return Ok(0) };
                let start = if range == 0 { 0 } else { self.ends[range - 1].0 };
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(self.at - start))?;
                none.insert((*end, BufReader::with_capacity(BUFFER_BYTES, file)))
            }
        };
        let most = buffer.len().min((*end - self.at) as usize);
        let read = file.read(&mut buffer[..most])?;
        self.at += read as u64;
        Ok(read)
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
        let damaged = |problem| Error::Checkpoint { path: path.clone(), problem, advice: DAMAGED };
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == stdio::ErrorKind::NotFound => return Err(damaged("missing".to_owned())),
            opened => Hashing::new(opened.map_err(io(&path))?),
        };
        let bytes = file.len().map_err(io(&path))?;
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

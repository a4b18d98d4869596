//! Input that can be read once only: standard input, named `-`, and pipes. It is copied to a temporary file before it is looked at.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;

use crate::Error;

/// What came through a pipe.
#[derive(Debug)]
pub(super) struct Pipe {
    /// A file without a name, read at given places.
    file: File,
    pub(super) bytes: u64,
}

/// Pipes that have been looked at and not yet been read for good; `None`: standard input, which is gone by then.
static SEEN: Mutex<BTreeMap<PathBuf, Option<Arc<Pipe>>>> = Mutex::new(BTreeMap::new());

fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// Tells whether a path is `-`, for standard input, or a pipe: what is read of it is there once, for one process.
#[must_use]
pub fn is_pipe(path: &Path) -> bool {
    is_standard_input(path) || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Returns what comes through a pipe, all of which is read the first time.
pub(super) fn look(path: &Path) -> Result<Arc<Pipe>, Error> {
    let mut seen = lock(&SEEN);
    match seen.get(path) {
        Some(Some(pipe)) => Ok(Arc::clone(pipe)),
        Some(None) => Err(Error::invalid(path, "standard input has been read already; name it once")),
        None => {
            let pipe = Arc::new(Pipe::read(path)?);
            seen.insert(path.to_path_buf(), Some(Arc::clone(&pipe)));
            Ok(pipe)
        }
    }
}

/// Forgets what came through a pipe once it was opened to be read for good: the next time there may be something else.
pub(super) fn forget(path: &Path) {
    let mut seen = lock(&SEEN);
    if is_standard_input(path) {
        seen.insert(path.to_path_buf(), None);
    } else {
        seen.remove(path);
    }
}

impl Pipe {
    fn read(path: &Path) -> Result<Self, Error> {
        let mut file = tempfile::tempfile().map_err(no_room)?;
        let bytes = if is_standard_input(path) {
            copy(&mut io::stdin().lock(), &mut file, path)?
        } else {
            copy(&mut File::open(path).map_err(Error::io(path))?, &mut file, path)?
        };
        Ok(Self { file, bytes })
    }
}

/// Copies all bytes; what fails is a matter of the pipe, or of the temporary file.
fn copy(from: &mut impl Read, to: &mut File, path: &Path) -> Result<u64, Error> {
    let (mut buffer, mut bytes) = (vec![0; 1 << 18], 0);
    loop {
        let read = read_full(from, &mut buffer).map_err(Error::io(path))?;
        io::Write::write_all(to, &buffer[..read]).map_err(no_room)?;
        bytes += read as u64;
        if read < buffer.len() {
            return Ok(bytes);
        }
    }
}

fn no_room(source: io::Error) -> Error {
    let problem = format!("temporary file of what comes through a pipe: {source}; TMPDIR names the directory for it");
    Error::Io { path: std::env::temp_dir(), source: io::Error::new(source.kind(), problem) }
}

/// Reads what came through a pipe, from its beginning.
pub(super) struct PipeReader {
    pipe: Arc<Pipe>,
    at: u64,
}

impl PipeReader {
    pub(super) fn new(pipe: &Arc<Pipe>) -> Self {
        Self { pipe: Arc::clone(pipe), at: 0 }
    }
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_at(&self.pipe.file, buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}

/// Fills `buffer` as far as the data go; returns the number of bytes read.
pub(super) fn read_full(reader: &mut dyn Read, mut buffer: &mut [u8]) -> io::Result<usize> {
    let wanted = buffer.len();
    while !buffer.is_empty() {
        match reader.read(buffer) {
            Ok(0) => break,
            Ok(read) => buffer = &mut buffer[read..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(wanted - buffer.len())
}

//! What is at the place of an output, behind symbolic links.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Links that are followed; the system follows as many.
const MOST_LINKS: usize = 40;

/// Where an output goes.
pub(super) enum Place {
    /// To a file that is written beside this path and then renamed.
    File(PathBuf),
    /// To what is there.
    AsItStands(Standing),
}

/// What is written to as it stands.
pub(super) enum Standing {
    /// A pipe, a device: no regular file.
    Special(PathBuf),
    /// A file that a process has open, at a path as `/proc/self/fd/1`.
    Open(PathBuf),
}

impl Place {
    /// Follows the links from `target` on.
    pub(super) fn of(target: &Path) -> Self {
        let mut path = target.to_path_buf();
        for _ in 0..MOST_LINKS {
            // Behind it may be a regular file, which is not to be replaced: whoever opened it goes on with it.
            if is_of_open_files(parent(&path)) {
                return Self::AsItStands(Standing::Open(path));
            }
            let Ok(next) = fs::read_link(&path) else { break };
            path = parent(&path).join(next);
        }
        match fs::metadata(&path) {
            Ok(found) if !found.is_file() && !found.is_dir() => Self::AsItStands(Standing::Special(path)),
            _ => Self::File(path),
        }
    }
}

impl Standing {
    pub(super) fn open(&self) -> io::Result<File> {
        match self {
            Self::Special(path) => File::options().write(true).open(path),
            Self::Open(path) => standard(path).unwrap_or_else(|| File::options().append(true).open(path)),
        }
    }
}

/// Returns the directory of a place.
pub(super) fn parent(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Tells whether a directory is that of the files which a process has open.
fn is_of_open_files(directory: &Path) -> bool {
    let is_below = |directory: PathBuf| directory.starts_with("/proc") && directory.ends_with("fd");
    directory == Path::new("/dev/fd") || fs::canonicalize(directory).is_ok_and(is_below)
}

/// Returns this process's output or error output if a path is that, to be written to from where it stands.
#[cfg(unix)]
fn standard(path: &Path) -> Option<io::Result<File>> {
    use std::os::fd::AsFd;
    let own = fs::canonicalize("/proc/self/fd").unwrap_or_else(|_| "/dev/fd".into());
    let name = path.file_name().filter(|_| fs::canonicalize(parent(path)).is_ok_and(|directory| directory == own))?;
    let descriptor = match name.to_str()? {
        "1" => io::stdout().as_fd().try_clone_to_owned(),
        "2" => io::stderr().as_fd().try_clone_to_owned(),
        _ => return None,
    };
    Some(descriptor.map(File::from))
}

#[cfg(not(unix))]
fn standard(_: &Path) -> Option<io::Result<File>> {
    None
}

//! An output is whole or absent: it is written under a temporary name beside its place, brought to the disk, and renamed.
//!
//! A failure on the way, a full disk say, removes the temporary. A process that is killed leaves it behind, as `.megagrid-*.tmp`; it may
//! be removed. What [`renew_directory`] leaves has a name that it finds again.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

use crate::Error;

mod directories;
mod place;

pub use directories::{renew_directory, replace_directory, write_directory};
use place::{Place, parent};

/// Writes a file that appears under `target` when it is complete. `write` gets it open, for reading too.
///
/// # Errors
/// Where something is at `target` already, the system refuses or `write` fails. Nothing is left behind then.
pub fn write_file<E: From<Error>>(target: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<(), E> {
    refuse_existing(target)?;
    let temporary = complete(target, write)?;
    temporary.persist_noclobber(target).map_err(|error| placement_error(target, error.error))?;
    Ok(sync(parent(target))?)
}

/// Writes a file that takes the place of `target` when it is complete: of a file, if one is there, whose permissions it takes over. A
/// symbolic link stays, and what it names is replaced. What is no regular file, a pipe or `/dev/null`, or is open already, as
/// `/dev/stdout`, is written to as it stands.
///
/// # Errors
/// Where the system refuses or `write` fails. The earlier file is left as it was then.
pub fn replace_file<E: From<Error>>(target: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<(), E> {
    match Place::of(target) {
        Place::AsItStands(place) => write(&mut place.open().map_err(Error::io(target))?),
        Place::File(file) => {
            complete(&file, write)?.persist(&file).map_err(|error| Error::io(target)(error.error))?;
            Ok(sync(parent(&file))?)
        }
    }
}

/// Writes a text as [`replace_file`] does.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_text(target: &Path, text: &str) -> Result<(), Error> {
    replace_file(target, |file| file.write_all(text.as_bytes()).map_err(Error::io(target)))
}

/// Writes a file to the disk under a temporary name beside `target`, with the permissions of a file that is there.
fn complete<E: From<Error>>(target: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<NamedTempFile, E> {
    let earlier = fs::metadata(target).ok().filter(Metadata::is_file);
    // Until it has those, only this process may read it.
    let mode = if earlier.is_some() { 0o600 } else { 0o666 };
    let mut temporary = builder(mode).tempfile_in(parent(target)).map_err(Error::io(target))?;
    if let Some(earlier) = earlier {
        take_over(&earlier, temporary.as_file()).map_err(Error::io(target))?;
    }
    write(temporary.as_file_mut())?;
    temporary.as_file().sync_all().map_err(Error::io(target))?;
    Ok(temporary)
}

/// Gives a file the owner of an earlier one, if the system lets this process do that, and its permissions.
#[cfg(unix)]
fn take_over(earlier: &Metadata, file: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    // Only the superuser may; what others write is theirs.
    let _ = fchown(file, Some(earlier.uid()), Some(earlier.gid()));
    file.set_permissions(earlier.permissions())
}

#[cfg(not(unix))]
fn take_over(_: &Metadata, _: &File) -> io::Result<()> {
    Ok(())
}

/// Tells before a long computation whether its output could be written to `target` afterwards.
///
/// # Errors
/// Where something is there already or the directory around it cannot be written to.
pub fn check_target(target: &Path) -> Result<(), Error> {
    refuse_existing(target)?;
    check_beside(target)
}

/// Tells before a long computation whether [`replace_file`] could write to `target` afterwards.
///
/// # Errors
/// Where a directory is there or the directory around it cannot be written to.
pub fn check_replaceable(target: &Path) -> Result<(), Error> {
    if target.is_dir() {
        return Err(Error::invalid(target, "is a directory; name a file"));
    }
    match Place::of(target) {
        Place::AsItStands(_) => fs::metadata(target).map(drop).map_err(Error::io(target)),
        Place::File(file) => check_beside(&file),
    }
}

fn check_beside(target: &Path) -> Result<(), Error> {
    let directory = parent(target);
    if directory.try_exists().is_ok_and(|is_there| !is_there) {
        let problem = format!("the directory {} is not there; make it first", directory.display());
        return Err(Error::invalid(target, problem));
    }
    builder(0o666).tempfile_in(directory).map(drop).map_err(Error::io(target))
}

fn refuse_existing(target: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(target) {
        Ok(_) => Err(Error::OutputExists(target.to_path_buf())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(target)(error)),
    }
}

fn placement_error(target: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => Error::OutputExists(target.to_path_buf()),
        _ => Error::io(target)(error),
    }
}

/// Names temporaries, and gives them the permissions of ordinary files instead of private ones.
fn builder(mode: u32) -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".megagrid-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(<Permissions as std::os::unix::fs::PermissionsExt>::from_mode(mode));
    builder
}

fn sync(path: &Path) -> Result<(), Error> {
    // Windows has no handle of a directory to sync.
    if cfg!(not(unix)) && path.is_dir() {
        return Ok(());
    }
    File::open(path).and_then(|file| file.sync_all()).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn a_file_is_whole_or_absent() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out");
        let write = |text: &'static [u8]| {
            let target = target.clone();
            move |file: &mut File| file.write_all(text).map_err(Error::io(&target))
        };
        let failed = write_file(&target, |file| {
            write(b"half")(file)?;
            Err(Error::invalid(&target, "stop"))
        });
        assert!(failed.is_err());
        assert!(names_in(directory.path()).is_empty());
        write_file(&target, write(b"whole")).unwrap();
        assert_eq!(names_in(directory.path()), ["out"]);
        let again = write_file(&target, write(b"other"));
        assert!(matches!(again, Err(Error::OutputExists { .. })));
        assert_eq!(fs::read(&target).unwrap(), b"whole");
    }

    #[test]
    fn a_file_is_replaced_by_a_whole_one() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out");
        replace_text(&target, "first").unwrap();
        replace_text(&target, "second").unwrap();
        let failed = replace_file(&target, |file| {
            file.write_all(b"half").map_err(Error::io(&target))?;
            Err(Error::invalid(&target, "stop"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&target).unwrap(), b"second");
        assert_eq!(names_in(directory.path()), ["out"]);
        check_replaceable(&target).unwrap();
        assert!(check_replaceable(directory.path()).is_err());
        assert!(check_replaceable(&target.join("deeper")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_devices_are_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name| directory.path().join(name);
        let write = |file: &mut File| file.write_all(b"new").map_err(Error::io(directory.path()));
        // One names a link to a file, the other what is not there yet.
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("deep/old"), b"old").unwrap();
        for (link, linked) in [("second", "deep/first"), ("deep/first", "old"), ("dangling", "deep/absent")] {
            std::os::unix::fs::symlink(linked, at(link)).unwrap();
        }
        for (link, linked) in [("second", "deep/old"), ("dangling", "deep/absent")] {
            check_replaceable(&at(link)).unwrap();
            replace_file(&at(link), write).unwrap();
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink());
            assert!(fs::symlink_metadata(at(linked)).unwrap().is_file());
            assert_eq!(fs::read(at(linked)).unwrap(), b"new");
        }
        assert!(fs::symlink_metadata(at("deep/first")).unwrap().is_symlink());
        let device = Path::new("/dev/null");
        check_replaceable(device).unwrap();
        replace_file(device, write).unwrap();
        assert!(!fs::metadata(device).unwrap().is_file());
    }

    /// As `/dev/stdout` does, where the output goes to a file.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_to_an_open_file_is_written_through() {
        use std::os::fd::AsRawFd;
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("open"), directory.path().join("link"));
        let mut open = File::create(&path).unwrap();
        open.write_all(b"before ").unwrap();
        std::os::unix::fs::symlink(format!("/proc/self/fd/{}", open.as_raw_fd()), &link).unwrap();
        check_replaceable(&link).unwrap();
        replace_text(&link, "after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"before after");
        assert_eq!(open.metadata().unwrap().len(), 12, "it is the file that was open");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_replaced_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out");
        for mode in [0o600, 0o664] {
            fs::write(&target, b"old").unwrap();
            fs::set_permissions(&target, Permissions::from_mode(mode)).unwrap();
            replace_text(&target, "new").unwrap();
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, mode);
        }
    }

    #[cfg(unix)]
    #[test]
    fn outputs_get_ordinary_permissions() {
        use crate::output::{Column, write_table, write_vector};
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let at = |name| directory.path().join(name);
        fs::write(at("plain"), b"").unwrap();
        fs::create_dir(at("plain directory")).unwrap();
        write_file(&at("new"), |_| Ok::<(), Error>(())).unwrap();
        replace_file(&at("replaced"), |_| Ok::<(), Error>(())).unwrap();
        write_vector(&at("array.npy"), &[1.0_f32]).unwrap();
        write_table(&at("table.parquet"), &[("one", Column::U32(vec![1].into()))]).unwrap();
        write_directory(&at("directory"), |_| Ok::<(), Error>(())).unwrap();
        let mode = |name| fs::metadata(at(name)).unwrap().permissions().mode();
        for file in ["new", "replaced", "array.npy", "table.parquet"] {
            assert_eq!(mode(file), mode("plain"), "{file}");
        }
        assert_eq!(mode("directory"), mode("plain directory"));
    }
}

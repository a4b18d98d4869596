//! An output is whole or absent: it is written under a temporary name beside its place, brought to the disk, and renamed.
//!
//! A failure on the way, a full disk say, removes the temporary. A process that is killed leaves it behind, as
//! `.megagrid-*.tmp`; it may be removed.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempDir};

use crate::Error;

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

/// Writes a file that takes the place of `target` when it is complete: of a file or a symbolic link, if one is there. What
/// is no regular file, a pipe or `/dev/null`, is written to as it stands.
///
/// # Errors
/// Where the system refuses or `write` fails. The earlier file is left as it was then.
pub fn replace_file<E: From<Error>>(target: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<(), E> {
    if is_special(target) {
        return write(&mut File::options().write(true).open(target).map_err(Error::io(target))?);
    }
    complete(target, write)?.persist(target).map_err(|error| Error::io(target)(error.error))?;
    Ok(sync(parent(target))?)
}

/// Writes a text as [`replace_file`] does.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_text(target: &Path, text: &str) -> Result<(), Error> {
    replace_file(target, |file| file.write_all(text.as_bytes()).map_err(Error::io(target)))
}

/// Writes a file to the disk under a temporary name beside `target`.
fn complete<E: From<Error>>(target: &Path, write: impl FnOnce(&mut File) -> Result<(), E>) -> Result<NamedTempFile, E> {
    let mut temporary = builder(0o666).tempfile_in(parent(target)).map_err(Error::io(target))?;
    write(temporary.as_file_mut())?;
    temporary.as_file().sync_all().map_err(Error::io(target))?;
    Ok(temporary)
}

/// Writes a directory that appears under `target` when it is complete. `write` gets the path of the empty directory
/// to fill.
///
/// # Errors
/// As [`write_file`].
pub fn write_directory<E: From<Error>>(target: &Path, write: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
    refuse_existing(target)?;
    let temporary = builder(0o777).tempdir_in(parent(target)).map_err(Error::io(target))?;
    write(temporary.path())?;
    place(temporary, target)
}

/// Puts a directory where nothing is.
fn place<E: From<Error>>(temporary: TempDir, target: &Path) -> Result<(), E> {
    sync_tree(temporary.path())?;
    // Looked at again because the system would put a directory in the place of an empty one.
    refuse_existing(target)?;
    fs::rename(temporary.path(), target).map_err(|error| placement_error(target, error))?;
    // Renamed away: there is nothing to remove under the temporary name.
    let _ = temporary.keep();
    Ok(sync(parent(target))?)
}

/// Writes a directory that takes the place of `target` when it is complete; if nothing is there, as [`write_directory`]. On Linux the
/// two change places in one step, so that `target` is the earlier directory or the new one at any time; where the system cannot, there
/// is an instant in which it is neither, and the earlier one is beside it, as `.megagrid-*.tmp`. The new one has the permissions of the
/// earlier one, all of whose files are gone.
///
/// # Errors
/// Where the system refuses or `write` fails. The earlier directory is left as it was then.
pub fn replace_directory<E: From<Error>>(target: &Path, write: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
    if fs::symlink_metadata(target).is_err() {
        return write_directory(target, write);
    }
    // A link stays, and what it names is replaced.
    let target = &fs::canonicalize(target).map_err(Error::io(target))?;
    let temporary = builder(0o777).tempdir_in(parent(target)).map_err(Error::io(target))?;
    write(temporary.path())?;
    change_places(temporary, target)
}

/// Writes a directory as [`replace_directory`] does, where one process at a time writes to `target`. Its temporary name is
/// `.NAME.tmp`, and what a process that was killed left there is removed.
///
/// # Errors
/// As [`replace_directory`].
pub fn renew_directory<E: From<Error>>(target: &Path, write: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let name = format!(".{name}.tmp");
    let left = parent(target).join(&name);
    match fs::remove_dir_all(&left) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io(&left)(error).into()),
        _ => {}
    }
    let mut named = builder(0o777);
    let temporary =
        named.prefix(&name).suffix("").rand_bytes(0).tempdir_in(parent(target)).map_err(Error::io(target))?;
    write(temporary.path())?;
    if fs::symlink_metadata(target).is_err() { place(temporary, target) } else { change_places(temporary, target) }
}

/// Puts a directory in the place of another, which is removed.
fn change_places<E: From<Error>>(temporary: TempDir, target: &Path) -> Result<(), E> {
    sync_tree(temporary.path())?;
    let permissions = fs::metadata(target).map_err(Error::io(target))?.permissions();
    fs::set_permissions(temporary.path(), permissions).map_err(Error::io(target))?;
    exchange(temporary.path(), target).map_err(Error::io(target))?;
    sync(parent(target))?;
    // The earlier one, under the temporary name. That it cannot be removed does not make the new one less.
    if let Err(error) = temporary.close() {
        tracing::warn!("the directory that {} replaced could not be removed: {error}", target.display());
    }
    Ok(())
}

/// Has two directories change places.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
            // The file system cannot.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            done => return Ok(done?),
        }
    }
    let aside = one.with_extension("old.tmp");
    fs::rename(other, &aside)?;
    fs::rename(one, other).inspect_err(|_| drop(fs::rename(&aside, other)))?;
    fs::rename(&aside, one)
}

/// Tells before a long computation whether its output could be written to `target` afterwards.
///
/// # Errors
/// Where something is there already or the directory around it cannot be written to.
pub fn check_target(target: &Path) -> Result<(), Error> {
    refuse_existing(target)?;
    builder(0o666).tempfile_in(parent(target)).map(drop).map_err(Error::io(target))
}

/// Tells before a long computation whether [`replace_file`] could write to `target` afterwards.
///
/// # Errors
/// Where a directory is there or the directory around it cannot be written to.
pub fn check_replaceable(target: &Path) -> Result<(), Error> {
    if target.is_dir() {
        return Err(Error::invalid(target, "is a directory; name a file"));
    }
    if is_special(target) {
        return Ok(());
    }
    builder(0o666).tempfile_in(parent(target)).map(drop).map_err(Error::io(target))
}

/// Tells whether there is something that is no regular file.
fn is_special(target: &Path) -> bool {
    fs::metadata(target).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
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

fn parent(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Names temporaries, and gives them the permissions of ordinary files instead of private ones.
fn builder(mode: u32) -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".megagrid-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(<Permissions as std::os::unix::fs::PermissionsExt>::from_mode(mode));
    builder
}

/// Brings the files of a directory, and the directories that name them, to the disk.
fn sync_tree(directory: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let path: PathBuf = entry.map_err(Error::io(directory))?.path();
        if path.is_dir() { sync_tree(&path)? } else { sync(&path)? }
    }
    sync(directory)
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
    fn a_directory_is_whole_or_absent() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("model");
        check_target(&target).unwrap();
        let fill = |path: &Path| {
            fs::create_dir(path.join("deep")).map_err(Error::io(path))?;
            fs::write(path.join("deep/one"), b"1").map_err(Error::io(path))
        };
        let failed = write_directory(&target, |path| {
            fill(path)?;
            Err(Error::invalid(&target, "stop"))
        });
        assert!(failed.is_err());
        assert!(names_in(directory.path()).is_empty());
        write_directory(&target, fill).unwrap();
        assert_eq!(fs::read(target.join("deep/one")).unwrap(), b"1");
        assert_eq!(names_in(directory.path()), ["model"]);
        assert!(matches!(write_directory(&target, fill), Err(Error::OutputExists { .. })));
        let message = check_target(&target).unwrap_err().to_string();
        assert!(message.ends_with("model: exists already; remove it or name another output"), "{message}");
    }

    #[test]
    fn a_directory_is_replaced_by_a_whole_one() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("model");
        let fill = |name: &'static str| move |path: &Path| fs::write(path.join(name), name).map_err(Error::io(path));
        replace_directory(&target, fill("first")).unwrap();
        replace_directory(&target, fill("second")).unwrap();
        assert_eq!(names_in(&target), ["second"]);
        let failed = replace_directory(&target, |path| {
            fill("third")(path)?;
            Err(Error::invalid(&target, "stop"))
        });
        assert!(failed.is_err());
        assert_eq!((names_in(&target), names_in(directory.path())), (vec!["second".into()], vec!["model".into()]));
    }

    #[test]
    fn a_renewed_directory_takes_the_place_of_what_a_killed_process_left() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("model");
        let fill = |name: &'static str| move |path: &Path| fs::write(path.join(name), name).map_err(Error::io(path));
        for name in ["first", "second"] {
            fs::create_dir(directory.path().join(".model.tmp")).unwrap();
            fs::write(directory.path().join(".model.tmp/half"), "").unwrap();
            renew_directory(&target, fill(name)).unwrap();
            assert_eq!((names_in(&target), names_in(directory.path())), (vec![name.into()], vec!["model".into()]));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_is_replaced_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("model");
        fs::create_dir(&target).unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o700)).unwrap();
        replace_directory(&target, |_| Ok::<(), Error>(())).unwrap();
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_directory_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (linked, link) = (directory.path().join("linked"), directory.path().join("link"));
        fs::create_dir(&linked).unwrap();
        std::os::unix::fs::symlink(&linked, &link).unwrap();
        replace_directory(&link, |path| fs::write(path.join("new"), "").map_err(Error::io(path))).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names_in(&linked), ["new"]);
    }

    #[test]
    fn a_missing_parent_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("absent/model");
        assert!(matches!(check_target(&target), Err(Error::Io { .. })));
        assert!(matches!(write_directory(&target, |_| Ok::<(), Error>(())), Err(Error::Io { .. })));
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
    fn links_are_replaced_and_devices_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let (linked, link) = (directory.path().join("linked"), directory.path().join("link"));
        fs::write(&linked, b"old").unwrap();
        std::os::unix::fs::symlink(&linked, &link).unwrap();
        let write = |file: &mut File| file.write_all(b"new").map_err(Error::io(&link));
        replace_file(&link, write).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!((fs::read(&linked).unwrap(), fs::read(&link).unwrap()), (b"old".to_vec(), b"new".to_vec()));
        let device = Path::new("/dev/null");
        check_replaceable(device).unwrap();
        replace_file(device, write).unwrap();
        assert!(!fs::metadata(device).unwrap().is_file());
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

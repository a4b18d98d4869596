//! Directories that are whole or absent, and those that take the place of earlier ones.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::place::parent;
use super::{builder, placement_error, refuse_existing, sync};
use crate::Error;

/// Writes a directory that appears under `target` when it is complete. `write` gets the path of the empty directory
/// to fill.
///
/// # Errors
/// As [`write_file`](super::write_file).
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
/// is an instant in which it is neither, and the earlier one is beside it, as `.megagrid-*.old.tmp`. The new one has the permissions of
/// the earlier one, all of whose files are gone.
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

/// Writes a directory as [`replace_directory`] does, where one process at a time writes to `target`. Its temporary names are `.NAME.tmp`
/// and `.NAME.old.tmp`. What a process that was killed left there is removed, but for an earlier directory that nothing took the place
/// of: that is put back first.
///
/// # Errors
/// As [`replace_directory`].
pub fn renew_directory<E: From<Error>>(target: &Path, write: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let name = format!(".{name}.tmp");
    let left = parent(target).join(&name);
    let aside = aside(&left);
    if fs::symlink_metadata(&aside).is_ok() && fs::symlink_metadata(target).is_err() {
        fs::rename(&aside, target).map_err(Error::io(&aside))?;
    }
    remove(&aside)?;
    remove(&left)?;
    let mut named = builder(0o777);
    let temporary =
        named.prefix(&name).suffix("").rand_bytes(0).tempdir_in(parent(target)).map_err(Error::io(target))?;
    write(temporary.path())?;
    if fs::symlink_metadata(target).is_err() { place(temporary, target) } else { change_places(temporary, target) }
}

/// Removes a directory, if it is there.
fn remove(directory: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(directory)(error)),
        _ => Ok(()),
    }
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
    exchange_in_turn(one, other)
}

/// Has two directories change places, one after the other; in between `other` is [`aside`].
fn exchange_in_turn(one: &Path, other: &Path) -> io::Result<()> {
    let aside = aside(one);
    fs::rename(other, &aside)?;
    fs::rename(one, other).inspect_err(|_| drop(fs::rename(&aside, other)))?;
    fs::rename(&aside, one)
}

/// Returns where an earlier directory is while the new one, of this temporary name, takes its place.
fn aside(temporary: &Path) -> PathBuf {
    temporary.with_extension("old.tmp")
}

/// Brings the files of a directory, and the directories that name them, to the disk.
fn sync_tree(directory: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let path: PathBuf = entry.map_err(Error::io(directory))?.path();
        if path.is_dir() { sync_tree(&path)? } else { sync(&path)? }
    }
    sync(directory)
}

#[cfg(test)]
mod tests {
    use super::super::check_target;
    use super::*;

    fn names_in(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    fn fill(name: &'static str) -> impl FnOnce(&Path) -> Result<(), Error> {
        move |path| fs::write(path.join(name), name).map_err(Error::io(path))
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
        for name in ["first", "second"] {
            fs::create_dir(directory.path().join(".model.tmp")).unwrap();
            fs::write(directory.path().join(".model.tmp/half"), "").unwrap();
            renew_directory(&target, fill(name)).unwrap();
            assert_eq!((names_in(&target), names_in(directory.path())), (vec![name.into()], vec!["model".into()]));
        }
    }

    /// Killed between the renames where directories cannot be exchanged: before the new one is in its place, and after.
    #[test]
    fn an_earlier_directory_that_was_put_aside_is_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let [target, aside] = ["model", ".model.old.tmp"].map(|name| directory.path().join(name));
        renew_directory(&target, fill("first")).unwrap();
        fs::rename(&target, &aside).unwrap();
        let failed = renew_directory(&target, |path| {
            assert_eq!(names_in(&target), ["first"], "it is back before the new one is written");
            fill("second")(path)?;
            Err(Error::invalid(&target, "stop"))
        });
        assert!(failed.is_err());
        assert_eq!((names_in(&target), names_in(directory.path())), (vec!["first".into()], vec!["model".into()]));
        fs::create_dir(&aside).unwrap();
        fs::write(aside.join("before"), "").unwrap();
        renew_directory(&target, fill("third")).unwrap();
        assert_eq!((names_in(&target), names_in(directory.path())), (vec!["third".into()], vec!["model".into()]));
    }

    #[test]
    fn directories_that_cannot_be_exchanged_change_places_in_turn() {
        let directory = tempfile::tempdir().unwrap();
        let [one, other] = [".model.tmp", "model"].map(|name| directory.path().join(name));
        for (path, name) in [(&one, "new"), (&other, "old")] {
            fs::create_dir(path).unwrap();
            fill(name)(path).unwrap();
        }
        exchange_in_turn(&one, &other).unwrap();
        assert_eq!((names_in(&one), names_in(&other)), (vec!["old".into()], vec!["new".into()]));
        fs::remove_dir_all(&one).unwrap();
        assert!(exchange_in_turn(&one, &other).is_err());
        assert_eq!((names_in(&other), names_in(directory.path())), (vec!["new".into()], vec!["model".into()]));
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_is_replaced_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("model");
        fs::create_dir(&target).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
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
        assert!(check_target(&target).unwrap_err().to_string().contains("is not there; make it first"));
        assert!(matches!(write_directory(&target, |_| Ok::<(), Error>(())), Err(Error::Io { .. })));
    }
}

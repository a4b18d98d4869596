//! Writing files that others may be reading.

use std::io::Write;
use std::path::Path;

use crate::Error;

/// Writes a text to a regular file, which is whole at any moment, and replaced if there is one.
///
/// # Errors
/// What the system refuses.
pub fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".megagrid-");
    // Readable as other files are: the system takes its mask off.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(parent).map_err(Error::io(path))?;
    file.write_all(text.as_bytes()).map_err(Error::io(path))?;
    file.as_file().sync_all().map_err(Error::io(path))?;
    file.persist(path).map_err(|error| Error::io(path)(error.error))?;
    Ok(())
}

//! Writing files that others may be reading.

use std::io::Write;
use std::path::Path;

use megagrid_datasets::output::replace_file;

use crate::Error;

/// Writes a text to a regular file, which is whole at any moment, and replaced if there is one.
///
/// # Errors
/// What the system refuses.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Error> {
    replace_file(path, |file| file.write_all(text.as_bytes()).map_err(Error::io(path)))
}

//! What a run found so far, kept beside its checkpoints: a list that is written before the checkpoint that it goes with, and holds the past of
//! every one before.

use std::fs;
use std::path::Path;

use megagrid_datasets::output::replace_text;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// Writes the list of this file; without an entry there is to be none, and that of an earlier run is removed.
pub fn save<T: Serialize>(list: &[T], directory: &Path, file: &str) -> Result<(), Error> {
    let path = directory.join(file);
    if list.is_empty() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&path)(error)),
            _ => Ok(()),
        };
    }
    fs::create_dir_all(directory).map_err(Error::io(directory))?;
    let text = serde_json::to_string(list).map_err(Error::json(path.display()))?;
    Ok(replace_text(&path, &(text + "\n"))?)
}

/// Reads the list of this file; where there is none, it is empty.
pub fn load<T: DeserializeOwned>(directory: &Path, file: &str) -> Result<Vec<T>, Error> {
    let path = directory.join(file);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        text => serde_json::from_str(&text.map_err(Error::io(&path))?).map_err(Error::json(path.display())),
    }
}

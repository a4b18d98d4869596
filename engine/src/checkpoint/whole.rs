//! The files of a checkpoint that the first process writes whole: the shared context, and notes of the caller.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use bincode::Options;
use megagrid_stages::Program;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::file::{FileEntry, Hashing, io};
use super::manifest::Manifest;
use crate::Error;

const GLOBAL: &str = "global.bin";
const NOTES: &str = "notes.bin";

/// Writes the shared context.
pub fn write_global<P: Program<Global: Serialize>>(global: &P::Global, dir: &Path) -> Result<FileEntry, Error> {
    let bytes = bincode::options()
        .with_fixint_encoding()
        .serialize(global)
        .map_err(|error| Error::CheckpointIo { path: dir.join(GLOBAL), source: std::io::Error::other(error) })?;
    write(&bytes, dir, GLOBAL)
}

/// Reads the shared context.
pub fn read_global<P: Program<Global: DeserializeOwned>>(manifest: &Manifest, dir: &Path) -> Result<P::Global, Error> {
    manifest.open(GLOBAL, dir)?;
    let path = dir.join(GLOBAL);
    let bytes = fs::read(&path).map_err(io(&path))?;
    bincode::options().with_fixint_encoding().deserialize(&bytes).map_err(|error| Error::Checkpoint {
        path: path.clone(),
        problem: format!("not a shared context of this program: {error}"),
        advice: "use the version of the program that wrote it",
    })
}

/// Writes notes.
pub fn write_notes(notes: &[u8], dir: &Path) -> Result<FileEntry, Error> {
    write(notes, dir, NOTES)
}

/// Reads notes; none are empty.
pub fn read_notes(manifest: &Manifest, dir: &Path) -> Result<Vec<u8>, Error> {
    if !manifest.files.iter().any(|file| file.name == NOTES) {
        return Ok(Vec::new());
    }
    let path = dir.join(NOTES);
    fs::read(&path).map_err(io(&path))
}

fn write(bytes: &[u8], dir: &Path, name: &str) -> Result<FileEntry, Error> {
    let path = dir.join(name);
    let mut file = Hashing::new(File::create(&path).map_err(io(&path))?);
    file.write_all(bytes).map_err(io(&path))?;
    file.finish(name).map_err(io(&path))
}

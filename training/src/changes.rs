//! Data that change: what was added to an input, and taken from it since.

use std::path::{Path, PathBuf};

use megagrid_datasets::{Dataset, Names};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::options::lossy;

/// Data that arrived, or that were taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// All edges of a file are added.
    Add(#[serde(serialize_with = "lossy")] PathBuf),
    /// All edges that have the ends of an edge of a file are taken out.
    Remove(#[serde(serialize_with = "lossy")] PathBuf),
}

/// A change, and what tells whether its file is still the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The change.
    #[serde(flatten)]
    pub change: Change,
    /// Bytes of its file; nothing where it is no single file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its format, where it is said to have another than the data have that it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Its columns, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
}

/// Tells whether two paths lead to one file or directory.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|one| real(other) == Some(one))
}

impl Change {
    /// Tells whether another one is the same, by whatever path.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && is_same_file(self.path(), other.path())
    }

    /// Returns its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        let (Self::Add(path) | Self::Remove(path)) = self;
        path
    }
}

impl From<Change> for Changed {
    fn from(change: Change) -> Self {
        Self { bytes: bytes(change.path()), change, format: None, columns: None }
    }
}

impl Changed {
    /// Finds that the file is as large as it was.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let path = self.change.path();
        match (self.bytes, bytes(path)) {
            (Some(before), Some(now)) if before != now => Err(Error::invalid(
                path,
                format!(
                    "has {now} bytes, and had {before} when the model was updated with it; name the data that the model was trained on \
                     with --data"
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// Returns the bytes of a file.
fn bytes(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
}

/// Data that change: more of them come, some are taken back.
pub(crate) trait Changing: Sized {
    /// Returns the number of edges.
    fn num_edges(&self) -> usize;
    /// Adds others.
    fn with(self, more: Self) -> Self;
    /// Takes some out; else says why not.
    fn without(self, removed: &Self) -> Result<Self, String>;
    /// Returns the names of the ends of edges, where they have some that stay.
    fn ends(&self) -> Option<Names> {
        None
    }
}

impl<T: Copy> Changing for Dataset<T> {
    fn num_edges(&self) -> usize {
        self.edges.num_edges()
    }

    fn with(self, more: Self) -> Self {
        self.append(more)
    }

    fn without(self, removed: &Self) -> Result<Self, String> {
        let without = Self::without(self, removed).map_err(|[left, right]| {
            format!("\"{left}\" with \"{right}\" is to be removed, and is not in the data; nothing was removed")
        })?;
        let is_empty = without.edges.num_edges() == 0;
        if is_empty { Err("nothing would be left of the data".to_owned()) } else { Ok(without) }
    }

    fn ends(&self) -> Option<Names> {
        Some(Names::new(self.left_names.clone(), self.right_names.clone()))
    }
}

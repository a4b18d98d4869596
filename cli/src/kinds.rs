//! Kinds of models, and the commands that answer from them.

use std::path::Path;

use megagrid_training::{Error, model};

/// Refuses a model of a kind that a command does not answer from, and says which commands do.
pub fn refused(directory: &Path, kind: &str, expected: &str) -> anyhow::Error {
    let instead = match kind {
        "pagerank" | "hits" => "; its best vertices are listed by megagrid top",
        "lda" => "; its topics, and those of documents, are shown by megagrid topics",
        "blockpg" => "; samples are scored by megagrid predict, and its weights listed by megagrid top",
        "mf" | "als" => "; megagrid recommend, similar and predict answer from it",
        _ => "",
    };
    Error::invalid(&model::manifest_path(directory), format!("a model of kind {kind}, expected {expected}{instead}"))
        .into()
}

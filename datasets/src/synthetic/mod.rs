//! Data sets made to order, with a known answer: graphs by RMAT, lattices, ratings with planted factors, corpora with planted
//! topics, clicks with planted weights.
//!
//! What comes out follows only from the settings, the seed being one of them: every edge, document or sample has a
//! random stream of its own, so the number of threads does not matter.

mod clicks;
mod corpus;
mod lattice;
mod random;
mod ratings;
mod rmat;
mod writer;

pub use clicks::{ClicksSettings, ClicksTruth, SyntheticClicks};
pub use corpus::{CorpusSettings, CorpusTruth, SyntheticCorpus};
pub use lattice::LatticeSettings;
pub use ratings::{RatingsSettings, RatingsTruth, SyntheticRatings};
pub use rmat::{RmatSettings, write_edges};

use crate::{Dictionary, Error};

/// Refuses a setting that is not as expected.
fn check(accepted: bool, name: &'static str, found: f64, expected: &'static str) -> Result<(), Error> {
    if accepted { Ok(()) } else { Err(Error::Setting { name, found, expected }) }
}

/// Refuses a number of vertices of one side that is not from 1 to the largest id.
fn check_count(name: &'static str, count: usize) -> Result<(), Error> {
    check((1..=u32::MAX as usize).contains(&count), name, count as f64, "1 to 4294967295")
}

/// Names vertices by their numbers from 1, as they are written.
fn numbered(num_vertices: usize) -> Dictionary {
    Dictionary::from_integers((1..=num_vertices as u64).collect())
}

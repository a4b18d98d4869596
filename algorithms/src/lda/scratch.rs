//! Scratch of the samplers.

use super::alias::Alias;

/// What the tokens of the word at hand need.
#[derive(Default)]
pub struct WordScratch {
    /// phi of each topic; between words that of a word without tokens. One entry for each number of `topic_bits` bits.
    pub(super) phi: Vec<f32>,
    /// sum_k alpha_k phi_k; `base_mass` is that of a word without tokens.
    pub(super) mass: f32,
    pub(super) base_mass: f32,
    /// n_wk of a word that is packed; zeros between words.
    pub(super) counts: Vec<u32>,
    /// Topics that the word at hand did not have before.
    pub(super) added: Vec<u16>,
    pub(super) width: usize,
}

/// What the tokens of the vertex at hand need.
#[derive(Default)]
pub struct MhScratch {
    /// For each topic the factor of the vertex at hand, tokens and prior, and `n_k + V beta`; between vertices the first is the
    /// prior alone.
    pub(super) topics: Vec<[f32; 2]>,
    /// The priors of documents and words.
    pub(super) priors: [Alias; 2],
    /// Counts of a vertex; zeros between vertices.
    pub(super) counts: Vec<u32>,
}

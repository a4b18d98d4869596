//! The model of implicit feedback: factors, as those of matrix factorization, whose products are preferences.

use std::path::Path;

use crate::Error;
use crate::mf::{Factors, Recommend};
use crate::model::{Manifest, Model, Scored};

/// Factors of users and items, with their names.
#[derive(Clone, Debug)]
pub struct Recommender(pub Factors);

impl Model for Recommender {
    const KIND: &'static str = "als";
    type Question = Recommend;
    type Answer = Vec<Scored>;

    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error> {
        self.0.write(into, manifest)
    }

    fn read(from: &Path, manifest: &Manifest) -> Result<Self, Error> {
        Factors::read(from, manifest).map(Self)
    }

    fn answer(&self, question: &Recommend) -> Result<Vec<Scored>, Error> {
        self.0.answer(question)
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

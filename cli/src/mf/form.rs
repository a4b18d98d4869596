//! The two forms of matrix factorization, which are different programs, behind one trait.

use megagrid_algorithms::mf::batch::{self, MfBatch};
use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_algorithms::mf::{Config, Sums};
use megagrid_stages::{Program, Sequence, Stages, Vertex};

/// One form.
pub trait Form {
    /// A user.
    type User: Vertex<Sync = [f32]>;
    /// An item.
    type Item: Vertex<Sync = [f32]>;
    /// The program.
    type Program: Program<Left = Self::User, Right = Self::Item, Edge = f32, Worker = Sums, Global = ()>;

    /// Returns the stages of an iteration in mini-batches.
    fn sequence(config: Config, batch: u64) -> Sequence<Self::Program, impl Stages<Self::Program>>;
}

/// Rating by rating.
pub struct InPlace;

impl Form for InPlace {
    type User = in_place::User;
    type Item = in_place::Item;
    type Program = Mf;

    fn sequence(config: Config, batch: u64) -> Sequence<Mf, impl Stages<Mf>> {
        in_place::sequence(config, batch)
    }
}

/// Gradients summed over a batch.
pub struct Batch;

impl Form for Batch {
    type User = batch::User;
    type Item = batch::Item;
    type Program = MfBatch;

    fn sequence(config: Config, batch: u64) -> Sequence<MfBatch, impl Stages<MfBatch>> {
        batch::sequence(config, batch)
    }
}

//! Training that finds its settings on the way: by short trials on branches of the run, again when progress stops.

mod branches;
mod lead;
mod run;
mod space;

pub use run::{Tuned, tune};
pub use space::{Time, TuneOptions};

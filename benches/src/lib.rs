//! What the benches share: inputs, plain loops to compare with, interleaved measuring, and what was found of published results.
#![forbid(unsafe_code)]

pub mod classes;
pub mod findings;
pub mod inputs;
pub mod loops;
pub mod measure;
pub mod networks;
pub mod plot;

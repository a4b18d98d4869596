//! What the benches share: inputs, plain loops to compare with, and interleaved measuring.
#![forbid(unsafe_code)]

pub mod inputs;
pub mod loops;
pub mod measure;
pub mod plot;

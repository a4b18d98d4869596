//! The crate's tests.

mod kernels;

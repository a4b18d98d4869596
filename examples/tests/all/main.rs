//! The examples' tests.

mod click_factors;
mod label_propagation;
mod tutorial;

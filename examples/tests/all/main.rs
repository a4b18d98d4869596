//! The examples' tests.

mod click_factors;
mod communities;
mod tutorial;

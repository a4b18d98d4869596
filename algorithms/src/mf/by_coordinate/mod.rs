//! Both forms with steps that follow from what is remembered of each coordinate: momentum and its like
//! ([`Rule`](super::Rule)).

pub mod batch;
pub mod in_place;

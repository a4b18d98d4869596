//! The algorithms that can be trained: the options of each on the command line.

pub mod blockpg;
pub mod hits;
pub mod lda;
pub mod mf;
pub mod pagerank;

/// Lists what `$entry` makes of every algorithm.
macro_rules! each {
    ($entry:ident) => {
        vec![
            $entry::<$crate::algorithms::pagerank::Options>(),
            $entry::<$crate::algorithms::hits::Options>(),
            $entry::<$crate::algorithms::mf::Options>(),
            $entry::<$crate::algorithms::lda::Options>(),
            $entry::<$crate::algorithms::blockpg::Options>(),
        ]
    };
}
pub(crate) use each;

//! The algorithms that can be trained: what the command line says of each, beside the options that the library declares.

mod als;
mod blockpg;
mod hits;
mod lda;
mod mf;
mod pagerank;

use megagrid_training::words::WordOptions;

use crate::failure::usage;

/// Refuses options of words beside --cache, whose file other runs read as well.
fn refuse_words(words: &WordOptions) -> anyhow::Result<()> {
    if *words == WordOptions::default() {
        return Ok(());
    }
    Err(usage("--cache keeps words as they are in the text; leave out --lower-case, --split and --bigrams"))
}

/// Lists what `$entry` makes of every algorithm.
macro_rules! each {
    ($entry:ident) => {
        vec![
            $entry::<megagrid_training::pagerank::Ranking>(),
            $entry::<megagrid_training::mf::Factorization>(),
            $entry::<megagrid_training::als::ImplicitFactorization>(),
            $entry::<megagrid_training::lda::TopicModels>(),
            $entry::<megagrid_training::blockpg::Regression>(),
            $entry::<megagrid_training::hits::HubsAndAuthorities>(),
        ]
    };
}
pub(crate) use each;

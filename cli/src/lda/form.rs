//! The samplers of LDA, which are different programs, behind one trait.

use megagrid_algorithms::lda::counts::{Packed, Table, TopicCounts};
use megagrid_algorithms::lda::mh::{CountTopics, Token};
use megagrid_algorithms::lda::{Config, Lda, Sampler, Tokens, edge_len, fill_edge};
use megagrid_datasets::Edges;
use megagrid_engine::plan::Plan;
use megagrid_engine::{Engine, Settings, Source};
use megagrid_stages::{Item, Left, Right, Sequence, Stages};

/// One sampler.
pub trait Form {
    /// How documents keep their counts.
    type Documents: TopicCounts + ?Sized;
    /// How words keep theirs.
    type Words: TopicCounts + ?Sized;
    /// What it keeps for each token.
    type Token: Item;
    /// Its name.
    const SAMPLER: Sampler;
    /// How often an iteration visits each edge.
    const VISITS: u64 = 1;

    /// Returns the stages of an iteration.
    fn sequence(config: &Config, tokens: &Tokens) -> Sequence<ProgramOf<Self>, impl Stages<ProgramOf<Self>>>;

    /// Brings the counts of documents and words up to date, to be looked at.
    fn count(_: &mut Engine<ProgramOf<Self>>) {}
}

/// The program of a form.
pub type ProgramOf<F> = Lda<<F as Form>::Documents, <F as Form>::Words, <F as Form>::Token>;

/// Over all topics.
pub struct Dense;

impl Form for Dense {
    type Documents = [f32];
    type Words = [f32];
    type Token = u16;
    const SAMPLER: Sampler = Sampler::Dense;

    fn sequence(config: &Config, tokens: &Tokens) -> Sequence<ProgramOf<Self>, impl Stages<ProgramOf<Self>>> {
        config.dense(tokens)
    }
}

/// Over the topics of a document.
pub struct Sparse;

impl Form for Sparse {
    type Documents = Packed;
    type Words = Table;
    type Token = u16;
    const SAMPLER: Sampler = Sampler::Sparse;

    fn sequence(config: &Config, tokens: &Tokens) -> Sequence<ProgramOf<Self>, impl Stages<ProgramOf<Self>>> {
        config.sparse(tokens)
    }
}

/// By one proposal of a document and one of a word.
pub struct Mh;

impl Form for Mh {
    type Documents = Table;
    type Words = Table;
    type Token = Token;
    const SAMPLER: Sampler = Sampler::Mh;
    const VISITS: u64 = 2;

    fn sequence(config: &Config, _: &Tokens) -> Sequence<ProgramOf<Self>, impl Stages<ProgramOf<Self>>> {
        config.mh()
    }

    fn count(engine: &mut Engine<ProgramOf<Self>>) {
        engine.visit(Left, CountTopics);
        engine.visit(Right, CountTopics);
    }
}

/// The counts that each vertex needs room for, left and right; `None` where it has one of each topic.
pub struct Capacities(Option<[Vec<u32>; 2]>);

impl Capacities {
    /// Sizes the counts of a form.
    pub fn of<F: Form>(config: &Config, tokens: &Tokens) -> Self {
        Self((F::SAMPLER != Sampler::Dense).then(|| tokens.capacities(config.num_topics)))
    }

    /// Describes documents as a form's input.
    pub fn source<'i, F: Form>(&'i self, edges: &'i Edges<u32>) -> Source<'i, u32, ProgramOf<F>> {
        let of = |side: usize| self.0.as_ref().map(|both| both[side].as_slice());
        Source::slices(edges, edge_len, fill_edge).capacities(of(0), of(1))
    }
}

/// Returns how a run is set up: rows are as long as there are topics.
pub fn settings(config: &Config, settings: &Settings) -> Settings {
    Settings { dims: config.num_topics, ..settings.clone() }
}

/// Makes the plan of a sampler on documents that are grouped by words.
pub fn plan(
    sampler: Sampler,
    config: &Config,
    tokens: &Tokens,
    edges: &Edges<u32>,
    settings: &Settings,
) -> anyhow::Result<Plan> {
    match sampler {
        Sampler::Dense => plan_of::<Dense>(config, tokens, edges, settings),
        Sampler::Sparse => plan_of::<Sparse>(config, tokens, edges, settings),
        Sampler::Mh => plan_of::<Mh>(config, tokens, edges, settings),
    }
}

fn plan_of<F: Form>(config: &Config, tokens: &Tokens, edges: &Edges<u32>, of: &Settings) -> anyhow::Result<Plan> {
    let capacities = Capacities::of::<F>(config, tokens);
    let sequence = F::sequence(config, tokens);
    Ok(megagrid_engine::plan(capacities.source::<F>(edges), &sequence, &settings(config, of))?)
}

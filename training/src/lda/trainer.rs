//! Training with any sampler.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use megagrid_algorithms::lda::mh::CountTopics;
use megagrid_algorithms::lda::{
    Config, Dense, FoldIn, Lda, Mh, Model, Occurrences, Prior, Sampler, Sampling, Sparse, Tokens, TopicCounts,
    Vertices, Word, edge_len, fill_edge, log_likelihood, merge_topics,
};
use megagrid_datasets::Edges;
use megagrid_engine::{Engine, IterationReport, Settings, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{First, Left, Right, Sequence, Stages};

use super::data::Documents;
use super::model::TopicModel;
use super::options::{self, Alpha, TopicOptions};
use super::start::Start;
use crate::algorithm::{Algorithm, Knob, MakeForm};
use crate::error::reading;
use crate::form::form;
use crate::leg::Leg;
use crate::measured::Measured;
use crate::record::Metrics;
use crate::trainer::Trainer;
use crate::{Error, UpdatedOn};

/// A sampler, of whose counts a model can be made.
pub trait Counted: Sampling {
    /// Brings the counts of documents and words up to date, to be looked at.
    fn count(_: &mut Engine<Lda<Self>>) {}
}

impl Counted for Dense {}
impl Counted for Sparse {}
impl Counted for Mh {
    fn count(engine: &mut Engine<Lda<Self>>) {
        engine.visit(Left, CountTopics);
        engine.visit(Right, CountTopics);
    }
}

/// Looks at the counts of documents and words of an engine.
macro_rules! look {
    ($engine:expr, |$documents:pat_param, $words:ident| $act:expr) => {{
        let (left, right) = ($engine.on(Left), $engine.on(Right));
        let $documents = &Vertices { len: left.len(), counts: &|id| left.sync(id) };
        let $words = &Vertices { len: right.len(), counts: &|id| right.sync(id) };
        $act
    }};
}

/// Topic models.
#[derive(Clone, Copy, Debug)]
pub struct TopicModels;

impl Algorithm for TopicModels {
    const NAME: &'static str = "lda";
    const ADVICE: &'static str = "try a larger --alpha or --beta";
    const MAXIMIZES: bool = true;
    const TESTED_BY: Option<&'static str> = Some("test_perplexity");
    const TEST_EVERY: u64 = 10;
    const KNOBS: &'static [Knob] = &[
        Knob { name: "sampler", is_layout: true, is_timed: true },
        Knob { name: "work-per-clock", is_layout: true, is_timed: true },
        Knob { name: "workers", is_layout: true, is_timed: true },
    ];
    type Data = Documents;
    type Options = TopicOptions;
    type Model = TopicModel;

    #[inline(never)]
    fn form(documents: &Documents, options: &TopicOptions) -> MakeForm<Self> {
        match (options.sampler(), &documents.start) {
            // It counts from the topics of edges, which earlier tokens are not among.
            (Sampler::Mh, Some(_)) => form::<Drawer<Sparse>>,
            // Earlier tokens may be more than a dense row counts.
            (Sampler::Dense, Some(start))
                if start.with_earlier(&documents.tokens).check(Sampler::Dense, options.topics).is_err() =>
            {
                form::<Drawer<Sparse>>
            }
            (Sampler::Dense, _) => form::<Drawer<Dense>>,
            (Sampler::Sparse, _) => form::<Drawer<Sparse>>,
            (Sampler::Mh, None) => form::<Drawer<Mh>>,
        }
    }

    fn start_from(documents: &mut Documents, options: &TopicOptions, model: TopicModel) -> Result<(), Error> {
        if documents.test.is_some() {
            let message = "a topic model that goes on is not tested meanwhile, when it has the words of new documents only; leave --test and --holdout out";
            return Err(Error::option(message));
        }
        if options.extra_topics > 0 || options.annealing.unwrap_or(0) > 0 {
            let message = "a topic model that goes on has its topics already; leave --extra-topics and --annealing out";
            return Err(Error::option(message));
        }
        if model.is_chosen {
            *documents = documents.of_words(&*model.names.get(Side::Right)?)?;
        }
        documents.start = Some(Start::new(model, &documents.names, documents.are_numbered, options.topics)?);
        Ok(())
    }

    fn updated_on(_: &TopicModel) -> Result<UpdatedOn, Error> {
        Ok(UpdatedOn::New)
    }

    fn continued(options: TopicOptions, _: &TopicModel, _: UpdatedOn) -> TopicOptions {
        options.continued()
    }

    fn tuned(_: &Documents, _: &TopicOptions, _: &Settings) -> Vec<String> {
        ["sampler=dense,sparse", "work-per-clock=0.0625,0.25,1"].map(str::to_owned).to_vec()
    }

    fn check_tuned(options: &TopicOptions) -> Result<(), Error> {
        if options.extra_topics == 0 {
            return Ok(());
        }
        Err(Error::option(
            "--extra-topics is not for tune; find the settings first, and train with the command that it prints",
        ))
    }
}

/// Trains topics.
pub struct Drawer<S> {
    config: Config,
    /// Topics to be left.
    topics: usize,
    tokens: Arc<Tokens>,
    /// The counts that each vertex needs room for, left and right; `None` where it has one of each topic.
    capacities: Option<[Vec<u32>; 2]>,
    top_words: usize,
    /// For the coherence of topics, once the edges are gone.
    occurrences: Option<Occurrences>,
    /// How documents to test on are folded in.
    fold_in: FoldIn,
    sampler: PhantomData<fn() -> S>,
}

impl<S: Counted> Trainer for Drawer<S> {
    type Algorithm = TopicModels;
    type Program = Lda<S>;
    type Edge = u32;

    fn new(documents: &Documents, options: &TopicOptions, settings: &Settings) -> Result<Self, Error> {
        let (mut config, tokens) = (options.config(), Arc::clone(&documents.tokens));
        let counted = match &documents.start {
            Some(start) => {
                // Earlier tokens say where new ones belong, and how mixed documents are.
                let begun = Config { prior: Prior::Fixed, annealing: 0, uniform_share: 0.0, ..config };
                config = Config { num_topics: options.topics, ..begun };
                &start.with_earlier(&tokens)
            }
            None => &*tokens,
        };
        let (topics, total) = (config.num_topics, counted.total);
        if documents.start.is_none() && topics as u64 > total {
            let message = format!("topics is {topics}, more than the {total} tokens; expected fewer");
            return Err(Error::option(message));
        }
        let processes = settings.peers.as_ref().map_or(1, |peers| peers.processes());
        if topics > options.topics && processes > 1 {
            return Err(Error::option("extra-topics is for one process"));
        }
        counted.check(S::SAMPLER, topics)?;
        let capacities = (S::SAMPLER != Sampler::Dense).then(|| counted.capacities(topics));
        let (topics, top_words) = (options.topics, options.top_words);
        let fold_in = FoldIn { level: settings.level, ..FoldIn::default() };
        Ok(Self { config, topics, tokens, capacities, top_words, occurrences: None, fold_in, sampler: PhantomData })
    }

    fn resolved(&self, _: &Documents, options: &TopicOptions) -> TopicOptions {
        let alpha = Alpha { weight: options.first_alpha(), shared: false };
        let sampler = match S::SAMPLER {
            Sampler::Dense => options::Sampler::Dense,
            Sampler::Sparse => options::Sampler::Sparse,
            Sampler::Mh => options::Sampler::Mh,
        };
        TopicOptions { alpha: Some(alpha), annealing: Some(self.config.annealing), sampler, ..options.clone() }
    }

    fn dims(&self) -> usize {
        self.config.num_topics
    }

    fn passes_per_clock(&self) -> u64 {
        self.config.passes_per_clock
    }

    fn source<'d>(&'d self, documents: &'d Documents) -> Source<'d, u32, Lda<S>> {
        let of = |side: usize| self.capacities.as_ref().map(|both| both[side].as_slice());
        Source::slices(&documents.edges, edge_len, fill_edge).capacities(of(0), of(1))
    }

    fn sequence(&self) -> Sequence<Lda<S>, impl Stages<Lda<S>>> {
        S::sequence(&self.config, &self.tokens)
    }

    fn init(&self, documents: &Documents, engine: &mut Engine<Lda<S>>) -> Result<(), Error> {
        let Some(start) = &documents.start else {
            engine.set_global(self.config.topics(self.tokens.of_words.len()));
            return Ok(());
        };
        engine.set_global(start.topics(self.config.beta));
        engine.init(Right, |word, first: First<'_, Word<S::Words>>| {
            start.row(word).into_iter().for_each(|row| first.sync.set(self.config.num_topics, row));
        });
        Ok(())
    }

    fn running(&self, _: &Documents, engine: &Engine<Lda<S>>) -> Metrics {
        let per_token = engine.global().draws.per_token(&self.tokens.of_documents);
        per_token.map(|value| ("running_per_token".into(), value)).into_iter().collect()
    }

    fn measure(&mut self, documents: &Documents, engine: &mut Engine<Lda<S>>) -> Result<Option<Measured>, Error> {
        self.collect(engine)?;
        if engine.plan().processes.this > 0 {
            return Ok(None);
        }
        let threads = rayon::current_num_threads();
        let earlier = documents.start.as_ref().map_or(0.0, |start| start.log_likelihood(self.config.beta));
        let value = look!(engine, |documents, words| log_likelihood(&engine.global(), documents, words, threads));
        let value = value - earlier;
        let per_token = value / self.tokens.total as f64;
        let metrics = Metrics::from([("log_likelihood".into(), value), ("per_token".into(), per_token)]);
        // While it is annealed another objective is sampled from.
        let global = engine.global();
        let converged = (global.smoothing > global.beta).then_some(false);
        Ok(Some(Measured { objective: value, metrics, converged }))
    }

    fn test(&mut self, documents: &Documents, engine: &mut Engine<Lda<S>>) -> Result<Metrics, Error> {
        let Some(test) = &documents.test else { return Ok(Metrics::new()) };
        self.collect(engine)?;
        if engine.plan().processes.this > 0 {
            return Ok(Metrics::new());
        }
        let model = look!(engine, |_, words| Model::of_words(&engine.global(), words));
        let perplexity = self.fold_in.perplexity(&model, &test.words, rayon::current_num_threads());
        Ok(Metrics::from([("test_perplexity".into(), perplexity)]))
    }

    /// All words and topics equally likely: before the first iteration no token has a topic.
    fn first_loss(&self) -> Option<f64> {
        let words = self.tokens.of_words.len() as f64;
        Some(self.tokens.total as f64 * (words.ln() + (self.config.num_topics as f64).ln()))
    }

    fn leg(&self, options: &TopicOptions, engine: &Engine<Lda<S>>) -> Leg {
        let is_last = engine.global().num_kept() <= self.topics;
        let until = if is_last { options.iterations } else { options.iterations / 2 };
        Leg { since: 0, until, is_last, tested_by: <TopicModels as Algorithm>::TESTED_BY.filter(|_| is_last) }
    }

    /// Gives up all topics but those that are wanted.
    fn next(&mut self, _: &Documents, engine: &mut Engine<Lda<S>>, _: Option<TopicModel>) -> Result<(), Error> {
        let left = look!(engine, |documents, words| merge_topics(&engine.global(), documents, words, self.topics));
        engine.resume(engine.iterations(), left);
        Ok(())
    }

    /// Counts tokens in the place of edges, each of which has all its tokens drawn.
    fn corrected<'r>(&self, report: &'r IterationReport) -> Cow<'r, IterationReport> {
        let Tokens { total, edges, .. } = *self.tokens;
        let updates = u128::from(report.updates) * u128::from(total) / u128::from(edges.max(1) * S::VISITS);
        Cow::Owned(IterationReport { updates: updates as u64, ..report.clone() })
    }

    fn keep(&mut self, documents: &Documents) -> Result<(), Error> {
        if self.top_words > 0 && documents.start.is_none() {
            self.occurrences = Some(occurrences(&documents.edges)?);
        }
        Ok(())
    }

    fn collect(&self, engine: &mut Engine<Lda<S>>) -> Result<(), Error> {
        S::count(engine);
        Ok(engine.collect()?)
    }

    fn model(&self, documents: &Documents, engine: &Engine<Lda<S>>) -> Result<TopicModel, Error> {
        let trained = TopicModel::new(model(engine), Arc::clone(&documents.names), self.top_words);
        Ok(match &documents.start {
            Some(start) => start.with(trained),
            None => trained,
        })
    }

    fn finish(&self, documents: &Documents, model: &mut TopicModel) -> Result<(), Error> {
        // Words occur together in earlier documents too, which are not there.
        if self.top_words == 0 || documents.start.is_some() {
            return Ok(());
        }
        match &self.occurrences {
            Some(occurrences) => model.find_coherences(occurrences),
            // The edges were not given up.
            None => model.find_coherences(&occurrences(&documents.edges)?),
        }
        Ok(())
    }
}

fn model<S: Counted>(engine: &Engine<Lda<S>>) -> Model {
    look!(engine, |documents, words| Model::new(&engine.global(), documents, words))
}

/// Takes down which documents each word is in, from edges that are grouped by words.
fn occurrences(edges: &Edges<u32>) -> Result<Occurrences, Error> {
    let mut occurrences = Occurrences::new(edges.num_vertices(Side::Left));
    for word in 0..edges.num_vertices(Side::Right) {
        let push = &mut |documents: &[u32], _: &[u32]| occurrences.push(documents);
        edges.visit_rows(Side::Right, word..word + 1, push).map_err(reading)?;
    }
    occurrences.shrink();
    Ok(occurrences)
}

//! The corpus, and what all systems need of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use megagrid_algorithms::lda::dense::{Dense, Sample};
use megagrid_algorithms::lda::{Config, FitPrior, Lda, Tokens, Topics, UNASSIGNED, Vertices, Worker, log_likelihood};
use megagrid_partition::{EdgeList, SplitMix};
use megagrid_stages::{Context, Exchange, GlobalSync, Update};

use crate::job::Measured;
use crate::processes::Processes;
use crate::{Error, Run, workers};

/// Is told the tokens of each topic, and those of each word by topic, after each iteration.
pub type Tell = Arc<dyn Fn(&[i64], &[&[f32]]) + Send + Sync>;

/// The corpus.
#[derive(Clone, Copy)]
pub struct Job<'j> {
    /// How often words occur in documents, in the order in which workers visit them.
    pub corpus: &'j EdgeList<u32>,
    /// Parameters. The document prior is fixed.
    pub config: Config,
    /// What the first process tells its counts.
    pub tell: Option<&'j Tell>,
}

/// A corpus dealt to workers: each has a run of documents with about as many edges, and all edges of these. Of several processes each
/// keeps what its own workers have.
pub(super) struct Corpus {
    pub(super) config: Config,
    pub(super) seed: u64,
    pub(super) tokens: Tokens,
    /// Edges, those of the first worker first.
    pub(super) edges: EdgeList<u32>,
    /// Where the tokens of an edge begin; one more than edges.
    pub(super) offsets: Vec<usize>,
    pub(super) documents: Vec<Range<usize>>,
    /// Edges of each worker.
    pub(super) parts: Vec<Range<usize>>,
    /// The number of the first worker, among those of all processes.
    first_worker: usize,
    tell: Option<Tell>,
    pub(super) processes: Processes,
}

impl Corpus {
    pub(super) fn new(job: &Job<'_>, run: &Run) -> Self {
        let list = job.corpus;
        let (mut documents, mut parts) = (Vec::new(), Vec::new());
        let mut edges = EdgeList { left: Vec::new(), right: Vec::new(), data: Vec::new(), ..*list };
        let crew = run.crew();
        for (_, (run, own)) in crew.pick(workers::deal(list, crew.all)) {
            documents.push(run);
            parts.push(edges.left.len()..edges.left.len() + own.left.len());
            edges.left.extend(own.left);
            edges.right.extend(own.right);
            edges.data.extend(own.data);
        }
        let mut offsets = vec![0];
        offsets.extend(edges.data.iter().scan(0, |end, &count| {
            *end += count as usize;
            Some(*end)
        }));
        let mut tokens = Tokens {
            of_documents: vec![0; list.num_left],
            of_words: vec![0; list.num_right],
            total: 0,
            edges: list.left.len() as u64,
        };
        for ((&document, &word), &count) in list.left.iter().zip(&list.right).zip(&list.data) {
            tokens.of_documents[document as usize] += u64::from(count);
            tokens.of_words[word as usize] += u64::from(count);
            tokens.total += u64::from(count);
        }
        let tell = job.tell.cloned();
        let (config, seed, first_worker, processes) = (job.config, run.seed, crew.own.start, run.processes.clone());
        Self { config, seed, tokens, edges, offsets, documents, parts, first_worker, tell, processes }
    }

    pub(super) fn num_words(&self) -> usize {
        self.edges.num_right
    }

    pub(super) fn sample(&self) -> Sample {
        Sample::new(&self.config, &self.tokens)
    }

    pub(super) fn topics(&self) -> Topics {
        self.config.topics(self.num_words())
    }

    /// Returns the topics of tokens: none.
    pub(super) fn unassigned(&self) -> Vec<u16> {
        vec![UNASSIGNED; self.offsets[self.offsets.len() - 1]]
    }

    /// Returns the seed of a worker of this process in a clock, counted from 0, of an iteration.
    pub(super) fn seed(&self, worker: usize, clock: u64, iteration: u64) -> u64 {
        SplitMix::seed_of_clock(self.seed, self.first_worker + worker, clock, iteration)
    }

    /// Measures the joint log likelihood of counts of documents and words. Each process counts its documents, and the first one words
    /// and topics.
    pub(super) fn measure<'r>(
        &self,
        topics: &Topics,
        document: impl Fn(usize) -> &'r [f32] + Sync,
        word: impl Fn(usize) -> &'r [f32] + Sync,
    ) -> Result<Measured, Error> {
        let is_first = self.processes.number() == 0;
        self.tell_counts(topics, &word);
        let of_words = Vertices { len: if is_first { self.num_words() } else { 0 }, counts: &|id| word(id) };
        let mut topics = topics.clone();
        topics.totals.iter_mut().filter(|_| !is_first).for_each(|total| *total = 0);
        let [begin, end] = [self.documents[0].start, self.documents[self.documents.len() - 1].end];
        let of_documents = Vertices { len: end - begin, counts: &|id| document(begin + id) };
        let mine = log_likelihood(&topics, &of_documents, &of_words, self.parts.len());
        let value = self.processes.sum(mine)?;
        Ok((value, BTreeMap::from([("log_likelihood", value), ("per_token", value / self.tokens.total as f64)])))
    }

    fn tell_counts<'r>(&self, topics: &Topics, word: &impl Fn(usize) -> &'r [f32]) {
        if let Some(tell) = self.tell.as_ref().filter(|_| self.processes.number() == 0) {
            tell(&topics.totals, &(0..self.num_words()).map(word).collect::<Vec<_>>());
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.edges.left.len() * (12 + 8) + 2 * self.offsets[self.offsets.len() - 1]) as u64
    }
}

/// Draws the topics of an edge's tokens anew.
#[inline(always)]
pub(super) fn draw(
    sample: &Sample,
    document: &mut [f32],
    word: &mut [f32],
    topics: &mut [u16],
    cx: &mut Context<'_, Lda<Dense>>,
) {
    sample.exchange(Update { sync: document, mirror: &mut () }, Update { sync: word, mirror: &mut () }, topics, cx);
}

/// Ends an iteration: anneals.
pub(super) fn end_iteration(config: &Config, topics: &mut Topics) {
    GlobalSync::<Lda<Dense>>::apply(&FitPrior(*config), Worker::default(), topics);
}

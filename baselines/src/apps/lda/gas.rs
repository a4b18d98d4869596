//! LDA on [`Gas`] as PowerGraph's toolkit has it: vertices scatter, which draws topics along edges, then gather their counts from the edges.

use std::borrow::Cow;

use megagrid_algorithms::lda::dense::{Dense, Sample};
use megagrid_algorithms::lda::{Lda, MergeTotals, Topics, Worker};
use megagrid_stages::simd::{Kernel, Level};
use megagrid_stages::{Combine, Context, GlobalSync, row_width};

use super::corpus::{Corpus, draw, end_iteration};
use crate::gas::{Active, Gas, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::rows::Rows;
use crate::workers;
use crate::{Error, Finish, Run};

struct Count<'c> {
    topics: &'c [u16],
    offsets: &'c [usize],
}

impl VertexProgram for Count<'_> {
    type Item = f32;
    type Edge = u32;
    type Sum = f32;
    type Total = ();

    #[inline(always)]
    fn gather(&self, _: &[f32], _: &[f32], edge: u32, sum: &mut [f32]) {
        let edge = edge as usize;
        for &topic in &self.topics[self.offsets[edge]..self.offsets[edge + 1]] {
            sum[usize::from(topic)] += 1.0;
        }
    }

    #[inline(always)]
    fn apply(&self, _: usize, vertex: &mut [f32], sum: &[f32], (): &mut ()) {
        vertex.copy_from_slice(sum);
    }
}

struct Scatter<'s> {
    corpus: &'s Corpus,
    sample: &'s Sample,
    worker: usize,
    /// The first replica among its documents.
    first_document: usize,
    tokens: &'s mut [u16],
    documents: &'s mut [f32],
    words: &'s mut Rows<f32>,
    cx: Context<'s, Lda<Dense>>,
}

impl Kernel for Scatter<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (part, width) = (self.corpus.parts[self.worker].clone(), self.words.width());
        let first_token = self.corpus.offsets[part.start];
        for edge in part {
            let document = (self.corpus.edges.left[edge] as usize - self.first_document) * width;
            let word = self.words.row_mut(self.corpus.edges.right[edge] as usize);
            let tokens = self.corpus.offsets[edge] - first_token..self.corpus.offsets[edge + 1] - first_token;
            let document = &mut self.documents[document..document + width];
            draw(self.sample, document, word, &mut self.tokens[tokens], &mut self.cx);
        }
    }
}

pub struct Trainer {
    corpus: Corpus,
    sample: Sample,
    gas: Gas<f32, u32, f32>,
    tokens: Vec<u16>,
    /// Each worker's copies of words.
    copies: Vec<Rows<f32>>,
    contexts: Vec<Worker<Dense>>,
    topics: Topics,
    level: Level,
}

impl Trainer {
    /// Takes a corpus, of which each process has documents with all their edges.
    pub fn new(mut corpus: Corpus, run: &Run) -> Result<Self, Error> {
        let (width, workers) = (row_width(corpus.config.num_topics), run.workers);
        let gas = Gas::new(&corpus.edges, |edge| edge as u32, [width, width], run)?;
        let copies = Rows::zeros(gas.cut().len() - gas.cut().num_left(), width);
        if let Cow::Owned(local) = gas.cut().local(&corpus.edges) {
            (corpus.edges.left, corpus.edges.right) = (local.left, local.right);
        }
        Ok(Self {
            sample: corpus.sample(),
            gas,
            tokens: corpus.unassigned(),
            copies: vec![copies; workers],
            contexts: (0..workers).map(|_| Worker::default()).collect(),
            topics: corpus.topics(),
            level: run.level,
            corpus,
        })
    }
}

impl job::Trainer for Trainer {
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        let Self { corpus, sample, gas, tokens, copies, contexts, topics, level } = self;
        let parts: Vec<_> =
            corpus.parts.iter().map(|part| corpus.offsets[part.start]..corpus.offsets[part.end]).collect();
        let tokens_of = workers::cut(tokens, 1, &parts).into_iter().zip(contexts.iter_mut()).enumerate();
        let first = |worker: usize| gas.cut().span(corpus.documents[worker].clone()).start;
        let workers = tokens_of.map(|(worker, (tokens, context))| (worker, first(worker), tokens, context)).collect();
        let global = &*topics;
        let (_, scattered) =
            gas.scatter(&corpus.documents, workers, copies, |(worker, first, tokens, context), documents, words| {
                let seed = corpus.seed(worker, 0, iteration);
                let cx = Context { worker: context, global, iteration, seed };
                level.run(Scatter { corpus, sample, worker, first_document: first, tokens, documents, words, cx });
            })?;
        let mut total = Worker::default();
        contexts.iter_mut().for_each(|context| total.combine(context));
        let mut cost = Cost::of(scattered);
        GlobalSync::<Lda<Dense>>::apply(&MergeTotals, gas.cut().combine(total, &mut cost)?, topics);
        end_iteration(&corpus.config, topics);
        let count = Count { topics: tokens, offsets: &corpus.offsets };
        let (_, gathered) = gas.superstep(&count, Active::All)?;
        Ok(Cost::sum(&[cost, gathered]))
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let (rows, num_documents) = (self.gas.all_rows()?, self.corpus.edges.num_left);
        self.corpus.measure(&self.topics, |document| rows.row(document), |word| rows.row(num_documents + word))
    }

    fn finish(&self) -> Finish {
        let copies: u64 = self.copies.iter().map(Rows::bytes).sum();
        self.gas.finish(copies + self.corpus.bytes())
    }
}

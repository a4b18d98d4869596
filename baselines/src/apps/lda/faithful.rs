//! LDA as PowerGraph's toolkit has it: counts are gathered as vectors from the edges, and topics drawn while scattering.

use std::sync::{Mutex, PoisonError};

use megagrid_algorithms::lda::dense::{Dense, Sample};
use megagrid_algorithms::lda::{Lda, MergeTotals, Topics, UNASSIGNED, Worker};
use megagrid_partition::parallel::lock;
use megagrid_stages::{Combine, Context, GlobalSync, row_width};

use super::corpus::{Corpus, draw, end_iteration};
use crate::gas::faithful::{EdgeView, Faithful, Signals, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::rows::Rows;
use crate::{Error, Finish, Run};

struct Draw {
    sample: Sample,
    /// Topics of each edge's tokens.
    tokens: Vec<Mutex<Vec<u16>>>,
    width: usize,
    contexts: Vec<Mutex<Worker<Dense>>>,
    topics: Topics,
    seeds: Vec<u64>,
}

impl VertexProgram for Draw {
    type Vertex = Mutex<Vec<f32>>;
    type Edge = u32;
    type Gather = Vec<f32>;
    type Message = ();
    const SWEEPS: bool = true;

    fn gather(&self, edge: EdgeView<'_, Self>, _: &Signals<'_, Self>) -> Vec<f32> {
        let mut counts = vec![0.0; self.width];
        let tokens = lock(&self.tokens[edge.edge as usize]);
        tokens.iter().filter(|topic| **topic != UNASSIGNED).for_each(|&topic| counts[usize::from(topic)] += 1.0);
        counts
    }

    fn add(&self, sum: &mut Vec<f32>, part: Vec<f32>) {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }

    fn apply(&self, _: usize, vertex: &mut Mutex<Vec<f32>>, sum: Option<Vec<f32>>, (): ()) {
        if let Some(counts) = sum {
            *vertex.get_mut().unwrap_or_else(PoisonError::into_inner) = counts;
        }
    }

    fn scatter(&self, edge: EdgeView<'_, Self>, signals: &Signals<'_, Self>) {
        let (mut document, mut word) = (lock(edge.vertex), lock(edge.other));
        let (mut tokens, mut worker) = (lock(&self.tokens[edge.edge as usize]), lock(&self.contexts[signals.worker]));
        let seed = self.seeds[signals.worker];
        let mut cx: Context<'_, Lda<Dense>> = Context { worker: &mut worker, global: &self.topics, iteration: 0, seed };
        draw(&self.sample, &mut document, &mut word, &mut tokens, &mut cx);
        signals.signal(edge.other_id, ());
    }
}

pub struct Trainer {
    corpus: Corpus,
    gas: Faithful<Draw>,
    program: Draw,
}

impl Trainer {
    /// Takes a corpus, of which each process has documents with all their edges.
    pub fn new(corpus: Corpus, run: &Run) -> Result<Self, Error> {
        let (width, workers) = (row_width(corpus.config.num_topics), run.workers);
        let vertices = (0..corpus.edges.num_left + corpus.num_words()).map(|_| Mutex::new(vec![0.0; width])).collect();
        let gas = Faithful::new(&corpus.edges, |edge| edge as u32, vertices, run)?;
        let tokens = corpus.edges.data.iter().map(|&count| Mutex::new(vec![UNASSIGNED; count as usize])).collect();
        let program = Draw {
            sample: corpus.sample(),
            tokens,
            width,
            contexts: (0..workers).map(|_| Mutex::default()).collect(),
            topics: corpus.topics(),
            seeds: vec![0; workers],
        };
        Ok(Self { corpus, gas, program })
    }
}

impl job::Trainer for Trainer {
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        let Self { corpus, gas, program } = self;
        program.seeds = (0..program.seeds.len()).map(|worker| corpus.seed(worker, 0, iteration)).collect();
        (0..gas.cut().num_vertices()).for_each(|id| gas.signal(id, ()));
        let mut cost = gas.superstep(program)?;
        let mut total = Worker::default();
        for context in &mut program.contexts {
            total.combine(context.get_mut().unwrap_or_else(PoisonError::into_inner));
        }
        let total = gas.cut().combine(total, &mut cost)?;
        GlobalSync::<Lda<Dense>>::apply(&MergeTotals, total, &mut program.topics);
        end_iteration(&corpus.config, &mut program.topics);
        Ok(cost)
    }

    /// Counts tokens: replicas know only what they have drawn since the superstep.
    fn measure(&mut self) -> Result<Measured, Error> {
        let edges = &self.corpus.edges;
        let mut rows = Rows::<f32>::zeros(edges.num_left + edges.num_right, self.program.width);
        for ((&document, &word), tokens) in edges.left.iter().zip(&edges.right).zip(&self.program.tokens) {
            for &topic in &*lock(tokens) {
                rows.row_mut(document as usize)[usize::from(topic)] += 1.0;
                rows.row_mut(edges.num_left + word as usize)[usize::from(topic)] += 1.0;
            }
        }
        let words = edges.num_left * self.program.width..;
        let counts = self.gas.cut().add(rows.items()[words.clone()].to_vec(), &mut Cost::default())?;
        rows.items_mut()[words].copy_from_slice(&counts);
        let word = |word| rows.row(edges.num_left + word);
        self.corpus.measure(&self.program.topics, |document| rows.row(document), word)
    }

    fn finish(&self) -> Finish {
        self.gas.finish(4 * self.program.width, self.corpus.bytes())
    }
}

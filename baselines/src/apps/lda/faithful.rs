//! LDA as PowerGraph's toolkit has it: counts are gathered as vectors from the edges, and topics drawn while scattering.

use std::sync::{Mutex, PoisonError};

use megagrid_algorithms::lda::dense::{Dense, Sample};
use megagrid_algorithms::lda::{Lda, MergeTotals, Topics, UNASSIGNED, Worker};
use megagrid_stages::{Combine, Context, GlobalSync, row_width};

use super::corpus::{Corpus, draw, end_iteration};
use crate::crew::lock;
use crate::gas::faithful::{EdgeView, Faithful, Signals, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::rows::Rows;
use crate::{Error, Finish};

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
    pub fn new(corpus: Corpus) -> Self {
        let (width, workers) = (row_width(corpus.config.num_topics), corpus.parts.len());
        let vertices = (0..corpus.edges.num_left + corpus.num_words()).map(|_| Mutex::new(vec![0.0; width])).collect();
        let gas = Faithful::new(&corpus.edges, |edge| edge as u32, vertices, workers);
        let tokens = corpus.edges.data.iter().map(|&count| Mutex::new(vec![UNASSIGNED; count as usize])).collect();
        let program = Draw {
            sample: corpus.sample(),
            tokens,
            width,
            contexts: (0..workers).map(|_| Mutex::default()).collect(),
            topics: corpus.topics(),
            seeds: vec![0; workers],
        };
        Self { corpus, gas, program }
    }
}

impl job::Trainer for Trainer {
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        let Self { corpus, gas, program } = self;
        program.seeds = (0..program.seeds.len()).map(|worker| corpus.seed(worker, 0, iteration)).collect();
        (0..gas.vertices.len()).for_each(|id| gas.signal(id, ()));
        let (spent, messages) = gas.superstep(program)?;
        let mut total = Worker::default();
        for context in &mut program.contexts {
            total.combine(context.get_mut().unwrap_or_else(PoisonError::into_inner));
        }
        GlobalSync::<Lda<Dense>>::apply(&MergeTotals, total, &mut program.topics);
        end_iteration(&corpus.config, &mut program.topics);
        Ok(Cost { messages, ..Cost::of(spent) })
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let mut rows = Rows::<f32>::zeros(self.gas.vertices.len(), self.program.width);
        for (id, vertex) in self.gas.vertices.iter().enumerate() {
            rows.row_mut(id).copy_from_slice(&lock(vertex));
        }
        let num_documents = self.corpus.edges.num_left;
        let word = |word| rows.row(num_documents + word);
        self.corpus.measure(&self.program.topics, |document| rows.row(document), word)
    }

    fn finish(&self) -> Finish {
        let vectors = (self.gas.vertices.len() * self.program.width * 4) as u64;
        Finish { memory_bytes: self.gas.bytes() + vectors + self.corpus.bytes(), ..Finish::default() }
    }
}

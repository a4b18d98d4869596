//! LDA on a parameter server: topic counts of words, and the totals, are in the server; each worker keeps its documents.

use megagrid_algorithms::lda::dense::{Dense, Sample};
use megagrid_algorithms::lda::{Lda, Topics, Worker as Drawing};
use megagrid_stages::simd::{Kernel, Level};
use megagrid_stages::{Combine, Context, row_width};

use super::corpus::{Corpus, draw, end_iteration};
use crate::apps::servers::Team;
use crate::job::{self, Cost, Measured};
use crate::rows::Rows;
use crate::server::Table;
use crate::store::{Client, Store};
use crate::workers;
use crate::{Error, Finish, Run};

#[derive(Clone, Copy)]
struct Tables {
    /// Tokens of each topic, by word.
    words: Table<f32>,
    /// One row: tokens of each topic.
    totals: Table<i64>,
}

struct Worker {
    number: usize,
    documents: Rows<f32>,
    tokens: Vec<u16>,
    drawing: Drawing<Dense>,
    /// The totals that it reads, and priors.
    topics: Topics,
}

impl Worker {
    /// Makes the accesses of an iteration, and does nothing else.
    fn accesses(&mut self, corpus: &Corpus, tables: Tables, client: &mut impl Client) -> Result<(), Error> {
        let edges = corpus.parts[self.number].clone();
        let (mut word, no_change) = (vec![0.0; self.documents.width()], vec![0; self.topics.totals.len()]);
        for part in workers::parts(edges.len(), corpus.config.clocks as usize, |at| at as u64) {
            client.read(tables.totals, 0, &mut self.topics.totals)?;
            for &id in &corpus.edges.right[edges.start + part.start..edges.start + part.end] {
                client.read(tables.words, id as usize, &mut word)?;
                client.update(tables.words, id as usize, &word)?;
            }
            if !part.is_empty() {
                client.update(tables.totals, 0, &no_change)?;
            }
            client.clock()?;
        }
        Ok(())
    }
}

struct Iteration<'i, C> {
    corpus: &'i Corpus,
    tables: Tables,
    sample: &'i Sample,
    iteration: u64,
    worker: &'i mut Worker,
    client: &'i mut C,
}

impl<C: Client> Kernel for Iteration<'_, C> {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn run(self) -> Result<(), Error> {
        let Self { corpus, tables, sample, iteration, worker, client } = self;
        let Worker { number, documents, tokens, drawing, topics } = worker;
        let edges = corpus.parts[*number].clone();
        let (first_document, first_token) = (corpus.documents[*number].start, corpus.offsets[edges.start]);
        let (mut word, mut delta) = (vec![0.0; documents.width()], vec![0.0; documents.width()]);
        for (clock, part) in (0..).zip(workers::parts(edges.len(), corpus.config.clocks as usize, |at| at as u64)) {
            client.read(tables.totals, 0, &mut topics.totals)?;
            let seed = corpus.seed(*number, clock, iteration);
            let mut cx: Context<'_, Lda<Dense>> = Context { worker: drawing, global: topics, iteration, seed };
            for edge in edges.start + part.start..edges.start + part.end {
                let id = corpus.edges.right[edge] as usize;
                client.read(tables.words, id, &mut word)?;
                delta.copy_from_slice(&word);
                let document = documents.row_mut(corpus.edges.left[edge] as usize - first_document);
                let tokens = &mut tokens[corpus.offsets[edge] - first_token..corpus.offsets[edge + 1] - first_token];
                draw(sample, document, &mut word, tokens, &mut cx);
                delta.iter_mut().zip(&word).for_each(|(delta, now)| *delta = now - *delta);
                client.update(tables.words, id, &delta)?;
            }
            if part.is_empty() {
                client.clock()?;
                continue;
            }
            client.update(tables.totals, 0, drawing.changes())?;
            Drawing::<Dense>::default().combine(drawing);
            client.clock()?;
        }
        end_iteration(&corpus.config, topics);
        Ok(())
    }
}

pub struct Trainer<S: Store> {
    corpus: Corpus,
    tables: Tables,
    sample: Sample,
    team: Team<S>,
    workers: Vec<Worker>,
    level: Level,
}

impl<S: Store> Trainer<S> {
    pub fn new(corpus: Corpus, run: &Run, mut store: S) -> Result<Self, Error> {
        let width = row_width(corpus.config.num_topics);
        let tables =
            Tables { words: store.table(corpus.num_words(), width), totals: store.table(1, corpus.config.num_topics) };
        let worker = |number: usize| Worker {
            number,
            documents: Rows::zeros(corpus.documents[number].len(), width),
            tokens: {
                let part = &corpus.parts[number];
                corpus.unassigned()[corpus.offsets[part.start]..corpus.offsets[part.end]].to_vec()
            },
            drawing: Drawing::default(),
            topics: corpus.topics(),
        };
        let mut workers: Vec<Worker> = (0..corpus.parts.len()).map(worker).collect();
        store.set(tables.totals, 0, &vec![0; corpus.config.num_topics])?;
        let team =
            Team::new(store, run)?.rehearse(&mut workers, |worker, client| worker.accesses(&corpus, tables, client))?;
        Ok(Self { sample: corpus.sample(), corpus, tables, team, workers, level: run.level })
    }
}

impl<S: Store> job::Trainer for Trainer<S> {
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        let Self { corpus, tables, sample, team, workers, level } = self;
        let tables = *tables;
        let cost = team.iterate(workers, corpus.config.clocks, |worker, client| {
            level.run(Iteration { corpus, tables, sample, iteration, worker, client })
        })?;
        team.settle(cost)
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let words = self.team.all(self.tables.words, self.corpus.num_words())?;
        let mut topics = self.workers[0].topics.clone();
        topics.totals = self.team.all(self.tables.totals, 1)?.items().to_vec();
        let document = |document: usize| {
            let owner = self.corpus.documents.partition_point(|part| part.end <= document);
            self.workers[owner].documents.row(document - self.corpus.documents[owner].start)
        };
        self.corpus.measure(&topics, document, |word| words.row(word))
    }

    fn finish(&self) -> Finish {
        let documents: u64 = self.workers.iter().map(|worker| worker.documents.bytes()).sum();
        self.team.finish(documents + self.corpus.bytes(), [self.corpus.edges.num_left, self.corpus.num_words()])
    }
}

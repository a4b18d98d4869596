//! Branches of a run of several processes: each goes on as if there were no others.

use std::sync::Arc;

use megagrid_algorithms::lda::{self, Dense, Lda};
use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_algorithms::mf::{Config, Objective, SquaredErrors};
use megagrid_engine::{Engine, Error, Peers, Settings};
use megagrid_partition::GroupedEdges;
use megagrid_stages::Right;

use super::{local, ratings, settings};
use crate::made::{factorization, few_documents, run, topics};

/// Processes and the worker threads of each.
const SHAPES: [(usize, usize); 2] = [(2, 1), (2, 2)];

/// A factorization as one process sees it.
struct Factorization<'r> {
    ratings: &'r GroupedEdges<f32>,
    settings: Settings,
}

impl Factorization<'_> {
    fn config(step: f32) -> Config {
        Config { dims: 7, step, ..Config::default() }
    }

    fn engine(&self, step: f32) -> Engine<Mf> {
        let config = Self::config(step);
        factorization(self.ratings, config, in_place::sequence(config, 6000), &self.settings)
    }

    fn set(&self, engine: &mut Engine<Mf>, step: f32, slack: u64, workers: usize) -> Result<(), Error> {
        let sequence = in_place::sequence(Self::config(step), 6000);
        let settings = Settings { slack: Some(slack), workers, ..self.settings.clone() };
        engine.reconfigure(self.ratings, sequence, &settings)
    }

    /// What a run alone comes to.
    fn alone(&self, step: f32, clocks: u64) -> f64 {
        let mut engine = self.engine(step);
        run(&mut engine, clocks);
        objective(&mut engine)
    }
}

fn objective(engine: &mut Engine<Mf>) -> f64 {
    Objective::new(engine.total(SquaredErrors(Factorization::config(0.1))).unwrap(), 0.02).value
}

#[test]
fn each_goes_on_as_if_there_were_no_others() {
    let ratings = ratings(6000);
    for (processes, workers) in SHAPES {
        local::run(processes, |peers: Option<Arc<dyn Peers>>| {
            let dims = Factorization::config(0.1).row_dims();
            let of = Factorization { ratings: &ratings, settings: settings(peers, workers, dims) };
            let mut engine = of.engine(0.1);
            run(&mut engine, 2);
            let mut parent = engine.fork().unwrap();
            of.set(&mut engine, 0.1, 0, workers).unwrap();
            run(&mut engine, 5);
            assert_eq!(objective(&mut engine), of.alone(0.1, 5));
            engine.switch(&mut parent).unwrap();
            assert_eq!(objective(&mut engine), of.alone(0.1, 2));
            // The memory of the one that is freed serves the next.
            engine.free(parent);
            let mut parent = engine.fork().unwrap();
            of.set(&mut engine, 0.3, 0, workers).unwrap();
            run(&mut engine, 4);
            assert_ne!(objective(&mut engine), of.alone(0.1, 4));
            engine.switch(&mut parent).unwrap();
            of.set(&mut engine, 0.1, 0, workers).unwrap();
            run(&mut engine, 4);
            assert_eq!(objective(&mut engine), of.alone(0.1, 4));
            // With slack rows are mirrored and do not travel: other stages cross, on the same grid.
            let mut before = engine.fork().unwrap();
            of.set(&mut engine, 0.1, 2, workers).unwrap();
            run(&mut engine, 6);
            assert!(objective(&mut engine) < of.alone(0.1, 4));
            engine.switch(&mut before).unwrap();
            of.set(&mut engine, 0.1, 0, workers).unwrap();
            run(&mut engine, 5);
            assert_eq!(objective(&mut engine), of.alone(0.1, 5));
            let refused = of.set(&mut engine, 0.1, 0, workers + 1);
            assert!(matches!(refused, Err(Error::OtherGrid)), "{refused:?}");
        });
    }
}

#[test]
fn what_was_sent_is_counted_by_iteration() {
    let ratings = ratings(6000);
    local::run(2, |peers| {
        let of =
            Factorization { ratings: &ratings, settings: settings(peers, 1, Factorization::config(0.1).row_dims()) };
        let mut engine = of.engine(0.1);
        let mut sent = Vec::new();
        for last in [1, 2, 4] {
            let mut count = |report: &megagrid_engine::IterationReport| sent.push(report.sent.total());
            engine.run_until(last, |_, report| (count(report), Ok(false)).1).unwrap();
        }
        // Not since the first run began; what is under way when an iteration ends may count for the next.
        assert!(sent.len() == 4 && sent.iter().all(|one| one.bytes > 0 && one.bytes < 2 * sent[0].bytes), "{sent:?}");
    });
}

#[test]
fn topics_of_tokens_are_the_branchs_own() {
    let (source, config) = (few_documents(), lda::Config::new(8));
    for (processes, workers) in SHAPES {
        local::run(processes, |peers| {
            let settings = settings(peers, workers, 8);
            let make = || topics::<Dense>(&source, &config, &settings);
            // Counts follow from the topics of tokens, and the next ones from both.
            let state = |engine: &mut Engine<Lda<Dense>>| {
                engine.collect().unwrap();
                let counts = engine.on(Right).iter().flatten().copied().collect::<Vec<f32>>();
                settings.peers.as_ref().is_none_or(|peers| peers.process() == 0).then_some(counts)
            };
            let alone = |iterations| {
                let mut engine = make();
                run(&mut engine, iterations);
                state(&mut engine)
            };
            let mut engine = make();
            run(&mut engine, 3);
            let mut parent = engine.fork().unwrap();
            run(&mut engine, 6);
            assert_eq!(state(&mut engine), alone(6));
            engine.switch(&mut parent).unwrap();
            run(&mut engine, 5);
            assert_eq!(state(&mut engine), alone(5));
        });
    }
}

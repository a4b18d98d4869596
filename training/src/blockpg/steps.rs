//! Features that step in blocks, or one after the other.

use std::sync::OnceLock;

use megagrid_algorithms::blockpg::{self, BlockPg, Config, Margin, Region, State, log_loss, scores};
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Left, Right, Sequence, Stages};

use super::data::Samples;
use super::options::LinearOptions;
use super::solver::{Begin, Progress, Solver};
use crate::Error;
use crate::error::reading;

/// Values that a worker of a descent is worth its while for.
const WORTH_A_WORKER: usize = 1 << 16;
/// Values of a sample from which on two workers are: what they tell each other is one number a sample (measured: 11 gain, 10 lose).
const WORTH_TWO: usize = 11;
/// And more than two (80 were measured).
const WORTH_MORE: usize = 32;

/// Blocks, or descent.
pub(super) struct StepSolver {
    /// Values and number of blocks.
    block_values: u64,
    blocks: u64,
    /// Whether features descend one after the other; else they step by blocks.
    descends: bool,
    /// More workers would take longer.
    most_workers: usize,
    values: u64,
    delay: Option<u64>,
    /// Of each feature, once they are asked for.
    reaches: OnceLock<Vec<f32>>,
}

impl Solver for StepSolver {
    type Program = BlockPg;
    const TURN: u64 = 3;

    fn new(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Result<Self, Error> {
        let (values, features) = (samples.values.num_edges(), samples.values.num_vertices(Side::Right));
        let number = samples.values.num_vertices(Side::Left);
        let descends = options.descends(number, settings);
        let most = match values / number.max(1) {
            WORTH_MORE.. => usize::MAX,
            WORTH_TWO.. => 2,
            _ => 1,
        };
        let most_workers = if descends { (values / WORTH_A_WORKER).clamp(1, most) } else { usize::MAX };
        Ok(Self {
            block_values: options.block_values(values, features),
            descends,
            most_workers,
            values: (values as u64).max(1),
            blocks: options.num_blocks(values, features),
            delay: settings.slack,
            reaches: OnceLock::new(),
        })
    }

    fn resolved(&self, options: &LinearOptions) -> LinearOptions {
        if self.descends {
            return LinearOptions { delay: self.delay, ..options.clone() };
        }
        let blocks = if options.batch.is_some() { options.blocks } else { Some(self.blocks) };
        LinearOptions { batch: Some(self.block_values), blocks, delay: self.delay, ..options.clone() }
    }

    fn workers(&self, asked: usize) -> usize {
        asked.min(self.most_workers)
    }

    fn sequence(&self) -> Sequence<BlockPg, impl Stages<BlockPg>> {
        blockpg::sequence(self.block_values).or(blockpg::descent(self.values), self.descends)
    }

    fn init(&self, samples: &Samples, begin: Begin<'_>, engine: &mut Engine<BlockPg>) -> Result<(), Error> {
        let Begin { config, labels, weights, .. } = begin;
        let state = State { begun: engine.iterations(), ..config.state() };
        engine.set_global(if self.descends { state.with_descent(engine.plan().workers) } else { state });
        let reaches = match self.reaches.get() {
            Some(reaches) => reaches,
            None => {
                let reaches = samples.reaches(self.descends)?;
                self.reaches.get_or_init(|| reaches)
            }
        };
        let scores = scores(&samples.values, weights).map_err(reading)?;
        engine.init(Left, |sample, first| {
            *first.master = Margin::new(scores[sample] + begin.offset(sample), labels[sample], samples.weight(sample));
            *first.sync = first.master.parabola();
        });
        engine.init(Right, |feature, first| {
            *first.master = Region::new(reaches[feature]);
            *first.sync = first.master.weight(weights[feature], samples.intercept == Some(feature));
        });
        Ok(())
    }

    fn turn_to(config: &Config, engine: &mut Engine<BlockPg>) {
        let (begun, State { damping, descending, apart, .. }) = (engine.iterations(), *engine.global());
        engine.resume(begun, State { begun, damping, descending, apart, ..config.state() });
    }

    fn progress(engine: &Engine<BlockPg>) -> Progress {
        let state = engine.global();
        Progress { begun: state.begun, l1: state.l1, optimality: state.last.optimality, is_of_all: state.was_full }
    }

    fn weights(engine: &Engine<BlockPg>) -> Vec<f64> {
        let features = engine.on(Right);
        (0..features.len()).map(|feature| features.sync(feature).value).collect()
    }

    fn loss(engine: &Engine<BlockPg>) -> f64 {
        let samples = engine.on(Left);
        let of = |sample: usize| {
            let kept = samples.master(sample);
            kept.weight * log_loss(kept.margin)
        };
        (0..samples.len()).map(of).sum()
    }

    #[cfg(debug_assertions)]
    fn check(samples: &Samples, labels: &[f32], engine: &Engine<BlockPg>, weights: &[f64]) {
        let left = engine.on(Left);
        for (sample, score) in scores(&samples.values, weights).unwrap_or_default().into_iter().enumerate() {
            let (kept, margin) = (left.master(sample).margin, score * f64::from(labels[sample]));
            assert!(
                (kept - margin).abs() <= 1e-6 * (1.0 + margin.abs()),
                "margin of {sample}: kept {kept}, exactly {margin}"
            );
        }
    }
}

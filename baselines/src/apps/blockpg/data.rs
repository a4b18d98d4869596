//! What is to be fitted, and what all systems need of it.

use std::collections::BTreeMap;

use megagrid_algorithms::blockpg::{BlockPg, Config, Feature, Margin, Region, State, Totals, Weight, log_loss};
use megagrid_partition::{EdgeList, EdgeSource, Side, SplitMix};
use megagrid_stages::{Apply, Combine, Context, GlobalSync, Read, Vertex};

use crate::job::{Measured, list_by};
use crate::{Error, Run};

/// What is to be fitted.
#[derive(Clone, Copy)]
pub struct Job<'j> {
    /// x_ij for samples i, left, and features j, right; grouped by the right side at least.
    pub values: &'j dyn EdgeSource<f32>,
    /// Labels, −1 or 1.
    pub labels: &'j [f32],
    /// Weights of samples; all 1 if empty.
    pub sample_weights: &'j [f32],
    /// Which feature is the intercept, which has no penalty.
    pub intercept: Option<usize>,
    /// Weights of the penalty.
    pub config: Config,
    /// Values of a block of features.
    pub block_values: u64,
    /// Blocks of features by iteration, from 1; `None`: dealt at random.
    pub blocks: Option<&'j (dyn Fn(u64) -> Vec<Vec<u32>> + Sync)>,
}

pub(super) struct Data<'j> {
    pub(super) job: Job<'j>,
    pub(super) seed: u64,
    /// Values by feature.
    pub(super) values: EdgeList<f32>,
    /// First values of samples and features.
    pub(super) margins: Vec<Margin>,
    pub(super) regions: Vec<Region>,
    /// First weights.
    pub(super) weights: Vec<Weight>,
    /// Features in random order, cut into blocks.
    pub(super) dealt: Vec<Vec<u32>>,
}

impl<'j> Data<'j> {
    pub(super) fn new(job: &Job<'j>, run: &Run) -> Result<Self, Error> {
        let values = list_by(job.values, Side::Right, |&x| x)?;
        let mut reaches = vec![0.0_f32; values.num_right];
        for (&feature, x) in values.right.iter().zip(&values.data) {
            let reach = &mut reaches[feature as usize];
            *reach = reach.max(x.abs());
        }
        let weight = |sample: usize| job.sample_weights.get(sample).copied().unwrap_or(1.0);
        let regions: Vec<Region> = reaches.into_iter().map(Region::new).collect();
        let weight_of = |(feature, region): (usize, &Region)| region.weight(0.0, job.intercept == Some(feature));
        Ok(Self {
            job: *job,
            seed: run.seed,
            margins: (0..values.num_left).map(|sample| Margin::new(0.0, job.labels[sample], weight(sample))).collect(),
            weights: regions.iter().enumerate().map(weight_of).collect(),
            regions,
            dealt: deal(job, run.seed),
            values,
        })
    }

    /// Returns the blocks of an iteration, features ascending within each.
    pub(super) fn blocks(&self, iteration: u64) -> Vec<Vec<u32>> {
        let mut blocks = match self.job.blocks {
            Some(blocks) => blocks(iteration),
            None => {
                let mut blocks = self.dealt.clone();
                shuffle(&mut blocks, &mut SplitMix::new(self.seed, iteration));
                blocks
            }
        };
        blocks.iter_mut().for_each(|block| block.sort_unstable());
        blocks
    }

    /// Measures the objective of weights where samples have this loss together.
    pub(super) fn measure(&self, loss: f64, weights: &[f64], violation: f64) -> Measured {
        let penalized = || weights.iter().enumerate().filter(|(feature, _)| self.job.intercept != Some(*feature));
        let objective = loss + self.job.config.penalty(penalized().map(|(_, &w)| w));
        let nonzeros = penalized().filter(|(_, w)| **w != 0.0).count() as f64;
        (objective, BTreeMap::from([("loss", loss), ("nonzeros", nonzeros), ("kkt_violation", violation)]))
    }
}

/// Sums the loss of samples.
pub(super) fn loss<'m>(margins: impl Iterator<Item = &'m Margin>) -> f64 {
    margins.map(|kept| kept.weight * log_loss(kept.margin)).sum()
}

/// Deals features to blocks of about as many values each.
fn deal(job: &Job<'_>, seed: u64) -> Vec<Vec<u32>> {
    let offsets = job.values.offsets(Side::Right);
    let mut order: Vec<u32> = (0..job.values.num_vertices(Side::Right) as u32).collect();
    shuffle(&mut order, &mut SplitMix::new(seed, 0));
    let (mut blocks, mut block, mut values) = (Vec::new(), Vec::new(), 0);
    for feature in order {
        values += offsets[feature as usize + 1] - offsets[feature as usize];
        block.push(feature);
        if values >= job.block_values {
            blocks.push(std::mem::take(&mut block));
            values = 0;
        }
    }
    blocks.extend((!block.is_empty()).then_some(block));
    blocks
}

fn shuffle<T>(items: &mut [T], random: &mut SplitMix) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// Ends a stage that looks at all workers' totals.
pub(super) fn sync(stage: &impl GlobalSync<BlockPg>, totals: Vec<Totals>, state: &mut State) {
    let mut sum = Totals::default();
    totals.into_iter().for_each(|mut total| sum.combine(&mut total));
    stage.apply(sum, state);
}

/// Joins the totals of one step after another, worker by worker.
pub(super) fn join(into: &mut Vec<Totals>, mut from: Vec<Totals>) {
    into.resize_with(from.len().max(into.len()), Totals::default);
    into.iter_mut().zip(&mut from).for_each(|(total, part)| total.combine(part));
}

/// Tells whether an Apply runs on a feature.
pub(super) fn runs(
    stage: &impl Apply<BlockPg, Feature>,
    feature: Read<'_, Feature>,
    cx: &Context<'_, BlockPg>,
) -> bool {
    (stage.visits_resting(cx) || !Feature::is_resting(feature.sync)) && stage.is_active(feature, cx)
}

pub(super) fn is_visited(weight: &Weight, state: &State) -> bool {
    state.full || weight.resting == 0
}

//! BlockPG on [`Gas`]: for each block a superstep of its features, which push to samples; vertices are both, as the model has one kind.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use megagrid_algorithms::blockpg::{
    Aim, BlockPg, Damp, Derivatives, Differentiate, Feature, Land, Leap, Limit, Margin, Parabola, Plan, Region, Sample,
    Settle, Shift, State, Step, Survey, Totals, Weight,
};
use megagrid_partition::Side;
use megagrid_partition::strategy::BiCut;
use megagrid_stages::{Add, Aggregate, Apply, Context, Exchange, GlobalSync, Master, Read, Total, Update};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::data::{Data, is_visited, join, loss, runs, sync};
use crate::gas::cut::{Cut, edges_here};
use crate::gas::{Active, Gas, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::workers::Spent;
use crate::{Error, Finish, Run};

/// A vertex: what samples know and what features know.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Vertex {
    pub parabola: Parabola,
    pub margin: Margin,
    pub weight: Weight,
    pub region: Region,
    /// The weight's last change.
    pub change: f64,
}

/// As the bytes that it is.
impl Serialize for Vertex {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytemuck::bytes_of(self))
    }
}

impl<'de> Deserialize<'de> for Vertex {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = Vec::<u8>::deserialize(from)?;
        bytemuck::try_pod_read_unaligned(&bytes).map_err(serde::de::Error::custom)
    }
}

impl Vertex {
    /// Applies a stage to a feature.
    #[inline(always)]
    pub fn feature(
        &mut self,
        stage: &impl Apply<BlockPg, Feature>,
        delta: &Derivatives,
        cx: &mut Context<'_, BlockPg>,
    ) {
        if runs(stage, Read { sync: &self.weight, mirror: &self.change }, cx) {
            let before = self.weight.value;
            stage.apply(Master { sync: &mut self.weight, master: &mut self.region, delta }, cx);
            self.change = self.weight.value - before;
        }
    }

    /// Applies a stage to a sample.
    #[inline(always)]
    pub fn sample(&mut self, stage: &impl Apply<BlockPg, Sample>, cx: &mut Context<'_, BlockPg>) {
        stage.apply(Master { sync: &mut self.parabola, master: &mut self.margin, delta: &0.0 }, cx);
    }
}

/// The step of a block.
struct Block {
    state: State,
}

pub(super) fn context<'c>(worker: &'c mut Totals, global: &'c State) -> Context<'c, BlockPg> {
    Context { worker, global, iteration: 0, seed: 0 }
}

impl VertexProgram for Block {
    type Item = Vertex;
    type Edge = f32;
    type Sum = Derivatives;
    type Total = Totals;

    #[inline(always)]
    fn gather(&self, feature: &[Vertex], sample: &[Vertex], mut x: f32, sum: &mut [Derivatives]) {
        let sample = Read { sync: &sample[0].parabola, mirror: &() };
        let feature = Add { sync: &feature[0].weight, mirror: &feature[0].change, delta: &mut sum[0] };
        Differentiate.exchange(sample, feature, &mut x, &mut context(&mut Totals::default(), &self.state));
    }

    #[inline(always)]
    fn apply(&self, _: usize, feature: &mut [Vertex], sum: &[Derivatives], total: &mut Totals) {
        feature[0].feature(&Step, &sum[0], &mut context(total, &self.state));
    }
}

/// Ends a stage that looks at the totals of all workers of all processes, which tell each other.
pub(super) fn share(
    stage: &impl GlobalSync<BlockPg>,
    totals: Vec<Totals>,
    state: &mut State,
    (cut, costs): (&Cut, &mut Vec<Cost>),
) -> Result<(), Error> {
    let mut cost = Cost::of(vec![Spent::default(); totals.len()]);
    sync(stage, cut.share(totals, &mut cost)?.concat(), state);
    costs.push(cost);
    Ok(())
}

#[inline(always)]
fn shift(feature: &[Vertex], sample: &mut [Vertex], mut x: f32, total: &mut Totals, state: &State) {
    let sample = Update { sync: &mut sample[0].parabola, mirror: &mut () };
    let feature = Read { sync: &feature[0].weight, mirror: &feature[0].change };
    Shift.exchange(sample, feature, &mut x, &mut context(total, state));
}

pub struct Trainer<'j> {
    data: Data<'j>,
    gas: Gas<Vertex, f32, Derivatives>,
    block: Block,
}

impl<'j> Trainer<'j> {
    /// Takes what is to be fitted; samples have all their values in one process, as features push to them.
    pub fn new(data: Data<'j>, run: &Run) -> Result<Self, Error> {
        let strategy = BiCut { favourite: Some(Side::Left), seed: run.seed };
        let own = edges_here(&data.values, &strategy, &run.processes);
        let mut gas = Gas::<Vertex, f32, Derivatives>::new(&own, |edge| own.data[edge], [1, 1], run)?;
        for (sample, &margin) in data.margins.iter().enumerate() {
            if let Some([vertex]) = gas.row_mut(sample) {
                (vertex.margin, vertex.parabola) = (margin, margin.parabola());
            }
        }
        for (feature, (&region, &weight)) in data.regions.iter().zip(&data.weights).enumerate() {
            if let Some([vertex]) = gas.row_mut(data.margins.len() + feature) {
                (vertex.region, vertex.weight) = (region, weight);
            }
        }
        drop(own);
        let block = Block { state: data.job.config.state() };
        Ok(Self { data, gas, block })
    }

    fn samples(&self) -> Range<usize> {
        0..self.data.margins.len()
    }

    fn features(&self) -> Range<usize> {
        self.data.margins.len()..self.gas.cut().num_vertices()
    }

    /// Returns those of some features, of which there are replicas here, that `is` holds for.
    fn those(&self, ids: impl Iterator<Item = u32>, is: impl Fn(&Vertex) -> bool) -> Vec<u32> {
        ids.filter(|&id| self.gas.row(id as usize).is_some_and(|row| is(&row[0]))).collect()
    }

    fn run_block(&mut self, block: &[u32], spent: &mut Vec<Cost>) -> Result<(), Error> {
        let first = self.data.margins.len() as u32;
        let ids = block.iter().map(|feature| first + feature);
        let state = &self.block.state;
        let visited = self.those(ids.clone(), |vertex| is_visited(&vertex.weight, state));
        let (mut totals, stepped) = self.gas.superstep(&self.block, Active::These(visited.into()))?;
        let changed = self.those(ids, |vertex| vertex.change != 0.0);
        let state = &self.block.state;
        let (fell, pushed) =
            self.gas.push(&changed, |feature, sample, x, total| shift(feature, sample, x, total, state))?;
        join(&mut totals, fell);
        share(&Damp, totals, &mut self.block.state, (self.gas.cut(), spent))?;
        spent.extend([stepped, Cost::of(pushed)]);
        Ok(())
    }

    fn leap(&mut self, spent: &mut Vec<Cost>) -> Result<(), Error> {
        let (samples, features) = (self.samples(), self.features());
        let Self { gas, block: Block { state }, .. } = self;
        let none = Derivatives::default();
        let (mut totals, a) =
            gas.transform(samples.clone(), |row, total| row[0].sample(&Settle, &mut context(total, state)))?;
        let (more, b) = gas.transform(features.clone(), |row, total| {
            Aim.aggregate(Total { sync: &row[0].weight, master: &row[0].region }, total);
        })?;
        join(&mut totals, more);
        share(&Aim, totals, state, (gas.cut(), spent))?;
        let (totals, c) =
            gas.transform(features.clone(), |row, total| row[0].feature(&Plan, &none, &mut context(total, state)))?;
        share(&Limit, totals, state, (gas.cut(), spent))?;
        let (_, d) =
            gas.transform(features.clone(), |row, total| row[0].feature(&Leap, &none, &mut context(total, state)))?;
        spent.push(gas.refresh(features.clone())?);
        let changed = self.those(features.map(|id| id as u32), |vertex| vertex.change != 0.0);
        let Self { gas, block: Block { state }, .. } = self;
        let (_, e) = gas.push(&changed, |feature, sample, x, total| shift(feature, sample, x, total, state))?;
        let (_, f) = gas.transform(samples, |row, total| row[0].sample(&Land, &mut context(total, state)))?;
        sync(&Survey, Vec::new(), state);
        spent.extend([a, b, c, d, e, f].map(Cost::of));
        Ok(())
    }
}

impl job::Trainer for Trainer<'_> {
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        let mut spent = Vec::new();
        for block in self.data.blocks(iteration) {
            self.run_block(&block, &mut spent)?;
        }
        self.leap(&mut spent)?;
        Ok(Cost::sum(&spent))
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let rows = self.gas.all_rows()?;
        let (samples, features) = rows.items().split_at(self.data.margins.len());
        let weights: Vec<f64> = features.iter().map(|vertex| vertex.weight.value).collect();
        let violation = self.block.state.last.optimality.violation;
        Ok(self.data.measure(loss(samples.iter().map(|vertex| &vertex.margin)), &weights, violation))
    }

    fn finish(&self) -> Finish {
        self.gas.finish(0)
    }
}

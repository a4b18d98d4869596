//! BlockPG on [`Gas`]: for each block a superstep of its features, which push to samples; vertices are both, as the model has one kind.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use megagrid_algorithms::blockpg::{
    Aim, BlockPg, Damp, Derivatives, Differentiate, Feature, Land, Leap, Limit, Margin, Parabola, Plan, Region, Sample,
    Settle, Shift, State, Step, Survey, Totals, Weight,
};
use megagrid_stages::{Add, Aggregate, Apply, Context, Exchange, Master, Read, Total, Update};

use super::data::{Data, is_visited, join, loss, sync};
use crate::gas::{Active, Gas, VertexProgram};
use crate::job::{self, Cost, Measured};
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

impl Vertex {
    /// Applies a stage to a feature.
    #[inline(always)]
    pub fn feature(
        &mut self,
        stage: &impl Apply<BlockPg, Feature>,
        delta: &Derivatives,
        cx: &mut Context<'_, BlockPg>,
    ) {
        if stage.is_active(Read { sync: &self.weight, mirror: &self.change }, cx) {
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
    pub fn new(data: Data<'j>, run: &Run) -> Self {
        let mut gas =
            Gas::<Vertex, f32, Derivatives>::new(&data.values, |edge| data.values.data[edge], [1, 1], run.workers);
        let (samples, features) = gas.vertices.items_mut().split_at_mut(data.margins.len());
        for (vertex, &margin) in samples.iter_mut().zip(&data.margins) {
            (vertex.margin, vertex.parabola) = (margin, margin.parabola());
        }
        for (feature, vertex) in features.iter_mut().enumerate() {
            (vertex.region, vertex.weight) = (data.regions[feature], data.weights[feature]);
        }
        let block = Block { state: data.job.config.state() };
        Self { data, gas, block }
    }

    fn samples(&self) -> Range<usize> {
        0..self.data.margins.len()
    }

    fn features(&self) -> Range<usize> {
        self.data.margins.len()..self.gas.vertices.len()
    }

    fn run_block(&mut self, block: &[u32], spent: &mut Vec<Cost>) -> Result<(), Error> {
        let (first, state) = (self.data.margins.len() as u32, &self.block.state);
        let row = |id: u32| &self.gas.vertices.items()[id as usize];
        let ids = block.iter().map(|feature| first + feature);
        let visited: Vec<u32> = ids.clone().filter(|&id| is_visited(&row(id).weight, state)).collect();
        let (mut totals, stepped) = self.gas.superstep(&self.block, Active::These(&visited))?;
        let row = |id: u32| &self.gas.vertices.items()[id as usize];
        let changed: Vec<u32> = ids.filter(|&id| row(id).change != 0.0).collect();
        let state = &self.block.state;
        let (fell, pushed) =
            self.gas.push(&changed, |feature, sample, x, total| shift(feature, sample, x, total, state))?;
        join(&mut totals, fell);
        sync(&Damp, totals, &mut self.block.state);
        spent.extend([Cost::of(stepped), Cost::of(pushed)]);
        Ok(())
    }

    fn leap(&mut self, spent: &mut Vec<Cost>) -> Result<(), Error> {
        let (samples, features) = (self.samples(), self.features());
        let Self { gas, block: Block { state }, .. } = self;
        let none = Derivatives::default();
        let (mut totals, a) =
            gas.transform(samples.clone(), |_, row, total| row[0].sample(&Settle, &mut context(total, state)))?;
        let (more, b) = gas.transform(features.clone(), |_, row, total| {
            Aim.aggregate(Total { sync: &row[0].weight, master: &row[0].region }, total);
        })?;
        join(&mut totals, more);
        sync(&Aim, totals, state);
        let (totals, c) =
            gas.transform(features.clone(), |_, row, total| row[0].feature(&Plan, &none, &mut context(total, state)))?;
        sync(&Limit, totals, state);
        let (_, d) =
            gas.transform(features.clone(), |_, row, total| row[0].feature(&Leap, &none, &mut context(total, state)))?;
        let changed: Vec<u32> =
            features.filter(|&id| gas.vertices.items()[id].change != 0.0).map(|id| id as u32).collect();
        let (_, e) = gas.push(&changed, |feature, sample, x, total| shift(feature, sample, x, total, state))?;
        let (_, f) = gas.transform(samples, |_, row, total| row[0].sample(&Land, &mut context(total, state)))?;
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
        let (samples, features) = self.gas.vertices.items().split_at(self.data.margins.len());
        let weights: Vec<f64> = features.iter().map(|vertex| vertex.weight.value).collect();
        let violation = self.block.state.last.optimality.violation;
        Ok(self.data.measure(loss(samples.iter().map(|vertex| &vertex.margin)), &weights, violation))
    }

    fn finish(&self) -> Finish {
        Finish { memory_bytes: self.gas.bytes(), ..Finish::default() }
    }
}

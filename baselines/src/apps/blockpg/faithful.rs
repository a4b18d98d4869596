//! BlockPG on [`Faithful`]: for each block a superstep of its features, which signal samples, and one of these.

use std::sync::{Mutex, PoisonError};

use bytemuck::Zeroable;
use megagrid_algorithms::blockpg::{
    Aim, Damp, Derivatives, Differentiate, Land, Leap, Limit, Plan, Settle, State, Step, Survey, Totals,
};
use megagrid_stages::{Add, Aggregate, Exchange, GlobalSync, Read, Total};

use super::data::{Data, is_visited, loss, sync};
use super::gas::{Vertex, context};
use crate::crew::lock;
use crate::gas::faithful::{EdgeView, Faithful, Signals, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::{Error, Finish, Run};

struct Descend {
    num_samples: usize,
    state: State,
    total: Mutex<Totals>,
    /// Whether features only tell samples of a leap.
    leaps: bool,
}

impl Descend {
    /// Lets the total since the last one be looked at.
    fn sync(&mut self, stage: &impl GlobalSync<megagrid_algorithms::blockpg::BlockPg>) {
        let total = std::mem::take(self.total.get_mut().unwrap_or_else(PoisonError::into_inner));
        sync(stage, vec![total], &mut self.state);
    }
}

impl VertexProgram for Descend {
    type Vertex = Vertex;
    type Edge = f32;
    type Gather = Vec<f64>;
    type Message = Vec<f64>;

    fn phases(&self, id: usize) -> [bool; 2] {
        let is_feature = id >= self.num_samples;
        [is_feature && !self.leaps, is_feature]
    }

    fn gather(&self, edge: EdgeView<'_, Self>, _: &Signals<'_, Self>) -> Vec<f64> {
        let mut delta = Derivatives::default();
        let sample = Read { sync: &edge.other.parabola, mirror: &() };
        let feature = Add { sync: &edge.vertex.weight, mirror: &edge.vertex.change, delta: &mut delta };
        Differentiate.exchange(sample, feature, &mut { edge.edge }, &mut context(&mut Totals::default(), &self.state));
        vec![delta.gradient, delta.curvature]
    }

    fn add(&self, sum: &mut Vec<f64>, part: Vec<f64>) {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }

    fn combine(&self, sum: &mut Vec<f64>, message: Vec<f64>) {
        self.add(sum, message);
    }

    /// A sample receives the sum of what its margin changes by, and that of the squares.
    fn apply(&self, id: usize, vertex: &mut Vertex, sum: Option<Vec<f64>>, message: Vec<f64>) {
        let total = &mut *lock(&self.total);
        if id >= self.num_samples {
            if let Some(sum) = sum {
                let delta = Derivatives { gradient: sum[0], curvature: sum[1], ..Derivatives::default() };
                vertex.feature(&Step, &delta, &mut context(total, &self.state));
            }
            return;
        }
        let [change, squares] = [message[0], message[1]];
        // Each change is told of after those before it, which have made the slope flatter by then.
        let flatter = 0.5 * vertex.parabola.curvature * (change * change - squares);
        total.fall[1] += vertex.parabola.shift(change) - flatter;
    }

    fn scatter(&self, edge: EdgeView<'_, Self>, signals: &Signals<'_, Self>) {
        if edge.vertex.change != 0.0 {
            let change = f64::from(edge.edge) * edge.vertex.change;
            signals.signal(edge.other_id, vec![change, change * change]);
        }
    }
}

pub struct Trainer<'j> {
    data: Data<'j>,
    gas: Faithful<Descend>,
    program: Descend,
}

impl<'j> Trainer<'j> {
    pub fn new(data: Data<'j>, run: &Run) -> Self {
        let num_samples = data.margins.len();
        let mut vertices = vec![Vertex::zeroed(); num_samples + data.regions.len()];
        for (vertex, &margin) in vertices.iter_mut().zip(&data.margins) {
            (vertex.margin, vertex.parabola) = (margin, margin.parabola());
        }
        for (feature, vertex) in vertices[num_samples..].iter_mut().enumerate() {
            (vertex.region, vertex.weight) = (data.regions[feature], data.weights[feature]);
        }
        let gas = Faithful::new(&data.values, |edge| data.values.data[edge], vertices, run.workers);
        let state = data.job.config.state();
        Self { data, gas, program: Descend { num_samples, state, total: Mutex::default(), leaps: false } }
    }

    /// Runs a superstep of features, and one of the samples that these signal.
    fn supersteps(&mut self, features: impl Iterator<Item = usize>, costs: &mut Vec<Cost>) -> Result<(), Error> {
        features.for_each(|feature| self.gas.signal(self.program.num_samples + feature, Vec::new()));
        for _ in 0..2 {
            let (spent, messages) = self.gas.superstep(&self.program)?;
            costs.push(Cost { workers: spent, messages, sent_bytes: 16 * messages });
        }
        Ok(())
    }

    fn leap(&mut self, costs: &mut Vec<Cost>) -> Result<(), Error> {
        let (num_samples, none) = (self.program.num_samples, Derivatives::default());
        let mut total = Totals::default();
        let (samples, features) = self.gas.vertices.split_at_mut(num_samples);
        samples.iter_mut().for_each(|vertex| vertex.sample(&Settle, &mut context(&mut total, &self.program.state)));
        for vertex in &*features {
            Aim.aggregate(Total { sync: &vertex.weight, master: &vertex.region }, &mut total);
        }
        sync(&Aim, vec![total], &mut self.program.state);
        let (mut total, state) = (Totals::default(), &self.program.state);
        features.iter_mut().for_each(|vertex| vertex.feature(&Plan, &none, &mut context(&mut total, state)));
        sync(&Limit, vec![total], &mut self.program.state);
        let (mut total, state) = (Totals::default(), &self.program.state);
        features.iter_mut().for_each(|vertex| vertex.feature(&Leap, &none, &mut context(&mut total, state)));
        let changed: Vec<usize> = (0..features.len()).filter(|&feature| features[feature].change != 0.0).collect();
        self.program.leaps = true;
        self.supersteps(changed.into_iter(), costs)?;
        self.program.leaps = false;
        let state = &self.program.state;
        let samples = &mut self.gas.vertices[..num_samples];
        samples.iter_mut().for_each(|vertex| vertex.sample(&Land, &mut context(&mut total, state)));
        self.program.sync(&Survey);
        Ok(())
    }
}

impl job::Trainer for Trainer<'_> {
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        let mut costs = Vec::new();
        for block in self.data.blocks(iteration) {
            let features = &self.gas.vertices[self.program.num_samples..];
            let state = &self.program.state;
            let visited = block.into_iter().map(|feature| feature as usize);
            let visited: Vec<usize> = visited.filter(|&feature| is_visited(&features[feature].weight, state)).collect();
            self.supersteps(visited.into_iter(), &mut costs)?;
            self.program.sync(&Damp);
        }
        self.leap(&mut costs)?;
        Ok(Cost::sum(&costs))
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let (samples, features) = self.gas.vertices.split_at(self.program.num_samples);
        let weights: Vec<f64> = features.iter().map(|vertex| vertex.weight.value).collect();
        let violation = self.program.state.last.optimality.violation;
        Ok(self.data.measure(loss(samples.iter().map(|vertex| &vertex.margin)), &weights, violation))
    }

    fn finish(&self) -> Finish {
        Finish { memory_bytes: self.gas.bytes(), ..Finish::default() }
    }
}

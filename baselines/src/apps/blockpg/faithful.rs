//! BlockPG on [`Faithful`]: for each block a superstep of its features, which signal samples, and one of these.

use std::sync::{Mutex, PoisonError};

use bytemuck::Zeroable;
use megagrid_algorithms::blockpg::{
    Aim, BlockPg, Damp, Derivatives, Differentiate, Land, Leap, Limit, Margin, Plan, Settle, State, Step, Survey,
    Totals,
};
use megagrid_partition::parallel::lock;
use megagrid_stages::{Add, Aggregate, Exchange, GlobalSync, Read, Total};

use super::data::{Data, is_visited, loss};
use super::gas::{Vertex, context, share};
use crate::gas::cut::{Cut, edges_here};
use crate::gas::faithful::{EdgeView, Faithful, Signals, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::{Error, Finish, Run, System};

struct Descend {
    num_samples: usize,
    state: State,
    total: Mutex<Totals>,
    /// Whether features only tell samples of a leap.
    leaps: bool,
}

impl Descend {
    /// Lets the total of all processes since the last one be looked at.
    fn sync(&mut self, stage: &impl GlobalSync<BlockPg>, cut: &Cut, costs: &mut Vec<Cost>) -> Result<(), Error> {
        let total = std::mem::take(self.total.get_mut().unwrap_or_else(PoisonError::into_inner));
        share(stage, vec![total], &mut self.state, (cut, costs))
    }
}

impl VertexProgram for Descend {
    type Vertex = Vertex;
    type Edge = f32;
    type Gather = Vec<f64>;
    type Message = Vec<f64>;

    fn message_bytes(&self) -> u64 {
        16
    }

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
    pub fn new(data: Data<'j>, run: &Run) -> Result<Self, Error> {
        let num_samples = data.margins.len();
        let mut vertices = vec![Vertex::zeroed(); num_samples + data.regions.len()];
        for (vertex, &margin) in vertices.iter_mut().zip(&data.margins) {
            (vertex.margin, vertex.parabola) = (margin, margin.parabola());
        }
        for (feature, vertex) in vertices[num_samples..].iter_mut().enumerate() {
            (vertex.region, vertex.weight) = (data.regions[feature], data.weights[feature]);
        }
        let own = edges_here(&data.values, &*run.strategy(System::GasFaithful)?, &run.processes);
        let gas = Faithful::new(&own, |edge| own.data[edge], vertices, run)?;
        drop(own);
        let state = data.job.config.state();
        Ok(Self { data, gas, program: Descend { num_samples, state, total: Mutex::default(), leaps: false } })
    }

    /// Runs a superstep of those features that `visits` holds for, and one of the samples that these signal.
    fn supersteps(
        &mut self,
        features: impl Iterator<Item = usize>,
        visits: impl Fn(&Vertex, &State) -> bool,
        costs: &mut Vec<Cost>,
    ) -> Result<(), Error> {
        let Self { gas, program, .. } = self;
        for id in features.map(|feature| program.num_samples + feature) {
            if gas.vertex(id).is_some_and(|vertex| visits(vertex, &program.state)) {
                gas.signal(id, Vec::new());
            }
        }
        for _ in 0..2 {
            costs.push(gas.superstep(program)?);
        }
        Ok(())
    }

    fn leap(&mut self, costs: &mut Vec<Cost>) -> Result<(), Error> {
        let none = Derivatives::default();
        let samples = 0..self.program.num_samples;
        let features = samples.end..self.gas.cut().num_vertices();
        let Self { gas, program: Descend { state, .. }, .. } = self;
        let mut total = Totals::default();
        for vertex in gas.masters_mut(samples.clone()) {
            vertex.sample(&Settle, &mut context(&mut total, state));
        }
        for vertex in gas.masters_mut(features.clone()) {
            Aim.aggregate(Total { sync: &vertex.weight, master: &vertex.region }, &mut total);
        }
        share(&Aim, vec![total], state, (gas.cut(), costs))?;
        let mut total = Totals::default();
        for vertex in gas.masters_mut(features.clone()) {
            vertex.feature(&Plan, &none, &mut context(&mut total, state));
        }
        share(&Limit, vec![total], state, (gas.cut(), costs))?;
        for vertex in gas.masters_mut(features.clone()) {
            vertex.feature(&Leap, &none, &mut context(&mut Totals::default(), state));
        }
        costs.push(gas.refresh(0..features.end)?);
        self.program.leaps = true;
        self.supersteps(0..features.len(), |feature, _| feature.change != 0.0, costs)?;
        self.program.leaps = false;
        let Self { gas, program: Descend { state, .. }, .. } = self;
        for vertex in gas.masters_mut(samples.clone()) {
            vertex.sample(&Land, &mut context(&mut Totals::default(), state));
        }
        costs.push(gas.refresh(samples)?);
        self.program.sync(&Survey, self.gas.cut(), costs)
    }
}

impl job::Trainer for Trainer<'_> {
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        let mut costs = Vec::new();
        for block in self.data.blocks(iteration) {
            let features = block.into_iter().map(|feature| feature as usize);
            self.supersteps(features, |feature, state| is_visited(&feature.weight, state), &mut costs)?;
            self.program.sync(&Damp, self.gas.cut(), &mut costs)?;
        }
        self.leap(&mut costs)?;
        Ok(Cost::sum(&costs))
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let num_samples = self.program.num_samples;
        let (mut margins, mut weights) = (vec![Margin::default(); num_samples], vec![0.0; self.data.regions.len()]);
        self.gas.visit_all(|id, vertex| match id.checked_sub(num_samples) {
            None => margins[id] = vertex.margin,
            Some(feature) => weights[feature] = vertex.weight.value,
        })?;
        Ok(self.data.measure(loss(margins.iter()), &weights, self.program.state.last.optimality.violation))
    }

    fn finish(&self) -> Finish {
        self.gas.finish(0, 0)
    }
}

//! BlockPG on a parameter server, by Megagrid's rules: weights, and sums of derivatives, are in the server; each worker keeps samples
//! and is the one that steps its share of the features. A scheduler joins the workers' totals, as that of Li et al. (2014) does.

use std::ops::Range;

use megagrid_algorithms::blockpg::{
    Aim, BlockPg, Damp, Derivatives, Differentiate, Feature, Land, Leap, Limit, Margin, Parabola, Plan, Region, Sample,
    Settle, Shift, State, Step, Survey, Totals, Weight,
};
use megagrid_partition::{EdgeList, Side};
use megagrid_stages::{Add, Aggregate, Apply, Context, Exchange, GlobalSync, Master, Read, Total, Update};

use super::data::{Data, is_visited, loss, runs, sync};
use crate::apps::servers::Team;
use crate::gas::csr::Csr;
use crate::job::{self, Cost, Measured};
use crate::server::Table;
use crate::store::{Client, Store};
use crate::workers::{self, Spent};
use crate::{Error, Finish, Run};

#[derive(Clone, Copy)]
struct Tables {
    /// A weight, and whether it rests.
    weights: Table<f64>,
    /// Sums of gradients and curvatures.
    derivatives: Table<f64>,
}

struct Worker {
    samples: Range<usize>,
    /// Values of own samples by feature; samples count from the first.
    values: Csr<f32>,
    parabolas: Vec<Parabola>,
    margins: Vec<Margin>,
    /// All weights, as last read.
    weights: Vec<Weight>,
    /// Own features are this one and every one as many further as there are workers.
    first: usize,
    workers: usize,
    /// What is known of own features.
    regions: Vec<Region>,
    /// The total since a scheduler asked.
    total: Totals,
}

fn context<'c>(worker: &'c mut Totals, global: &'c State) -> Context<'c, BlockPg> {
    Context { worker, global, iteration: 0, seed: 0 }
}

impl Worker {
    /// Returns the own features among those of a block.
    fn own<'f>(&self, features: &'f [u32]) -> impl Iterator<Item = u32> + use<'f> {
        let (first, workers) = (self.first, self.workers);
        features.iter().copied().filter(move |&feature| feature as usize % workers == first)
    }

    /// Sums the derivatives of a block's features over own samples.
    fn differentiate(&self, block: &[u32], state: &State, to: Tables, client: &mut impl Client) -> Result<(), Error> {
        let visited = block.iter().map(|&feature| feature as usize);
        for feature in visited.filter(|&feature| is_visited(&self.weights[feature], state)) {
            let mut delta = Derivatives::default();
            let (samples, values) = self.values.of(feature);
            for (&sample, &x) in samples.iter().zip(values) {
                let sample = Read { sync: &self.parabolas[sample as usize], mirror: &() };
                let view = Add { sync: &self.weights[feature], mirror: &0.0, delta: &mut delta };
                Differentiate.exchange(sample, view, &mut { x }, &mut context(&mut Totals::default(), state));
            }
            client.update(to.derivatives, feature, &[delta.gradient, delta.curvature])?;
        }
        client.clock()
    }

    /// Applies a stage to own features of those given.
    fn apply(
        &mut self,
        (stage, features): (&impl Apply<BlockPg, Feature>, &[u32]),
        (state, to, sums): (&State, Tables, bool),
        client: &mut impl Client,
    ) -> Result<(), Error> {
        let is_active = |&feature: &u32| {
            let feature = Read { sync: &self.weights[feature as usize], mirror: &0.0 };
            runs(stage, feature, &context(&mut Totals::default(), state))
        };
        let active: Vec<u32> = self.own(features).filter(is_active).collect();
        if sums {
            client.refresh(to.derivatives, &active)?;
        }
        for feature in active.into_iter().map(|feature| feature as usize) {
            let mut weight = self.weights[feature];
            let cx = &mut context(&mut self.total, state);
            let mut delta = [0.0; 2];
            if sums {
                client.read(to.derivatives, feature, &mut delta)?;
                client.update(to.derivatives, feature, &delta.map(|sum| -sum))?;
            }
            let delta = Derivatives { gradient: delta[0], curvature: delta[1], ..Derivatives::default() };
            let master = &mut self.regions[feature / self.workers];
            stage.apply(Master { sync: &mut weight, master, delta: &delta }, cx);
            let before = self.weights[feature];
            self.weights[feature].trust = weight.trust;
            let change = [weight.value - before.value, weight.resting as f64 - before.resting as f64];
            if change != [0.0; 2] {
                client.update(to.weights, feature, &change)?;
            }
        }
        client.clock()
    }

    /// Reads features' weights, and tells own samples how they changed.
    fn shift(&mut self, features: &[u32], state: &State, from: Tables, client: &mut impl Client) -> Result<(), Error> {
        client.refresh(from.weights, features)?;
        for &feature in features {
            let (feature, mut row) = (feature as usize, [0.0; 2]);
            client.read(from.weights, feature, &mut row)?;
            let change = row[0] - self.weights[feature].value;
            self.weights[feature] = Weight { value: row[0], resting: row[1] as u16, ..self.weights[feature] };
            if change == 0.0 {
                continue;
            }
            let (samples, values) = self.values.of(feature);
            for (&sample, &x) in samples.iter().zip(values) {
                let sample = Update { sync: &mut self.parabolas[sample as usize], mirror: &mut () };
                let view = Read { sync: &self.weights[feature], mirror: &change };
                Shift.exchange(sample, view, &mut { x }, &mut context(&mut self.total, state));
            }
        }
        Ok(())
    }

    /// Applies a stage to own samples.
    fn samples(&mut self, stage: &impl Apply<BlockPg, Sample>, state: &State) {
        for (sync, master) in self.parabolas.iter_mut().zip(&mut self.margins) {
            stage.apply(Master { sync, master, delta: &0.0 }, &mut context(&mut self.total, state));
        }
    }

    /// Adds own features to the total that a leap is decided from.
    fn aim(&mut self) {
        for (at, region) in self.regions.iter().enumerate() {
            let view = Total { sync: &self.weights[self.first + at * self.workers], master: region };
            Aim.aggregate(view, &mut self.total);
        }
    }
}

pub struct Trainer<'j, S: Store> {
    data: Data<'j>,
    tables: Tables,
    team: Team<S>,
    workers: Vec<Worker>,
    state: State,
}

impl<'j, S: Store> Trainer<'j, S> {
    pub fn new(data: Data<'j>, mut store: S, run: &Run) -> Result<Self, Error> {
        let features = data.regions.len();
        let tables = Tables { weights: store.table(features, 2), derivatives: store.table(features, 2) };
        let rows: Vec<f64> = data.weights.iter().flat_map(|w| [w.value, f64::from(w.resting)]).collect();
        store.set(tables.weights, 0, &rows)?;
        let crew = run.crew();
        let of = |(first, (samples, values)): (usize, (Range<usize>, Csr<f32>))| Worker {
            parabolas: data.margins[samples.clone()].iter().map(Margin::parabola).collect(),
            margins: data.margins[samples.clone()].to_vec(),
            samples,
            values,
            weights: data.weights.clone(),
            first,
            workers: crew.all,
            regions: data.regions.iter().skip(first).step_by(crew.all).copied().collect(),
            total: Totals::default(),
        };
        let workers = crew.pick(split(&data.values, crew.all)).map(of).collect();
        let state = data.job.config.state();
        Ok(Self { data, tables, team: Team::new(store, run)?, workers, state })
    }

    /// Lets all workers do something, which takes some clocks, side by side.
    fn all(
        &mut self,
        clocks: u64,
        spent: &mut Vec<Cost>,
        run: impl Fn(&mut Worker, &State, Tables, &mut S::Client) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let (state, tables) = (&self.state, self.tables);
        spent.push(self.team.iterate(&mut self.workers, clocks, |worker, client| run(worker, state, tables, client))?);
        Ok(())
    }

    /// Lets the scheduler join the workers' totals, which are sent to it and answered with the state.
    fn schedule(&mut self, stage: &impl GlobalSync<BlockPg>, spent: &mut Vec<Cost>) -> Result<(), Error> {
        let totals = self.workers.iter_mut().map(|worker| std::mem::take(&mut worker.total)).collect();
        let mut cost = Cost::of(vec![Spent::default(); self.workers.len()]);
        let totals: Vec<Vec<Totals>> = self.team.gather(totals, &mut cost)?;
        sync(stage, totals.concat(), &mut self.state);
        let workers = self.workers.len() as u64;
        cost.sent_bytes = workers * (size_of::<Totals>() + size_of::<State>()) as u64;
        cost.messages = 2 * workers;
        spent.push(cost);
        Ok(())
    }

    fn run_block(&mut self, block: &[u32], spent: &mut Vec<Cost>) -> Result<(), Error> {
        self.all(1, spent, |worker, state, tables, client| worker.differentiate(block, state, tables, client))?;
        self.all(1, spent, |worker, state, to, client| worker.apply((&Step, block), (state, to, true), client))?;
        self.all(0, spent, |worker, state, tables, client| worker.shift(block, state, tables, client))?;
        self.schedule(&Damp, spent)
    }

    fn leap(&mut self, spent: &mut Vec<Cost>) -> Result<(), Error> {
        self.all(0, spent, |worker, state, _, _| {
            worker.samples(&Settle, state);
            worker.aim();
            Ok(())
        })?;
        self.schedule(&Aim, spent)?;
        let features: Vec<u32> = (0..self.data.regions.len() as u32).collect();
        let active: Vec<u32> =
            features.into_iter().filter(|&feature| self.workers[0].weights[feature as usize].resting == 0).collect();
        let active = &active[..];
        self.all(1, spent, |worker, state, to, client| worker.apply((&Plan, active), (state, to, false), client))?;
        self.schedule(&Limit, spent)?;
        self.all(1, spent, |worker, state, to, client| worker.apply((&Leap, active), (state, to, false), client))?;
        self.all(0, spent, |worker, state, tables, client| {
            worker.shift(active, state, tables, client)?;
            worker.samples(&Land, state);
            Ok(())
        })?;
        self.schedule(&Survey, spent)
    }
}

/// Cuts samples into runs with about as many values; values of each by feature, samples counted from the first.
fn split(values: &EdgeList<f32>, workers: usize) -> impl Iterator<Item = (Range<usize>, Csr<f32>)> {
    workers::deal(values, workers).into_iter().map(|(part, mut own)| {
        own.left.iter_mut().for_each(|sample| *sample -= part.start as u32);
        let by_feature = Csr::new(&own, Side::Right, |value| own.data[value]);
        (part, by_feature)
    })
}

impl<S: Store> job::Trainer for Trainer<'_, S> {
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        let mut spent = Vec::new();
        for block in self.data.blocks(iteration) {
            self.run_block(&block, &mut spent)?;
        }
        self.leap(&mut spent)?;
        self.team.settle(Cost::sum(&spent))
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let rows = self.team.all(self.tables.weights, self.data.regions.len())?;
        let weights: Vec<f64> = rows.items().chunks_exact(2).map(|row| row[0]).collect();
        let mine = loss(self.workers.iter().flat_map(|worker| &worker.margins));
        let loss = self.team.processes.sum(mine)?;
        Ok(self.data.measure(loss, &weights, self.state.last.optimality.violation))
    }

    fn finish(&self) -> Finish {
        let of = |worker: &Worker| {
            let samples = worker.samples.len() * (size_of::<Parabola>() + size_of::<Margin>());
            let features = size_of_val(&worker.weights[..]) + size_of_val(&worker.regions[..]);
            worker.values.bytes() + (samples + features) as u64
        };
        self.team.finish(self.workers.iter().map(of).sum(), [self.data.margins.len(), self.data.regions.len()])
    }
}

//! BlockPG as DARLIN has it (Li, Andersen, Smola and Yu 2014; its public code), on a parameter server: weights and sums of derivatives
//! are in the server, each worker keeps samples and is the one that steps its share of the features.
//!
//! With τ_i = 1/(1 + exp m_i), λ = l1 and the trust region δ_k of a feature,
//!
//! ```text
//! g_k = −Σ c_i τ_i y_i x_ik           u_k = Σ c_i x_ik² min(τ_i (1 − τ_i) exp(|x_ik| δ_k), 1/4) + 1e-10
//! d = −(g + λ)/u if g + λ ≤ u w,  −(g − λ)/u if g − λ ≥ u w,  else −w;    |d| ≤ δ;    δ ← min(5, 2 |d| + 0.1)
//! ```
//!
//! **Filter.** A weight at zero with |g| < λ − θ is passed by. θ is infinite in the first iteration, then ten times the last
//! iteration's largest violation over the number of samples. Where the objective hardly falls any more, all features return, for an
//! iteration with infinite θ.
//!
//! The public code marks the weight of a feature that is passed by as not a number, and does not take the mark off when features return: they
//! never do. Here the mark stands beside the weight.
//!
//! **Bounded delay.** Who steps a feature waits for its derivatives from all workers. A block is two clocks, so that with slack s a worker
//! goes on with weights that may lack the steps of the last s/2 blocks. An iteration ends when every worker knows every weight.

use std::collections::BTreeMap;

use megagrid_algorithms::blockpg::Margin;

use super::data::Data;
use super::server::{Tables, split};
use crate::apps::servers::Team;
use crate::gas::csr::Csr;
use crate::job::{self, Cost};
use crate::store::{Client, Store};
use crate::{Error, Finish, Run};

/// The first and the largest trust region, and what a step's leaves beside twice its length.
const FIRST_REGION: f64 = 1.0;
const LARGEST_REGION: f64 = 5.0;
const MORE_REGION: f64 = 0.1;
/// Keeps a step finite where there is no curvature.
const TINY: f64 = 1e-10;
/// The filter's threshold is this many times the violation over the number of samples.
const RATIO: f64 = 10.0;
/// All features return when the objective falls by less than this part of itself.
const EPSILON: f64 = 1e-4;

/// Returns the step of a weight and the violation of its optimality condition, which it had before.
fn step(w: f64, [g, u]: [f64; 2], [l1, l2]: [f64; 2], region: f64) -> [f64; 2] {
    let (g, u) = (g + l2 * w, u + l2 + TINY);
    let violation = if w == 0.0 { (g.abs() - l1).max(0.0) } else { (g + l1 * w.signum()).abs() };
    let d = if g + l1 <= u * w {
        -(g + l1) / u
    } else if g - l1 >= u * w {
        -(g - l1) / u
    } else {
        -w
    };
    [d.clamp(-region, region), violation]
}

/// What all know of a feature.
#[derive(Clone, Copy)]
struct Feature {
    weight: f64,
    is_passed_by: bool,
    region: f64,
}

/// A worker's samples and features.
struct Worker {
    values: Csr<f32>,
    margins: Vec<Margin>,
    features: Vec<Feature>,
    first: usize,
    workers: usize,
    /// The largest violation among own features in the iteration.
    violation: f64,
}

/// What an iteration is about.
struct Iteration<'i> {
    tables: Tables,
    blocks: &'i [Vec<u32>],
    /// Penalties of each feature.
    penalty: &'i (dyn Fn(usize) -> [f64; 2] + Sync),
    /// The filter's threshold; infinite: none.
    threshold: f64,
    /// Whether all features return.
    returns: bool,
    /// Whether workers may not know all weights.
    is_delayed: bool,
}

impl Worker {
    fn iterate(&mut self, of: &Iteration<'_>, client: &mut impl Client) -> Result<(), Error> {
        self.violation = 0.0;
        for block in of.blocks {
            let visited: Vec<usize> = block
                .iter()
                .map(|&feature| feature as usize)
                .filter(|&feature| of.returns || !self.features[feature].is_passed_by)
                .collect();
            self.differentiate(&visited, of, client)?;
            self.update(&visited, of, client)?;
            self.pull(&visited, of, client)?;
        }
        if of.is_delayed { self.catch_up(of, client) } else { Ok(()) }
    }

    /// Pushes the derivatives over own samples.
    fn differentiate(&self, features: &[usize], of: &Iteration<'_>, client: &mut impl Client) -> Result<(), Error> {
        for &feature in features {
            let (mut sums, region) = ([0.0; 2], self.features[feature].region);
            let (samples, values) = self.values.of(feature);
            for (&sample, &x) in samples.iter().zip(values) {
                let (Margin { margin, weight, .. }, x) = (self.margins[sample as usize], f64::from(x));
                let rate = 1.0 / (1.0 + margin.exp());
                let curvature = (rate * (1.0 - rate) * (x.abs() * region).exp()).min(0.25);
                sums[0] -= f64::from(weight) * rate * x;
                sums[1] += f64::from(weight) * x * x * curvature;
            }
            client.update(of.tables.derivatives, feature, &sums)?;
        }
        client.clock()
    }

    /// Steps own features: the server's part.
    fn update(&mut self, features: &[usize], of: &Iteration<'_>, client: &mut impl Client) -> Result<(), Error> {
        for &feature in features.iter().filter(|&&feature| feature % self.workers == self.first) {
            let (mut sums, mut row) = ([0.0; 2], [0.0; 2]);
            client.read_fresh(of.tables.derivatives, feature, &mut sums)?;
            client.update(of.tables.derivatives, feature, &sums.map(|sum| -sum))?;
            client.read(of.tables.weights, feature, &mut row)?;
            let penalty = (of.penalty)(feature);
            let [d, violation] = step(row[0], sums, penalty, self.features[feature].region);
            self.violation = self.violation.max(violation);
            let passed_by = row[0] == 0.0 && sums[0].abs() < penalty[0] - of.threshold;
            let d = if passed_by { 0.0 } else { d };
            client.update(of.tables.weights, feature, &[d, f64::from(u8::from(passed_by)) - row[1]])?;
        }
        client.clock()
    }

    /// Pulls weights, and tells own samples how they changed.
    fn pull(&mut self, features: &[usize], of: &Iteration<'_>, client: &mut impl Client) -> Result<(), Error> {
        for &at in features {
            let mut row = [0.0; 2];
            client.read(of.tables.weights, at, &mut row)?;
            let change = self.take(at, row);
            self.features[at].region = (2.0 * change.abs() + MORE_REGION).min(LARGEST_REGION);
        }
        Ok(())
    }

    /// Pulls all weights.
    fn catch_up(&mut self, of: &Iteration<'_>, client: &mut impl Client) -> Result<(), Error> {
        for at in 0..self.features.len() {
            let mut row = [0.0; 2];
            client.read_fresh(of.tables.weights, at, &mut row)?;
            let change = self.take(at, row);
            if change != 0.0 {
                self.features[at].region = (2.0 * change.abs() + MORE_REGION).min(LARGEST_REGION);
            }
        }
        Ok(())
    }

    /// Takes what was read of a feature, tells own samples, and returns by what the weight changed.
    fn take(&mut self, at: usize, row: [f64; 2]) -> f64 {
        let feature = &mut self.features[at];
        let change = row[0] - feature.weight;
        (feature.weight, feature.is_passed_by) = (row[0], row[1] > 0.0);
        if change != 0.0 {
            let (samples, values) = self.values.of(at);
            for (&sample, &x) in samples.iter().zip(values) {
                self.margins[sample as usize].margin += f64::from(x) * change;
            }
        }
        change
    }
}

/// A job on this system.
pub struct Trainer<'j, S: Store> {
    data: Data<'j>,
    tables: Tables,
    team: Team<S>,
    workers: Vec<Worker>,
    violation: f64,
    objectives: [f64; 2],
    is_delayed: bool,
}

impl<'j, S: Store> Trainer<'j, S> {
    pub fn new(data: Data<'j>, mut store: S, run: &Run) -> Result<Self, Error> {
        let features = data.regions.len();
        let tables = Tables { weights: store.table(features, 2), derivatives: store.table(features, 2) };
        store.set(tables.weights, 0, &vec![0.0; 2 * features])?;
        let first = Feature { weight: 0.0, is_passed_by: false, region: FIRST_REGION };
        let worker = |(at, (samples, values)): (usize, (std::ops::Range<usize>, Csr<f32>))| Worker {
            values,
            margins: data.margins[samples].to_vec(),
            features: vec![first; features],
            first: at,
            workers: run.workers,
            violation: 0.0,
        };
        let workers = split(&data.values, run.workers).into_iter().enumerate().map(worker).collect();
        let objectives = [f64::INFINITY; 2];
        Ok(Self {
            data,
            tables,
            team: Team::new(store)?.without_pattern(),
            workers,
            violation: 0.0,
            objectives,
            is_delayed: run.slack > 0,
        })
    }
}

impl<S: Store> job::Trainer for Trainer<'_, S> {
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        let [before, last] = self.objectives;
        let returns = iteration == 1 || before / last - 1.0 <= EPSILON;
        let threshold =
            if returns { f64::INFINITY } else { RATIO * self.violation / self.data.margins.len().max(1) as f64 };
        let (config, intercept) = (self.data.job.config, self.data.job.intercept);
        let penalty = |feature| if intercept == Some(feature) { [0.0; 2] } else { [config.l1, config.l2] };
        let blocks = self.data.blocks(iteration);
        let of = Iteration {
            tables: self.tables,
            blocks: &blocks,
            penalty: &penalty,
            threshold,
            returns,
            is_delayed: self.is_delayed,
        };
        let clocks = 2 * blocks.len() as u64;
        let cost = self.team.iterate(&mut self.workers, clocks, |worker, client| worker.iterate(&of, client))?;
        self.violation = self.workers.iter().map(|worker| worker.violation).fold(0.0, f64::max);
        Ok(cost)
    }

    fn measure(&mut self) -> Result<(f64, BTreeMap<&'static str, f64>), Error> {
        let rows = self.team.store.all(self.tables.weights, self.data.regions.len(), self.team.clocks)?;
        let weights: Vec<f64> = rows.items().chunks_exact(2).map(|row| row[0]).collect();
        let margins = self.workers.iter().flat_map(|worker| &worker.margins);
        let (objective, mut metrics) = self.data.measure(margins, &weights, self.violation);
        metrics.insert("passed_by", rows.items().chunks_exact(2).filter(|row| row[1] > 0.0).count() as f64);
        self.objectives = [self.objectives[1], objective];
        Ok((objective, metrics))
    }

    fn finish(&self) -> Finish {
        let usage = self.team.store.usage();
        let of = |worker: &Worker| {
            worker.values.bytes() + (size_of_val(&worker.margins[..]) + size_of_val(&worker.features[..])) as u64
        };
        let memory_bytes = usage.memory_bytes + self.workers.iter().map(of).sum::<u64>();
        Finish { staleness: usage.staleness, memory_bytes, ..Finish::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use megagrid_algorithms::blockpg::Config;
    use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};

    use super::super::{Job, Rules, run};
    use super::*;
    use crate::job::Trainer as _;
    use crate::naive::Naive;
    use crate::{Epoch, System};

    /// Samples that the first of three features tells apart, the second a little, the third not.
    fn signed() -> GroupedEdges<f32> {
        let mut random = SplitMix::new(2, 0);
        let mut list = EdgeList { num_left: 200, num_right: 3, ..EdgeList::default() };
        for sample in 0..200 {
            let label = if random.unit() < 0.5 { 1.0 } else { -1.0 };
            for (feature, tells) in [1.0, 0.6, 0.0].into_iter().enumerate() {
                list.left.push(sample);
                list.right.push(feature as u32);
                list.data.push((label * (tells * label + 2.0 * (random.unit() - 0.5))) as f32);
            }
        }
        GroupedEdges::new(list, &[Side::Right])
    }

    fn job(signed: &GroupedEdges<f32>) -> Job<'_> {
        let config = Config { l1: 2.0, l2: 0.0 };
        let rules = Rules::Darlin;
        Job { signed, sample_weights: &[], intercept: None, config, block_values: 200, blocks: None, rules }
    }

    fn objective(system: System, job: &Job<'_>, workers: usize, slack: u64, iterations: u64) -> f64 {
        let mut last = f64::NAN;
        let mut report = |epoch: &Epoch| {
            last = epoch.objective;
            ControlFlow::Continue(())
        };
        run(system, job, &Run { workers, iterations, slack, ..Run::default() }, &mut report).unwrap();
        last
    }

    #[test]
    fn it_ends_where_megagrids_rules_end_also_with_delay() {
        let signed = signed();
        let darlin = job(&signed);
        let optimum = objective(System::Gas, &Job { rules: Rules::Shared, ..darlin }, 1, 0, 40);
        for (workers, slack) in [(1, 0), (2, 0), (2, 2)] {
            for system in [System::PsNaive, System::Essp] {
                let found = objective(system, &darlin, workers, slack, 60);
                assert!((found / optimum - 1.0).abs() < 1e-6, "{system}, {workers}, {slack}: {found}, not {optimum}");
            }
        }
    }

    /// The second feature is marked as if the filter had been wrong about it: the mark is taken off, and it gets its weight.
    #[test]
    fn a_feature_that_was_wrongly_passed_by_returns() {
        let signed = signed();
        let (job, run) = (job(&signed), Run::default());
        let optimum = objective(System::PsNaive, &job, 1, 0, 60);
        let data = Data::new(&job, &run).unwrap();
        let mut trainer = Trainer::new(data, Naive::new(1, 0), &run).unwrap();
        trainer.workers[0].features[1].is_passed_by = true;
        // Not the first iteration, in which all features are visited.
        let objectives: Vec<f64> = (2..60)
            .map(|iteration| {
                trainer.iterate(iteration).unwrap();
                trainer.measure().unwrap().0
            })
            .collect();
        assert!(objectives[1] > optimum + 1.0, "without the feature it cannot be good: {objectives:?}, {optimum}");
        assert!((objectives[57] / optimum - 1.0).abs() < 1e-6, "{objectives:?}, {optimum}");
        assert!(!trainer.workers[0].features[1].is_passed_by && trainer.workers[0].features[1].weight != 0.0);
    }

    #[test]
    fn a_step_meets_the_optimality_condition() {
        for (w, g, l1) in [(0.5, 2.0, 1.0), (-0.5, -2.0, 1.0), (0.1, 0.3, 1.0), (0.0, 0.5, 1.0), (0.0, -3.0, 1.0)] {
            let u = 4.0;
            let [d, _] = step(w, [g, u], [l1, 0.0], 5.0);
            // The slope of the model of the loss at the new weight.
            let (next, slope) = (w + d, g + (u + TINY) * d);
            let violation = if next == 0.0 { (slope.abs() - l1).max(0.0) } else { (slope + l1 * next.signum()).abs() };
            assert!(violation < 1e-9, "{w} {g}: {next}, {violation}");
        }
        assert_eq!(step(0.0, [-100.0, 1.0], [1.0, 0.0], 0.25)[0], 0.25);
    }
}

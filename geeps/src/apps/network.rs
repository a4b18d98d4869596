//! A multi-layer perceptron with a softmax at its end, or without hidden layers multinomial logistic regression:
//! layer by layer, as in Algorithm 4, with a table for each layer.
//!
//! Minimizes the mean over samples of −ln p, where p is what softmax(z) has for the sample's class and z is the last of
//! x₀ = the sample, x₍ₗ₊₁₎ = max(xₗ Wₗ + bₗ, 0), without the maximum at the end. Each worker takes a mini-batch of its
//! own per iteration, and all add `−step / workers` times the gradient of their batch's mean loss, or of a velocity of their own
//! (momentum; velocities of all add up to that of the mean gradient), or AdaGrad's step with a history of their own.
//!
//! | layer | holds | moves for nothing are left out by |
//! |---|---|---|
//! | forward l | Wₗ, xₗ, xₗ₊₁ | no fetch of xₗ₊₁, no save of xₗ |
//! | loss | z, errors, labels, losses | no fetch of the last three |
//! | backward l | Wₗ, update of Wₗ, xₗ, errors of l and l + 1, history | no save of xₗ and errors of l + 1 |
//!
//! Inputs are dense: a mini-batch takes `batch × features` values, and a layer `(inputs + 1) × outputs`.

use std::collections::BTreeMap;

use megagrid_partition::SplitMix;

use super::{Application, Measured, Place, Samples};
use crate::Error;
use crate::device::{Command, DeviceRange, MatMul};
use crate::rows;
use crate::session::Session;
use crate::table::{LocalId, RowsId, TableId, Tables};
use crate::virtual_iteration::VirtualIteration;

/// Values of a row of a table (section 4.4.1).
const ROW: usize = 128;

/// Values of a table at most: 16 GiB.
pub(super) const MOST_VALUES: usize = 1 << 32;

/// How gradients become updates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// The step times the gradient.
    Sgd,
    /// The step times a velocity, `velocity = momentum · velocity + gradient` (section 4.4.1), which is local data of each worker.
    Momentum {
        /// What is kept of a velocity, from 0 to below 1.
        momentum: f32,
    },
    /// AdaGrad, whose history is local data of each worker.
    AdaGrad,
}

/// The network and what it is trained on.
#[derive(Clone, Debug)]
pub struct Network {
    samples: Samples,
    /// Outputs of each layer, the input first.
    dims: Vec<usize>,
    workers: usize,
    batch: usize,
    step: f32,
    optimizer: Optimizer,
    seed: u64,
}

/// The lists and local data of a worker.
#[derive(Debug)]
pub struct Worker {
    number: usize,
    params: Vec<RowsId>,
    /// Of each layer's input, the logits at the end.
    activations: Vec<LocalId>,
    /// Derivatives by what each layer puts out.
    errors: Vec<LocalId>,
    histories: Vec<LocalId>,
    labels: LocalId,
    losses: LocalId,
    /// The samples of this epoch in their order, and their rows.
    order: Vec<u32>,
    rows: Vec<f32>,
}

/// How a network is trained.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Outputs of the hidden layers; none for logistic regression.
    pub hidden: Vec<usize>,
    /// How many workers there are.
    pub workers: usize,
    /// Samples of a worker's mini-batch.
    pub batch: usize,
    /// The step.
    pub step: f32,
    /// How gradients become updates.
    pub optimizer: Optimizer,
    /// Decides first values and the order of samples.
    pub seed: u64,
}

impl Network {
    /// Makes a network for samples.
    ///
    /// # Errors
    /// Settings out of range; fewer samples than all workers need for one mini-batch each.
    pub fn new(samples: Samples, settings: Settings) -> Result<Self, Error> {
        let Settings { hidden, workers, batch, step, optimizer, seed } = settings;
        let refused = |name, found: String, expected: String| Err(Error::Setting { name, found, expected });
        if !(step.is_finite() && step > 0.0) {
            return refused("step", step.to_string(), "a number above 0".to_owned());
        }
        if let Optimizer::Momentum { momentum } = optimizer
            && !(0.0..1.0).contains(&momentum)
        {
            return refused("momentum", momentum.to_string(), "0 to below 1".to_owned());
        }
        if let Some(width) = hidden.iter().find(|&&width| width == 0) {
            return refused("hidden", width.to_string(), "layers of 1 and more".to_owned());
        }
        if workers == 0 || workers > samples.len() {
            return refused("workers", workers.to_string(), format!("1 to the number of samples, {}", samples.len()));
        }
        if batch == 0 || workers.saturating_mul(batch) > samples.len() {
            let most = samples.len() / workers;
            let expected = format!("1 to {most}, as {workers} workers share {} samples", samples.len());
            return refused("batch", batch.to_string(), expected);
        }
        if samples.num_classes() < 2 {
            return refused("number of classes", samples.num_classes().to_string(), "2 and more".to_owned());
        }
        let dims = [&[samples.num_features()], &hidden[..], &[samples.num_classes()]].concat();
        let values = |pair: &[usize]| pair[0].checked_add(1).and_then(|inputs| inputs.checked_mul(pair[1]));
        if dims.windows(2).any(|pair| values(pair).is_none_or(|values| values > MOST_VALUES)) {
            let found = hidden.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let expected = format!("layers of {MOST_VALUES} weights at most; {} features come in", dims[0]);
            return refused("hidden", found, expected);
        }
        Ok(Self { samples, dims, workers, batch, step, optimizer, seed })
    }

    fn layers(&self) -> usize {
        self.dims.len() - 1
    }

    /// Returns the values of a layer's weights and biases.
    fn params(&self, layer: usize) -> usize {
        (self.dims[layer] + 1) * self.dims[layer + 1]
    }

    /// Cuts what a layer's table has into weights, row by row of inputs, and biases.
    fn parts(&self, layer: usize, table: DeviceRange) -> [DeviceRange; 2] {
        let (inputs, outputs) = (self.dims[layer], self.dims[layer + 1]);
        [table.part(0, inputs * outputs), table.part(inputs * outputs, outputs)]
    }

    /// Tells samples of a worker's mini-batch. All samples are shuffled in each epoch; what is beyond the last whole
    /// mini-batch of all workers waits for another epoch.
    fn draw<'w>(&self, worker: &'w mut Worker, place: Place) -> &'w [u32] {
        if place.iteration == 0 {
            worker.order = (0..self.samples.len() as u32).collect();
            SplitMix::new(self.seed, place.epoch).shuffle(&mut worker.order);
        }
        let begin = (place.iteration as usize * self.workers + worker.number) * self.batch;
        worker.order.get(begin..begin + self.batch).unwrap_or(&[])
    }

    fn forward(&self, layer: usize, worker: &Worker, session: &mut impl Session) -> Result<(), Error> {
        let params = session.read(worker.params[layer])?;
        let x = if layer == 0 {
            let x = session.local_access_no_fetch(worker.activations[0])?;
            session.upload(x.range(), &worker.rows)?;
            x
        } else {
            session.local_access(worker.activations[layer])?
        };
        let y = session.local_access_no_fetch(worker.activations[layer + 1])?;
        let [weights, bias] = self.parts(layer, params.range());
        let (m, n, k) = (self.batch, self.dims[layer + 1], self.dims[layer]);
        let (a, to) = (x.range(), y.range());
        let product = MatMul { a, b: weights, to, m, n, k, transpose_a: false, transpose_b: false, alpha: 1.0 };
        let mut commands = vec![Command::MatMul(product), Command::AddBias { bias, to }];
        if layer + 1 < self.layers() {
            commands.push(Command::Relu { to });
        }
        session.submit(&commands)?;
        session.post_read(params)?;
        if layer == 0 {
            session.post_local_access(x)?;
        } else {
            session.post_local_access_no_save(x)?;
        }
        session.post_local_access(y)
    }

    /// Makes an update of a gradient and of what came before it.
    fn adapted(&self, update: DeviceRange, history: DeviceRange) -> Vec<Command> {
        let step = self.step / self.workers as f32;
        match self.optimizer {
            Optimizer::Sgd => Vec::new(),
            Optimizer::AdaGrad => vec![Command::AdaGrad { update, history, step, epsilon: 1e-6 }],
            // The velocity in place of the gradient, and back from there as the step.
            Optimizer::Momentum { momentum } => vec![
                Command::Axpy { alpha: momentum, x: history, y: update },
                Command::Copy { from: update, to: history },
                Command::Scale { alpha: -step, x: history, to: update },
            ],
        }
    }

    /// Returns the sum of losses.
    fn loss(&self, worker: &Worker, classes: &[f32], session: &mut impl Session) -> Result<f64, Error> {
        let logits = session.local_access(worker.activations[self.layers()])?;
        let errors = session.local_access_no_fetch(worker.errors[self.layers() - 1])?;
        let labels = session.local_access_no_fetch(worker.labels)?;
        let losses = session.local_access_no_fetch(worker.losses)?;
        session.upload(labels.range(), classes)?;
        let command = Command::SoftmaxCrossEntropy {
            logits: logits.range(),
            labels: labels.range(),
            errors: errors.range(),
            losses: losses.range(),
        };
        session.submit(&[command])?;
        let found = session.download(losses.range())?;
        session.post_local_access_no_save(logits)?;
        session.post_local_access(errors)?;
        session.post_local_access_no_save(labels)?;
        session.post_local_access_no_save(losses)?;
        Ok(found.iter().map(|&loss| f64::from(loss)).sum())
    }

    fn backward(&self, layer: usize, worker: &Worker, session: &mut impl Session) -> Result<(), Error> {
        let (inputs, outputs) = (self.dims[layer], self.dims[layer + 1]);
        let update = session.pre_update(worker.params[layer])?;
        let x = session.local_access(worker.activations[layer])?;
        let errors = session.local_access(worker.errors[layer])?;
        let [weights, bias] = self.parts(layer, update.range());
        let alpha = match self.optimizer {
            Optimizer::Sgd => -self.step / self.workers as f32,
            Optimizer::AdaGrad | Optimizer::Momentum { .. } => 1.0,
        };
        let (a, b) = (x.range(), errors.range());
        let (m, n, k) = (inputs, outputs, self.batch);
        let gradient = MatMul { a, b, to: weights, m, n, k, transpose_a: true, transpose_b: false, alpha };
        session.submit(&[Command::MatMul(gradient), Command::SumRows { from: b, to: bias, alpha }])?;
        if let Some(&history) = worker.histories.get(layer) {
            let history = session.local_access(history)?;
            let update = update.range().part(0, self.params(layer));
            session.submit(&self.adapted(update, history.range()))?;
            session.post_local_access(history)?;
        }
        if layer > 0 {
            let params = session.read(worker.params[layer])?;
            let below = session.local_access_no_fetch(worker.errors[layer - 1])?;
            let [weights, _] = self.parts(layer, params.range());
            let (a, to) = (errors.range(), below.range());
            let (m, n, k) = (self.batch, inputs, outputs);
            let product = MatMul { a, b: weights, to, m, n, k, transpose_a: false, transpose_b: true, alpha: 1.0 };
            session.submit(&[Command::MatMul(product), Command::ReluGradient { activations: x.range(), to }])?;
            session.post_read(params)?;
            session.post_local_access(below)?;
        }
        session.update(update)?;
        session.post_local_access_no_save(x)?;
        session.post_local_access_no_save(errors)?;
        session.table_clock(TableId(layer))
    }
}

impl Application for Network {
    type Worker = Worker;

    fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        for layer in 0..self.layers() {
            tables.add(format!("weights {}", layer + 1), self.params(layer).div_ceil(ROW), ROW);
        }
        tables
    }

    /// Weights are uniform with variance 2 / inputs (He et al., 2015), biases zeros.
    fn first_values(&self) -> Result<Vec<Vec<f32>>, Error> {
        let of_layer = |layer: usize| {
            let mut random = SplitMix::new(self.seed, u64::MAX - layer as u64);
            let most = (6.0 / self.dims[layer] as f64).sqrt();
            let mut values = rows::zeros(self.params(layer).next_multiple_of(ROW))?;
            let weights = &mut values[..self.dims[layer] * self.dims[layer + 1]];
            weights.iter_mut().for_each(|value| *value = (most * (2.0 * random.unit() - 1.0)) as f32);
            Ok(values)
        };
        (0..self.layers()).map(of_layer).collect()
    }

    fn iterations(&self) -> u64 {
        (self.samples.len() / (self.batch * self.workers)) as u64
    }

    fn declare(&self, worker: usize, session: &mut VirtualIteration) -> Result<Worker, Error> {
        let layers = 0..self.layers();
        let mut locals = |name: &str, range: std::ops::Range<usize>, len: &dyn Fn(usize) -> usize| {
            range.map(|at| session.local(format!("{name} {}", at + 1), len(at))).collect::<Vec<_>>()
        };
        let activations = locals("activations", 0..self.layers() + 1, &|at| self.batch * self.dims[at]);
        let errors = locals("errors", layers.clone(), &|at| self.batch * self.dims[at + 1]);
        let kept = if self.optimizer == Optimizer::Sgd { 0..0 } else { layers.clone() };
        let histories = locals("history", kept, &|at| self.params(at));
        Ok(Worker {
            number: worker,
            params: layers.map(|layer| session.all_rows(TableId(layer))).collect(),
            activations,
            errors,
            histories,
            labels: session.local("labels", self.batch),
            losses: session.local("losses", self.batch),
            order: Vec::new(),
            rows: Vec::new(),
        })
    }

    fn iterate(&self, worker: &mut Worker, place: Place, session: &mut impl Session) -> Result<f64, Error> {
        let samples = self.draw(worker, place).to_vec();
        self.samples.write_rows(&samples, &mut worker.rows);
        let classes: Vec<f32> =
            samples.iter().map(|&sample| f32::from_bits(self.samples.class(sample as usize))).collect();
        for layer in 0..self.layers() {
            self.forward(layer, worker, session)?;
        }
        let loss = self.loss(worker, &classes, session)?;
        for layer in (0..self.layers()).rev() {
            self.backward(layer, worker, session)?;
        }
        Ok(loss)
    }

    fn samples(&self, _: usize) -> u64 {
        self.batch as u64
    }

    /// The mean loss, and the part of samples whose most probable class is theirs.
    fn measure(&self, values: &[Vec<f32>]) -> Measured {
        let (mut loss, mut right) = (0.0, 0_usize);
        for sample in 0..self.samples.len() {
            let mut x: Vec<(usize, f32)> = self.samples.features(sample).collect();
            let mut y = Vec::new();
            for (layer, params) in values.iter().enumerate() {
                let outputs = self.dims[layer + 1];
                let (weights, bias) = params[..self.params(layer)].split_at(self.dims[layer] * outputs);
                y = bias.to_vec();
                for &(input, value) in &x {
                    let row = &weights[input * outputs..][..outputs];
                    y.iter_mut().zip(row).for_each(|(y, weight)| *y += value * weight);
                }
                x = y.iter().copied().enumerate().filter(|&(_, value)| value > 0.0 || value.is_nan()).collect();
            }
            let class = self.samples.class(sample) as usize;
            let top = y.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = y.iter().map(|&z| f64::from(z - top).exp()).sum();
            loss += sum.ln() - f64::from(y[class] - top);
            right += usize::from(y.iter().position(|&z| z == top) == Some(class));
        }
        let of = |sum: f64| sum / self.samples.len() as f64;
        Measured { objective: of(loss), metrics: BTreeMap::from([("accuracy", of(right as f64))]) }
    }
}

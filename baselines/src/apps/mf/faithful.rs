//! Matrix factorization as PowerGraph's toolkit has it: users gather and send items their part as messages, items apply these.

use megagrid_algorithms::mf::{Config, Optimizer};
use megagrid_partition::Side;
use serde::{Deserialize, Serialize};

use super::job::Job;
use crate::gas::cut::edges_here;
use crate::gas::faithful::{EdgeView, Faithful, Signals, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::rows::Rows;
use crate::{Error, Finish, Run, System};

/// A factor, and the sum of its mean squared gradients.
#[derive(Serialize, Deserialize)]
struct Vertex {
    factor: Vec<f64>,
    squares: f64,
}

struct Descend {
    config: Config,
    num_users: usize,
    iteration: u64,
}

impl Descend {
    /// Returns `error other − lambda vertex`.
    fn gradient(&self, error: f64, other: &[f64], vertex: &[f64]) -> Vec<f64> {
        let lambda = f64::from(self.config.lambda);
        other.iter().zip(vertex).map(|(other, own)| error * other - lambda * own).collect()
    }

    fn step(&self, vertex: &mut Vertex, gradient: &[f64], one: usize) {
        let config = &self.config;
        let step = if config.optimizer == Optimizer::AdaGrad {
            vertex.squares += gradient.iter().map(|g| g * g).sum::<f64>() / gradient.len() as f64;
            f64::from(config.step) / (1.0 + vertex.squares).sqrt()
        } else {
            f64::from(config.step) / (1.0 + f64::from(config.decay) * (self.iteration - 1) as f64)
        };
        vertex.factor.iter_mut().zip(gradient).for_each(|(value, gradient)| *value += step * gradient);
        if config.biases {
            vertex.factor[one] = 1.0;
        }
    }
}

impl VertexProgram for Descend {
    type Vertex = Vertex;
    type Edge = f32;
    type Gather = Vec<f64>;
    type Message = Vec<f64>;

    fn message_bytes(&self) -> u64 {
        8 * self.config.row_dims() as u64
    }

    fn phases(&self, id: usize) -> [bool; 2] {
        [id < self.num_users, true]
    }

    fn gather(&self, edge: EdgeView<'_, Self>, signals: &Signals<'_, Self>) -> Vec<f64> {
        let (user, item) = (&edge.vertex.factor, &edge.other.factor);
        let error = f64::from(edge.edge) - user.iter().zip(item).map(|(p, q)| p * q).sum::<f64>();
        signals.signal(edge.other_id, self.gradient(error, user, item));
        self.gradient(error, item, user)
    }

    fn add(&self, sum: &mut Vec<f64>, part: Vec<f64>) {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }

    fn combine(&self, sum: &mut Vec<f64>, message: Vec<f64>) {
        self.add(sum, message);
    }

    fn apply(&self, id: usize, vertex: &mut Vertex, sum: Option<Vec<f64>>, message: Vec<f64>) {
        if id < self.num_users {
            if let Some(gradient) = sum {
                self.step(vertex, &gradient, self.config.dims + 1);
            }
        } else {
            self.step(vertex, &message, self.config.dims);
        }
    }

    fn scatter(&self, edge: EdgeView<'_, Self>, signals: &Signals<'_, Self>) {
        signals.signal(edge.other_id, vec![0.0; edge.other.factor.len()]);
    }
}

pub struct Trainer<'j> {
    job: Job<'j>,
    gas: Faithful<Descend>,
    program: Descend,
}

impl<'j> Trainer<'j> {
    pub fn new(job: &Job<'j>, run: &Run) -> Result<Self, Error> {
        let Job { ratings, config, .. } = *job;
        let (dims, num_users) = (config.row_dims(), ratings.num_left);
        let mut vertices = Vec::with_capacity(num_users + ratings.num_right);
        job.init(run.seed, |_, _, first| {
            let mut row = vec![0.0; dims];
            first(&mut row);
            vertices.push(Vertex { factor: row.into_iter().map(f64::from).collect(), squares: 0.0 });
        });
        let own = edges_here(ratings, &*run.strategy(System::GasFaithful)?, &run.processes);
        let mut gas = Faithful::new(&own, |edge| own.data[edge], vertices, run)?;
        (0..num_users).for_each(|user| gas.signal(user, vec![0.0; dims]));
        Ok(Self { job: *job, gas, program: Descend { config, num_users, iteration: 0 } })
    }
}

impl job::Trainer for Trainer<'_> {
    /// Two supersteps: users, then items.
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        self.program.iteration = iteration;
        let steps = [Side::Left, Side::Right].map(|_| self.gas.superstep(&self.program));
        Ok(Cost::sum(&steps.into_iter().collect::<Result<Vec<_>, _>>()?))
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let width = megagrid_stages::row_width(self.job.config.row_dims());
        let mut rows = Rows::<f32>::zeros(self.gas.cut().num_vertices(), width);
        self.gas.visit_all(|id, vertex| {
            rows.row_mut(id).iter_mut().zip(&vertex.factor).for_each(|(into, &value)| *into = value as f32);
        })?;
        let (num_users, processes) = (self.program.num_users, self.gas.cut().processes());
        self.job.measure(
            (processes, processes.part(num_users), self.gas.threads().level()),
            |user| rows.row(user),
            |item| rows.row(num_users + item),
        )
    }

    fn finish(&self) -> Finish {
        self.gas.finish(8 * self.job.config.row_dims(), 0)
    }
}

//! Networks of which only the shapes are given: what they hold and compute, without any values.

use super::{Application, Measured, Place};
use crate::Error;
use crate::device::{Command, DeviceRange, MatMul};
use crate::rows;
use crate::session::{ReadBuffer, Session, UpdateBuffer};
use crate::table::{LocalId, RowsId, TableId, Tables};
use crate::virtual_iteration::VirtualIteration;

/// Values of a row of a table.
const ROW: usize = 128;

/// A layer by its shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What it is called.
    pub name: &'static str,
    /// Weights and biases.
    pub params: usize,
    /// Activations of one image that it puts out; it keeps as many derivatives.
    pub outputs: usize,
    /// Products of one image on the way forward; backward there are twice as many.
    pub products: usize,
}

/// A network whose virtual iteration goes forward and backward through its layers. It is there to be planned, not to
/// be run.
#[derive(Clone, Debug)]
pub struct Shapes {
    layers: Vec<Shape>,
    inputs: usize,
    images: usize,
    /// Whether all layers are in one table, so that their updates leave together.
    has_one_table: bool,
}

/// The lists and local data of a worker.
#[derive(Debug)]
pub struct Worker {
    params: Vec<Option<RowsId>>,
    activations: Vec<LocalId>,
    errors: Vec<LocalId>,
}

impl Shapes {
    /// Makes a network for mini-batches of `images` images of `inputs` values.
    #[must_use]
    pub fn new(layers: Vec<Shape>, inputs: usize, images: usize) -> Self {
        Self { layers, inputs, images, has_one_table: false }
    }

    /// Puts all layers in one table.
    #[must_use]
    pub fn in_one_table(mut self) -> Self {
        self.has_one_table = true;
        self
    }

    /// Returns the layers.
    #[must_use]
    pub fn layers(&self) -> &[Shape] {
        &self.layers
    }

    /// Returns the products of an iteration, forward and backward.
    #[must_use]
    pub fn products(&self) -> u64 {
        let of_image: usize = self.layers.iter().map(|layer| 3 * layer.products).sum();
        (of_image * self.images) as u64
    }

    /// A command that costs as much as a layer of `products` products of an image: a product of matrices, those of
    /// weights about square.
    fn compute(&self, products: usize, session: &mut impl Session) -> Result<(), Error> {
        let n = products.isqrt().max(1);
        let (m, k) = (self.images, products.div_ceil(n));
        let range = |buffer, len| DeviceRange { buffer, start: 0, len };
        let (a, b, to) = (range(0, m * k), range(1, k * n), range(2, m * n));
        let product = MatMul { a, b, to, m, n, k, transpose_a: false, transpose_b: false, alpha: 1.0 };
        session.submit(&[Command::MatMul(product)])
    }

    fn rows(&self, layer: usize) -> usize {
        self.layers[layer].params.div_ceil(ROW)
    }

    fn forward(&self, layer: usize, worker: &Worker, session: &mut impl Session) -> Result<(), Error> {
        let params = worker.params[layer].map(|rows| session.read(rows)).transpose()?;
        let x = if layer == 0 {
            let x = session.local_access_no_fetch(worker.activations[0])?;
            session.upload(x.range(), &[])?;
            x
        } else {
            session.local_access(worker.activations[layer])?
        };
        let y = session.local_access_no_fetch(worker.activations[layer + 1])?;
        self.compute(self.layers[layer].products, session)?;
        params.map(|params: ReadBuffer| session.post_read(params)).transpose()?;
        if layer == 0 {
            session.post_local_access(x)?;
        } else {
            session.post_local_access_no_save(x)?;
        }
        session.post_local_access(y)
    }

    fn backward(&self, layer: usize, worker: &Worker, session: &mut impl Session) -> Result<(), Error> {
        let params = worker.params[layer].map(|rows| session.read(rows)).transpose()?;
        let update = worker.params[layer].map(|rows| session.pre_update(rows)).transpose()?;
        let x = session.local_access(worker.activations[layer])?;
        let errors = if layer + 1 == self.layers.len() {
            session.local_access_no_fetch(worker.errors[layer])?
        } else {
            session.local_access(worker.errors[layer])?
        };
        let below = (layer > 0).then(|| session.local_access_no_fetch(worker.errors[layer - 1])).transpose()?;
        self.compute(2 * self.layers[layer].products, session)?;
        params.map(|params: ReadBuffer| session.post_read(params)).transpose()?;
        update.map(|update: UpdateBuffer| session.update(update)).transpose()?;
        session.post_local_access_no_save(x)?;
        session.post_local_access_no_save(errors)?;
        below.map(|below| session.post_local_access(below)).transpose()?;
        if self.has_one_table || worker.params[layer].is_none() {
            return Ok(());
        }
        session.table_clock(TableId(self.table(layer)))
    }

    /// Returns the table of a layer: those without parameters have none.
    fn table(&self, layer: usize) -> usize {
        self.layers[..layer].iter().filter(|layer| layer.params > 0).count()
    }
}

impl Application for Shapes {
    type Worker = Worker;

    fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        let of_layers = (0..self.layers.len()).filter(|&layer| self.layers[layer].params > 0);
        if self.has_one_table {
            tables.add("all", of_layers.map(|layer| self.rows(layer)).sum(), ROW);
        } else {
            for layer in of_layers {
                tables.add(self.layers[layer].name, self.rows(layer), ROW);
            }
        }
        tables
    }

    fn first_values(&self) -> Result<Vec<Vec<f32>>, Error> {
        self.tables().iter().map(|(_, table)| rows::zeros(table.len())).collect()
    }

    fn iterations(&self) -> u64 {
        1
    }

    fn declare(&self, _: usize, session: &mut VirtualIteration) -> Result<Worker, Error> {
        let (mut params, mut first) = (Vec::new(), 0);
        for layer in 0..self.layers.len() {
            let rows = self.rows(layer);
            params.push(match (rows, self.has_one_table) {
                (0, _) => None,
                (_, false) => Some(session.all_rows(TableId(self.table(layer)))),
                (_, true) => Some(session.rows(TableId(0), (first..first + rows as u32).collect())?),
            });
            first += rows as u32;
        }
        let mut activations = vec![session.local("input", self.images * self.inputs)];
        let mut errors = Vec::new();
        for layer in &self.layers {
            activations.push(session.local(layer.name, self.images * layer.outputs));
            errors.push(session.local(format!("errors of {}", layer.name), self.images * layer.outputs));
        }
        Ok(Worker { params, activations, errors })
    }

    fn iterate(&self, worker: &mut Worker, _: Place, session: &mut impl Session) -> Result<f64, Error> {
        for layer in 0..self.layers.len() {
            self.forward(layer, worker, session)?;
        }
        for layer in (0..self.layers.len()).rev() {
            self.backward(layer, worker, session)?;
        }
        if self.has_one_table {
            session.table_clock(TableId(0))?;
        }
        Ok(0.0)
    }

    fn samples(&self, _: usize) -> u64 {
        self.images as u64
    }

    fn measure(&self, _: &[Vec<f32>]) -> Measured {
        Measured::default()
    }
}

//! What is to be factorized, and what all systems need of it.

use std::collections::BTreeMap;

use megagrid_algorithms::als::{Config, Gramians, OfSide, gramian};
use megagrid_partition::{EdgeList, Side};
use megagrid_stages::kernels::dot;
use megagrid_stages::row_width;

use crate::Error;
use crate::job::Measured;
use crate::rows::Rows;
use crate::workers::offsets;

/// What is to be factorized.
#[derive(Clone, Copy, Debug)]
pub struct Job<'j> {
    /// Feedback, above 0: pairs without are no edges.
    pub feedback: &'j EdgeList<f32>,
    /// Parameters.
    pub config: Config,
}

impl Job<'_> {
    /// Returns how many vertices a side has.
    pub(super) fn len(&self, side: Side) -> usize {
        if side == Side::Left { self.feedback.num_left } else { self.feedback.num_right }
    }

    /// Returns the weight of each vertex's regularizer; nothing of those without feedback, whose rows are 0.
    pub(super) fn rhos(&self, side: Side) -> Vec<Option<f32>> {
        let ends = if side == Side::Left { &self.feedback.left } else { &self.feedback.right };
        let rho = |edges: usize| (edges > 0).then(|| self.config.rho(edges, self.len(side.other())));
        offsets(ends, self.len(side)).windows(2).map(|pair| rho((pair[1] - pair[0]) as usize)).collect()
    }

    /// Returns the first rows of items, those of users are 0, and the Gramian of what all items begin with, which is 0 afterwards where
    /// there is no feedback.
    pub(super) fn first(&self, seed: u64) -> (Rows<f32>, Vec<f64>) {
        let config = self.config;
        let mut items = Rows::zeros(self.len(Side::Right), row_width(config.dims));
        for (item, _) in self.rhos(Side::Right).into_iter().enumerate().filter(|(_, rho)| rho.is_some()) {
            config.init_item(seed, item, items.row_mut(item));
        }
        (items, gramian(config.dims, self.len(Side::Right), |item, row| config.init_item(seed, item, row)))
    }

    /// Measures the objective of rows of users and items.
    pub(super) fn measure<'r>(&self, row: impl Fn(Side, usize) -> &'r [f32]) -> Result<Measured, Error> {
        let Self { feedback, config } = self;
        let (mut loss, unseen) = (0.0, 1.0 / f64::from(config.alpha));
        for ((&user, &item), &value) in feedback.left.iter().zip(&feedback.right).zip(&feedback.data) {
            let found = f64::from(dot(row(Side::Left, user as usize), row(Side::Right, item as usize)));
            loss += f64::from(value) * (1.0 - found).powi(2) + unseen * (1.0 - 2.0 * found);
        }
        let sides = [Side::Left, Side::Right].map(|side| {
            let total = gramian(config.dims, self.len(side), |id, into| into.copy_from_slice(row(side, id)));
            let squares = |id| row(side, id).iter().map(|&value| f64::from(value).powi(2)).sum::<f64>();
            let norms = self.rhos(side).into_iter().enumerate();
            let norms = norms.map(|(id, rho)| f64::from(rho.unwrap_or(0.0)) * squares(id)).sum();
            OfSide::new(total, norms, config)
        });
        Ok((Gramians { sides, loss }.objective(config), BTreeMap::new()))
    }
}

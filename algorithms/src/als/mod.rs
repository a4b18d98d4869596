//! Matrix factorization of implicit feedback: finds p_u, q_i in R^k that minimise, over *all* users and items,
//!
//! ```text
//! Σ r_ui (1 − p_u·q_i)² + α₀ Σ (t_ui − p_u·q_i)² + λ Σ_u (α₀ |I| + n_u)^ν |p_u|² + λ Σ_i (α₀ |U| + n_i)^ν |q_i|²,   α₀ = 1/α
//! ```
//!
//! where r_ui > 0 is feedback, of which user u gave n_u and item i got n_i, the first sum is over feedback, the second over all pairs,
//! and t_ui is 1 where there is feedback and 0 elsewhere. Times α it is the loss of Hu, Koren and Volinsky 2008 (eq. 3), with
//! confidence 1 + α r; the weight of the regularizer is that of Rendle, Krichene, Zhang and Koren 2022, "Revisiting the performance
//! of iALS" (eq. 4).
//!
//! Given the items each user has normal equations of his own, and the other way round. An iteration solves them exactly, block of
//! dimensions by block (iALS++: Rendle, Krichene, Zhang and Koren 2021): with the dimensions π of a block, residuals e = t − p·q and
//! the Gramian G = Σ q qᵀ, it adds to p_π the solution δ of
//!
//! ```text
//! (Σ r q_π q_πᵀ + α₀ G_ππ + ρ I) δ = Σ (r e + α₀) q_π − α₀ (G p)_π − ρ p_π
//! ```
//!
//! One block of all dimensions is plain iALS.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Solve`], each user | q of the user's items, Gramian of items | p_u, the worker's Gramian of users |
//! | [`Fold`] | workers' Gramians | Gramian of users |
//! | [`Solve`], each item | p of the item's users, Gramian of users | q_i, the worker's Gramian of items and loss on feedback |
//! | [`Fold`] | workers' Gramians and losses | Gramian of items, loss |
//!
//! Input: users × items with a value above 0 for feedback, which one edge of a pair has; edges of value 0 are passed by. Memory: k floats
//! a vertex (padded to 16), 20 bytes an edge, and for each worker k floats an edge of the vertex with most. Not for: ratings, where a
//! low one says that something is not liked.

mod gramian;
mod stages;

pub use gramian::{GramianOf, gramian, tiled};
pub use stages::{Als, Fold, Gramians, Item, OfSide, Solve, User, Worker, sequence};

use megagrid_partition::SplitMix;
use megagrid_stages::{ROW_ALIGN, row_width};

use crate::Error;
use crate::mf::normal;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Length k of a factor.
    pub dims: usize,
    /// Dimensions that are solved for at once, a multiple of 16; at least `dims`: all.
    pub block: usize,
    /// Weight λ of the regularizer.
    pub lambda: f32,
    /// Weight α of a unit of feedback against a pair without.
    pub alpha: f32,
    /// Exponent ν of how often a vertex occurs, in the weight of its regularizer.
    pub nu: f32,
    /// Standard deviation of the first values times sqrt(k).
    pub init_std: f32,
}

impl Default for Config {
    fn default() -> Self {
        Self { dims: 32, block: ROW_ALIGN, lambda: 0.003, alpha: 10.0, nu: 1.0, init_std: 0.1 }
    }
}

impl Config {
    /// Checks the ranges of all parameters.
    ///
    /// # Errors
    /// The first that is out of range.
    pub fn check(&self) -> Result<(), Error> {
        if self.dims == 0 || self.dims > 4096 {
            return Err(Error::setting("dims", self.dims, "1 to 4096"));
        }
        if self.block == 0 || !self.block.is_multiple_of(ROW_ALIGN) && self.block < self.dims {
            return Err(Error::setting("block", self.block, "a multiple of 16, or the number of dims for all at once"));
        }
        for (name, value) in [("alpha", self.alpha), ("init-std", self.init_std), ("lambda", self.lambda)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::setting(name, value, "a number above 0"));
            }
        }
        if !(0.0..=2.0).contains(&self.nu) {
            return Err(Error::setting("nu", self.nu, "0 to 2"));
        }
        Ok(())
    }

    /// Returns the dimensions of a block, of padded rows.
    #[must_use]
    pub fn block_width(&self) -> usize {
        row_width(self.block.min(self.dims))
    }

    /// Returns the weight of a vertex's regularizer: of `edges` edges, where the other side has `others` vertices.
    #[must_use]
    pub fn rho(&self, edges: usize, others: usize) -> f32 {
        let weight = others as f64 / f64::from(self.alpha) + edges as f64;
        (f64::from(self.lambda) * weight.powf(self.nu.into())) as f32
    }

    /// Sets the first values of an item's row: normal by a seeded hash of the item.
    pub fn init_item(&self, seed: u64, item: usize, row: &mut [f32]) {
        let mut random = SplitMix::new(seed, 2 * item as u64 + 1);
        let std = self.init_std / (self.dims as f32).sqrt();
        row[..self.dims].iter_mut().for_each(|value| *value = std * normal(&mut random));
    }
}

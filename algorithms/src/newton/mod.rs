//! Sparse logistic regression of few features, by Newton's method: the objective is that of [`blockpg`](crate::blockpg).
//!
//! An iteration passes over the samples once. With m_i = y_i w·x_i and τ = 1/(1 + exp m) it adds up the loss and its first and second
//! derivatives,
//!
//! ```text
//! gradient g = −Σ c_i τ_i y_i x_i        curvature H = Σ c_i τ_i (1 − τ_i) x_i x_iᵀ
//! ```
//!
//! and goes to where the model g·d + d·H·d/2 + l1 |w + d|₁ + l2/2 |w + d|² is least, which [`Quadratic`] finds exactly (proximal Newton: Lee, Sun and
//! Saunders 2014). Correlated features do not slow it, and near the optimum an iteration doubles the number of correct digits.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Meet`], each sample with its values | weights | loss, gradient, curvature |
//! | [`Solve`], once per iteration | these | weights |
//!
//! **Samples of the curvature.** A sample with n values has n²/2 products in H, most of the work. Far from the optimum H need not be exact:
//! a sample's products are added up with a chance in proportion to its leverage, Σ_j H_jj⁻¹ c τ (1 − τ) x_j² by the diagonal of the iteration before, and
//! divided by that chance (sub-sampled Newton: Xu, Yang, Roosta-Khorasani, Ré and Mahoney 2016). There are about as many such samples as there are
//! features, times a constant, whatever the number of all; gradient and diagonal are exact. Close to the optimum all are added up.
//!
//! **Steps.** Weights are taken on when samples have met them: where the objective has not fallen by a part of what the model promised, the step is
//! halved, and samples meet those.
//!
//! **Memory.** A matrix of features × features of f64 for each worker. The model's minimum takes about the cube of the weights that are not zero.

mod quadratic;
mod stages;
mod trial;

pub use quadratic::Quadratic;
pub use stages::{Feature, Label, Meet, Newton, Sample, Solve, State, Sums, sequence};
pub use trial::Trial;

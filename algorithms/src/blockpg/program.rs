//! The graph: samples, features, values.

use megagrid_stages::{Vertex, program, vertex};

use super::control::{State, Totals};
use super::proximal::{Derivatives, Margin, Parabola, Region, Weight};

vertex! {
    /// A sample.
    pub struct Sample { sync: Parabola, delta: f64, master: Margin }
}

/// A feature.
pub struct Feature;

impl Vertex for Feature {
    type Sync = Weight;
    type Delta = Derivatives;
    type Master = Region;
    /// The weight's last change, which samples are still to be told.
    type Mirror = f64;

    const RESTS: bool = true;

    #[inline(always)]
    fn is_resting(weight: &Weight) -> bool {
        weight.rests()
    }

    #[inline(always)]
    fn refresh(change: &mut f64, old: &Weight, new: &Weight) {
        *change = new.value - old.value;
    }
}

program! {
    /// Sparse logistic regression.
    pub struct BlockPg { left: Sample, right: Feature, edge: f32, worker: Totals, global: State }
}

//! What searchers have in common.

use crate::space::{Point, Space};

/// A setting that was tried, as a point, and what came of it; larger is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub point: Point,
    /// The convergence speed, say.
    pub value: f64,
}

/// Proposes settings that may be better than those observed.
pub trait Searcher {
    /// Proposes a point, or nothing when all have been proposed.
    fn propose(&mut self) -> Option<Point>;

    /// Takes in what came of a point.
    fn observe(&mut self, observation: Observation);

    /// Returns how many settings it proposes, if a search with it ends only after all of them.
    fn settings(&self) -> Option<usize> {
        None
    }
}

/// Points that spread over a space more evenly than random ones: an additive recurrence for each tunable (Roberts 2018), from a
/// random place.
pub(super) struct Spread {
    choices: Vec<Option<usize>>,
    steps: Vec<f64>,
    at: Vec<f64>,
}

impl Spread {
    pub fn new(space: &Space, random: &mut impl rand::RngExt) -> Self {
        let choices: Vec<_> = space.tunables().iter().map(|tunable| tunable.choices()).collect();
        // The root above 1 of x^(d+1) = x + 1.
        let (degree, mut root) = (choices.len() as f64 + 1.0, 2.0_f64);
        for _ in 0..60 {
            root = (1.0 + root).powf(1.0 / degree);
        }
        let steps = (1..=choices.len()).map(|n| root.powi(-(n as i32))).collect();
        Self { at: choices.iter().map(|_| random.random()).collect(), choices, steps }
    }

    pub fn next(&mut self) -> Point {
        self.at.iter_mut().zip(&self.steps).for_each(|(at, step)| *at = (*at + step).fract());
        let of = |(at, choices): (&f64, &Option<usize>)| choices.map_or(*at, |n| (at * n as f64).floor());
        self.at.iter().zip(&self.choices).map(of).collect()
    }
}

/// Draws a point at random.
pub(super) fn uniform(space: &Space, random: &mut impl rand::RngExt) -> Point {
    let draw = |choices: Option<usize>, random: &mut _| match choices {
        Some(n) => rand::RngExt::random_range(random, 0..n) as f64,
        None => rand::RngExt::random::<f64>(random),
    };
    space.tunables().iter().map(|tunable| draw(tunable.choices(), random)).collect()
}

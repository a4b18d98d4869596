//! Draws from fixed weights in O(1) (Walker 1977; built as Vose 1991).

/// A table from which an index is drawn with a chance proportional to its weight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alias {
    /// For each index: the part of its cell that is its own, and whose the rest is.
    cells: Vec<(f32, u16)>,
    weights: Vec<f32>,
    total: f64,
}

impl Alias {
    /// Takes other weights, at most 65,536 and some of them above 0; does nothing where they are those that it has.
    ///
    /// # Complexity
    /// O(K).
    pub fn set(&mut self, weights: impl Iterator<Item = f32> + Clone) {
        if self.weights.iter().copied().eq(weights.clone()) {
            return;
        }
        self.weights = weights.collect();
        let weights = self.weights.iter().map(|&weight| f64::from(weight));
        self.total = weights.clone().sum();
        let scale = self.weights.len() as f64 / self.total;
        let mut rest: Vec<f64> = weights.map(|weight| weight * scale).collect();
        self.cells = (0..rest.len()).map(|index| (1.0, index as u16)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..rest.len()).partition(|&index| rest[index] < 1.0);
        while let (Some(less), Some(&more)) = (small.pop(), large.last()) {
            self.cells[less] = (rest[less] as f32, more as u16);
            rest[more] -= 1.0 - rest[less];
            if rest[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
    }

    /// Returns the sum of the weights.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the weight of an index.
    #[inline(always)]
    pub fn weight(&self, index: usize) -> f32 {
        self.weights[index]
    }

    /// Draws an index with a uniform number in `0..1`; a number outside is taken as the nearest inside.
    #[inline(always)]
    pub fn draw(&self, uniform: f64) -> u16 {
        let at = uniform * self.cells.len() as f64;
        let cell = (at as usize).min(self.cells.len() - 1);
        let (own, other) = self.cells[cell];
        if at - (cell as f64) < f64::from(own) { cell as u16 } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_has_its_share_of_the_unit_interval() {
        for weights in [vec![1.0], vec![0.5; 7], vec![3.0, 0.0, 1.0, 0.25, 0.75], vec![1e-5, 1.0, 2.0]] {
            let mut alias = Alias::default();
            alias.set(weights.iter().copied());
            let draws = 1_000_000;
            let mut found = vec![0.0; weights.len()];
            for n in 0..draws {
                found[usize::from(alias.draw((f64::from(n) + 0.5) / f64::from(draws)))] += 1.0 / f64::from(draws);
            }
            for (found, weight) in found.iter().zip(&weights) {
                let expected = f64::from(*weight) / alias.total();
                assert!((found - expected).abs() < 1e-5, "{weights:?}: {found}, expected {expected}");
            }
        }
    }
}

//! Samples of classes: rows of features, most of which may be zeros.

use crate::Error;

/// Samples and their classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    num_features: usize,
    num_classes: usize,
    offsets: Vec<usize>,
    features: Vec<u32>,
    values: Vec<f32>,
    classes: Vec<u32>,
}

impl Samples {
    /// Takes samples as rows of features and values: row i is `features[offsets[i]..offsets[i + 1]]`.
    ///
    /// # Errors
    /// Features or classes that there are not, or lengths that do not fit.
    pub fn new(
        [num_features, num_classes]: [usize; 2],
        offsets: Vec<usize>,
        features: Vec<u32>,
        values: Vec<f32>,
        classes: Vec<u32>,
    ) -> Result<Self, Error> {
        let refused = |problem: &str| Err(Error::Samples { problem: problem.to_owned() });
        let is_row = |pair: &[usize]| pair[0] <= pair[1];
        if offsets.len() != classes.len() + 1 || offsets[0] != 0 || !offsets.windows(2).all(is_row) {
            return refused("offsets do not begin at 0, fall, or are not one more than classes");
        }
        if features.len() != values.len() || offsets.last() != Some(&features.len()) {
            return refused("there are other numbers of features, of values, and of the last offset");
        }
        if features.iter().any(|&feature| feature as usize >= num_features) {
            return refused("a feature is beyond the last one");
        }
        if classes.iter().any(|&class| class as usize >= num_classes) {
            return refused("a class is beyond the last one");
        }
        Ok(Self { num_features, num_classes, offsets, features, values, classes })
    }

    /// Returns how many samples there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Returns the features that samples may have.
    #[must_use]
    pub fn num_features(&self) -> usize {
        self.num_features
    }

    /// Returns the classes that there are.
    #[must_use]
    pub fn num_classes(&self) -> usize {
        self.num_classes
    }

    /// Returns the class of a sample.
    #[must_use]
    pub fn class(&self, sample: usize) -> u32 {
        self.classes[sample]
    }

    /// Returns the features of a sample that are no zeros, and their values.
    pub fn features(&self, sample: usize) -> impl Iterator<Item = (usize, f32)> {
        let row = self.offsets[sample]..self.offsets[sample + 1];
        self.features[row.clone()].iter().map(|&feature| feature as usize).zip(self.values[row].iter().copied())
    }

    /// Writes samples as dense rows.
    pub(super) fn write_rows(&self, samples: &[u32], rows: &mut Vec<f32>) {
        rows.clear();
        rows.resize(samples.len() * self.num_features, 0.0);
        for (&sample, row) in samples.iter().zip(rows.chunks_exact_mut(self.num_features.max(1))) {
            self.features(sample as usize).for_each(|(feature, value)| row[feature] += value);
        }
    }
}

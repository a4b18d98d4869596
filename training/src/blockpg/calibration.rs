//! Models whose probabilities are calibrated on the samples to test on.

use megagrid_algorithms::blockpg::Calibration;

use super::data::Samples;
use super::model::Linear;
use crate::Error;

impl Samples {
    /// Refuses to calibrate where there is nothing to do it on.
    pub(super) fn check_calibration(&self) -> Result<(), Error> {
        if !self.calibrate {
            return Ok(());
        }
        let Some(test) = &self.test else {
            return Err(Error::option(
                "--calibrate needs samples that are not trained on; keep some with --holdout, or name them with --test",
            ));
        };
        let mut classes = (0_u32..).zip(&self.labels.classes);
        let weighs = |sample: usize| test.weights.get(sample).is_none_or(|&weight| weight > 0.0);
        let has = |class: u32| test.labels.iter().enumerate().any(|(sample, &of)| of == class && weighs(sample));
        match classes.find(|(class, _)| !has(*class)) {
            Some((_, name)) => Err(Error::option(format!(
                "--calibrate needs samples of each class to test on, and of class {name} there is none; use a larger --holdout"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the line that calibrates the scores of each model; none where that is not asked for.
    pub(super) fn calibration(&self, linear: &Linear) -> Result<Vec<Calibration>, Error> {
        let Some(test) = self.test.as_ref().filter(|_| self.calibrate) else { return Ok(Vec::new()) };
        let line = |(model, &intercept): (usize, &f64)| {
            let scores = test.scores(linear.of(model), intercept)?;
            Ok(Calibration::fit(&scores, &self.signs_of(model, &test.labels), &test.weights))
        };
        linear.intercepts.iter().enumerate().map(line).collect()
    }
}

impl Linear {
    /// Has each model's scores be those on its line. A line of a score is a score, of other weights: who reads the model need not know.
    pub(super) fn calibrate(&mut self, lines: Vec<Calibration>) {
        let features = self.features.len();
        for (model, line) in lines.iter().enumerate() {
            self.intercepts[model] = line.of(self.intercepts[model]);
            self.weights[model * features..][..features].iter_mut().for_each(|weight| *weight *= line.slope);
        }
        self.calibration = lines;
    }
}
